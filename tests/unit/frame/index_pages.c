/* The pages of a chunk index: random changes against a flat array. libblosc2 decodes what is
 * encoded, with most pages cached. Indexes that share pages, also with other threads, do not
 * see each other's changes.
 *
 * usage: test_index_pages [SEED [STEPS]] */
#include "base/arith.h"
#include "frame/index.h"
#include "frame/lookup.h"
#include "made.h"
#include "scratch.h"
#include "support/buffer.h"
#include "support/info.h"

#define print_error blosc2_print_error /* cmocka has one of this name too */
#include <blosc2.h>
#undef print_error

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 5 * CV_INDEX_PAGE + 100, HELD = 4 };

static uint64_t seed;
static int steps;

/* An index, and its expected contents. */
typedef struct twin {
    cv_index index;
    int64_t *flat;
} twin;

static twin twin_of(const twin *t)
{
    twin copy = {.flat = check_alloc(MOST * sizeof(int64_t))};
    memcpy(copy.flat, t->flat, MOST * sizeof(int64_t));
    assert_int_equal(cv_index_share(&t->index, &copy.index, NULL), CV_OK);
    return copy;
}

static void free_twin(twin *t)
{
    cv_index_free(&t->index);
    free(t->flat);
}

static int equals(const twin *t)
{
    for (int64_t i = 0; i < t->index.n; i++)
        if (cv_index_get(&t->index, i) != t->flat[i]) return 0;
    return 1;
}

/* ---- Encoding ----------------------------------------------------------------- */

/* Decodes it whole, and single items, with libblosc2. */
static void check_chunk(const cv_buffer *chunk, const int64_t *entries, int64_t n, rng *r)
{
    int32_t nbytes, cbytes, size = (int32_t)(n * 8);
    int64_t *got = check_alloc((size_t)size);
    assert_true(blosc2_cbuffer_sizes(chunk->data, &nbytes, &cbytes, NULL) >= 0);
    assert_int_equal(nbytes, size);
    assert_int_equal(cbytes, chunk->size);
    blosc2_dparams params = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *context = blosc2_create_dctx(params);
    assert_int_equal(blosc2_decompress_ctx(context, chunk->data, cbytes, got, size), size);
    for (int64_t i = 0; i < n; i++) /* little-endian on every machine */
        assert_int_equal(cv_load_le64((const uint8_t *)&got[i]), entries[i]);
    for (int i = 0; i < 4; i++) {
        int64_t at = rng_between(r, 0, n - 1);
        uint8_t item[8];
        assert_int_equal(
            blosc2_getitem_ctx(context, chunk->data, cbytes, (int)at, 1, item, 8), 8);
        assert_int_equal(cv_load_le64(item), entries[at]);
    }
    blosc2_free_ctx(context);
    free(got);
}

static void check_encoded(const twin *t, cv_encoder **encoder, rng *r)
{
    cv_buffer chunk = {0};
    assert_int_equal(cv_index_encode(&t->index, encoder, &chunk, NULL), CV_OK);
    check_chunk(&chunk, t->flat, t->index.n, r);
    cv_buffer_free(&chunk);
}

static void an_index_of_any_length_is_a_chunk(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    static const int64_t counts[] = {1, 2, 7, 8, 9, 20, 2047, 2048, 2049, 4096, 4097, 9000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int way = 0; way < 4; way++) {
            int64_t n = counts[i], *entries = check_alloc((size_t)n * 8);
            cv_buffer out = {0};
            for (int64_t k = 0; k < n; k++)
                entries[k] = way == 0   ? k * 1000 - 5
                             : way == 1 ? INT64_MIN + 77
                             : way == 2 ? k == n / 2             /* all zeros except one */
                                        : (int64_t)rng_next(&r); /* incompressible */
            assert_int_equal(made_index(entries, n, &out), CV_OK);
            if (way == 1 && n >= 8) assert_int_equal(out.size, 40);
            check_chunk(&out, entries, n, &r);
            cv_buffer_free(&out);
            free(entries);
        }
    }
}

