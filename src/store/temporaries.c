/* Room: store. The list of temporaries; under its lock, so that none is removed while
 * its place is being closed. Stays empty in programs that only read. */
#include "store/temporaries.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cv_place *list;

void cv_temporaries_add(cv_place *place)
{
    pthread_mutex_lock(&lock);
    place->is_listed = true;
    place->made = cv_os_now();
    place->next = list;
    list = place;
    pthread_mutex_unlock(&lock);
}

void cv_temporaries_remove(cv_place *place)
{
    if (!place->is_listed) return;
    pthread_mutex_lock(&lock);
    cv_place **link = &list;
    while (*link != place) link = &(*link)->next;
    *link = place->next;
    place->is_listed = false;
    pthread_mutex_unlock(&lock);
}

void cv_temporaries_abandon(void)
{
    pthread_mutex_lock(&lock);
    for (cv_place *place = list; place; place = place->next)
        if (!place->is_left && !cv_os_is_other_process(place->made)) /* else others need it */
            cv_place_remove_temp(place);
    pthread_mutex_unlock(&lock);
}
