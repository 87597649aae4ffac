/* Calls without an array of the program's: what deletes and what converts is stopped at each
 * of its chances. What is told on the way never goes back and ends at the total. */
#include "caterva.h"
#include "caterva_value.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { N = 40, CHUNKS = 8 };
static char folder[SCRATCH_PATH], path[SCRATCH_PATH];

/* The name of the one entry of the folder into `name`; 0: there is none. */
static int find_entry(char name[SCRATCH_PATH])
{
    int n = 0;
    DIR *dir = opendir(folder);
    CHECK(dir != NULL, "cannot list %s", folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(name, SCRATCH_PATH, "%s", entry->d_name);
        n++;
    }
    closedir(dir);
    CHECK(n <= 1, "%d entries", n);
    return n;
}

static void save(void)
{
    int32_t items[N];
    caterva_error err;
    caterva_array *array;
    caterva_create_options options = CATERVA_CREATE_INIT;
    for (int i = 0; i < N; i++) items[i] = i * i + 1;
    options.ndim = 1;
    options.shape = (int64_t[]){N};
    options.chunk_shape = (int32_t[]){N / CHUNKS};
    options.dtype = "<i4";
    options.layout = CATERVA_LAYOUT_SPARSE;
    CHECK_OK(caterva_create_from_memory(path, &options, items, sizeof items, &array, &err),
             err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* ---- Deleting ----------------------------------------------------------------------- */

static void check_whole(void)
{
    int64_t start = 0, stop = N;
    int32_t items[N];
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, &start, &stop, items, sizeof items, &err), err);
    for (int i = 0; i < N; i++) CHECK(items[i] == i * i + 1, "item %d", i);
    caterva_discard(array);
}

/* What is left has another name, which the sentence says, and is deleted by it. */
static void delete_rest(const caterva_error *err)
{
    char name[SCRATCH_PATH], rest[2 * SCRATCH_PATH];
    caterva_error again;
    caterva_array *array;
    CHECK(caterva_open(path, NULL, &array, &again) == CATERVA_ENOTFOUND, "it is in view");
    CHECK(find_entry(name) == 1, "nothing is left");
    CHECK(strstr(err->message, name) != NULL, "%s: not %s", err->message, name);
    snprintf(rest, sizeof rest, "%s/%s", folder, name);
    CHECK_OK(caterva_unlink(rest, NULL, &again), again);
}

static void stop_unlink(void)
{
    char name[SCRATCH_PATH];
    for (int chance = 0;; chance++) {
        patience p = {.left = chance};
        caterva_error err;
        caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
        options.on_progress = patience_hear;
        options.context = &p;
        save();
        caterva_status status = caterva_unlink(path, &options, &err);
        CHECK(p.total == CHUNKS, "%lld files", (long long)p.total);
        if (status == CATERVA_OK) {
            CHECK(p.done == CHUNKS && chance >= CHUNKS, "%lld files at chance %d",
                  (long long)p.done, chance);
            CHECK(find_entry(name) == 0, "%s is left", name);
            return;
        }
        CHECK(status == CATERVA_ESTOPPED && p.calls == chance + 1, "%s after %d calls",
              caterva_status_name(status), p.calls);
        if (chance == 0)
            check_whole();
        else
            delete_rest(&err);
        if (chance == 0) CHECK_OK(caterva_unlink(path, NULL, &err), err);
        CHECK(find_entry(name) == 0, "%s is left at chance %d", name, chance);
    }
}

/* ---- Converting --------------------------------------------------------------------- */

static caterva_status convert(const int32_t *src, double *dst, int64_t n, patience *p)
{
    caterva_error err;
    caterva_buffer from = CATERVA_BUFFER_INIT, to = CATERVA_BUFFER_INIT;
    caterva_convert_options options = CATERVA_CONVERT_INIT;
    from.data = (void *)(uintptr_t)src;
    from.size = (size_t)n * sizeof src[0];
    from.dtype = "=i4";
    to.data = dst;
    to.size = (size_t)n * sizeof dst[0];
    to.dtype = "=f8";
    options.on_progress = patience_hear;
    options.context = p;
    return caterva_buffer_convert(&from, n, &to, &options, &err);
}

