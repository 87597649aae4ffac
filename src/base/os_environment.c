/* Room: base. The one place that reads the environment. */
#include "base/os_environment.h"

#include "base/heap.h"

#include <stdlib.h>

char *cv_os_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? cv_strdup(value) : NULL;
}
