/* Property test: random arrays, random boxes, compared with the naive oracle.
 *
 * usage: test_boxes [CASES [SEED]]
 *
 * One case is one box read or written. Each array is in memory, in a file or in a sparse
 * directory, and is committed, rolled back, closed and reopened between the boxes. A handle
 * must show the oracle with its pending boxes, another handle the oracle of the last
 * commit. */
#include "caterva.h"
#include "caterva_store.h"

#include "support/behind.h"
#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CASES = 12000, CASES_PER_ARRAY = 10, MAX_ITEMS = 6000 };

typedef enum place { IN_MEMORY, IN_FILE, IN_DIRECTORY } place;

typedef struct subject {
    rng *random;
    geometry geometry;
    pipeline pipeline;
    place place;
    char path[SCRATCH_PATH];
    caterva_array *array;
    oracle now;       /* expected contents of the handle      */
    oracle committed; /* expected contents of other handles   */
    int ever_committed;
    int64_t number; /* of the array, for messages            */
} subject;

static void report(const subject *s, const char *what, const box *b)
{
    char text[512];
    char range[512] = "";
    if (b != NULL) box_text(b, s->geometry.ndim, range, sizeof(range));
    fprintf(stderr, "array %lld, %s, place %d, codec %d level %d filters %d %d: %s %s\n",
            (long long)s->number, geometry_text(&s->geometry, text, sizeof(text)), s->place,
            s->pipeline.codec, s->pipeline.level, s->pipeline.filters[0],
            s->pipeline.filters[1], what, range);
}

/* Reports the subject before failing: a seed alone is slow to debug. */
static void need_ok(const subject *s, caterva_status status, const caterva_error *err,
                    const char *what, const box *b)
{
    if (status == CATERVA_OK) return;
    report(s, what, b);
    CHECK(status == CATERVA_OK, "%s: %s", caterva_status_name(status), err->message);
}

static void choose_fill(subject *s, caterva_create_options *options, uint8_t *item)
{
    static const uint8_t nan4[4] = {0, 0, 0xC0, 0x7F};
    static const uint8_t nan8[8] = {0, 0, 0, 0, 0, 0, 0xF8, 0x7F};
    size_t size = (size_t)s->geometry.item_size;
    memset(item, 0, size);
    options->fill = (caterva_fill)rng_int(s->random, 0, 3);
    if (options->fill == CATERVA_FILL_NAN && size != 4 && size != 8)
        options->fill = CATERVA_FILL_ZEROS;
    if (options->fill == CATERVA_FILL_NAN) memcpy(item, size == 4 ? nan4 : nan8, size);
    if (options->fill == CATERVA_FILL_VALUE) rng_fill(s->random, item, size);
    options->fill_value = item;
}

static caterva_durability random_durability(rng *r)
{
    return rng_one_in(r, 16) ? CATERVA_DURABILITY_FULL : CATERVA_DURABILITY_NONE;
}

static void start_subject(subject *s, rng *r, int64_t number)
{
    char name[64];
    caterva_error err;
    memset(s, 0, sizeof(*s));
    s->random = r;
    s->number = number;
    s->geometry = random_geometry(r, 6, MAX_ITEMS);
    s->pipeline = random_pipeline(r, s->geometry.item_size);
    s->place = (place)rng_int(r, IN_MEMORY, IN_DIRECTORY);
    snprintf(name, sizeof(name), "array-%lld.b2nd", (long long)number);
    scratch_path(s->path, name);
    if (s->place == IN_MEMORY) snprintf(s->path, sizeof(s->path), "mem:");

    caterva_create_options options = options_for(&s->geometry, &s->pipeline);
    options.layout =
        s->place == IN_DIRECTORY ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    options.threads = rng_int(r, 0, 3);
    options.durability = random_durability(r);
    uint8_t *item = check_alloc((size_t)s->geometry.item_size);
    choose_fill(s, &options, item);
    s->now = oracle_new(&s->geometry);
    s->committed = oracle_new(&s->geometry);
    oracle_fill(&s->now, item);
    oracle_copy(&s->committed, &s->now);
    need_ok(s, caterva_create(s->path, &options, &s->array, &err), &err, "create", NULL);
    if (rng_one_in(r, 2)) put_behind(s->array);
    free(item);
}

static void end_subject(subject *s)
{
    caterva_error err;
    need_ok(s, caterva_close(s->array, &err), &err, "close", NULL);
    if (s->place != IN_MEMORY) scratch_remove(s->path);
    oracle_free(&s->now);
    oracle_free(&s->committed);
}

static void read_and_compare(subject *s, caterva_array *array, const oracle *expected,
                             const char *what)
{
    caterva_error err;
    box b = random_box(s->random, &s->geometry);
    size_t size = box_size(&b, &s->geometry);
    uint8_t *got = check_alloc(size);
    uint8_t *want = check_alloc(size);
    rng_fill(s->random, got, size); /* so that unwritten bytes are detected */
    oracle_read(expected, &b, want);
    caterva_status status = caterva_read(array, b.start, b.stop, got, size, &err);
    need_ok(s, status, &err, what, &b);
    if (memcmp(got, want, size) != 0) {
        report(s, what, &b);
        CHECK(0, "the box differs from the oracle");
    }
    free(got);
    free(want);
}