static void stop_convert(void)
{
    int64_t n = 1000003;
    int32_t *src = check_alloc((size_t)n * sizeof src[0]);
    double *dst = check_alloc((size_t)n * sizeof dst[0]);
    for (int64_t i = 0; i < n; i++) src[i] = (int32_t)i - 7;
    int chance = 0;
    for (caterva_status status = CATERVA_ESTOPPED; status != CATERVA_OK; chance++) {
        patience p = {.left = chance};
        status = convert(src, dst, n, &p);
        CHECK(p.total == n, "%lld items", (long long)p.total);
        if (status == CATERVA_OK)
            CHECK(p.done == n, "%lld items", (long long)p.done);
        else
            CHECK(status == CATERVA_ESTOPPED, "%s", caterva_status_name(status));
    }
    CHECK(chance > 3, "%d chances", chance);
    for (int64_t i = 0; i < n; i++) CHECK(dst[i] == (double)i - 7, "item %lld", (long long)i);
    free(src);
    free(dst);
}

/* ---- Values of attributes ------------------------------------------------------------- */

typedef struct bytes {
    void *data;
    size_t size;
} bytes;

typedef caterva_status (*change_fn)(const bytes *from, const caterva_convert_options *options,
                                    bytes *to, caterva_error *err);

static caterva_status pack(const bytes *from, const caterva_convert_options *options,
                           bytes *to, caterva_error *err)
{
    int64_t shape = (int64_t)from->size / 4;
    return caterva_value_pack_array("<i4", 1, &shape, from->data, from->size, options,
                                    &to->data, &to->size, err);
}

static caterva_status from_json(const bytes *from, const caterva_convert_options *options,
                                bytes *to, caterva_error *err)
{
    return caterva_value_from_json(from->data, from->size, NULL, options, &to->data,
                                   &to->size, err);
}

static caterva_status from_json_typed(const bytes *from,
                                      const caterva_convert_options *options, bytes *to,
                                      caterva_error *err)
{
    return caterva_value_from_json(from->data, from->size, "<i8", options, &to->data,
                                   &to->size, err);
}

static caterva_status to_json(const bytes *from, const caterva_convert_options *options,
                              bytes *to, caterva_error *err)
{
    char *json;
    caterva_status status =
        caterva_value_to_json(from->data, from->size, options, &json, &to->size, err);
    to->data = status == CATERVA_OK ? json : NULL;
    return status;
}

/* Stopped at each chance, then let through: the result is that of a call nobody hears of. */
static bytes stop_change(change_fn change, const bytes *from)
{
    size_t piece = change == pack ? 1 << 20 : 1 << 17;
    bytes out = {NULL, 0}, plain;
    caterva_error err;
    int chance = 0;
    for (caterva_status status = CATERVA_ESTOPPED; status != CATERVA_OK; chance++) {
        patience p = {.left = chance};
        caterva_convert_options options = CATERVA_CONVERT_INIT;
        options.on_progress = patience_hear;
        options.context = &p;
        status = change(from, &options, &out, &err);
        CHECK(p.total == (int64_t)from->size, "%lld bytes", (long long)p.total);
        CHECK(status == CATERVA_OK || status == CATERVA_ESTOPPED, "%s",
              caterva_status_name(status));
        CHECK(status != CATERVA_OK || p.done == p.total, "%lld bytes", (long long)p.done);
    }
    CHECK((size_t)chance > from->size / piece, "%d chances in %zu bytes", chance, from->size);
    CHECK_OK(change(from, NULL, &plain, &err), err);
    CHECK(plain.size == out.size && memcmp(plain.data, out.data, out.size) == 0,
          "they differ");
    caterva_free(plain.data);
    return out;
}

