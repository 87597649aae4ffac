/* Appends days of hourly measurements to an array that grows, with one commit per day.
 *
 *   growing-series FILE DAYS
 *
 * A run that is killed loses only the day that it was writing. */
#include <caterva.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOURS = 24, STATIONS = 8 };

/* A chunk holds a month, so that the last chunk, which every commit rewrites, stays small. The
 * first axis begins with length 0 and grows. */
static caterva_status create(const char *path, caterva_array **out, caterva_error *err)
{
    const int64_t shape[] = {0, STATIONS};
    const int32_t chunk_shape[] = {30 * HOURS, STATIONS};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = chunk_shape;
    options.dtype = "<f4";
    options.fill = CATERVA_FILL_NAN;
    return caterva_create(path, &options, out, err);
}

static caterva_status open_or_create(const char *path, caterva_array **out,
                                     caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    caterva_status status = caterva_open(path, &options, out, err);
    return status == CATERVA_ENOTFOUND ? create(path, out, err) : status;
}

/* A made-up measurement. */
static float measure(int64_t hour, int station)
{
    return (float)(10 + station) + (float)(hour % HOURS) / 4;
}

static caterva_status count_hours(caterva_array *array, int64_t *hours, caterva_error *err)
{
    const caterva_info *info;
    caterva_status status = caterva_info_get(array, &info, err);
    if (status != CATERVA_OK) return status;
    *hours = info->shape[0];
    caterva_info_release(info);
    return CATERVA_OK;
}

static caterva_status append_day(caterva_array *array, caterva_error *err)
{
    float day[HOURS][STATIONS];
    int64_t first;
    if (count_hours(array, &first, err) != CATERVA_OK) return err->code;
    for (int h = 0; h < HOURS; h++)
        for (int s = 0; s < STATIONS; s++) day[h][s] = measure(first + h, s);
    caterva_buffer src = CATERVA_BUFFER_INIT;
    src.data = day;
    src.size = sizeof day;
    caterva_status status = caterva_append(array, 0, HOURS, &src, err);
    return status == CATERVA_OK ? caterva_commit(array, err) : status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: growing-series FILE DAYS\n");
        return 2;
    }
    caterva_error err;
    caterva_array *array = NULL;
    if (open_or_create(argv[1], &array, &err) != CATERVA_OK) goto failed;
    for (long days = strtol(argv[2], NULL, 10); days > 0; days--)
        if (append_day(array, &err) != CATERVA_OK) goto failed;

    int64_t hours;
    if (count_hours(array, &hours, &err) != CATERVA_OK) goto failed;
    printf("%lld hours of %d stations\n", (long long)hours, STATIONS);
    if (hours > 0) { /* the last hour of one station */
        const int64_t start[] = {hours - 1, 2}, stop[] = {hours, 3};
        float last;
        if (caterva_read(array, start, stop, &last, sizeof last, &err) != CATERVA_OK)
            goto failed;
        printf("station 2, last hour: %.2f\n", (double)last);
    }
    if (caterva_close(array, &err) == CATERVA_OK) return 0;
    array = NULL;

failed:
    fprintf(stderr, "growing-series: %s\n", err.message);
    caterva_discard(array);
    return 1;
}
