/* Test support: keeps the last infos in a ring. */
#include "info.h"

#include <pthread.h>

enum { HELD = 4096 };

const caterva_info *info_of(caterva_array *array)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const caterva_info *held[HELD];
    static int next;
    const caterva_info *info;
    if (!array || caterva_info_get(array, &info, NULL) != CATERVA_OK) return NULL;
    pthread_mutex_lock(&lock);
    if (held[(next + HELD - 1) % HELD] == info) {
        caterva_info_release(info);
    } else {
        caterva_info_release(held[next]);
        held[next] = info;
        next = (next + 1) % HELD;
    }
    pthread_mutex_unlock(&lock);
    return info;
}
