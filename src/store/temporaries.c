/* Room: store. The list of temporaries; under its lock, so that none is removed while
 * its place is being closed. Stays empty in programs that only read. */
#include "store/temporaries.h"
#include "base/thread.h"

static cv_mutex lock = CV_MUTEX_INIT;
static cv_temporary *list;

void cv_temporaries_add(cv_temporary *temporary, void (*remove)(cv_temporary *temporary))
{
    cv_mutex_lock(&lock);
    temporary->remove = remove;
    temporary->is_listed = true;
    temporary->made = cv_os_now();
    temporary->before = NULL;
    temporary->next = list;
    if (list) list->before = temporary;
    list = temporary;
    cv_mutex_unlock(&lock);
}

void cv_temporaries_remove(cv_temporary *temporary)
{
    if (!temporary->is_listed) return;
    cv_mutex_lock(&lock);
    *(temporary->before ? &temporary->before->next : &list) = temporary->next;
    if (temporary->next) temporary->next->before = temporary->before;
    temporary->is_listed = false;
    cv_mutex_unlock(&lock);
}

void cv_temporaries_abandon(void)
{
    cv_mutex_lock(&lock);
    for (cv_temporary *temporary = list; temporary; temporary = temporary->next)
        if (!cv_os_is_other_process(temporary->made)) /* else others need it */
            temporary->remove(temporary);
    cv_mutex_unlock(&lock);
}