/* ---- Changes ------------------------------------------------------------------ */

static void set_some(twin *t, rng *r)
{
    int64_t n = rng_between(r, 1, 20);
    for (int64_t i = 0; i < n && t->index.n > 0; i++) {
        int64_t at = rng_between(r, 0, t->index.n - 1);
        t->flat[at] = rng_one_in(r, 4) ? (int64_t)rng_next(r) : rng_between(r, 0, 100000);
        assert_int_equal(cv_index_set(&t->index, at, t->flat[at], 0, NULL), CV_OK);
    }
}

static void resize(twin *t, rng *r)
{
    int64_t old = t->index.n, n = rng_between(r, 0, MOST);
    if (rng_one_in(r, 2)) n = cv_min_i64(old + rng_between(r, 0, 3), MOST);
    if (rng_one_in(r, 5)) n = n / CV_INDEX_PAGE * CV_INDEX_PAGE;
    int64_t fill = rng_between(r, -3, 3);
    for (int64_t i = old; i < n; i++) t->flat[i] = fill;
    assert_int_equal(cv_index_resize(&t->index, n, fill, NULL), CV_OK);
    assert_int_equal(t->index.n, n);
}

/* One index keeps changing; some older ones are held and replaced now and then. Sometimes a
 * held one is continued, as after a rollback. */
static void random_changes(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    cv_encoder *encoder = NULL;
    twin t = {.flat = check_alloc(MOST * sizeof(int64_t))};
    memset(t.flat, 0, MOST * sizeof(int64_t));
    cv_index zeros = {.n = rng_between(&r, 0, MOST)};
    assert_int_equal(cv_index_share(&zeros, &t.index, NULL), CV_OK);
    twin held[HELD];
    for (int i = 0; i < HELD; i++) held[i] = twin_of(&t);

    for (int i = 0; i < steps; i++) {
        int k = rng_int(&r, 0, HELD - 1);
        switch (rng_int(&r, 0, 5)) {
        case 0: resize(&t, &r); break;
        case 1:
            if (t.index.n > 0) check_encoded(&t, &encoder, &r);
            break;
        case 2:
            free_twin(&held[k]);
            held[k] = twin_of(&t);
            break;
        case 3:
            if (!rng_one_in(&r, 4)) break;
            free_twin(&t);
            t = twin_of(&held[k]);
            break;
        default: set_some(&t, &r);
        }
        assert_true(equals(&t));
        assert_true(equals(&held[k]));
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].index.n > 0) check_encoded(&held[i], &encoder, &r);
        free_twin(&held[i]);
    }
    free_twin(&t);
    cv_encoder_free(encoder);
}

/* A large array of equal entries takes the memory of two pages, and a change one more. */
static void equal_pages_are_one(void **state)
{
    (void)state;
    cv_index same = {.n = 1000 * CV_INDEX_PAGE + 5, .same = 7}, index;
    assert_int_equal(cv_index_share(&same, &index, NULL), CV_OK);
    for (int i = 1; i < 1000; i++) assert_ptr_equal(index.pages[i], index.pages[0]);
    assert_int_equal(cv_index_set(&index, 500 * CV_INDEX_PAGE, 8, 0, NULL), CV_OK);
    assert_int_equal(cv_index_get(&index, 500 * CV_INDEX_PAGE), 8);
    assert_int_equal(cv_index_get(&index, 500 * CV_INDEX_PAGE + 1), 7);
    assert_int_equal(cv_index_get(&index, 499 * CV_INDEX_PAGE), 7);
    assert_ptr_equal(index.pages[501], index.pages[0]);
    cv_index_free(&index);
}

/* ---- Names and strays ----------------------------------------------------- */

