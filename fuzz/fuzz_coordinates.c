/* Any text as a selection by coordinates, on axes whose coordinates rise, fall, turn, are
 * times in several calendars, or are missing. An accepted selection lies inside the array. */
#include "refusals.h"

#include "sources/coordinates.h"
#include "sources/index_file.h"

/* Replaces the command line's function. */
cli_shown cli_show(const char *text)
{
    cli_shown shown;
    (void)snprintf(shown.text, sizeof shown.text, "%s", text);
    return shown;
}

void *cli_alloc(size_t size) { return fuzz_alloc(size); }

cli_exit index_file_load(const char *path, index_file *out)
{
    (void)path;
    (void)out;
    FUZZ_NEED(false, "a file is asked for");
    return CLI_IO;
}

void index_file_free(index_file *file) { (void)file; }

/* ---- Axes ----------------------------------------------------------------- */

enum { N_AXES = 6, N_ITEMS = 40 };

static const char *const names[N_AXES] = {"lat", "time", "hour", "k", "turn", "free"};

/* lat falls by halves, time counts days of a model's calendar, hour is a float32 of hours, k
 * rises in steps of 3, turn goes up and down. */
static cli_exit read_values(void *context, int64_t start, int64_t n, coordinate_value *out)
{
    int axis = (int)((const char *const *)context - names);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = start + i;
        FUZZ_NEED(at >= 0 && at < N_ITEMS, "item %lld of %d is read", (long long)at, N_ITEMS);
        switch (axis) {
        case 0: out[i].real = 10 - (double)at / 2; break;
        case 1: out[i].whole = at - 5; break;
        case 2: out[i].real = (double)(float)((double)at / 3); break;
        case 3: out[i].whole = at * 3 - INT64_MAX / 2; break;
        default: out[i].whole = at < 20 ? at : 40 - at; break;
        }
    }
    return CLI_OK;
}

static cli_exit find(void *context, const char *name, int64_t n, const coordinate **out)
{
    static const coordinate_kind kinds[] = {COORDINATE_REAL, COORDINATE_WHOLE,
                                            COORDINATE_SINGLE, COORDINATE_WHOLE,
                                            COORDINATE_WHOLE};
    static coordinate all[N_AXES];
    const char *units = context;
    *out = NULL;
    for (int i = 0; i < N_AXES - 1; i++) {
        if (strcmp(names[i], name) != 0) continue;
        all[i] = (coordinate){.name = names[i],
                              .kind = kinds[i],
                              .n = n,
                              .read = read_values,
                              .context = (void *)(uintptr_t)&names[i]};
        all[i].is_time = i == 1 || i == 2;
        calendar of = i == 1 ? CALENDAR_360_DAY : CALENDAR_STANDARD;
        if (all[i].is_time) FUZZ_NEED(time_count_parse(units, of, &all[i].time), "units");
        *out = &all[i];
    }
    return CLI_OK;
}

static void check(const selection *sel)
{
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        FUZZ_NEED(a->count >= 0 && (!a->list || names[d][0] == 'f'), "axis %d", d);
        for (int64_t i = 0; i < a->count; i++) {
            int64_t item = a->list ? a->list[i] : a->start + i * a->step;
            FUZZ_NEED(item >= 0 && item < N_ITEMS, "axis %d takes item %lld", d,
                      (long long)item);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const units[] = {"days since 2000-01-01", "hours since 1582-10-4 6:00",
                                        "ms since 1970-01-01T00:00:00.5 +01:00"};
    if (size > 4096) return 0;
    char *text = fuzz_alloc(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    int64_t shape[N_AXES];
    for (int d = 0; d < N_AXES; d++) shape[d] = N_ITEMS;
    for (int i = 0; i < 6; i++) {
        coordinate_finder finder = {find, (void *)(uintptr_t)units[i / 2], i % 2};
        selection sel;
        if (coordinates_parse(text, N_AXES, shape, names, &finder, &sel) != CLI_OK) continue;
        check(&sel);
        selection_free(&sel);
    }
    time_count any;
    (void)time_count_parse(text, CALENDAR_STANDARD, &any);
    free(text);
    return 0;
}