/* There and back. */
static void stop_json(change_fn from, bytes json)
{
    bytes value = stop_change(from, &json), again = stop_change(to_json, &value);
    bytes back = stop_change(from_json, &again);
    CHECK(value.size == back.size && memcmp(value.data, back.data, back.size) == 0,
          "it does not come back");
    caterva_free(value.data);
    caterva_free(again.data);
    caterva_free(back.data);
}

/* `n` times `part`, between what begins and ends it. */
static bytes repeat(const char *begin, const char *part, const char *end, size_t n)
{
    size_t size = strlen(part), at = strlen(begin);
    char *text = check_alloc(at + n * size + strlen(end) + 1);
    memcpy(text, begin, at);
    for (size_t i = 0; i < n; i++, at += size) memcpy(text + at, part, size);
    strcpy(text + at, end);
    return (bytes){text, at + strlen(end)};
}

static void stop_values(void)
{
    static const struct {
        const char *begin, *part, *end;
        change_fn from;
    } cases[] = {{"[", "1,", "2]", from_json},
                 {"[", "1234567,", "2]", from_json_typed},
                 {"[", "[0.25, {\"a\": [true, null]}], ", "{}]", from_json},
                 {"\"", "plain text ", "\"", from_json},
                 {"\"a", "\xc3\xa4\xe2\x82\xac", "\"", from_json},
                 {"{\"$binary\": \"", "AQID", "\"}", from_json},
                 {"{\"$set\": [", "\"s\", ", "1]}", from_json},
                 {"{\"$map\": [", "[1, 2], ", "[3, 4]]}", from_json}};
    enum { SIZE = 5 << 20, TEXT = 1 << 19 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = TEXT / strlen(cases[i].part);
        bytes json = repeat(cases[i].begin, cases[i].part, cases[i].end, n);
        stop_json(cases[i].from, json);
        free(json.data);
    }
    bytes items = {check_alloc(SIZE), SIZE};
    for (size_t i = 0; i < SIZE; i++)
        ((unsigned char *)items.data)[i] = (unsigned char)(i * i);
    bytes packed = stop_change(pack, &items);
    caterva_free(packed.data);
    free(items.data);
}

/* ---- How evenly it is told -------------------------------------------------------------- */

typedef struct evenness {
    double last, longest; /* seconds of this process' work */
} evenness;

static double worked(void) { return (double)clock() / CLOCKS_PER_SEC; }

static int hear_evenly(void *context, int64_t done, int64_t total)
{
    evenness *e = context;
    double now = worked();
    CHECK(done <= total, "%lld of %lld", (long long)done, (long long)total);
    if (now - e->last > e->longest) e->longest = now - e->last;
    e->last = now;
    return 0;
}

/* What base64 stands for is made as it is read, and not when all of it was. */
static void tell_base64_evenly(void)
{
    enum { DIGITS = 96 << 20 };
    caterva_error err;
    bytes value, json = repeat("{\"$binary\": \"", "AQID", "\"}", DIGITS / 4);
    double begin = worked();
    evenness e = {.last = begin};
    caterva_convert_options options = CATERVA_CONVERT_INIT;
    options.on_progress = hear_evenly;
    options.context = &e;
    CHECK_OK(from_json(&json, &options, &value, &err), err);
    CHECK(value.size == 5 + DIGITS / 4 * 3, "%zu bytes", value.size);
    fprintf(stderr, "LONG %.3f of %.3f\n", e.longest, worked() - begin);
    CHECK(e.longest < (worked() - begin) / 5, "%.3f of %.3f s without a word", e.longest,
          worked() - begin);
    caterva_free(value.data);
    free(json.data);
}

int main(void)
{
    CHECK(mkdir(scratch_path(folder, "folder"), 0777) == 0, "mkdir");
    scratch_path(path, "folder/array");
    stop_unlink();
    stop_convert();
    stop_values();
    tell_base64_evenly();
    return 0;
}