static void names_go_with_their_entries(void **state)
{
    (void)state;
    cv_index zeros = {.n = 3 * CV_INDEX_PAGE}, first, second;
    assert_int_equal(cv_index_share(&zeros, &first, NULL), CV_OK);
    assert_int_equal(cv_index_set(&first, 5000, 640, 0, NULL), CV_OK);
    assert_int_equal(cv_index_name(&first, 5000), 0);
    assert_int_equal(cv_index_set_name(&first, 5000, 77, NULL), CV_OK);
    assert_int_equal(cv_index_share(&first, &second, NULL), CV_OK);
    assert_int_equal(cv_index_set(&second, 5000, 1280, 0, NULL), CV_OK); /* not sealed yet */
    assert_int_equal(cv_index_name(&second, 5000), 0);
    assert_int_equal(cv_index_name(&first, 5000), 77);
    assert_int_equal(cv_index_resize(&first, 4999, 0, NULL), CV_OK);
    assert_int_equal(cv_index_resize(&first, 5001, 0, NULL), CV_OK);
    assert_int_equal(cv_index_name(&first, 5000), 0);
    cv_index_free(&first);
    cv_index_free(&second);
}

static void strays_are_found_by_entry(void **state)
{
    (void)state;
    cv_index zeros = {.n = 100}, first, second;
    const cv_seal_stray strays[] = {{700, 7000}, {100, 1000}, {300, 3000}};
    assert_int_equal(cv_index_share(&zeros, &first, NULL), CV_OK);
    assert_int_equal(cv_index_add_strays(&first, strays, 3, NULL), CV_OK);
    assert_int_equal(cv_index_set(&first, 1, 200, 0, NULL), CV_OK);
    assert_int_equal(cv_index_table_pos(&first, 1), 0);
    for (int i = 0; i < 3; i++) { /* existing entries that got a table */
        first.pages[0]->entries[10 + i] = strays[i].entry;
        assert_int_equal(cv_index_table_pos(&first, 10 + i), strays[i].pos);
    }
    /* A chunk that replaces one has its table after it; `first` does not change. */
    assert_int_equal(cv_index_share(&first, &second, NULL), CV_OK);
    assert_int_equal(cv_index_set(&second, 50, 300, 0, NULL), CV_OK);
    assert_int_equal(cv_index_table_pos(&second, 50), 0);
    assert_int_equal(cv_index_table_pos(&second, 10), 7000);
    assert_int_equal(cv_index_table_pos(&first, 12), 3000);
    assert_int_equal(cv_index_set(&second, 10, 40, 0, NULL), CV_OK);
    assert_int_equal(cv_index_prune_strays(&second, NULL), CV_OK);
    assert_int_equal(second.strays->n, 1); /* of 100; 300 and 700 are gone */
    assert_int_equal(cv_index_table_pos(&second, 11), 1000);
    cv_index_free(&first);
    cv_index_free(&second);
}

/* ---- In a file ---------------------------------------------------------------- */

/* Compares the offsets with those that C-Blosc2's schunk finds. */
static void check_file(const char *path, caterva_array *array)
{
    const cv_index *index;
    cv_snapshot *s = array->snapshot;
    assert_int_equal(cv_snapshot_index(s, array->frame->store, &index, NULL), CV_OK);
    blosc2_schunk *schunk = blosc2_schunk_open(path);
    assert_non_null(schunk);
    assert_int_equal(schunk->nchunks, s->grid.n_chunks);
    int64_t *offsets = blosc2_frame_get_offsets(schunk);
    assert_non_null(offsets);
    for (int64_t i = 0; i < schunk->nchunks; i++)
        assert_int_equal(offsets[i], cv_index_get(index, i));
    free(offsets);
    blosc2_schunk_free(schunk);
}