static void write_both(subject *s)
{
    caterva_error err;
    box b = random_box(s->random, &s->geometry);
    size_t size = box_size(&b, &s->geometry);
    uint8_t *bytes = check_alloc(size);
    random_data(s->random, bytes, size, s->geometry.item_size);
    oracle_write(&s->now, &b, bytes);
    caterva_status status = caterva_write(s->array, b.start, b.stop, bytes, size, &err);
    need_ok(s, status, &err, "write", &b);
    free(bytes);
}

static void commit_both(subject *s)
{
    caterva_error err;
    need_ok(s, caterva_commit(s->array, &err), &err, "commit", NULL);
    oracle_copy(&s->committed, &s->now);
    s->ever_committed = 1;
}

static void rollback_both(subject *s)
{
    caterva_error err;
    need_ok(s, caterva_rollback(s->array, &err), &err, "rollback", NULL);
    oracle_copy(&s->now, &s->committed);
}

static void open_again(subject *s)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = rng_int(s->random, 0, 3);
    options.durability = random_durability(s->random);
    caterva_status status = caterva_open(s->path, &options, &s->array, &err);
    need_ok(s, status, &err, "open", NULL);
    if (rng_one_in(s->random, 2)) put_behind(s->array);
}

/* A memory array can be reopened only through its frame. */
static void reopen_from_frame(subject *s)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *next = NULL;
    void *frame = NULL;
    size_t size = 0;
    options.mode = CATERVA_MODE_WRITE;
    need_ok(s, caterva_frame_copy(s->array, &frame, &size, &err), &err, "to_frame", NULL);
    caterva_discard(s->array);
    caterva_status status = caterva_frame_open(frame, size, 1, &options, &next, &err);
    need_ok(s, status, &err, "open_frame", NULL);
    memset(frame, 0xDD, size); /* the handle has its own copy */
    caterva_free(frame);
    s->array = next;
    oracle_copy(&s->committed, &s->now);
}

static void reopen(subject *s)
{
    caterva_error err;
    if (s->place == IN_MEMORY) {
        reopen_from_frame(s);
        return;
    }
    if (s->ever_committed && rng_one_in(s->random, 3)) {
        caterva_discard(s->array);
        oracle_copy(&s->now, &s->committed);
    } else {
        need_ok(s, caterva_close(s->array, &err), &err, "close", NULL);
        oracle_copy(&s->committed, &s->now);
        s->ever_committed = 1;
    }
    open_again(s);
}

/* Reads through a second handle, which must not see pending boxes. */
static void read_as_another(subject *s)
{
    caterva_error err;
    caterva_array *other = NULL;
    if (s->place == IN_MEMORY || !s->ever_committed) {
        read_and_compare(s, s->array, &s->now, "read");
        return;
    }
    need_ok(s, caterva_open(s->path, NULL, &other, &err), &err, "second open", NULL);
    read_and_compare(s, other, &s->committed, "read by another handle");
    caterva_discard(other);
}

/* Reads through the array's frame in memory, which includes pending changes. */
static void read_frame(subject *s)
{
    caterva_error err;
    caterva_array *other = NULL;
    void *frame = NULL;
    size_t size = 0;
    need_ok(s, caterva_frame_copy(s->array, &frame, &size, &err), &err, "to_frame", NULL);
    caterva_status status = caterva_frame_open(frame, size, 0, NULL, &other, &err);
    need_ok(s, status, &err, "open_frame, borrowed", NULL);
    read_and_compare(s, other, &s->now, "read of the frame");
    caterva_discard(other);
    caterva_free(frame);
}

/* One case: a box read or written, possibly after other operations. */
static void run_case(subject *s)
{
    int event = rng_int(s->random, 0, 19);
    if (event < 3)
        commit_both(s);
    else if (event == 3)
        rollback_both(s);
    else if (event < 6)
        reopen(s);

    int action = rng_int(s->random, 0, 9);
    if (action < 5)
        read_and_compare(s, s->array, &s->now, "read");
    else if (action == 5)
        read_as_another(s);
    else if (action == 6 && rng_one_in(s->random, 2))
        read_frame(s);
    else
        write_both(s);
}

int main(int argc, char **argv)
{
    int64_t cases = (int64_t)number_argument(
        argc, argv, 1, (uint64_t)few_if_sanitized(DEFAULT_CASES, DEFAULT_CASES / 4));
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    int64_t done = 0;
    int64_t arrays = 0;
    while (done < cases) {
        subject s;
        start_subject(&s, &r, arrays++);
        for (int i = 0; i < CASES_PER_ARRAY; i++, done++) run_case(&s);
        read_and_compare(&s, s.array, &s.now, "last read");
        end_subject(&s);
    }
    printf("%lld boxes in %lld arrays, all as the oracle says\n", (long long)done,
           (long long)arrays);
    return 0;
}
