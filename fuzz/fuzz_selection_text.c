/* Any text as a selection of the command line, for arrays of several shapes:
 * what is accepted lies inside the array. */
#include "fuzz.h"

#include "selection.h"

#include <stdarg.h>

/* Stands for the command line's, which would print. */
cli_exit cli_fail(cli_exit code, const char *fmt, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, fmt);
    int n = vsnprintf(sentence, sizeof sentence, fmt, arguments);
    va_end(arguments);
    FUZZ_NEED(n > 0, "a refusal without a sentence");
    return code;
}

static void check(const selection *sel, const int64_t *shape)
{
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        FUZZ_NEED(a->count >= 0 && a->count <= shape[d], "axis %d has %lld items of %lld", d,
                  (long long)a->count, (long long)shape[d]);
        if (a->count == 0) continue;
        int64_t last = a->start + (a->count - 1) * a->step;
        FUZZ_NEED(a->start >= 0 && a->start < shape[d] && last >= 0 && last < shape[d],
                  "axis %d goes from %lld to %lld of %lld", d, (long long)a->start,
                  (long long)last, (long long)shape[d]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t shapes[][3] = {{10, 7, 3}, {1, 0, 5}, {INT64_MAX, 1, 2}};
    char *text = fuzz_alloc(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    for (int i = 0; i < 3; i++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            selection sel;
            if (selection_parse(text, ndim, shapes[i], &sel) == CLI_OK)
                check(&sel, shapes[i]);
        }
    free(text);
    return 0;
}