static void c_blosc2_finds_the_same_offsets(void **state)
{
    (void)state;
    enum { ITEMS = 8, FIRST = CV_INDEX_PAGE - 10, ROUNDS = 60 };
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH];
    scratch_path(path, "pages.b2nd");
    geometry g = made_line((int64_t)FIRST * ITEMS, ITEMS, ITEMS, sizeof(int32_t));
    caterva_array *array = made_array(path, &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    for (int i = 0; i < ROUNDS; i++) {
        int32_t items[200 * ITEMS];
        int64_t n = rng_between(&r, 1, 200) * ITEMS;
        rng_fill(&r, items, sizeof items);
        if (rng_one_in(&r, 4)) {
            int64_t shape = info_of(array)->shape[0] - n;
            assert_int_equal(caterva_resize(array, &shape, NULL), CATERVA_OK);
        } else {
            assert_int_equal(caterva_append(array, 0, n, PLAIN(items, sizeof items), NULL),
                             CATERVA_OK);
        }
        int64_t chunks = info_of(array)->n_chunks;
        for (int k = 0; k < 3; k++) {
            int64_t start = rng_between(&r, 0, chunks - 1) * ITEMS, stop = start + ITEMS;
            assert_int_equal(caterva_write(array, &start, &stop, items, sizeof items, NULL),
                             CATERVA_OK);
        }
        assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        if (i % 4 == 0) check_file(path, array);
    }
    check_file(path, array);
    caterva_close(array, NULL);
    scratch_remove(path);
}

/* ---- Threads ------------------------------------------------------------------ */

/* Where the writer stores a state and readers load it, like a frame's current snapshot. */
typedef struct exchange {
    pthread_mutex_t lock;
    twin state;
    int done, wrong;
} exchange;

static void *read_states(void *context)
{
    exchange *x = context;
    for (int done = 0; !done;) {
        pthread_mutex_lock(&x->lock);
        twin mine = twin_of(&x->state);
        done = x->done;
        pthread_mutex_unlock(&x->lock);
        int good = equals(&mine);
        pthread_mutex_lock(&x->lock);
        x->wrong += !good;
        pthread_mutex_unlock(&x->lock);
        free_twin(&mine);
    }
    return NULL;
}

static void readers_keep_their_state(void **state)
{
    (void)state;
    enum { READERS = 3, COMMITS = 200 };
    rng r = rng_from_seed(seed);
    cv_encoder *encoder = NULL;
    twin t = {.flat = check_alloc(MOST * sizeof(int64_t))};
    memset(t.flat, 0, MOST * sizeof(int64_t));
    cv_index zeros = {.n = 2 * CV_INDEX_PAGE + 50};
    assert_int_equal(cv_index_share(&zeros, &t.index, NULL), CV_OK);
    exchange x = {.state = twin_of(&t)};
    pthread_mutex_init(&x.lock, NULL);
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_states, &x), 0);

    for (int i = 0; i < COMMITS; i++) {
        set_some(&t, &r);
        if (rng_one_in(&r, 3)) resize(&t, &r);
        if (t.index.n > 0) check_encoded(&t, &encoder, &r);
        twin next = twin_of(&t);
        pthread_mutex_lock(&x.lock);
        twin old = x.state;
        x.state = next;
        x.done = i == COMMITS - 1;
        pthread_mutex_unlock(&x.lock);
        free_twin(&old);
    }
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    assert_int_equal(x.wrong, 0);
    pthread_mutex_destroy(&x.lock);
    free_twin(&x.state);
    free_twin(&t);
    cv_encoder_free(encoder);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    steps = (int)number_argument(argc, argv, 2, 3000);
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_of_any_length_is_a_chunk),
        cmocka_unit_test(random_changes),
        cmocka_unit_test(equal_pages_are_one),
        cmocka_unit_test(names_go_with_their_entries),
        cmocka_unit_test(strays_are_found_by_entry),
        cmocka_unit_test(c_blosc2_finds_the_same_offsets),
        cmocka_unit_test(readers_keep_their_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
