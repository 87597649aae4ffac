/* Attributes of any number and any length of name beside a model: set, replaced and removed
 * at random, in files and in memory, reopened, copied. C-Blosc2 must be able to change the
 * file: it supports at most 16 keys.
 *
 * usage: test_attributes [SEED] */
#include "array/array.h"
#include "check.h"
#include "random.h"
#include "scratch.h"

#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_NAMES = 70, LONGEST_NAME = 600, STEPS = 160 };

typedef struct model {
    char names[N_NAMES][LONGEST_NAME + 1];
    uint8_t *values[N_NAMES]; /* NULL: does not exist */
    size_t sizes[N_NAMES];
} model;

static void name_all(rng *r, model *m)
{
    for (int i = 0; i < N_NAMES; i++) {
        int length = rng_one_in(r, 4) ? rng_int(r, 32, LONGEST_NAME) : rng_int(r, 4, 31);
        int n = snprintf(m->names[i], LONGEST_NAME, "n%d", i);
        while (n < length) m->names[i][n++] = 'x';
        m->names[i][n] = '\0';
    }
    strcpy(m->names[0], "attrs");
    strcpy(m->names[1], "dims");
    strcpy(m->names[2], "straight_vertical_longitude_from_pole");
}

/* MessagePack; sometimes long. */
static void new_value(rng *r, model *m, int i)
{
    size_t text = (size_t)(rng_one_in(r, 40) ? rng_int(r, 1, 3 << 19) : rng_int(r, 0, 300));
    free(m->values[i]);
    m->sizes[i] = text + 5;
    m->values[i] = check_alloc(m->sizes[i]);
    uint8_t *v = m->values[i];
    v[0] = 0xdb;
    for (int k = 0; k < 4; k++) v[1 + k] = (uint8_t)(text >> (24 - 8 * k));
    memset(v + 5, 'a' + rng_int(r, 0, 25), text);
}

static void compare(caterva_array *array, const model *m)
{
    caterva_error err;
    const caterva_info *info;
    int expected = 0;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    for (int i = 0; i < N_NAMES; i++) {
        void *value = NULL;
        size_t size = 0;
        expected += m->values[i] != NULL;
        caterva_status status = caterva_attr_get(array, m->names[i], &value, &size, &err);
        CHECK(status == (m->values[i] ? CATERVA_OK : CATERVA_ENOTFOUND), "%s: %s",
              m->names[i], caterva_status_name(status));
        if (!m->values[i]) continue;
        CHECK(size == m->sizes[i] && memcmp(value, m->values[i], size) == 0,
              "%s has another value", m->names[i]);
        uint8_t part[3] = {0};
        int64_t whole;
        CHECK_OK(caterva_attr_read(array, m->names[i], 1, part, 3, &whole, &err), err);
        CHECK(whole == (int64_t)size && memcmp(part, m->values[i] + 1, 3) == 0,
              "part of %s differs", m->names[i]);
        caterva_free(value);
    }
    CHECK(info->n_attributes == expected, "%d attributes, not %d", info->n_attributes,
          expected);
    caterva_info_release(info);
    int keys = cv_array_state(array)->trailer.n_attributes;
    CHECK(keys <= 16, "%d keys", keys);
}

static void step(rng *r, caterva_array *array, model *m)
{
    caterva_error err;
    int i = rng_int(r, 0, rng_one_in(r, 2) ? N_NAMES - 1 : 20);
    if (rng_one_in(r, 3)) {
        caterva_status status = caterva_attr_delete(array, m->names[i], &err);
        CHECK(status == (m->values[i] ? CATERVA_OK : CATERVA_ENOTFOUND), "%s",
              caterva_status_name(status));
        free(m->values[i]);
        m->values[i] = NULL;
        return;
    }
    new_value(r, m, i);
    CHECK_OK(caterva_attr_set(array, m->names[i], m->values[i], m->sizes[i], &err), err);
}

static caterva_array *create(const char *url, bool has_fill)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    int64_t shape[] = {6, 5};
    int32_t fill = 7;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    o.overwrite = 1;
    o.threads = 1;
    if (has_fill) {
        o.fill = CATERVA_FILL_VALUE;
        o.fill_value = &fill;
    }
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    return array;
}

static caterva_array *reopen(caterva_array *array, const char *url)
{
    caterva_error err;
    caterva_open_options o = CATERVA_OPEN_INIT;
    CHECK_OK(caterva_close(array, &err), err);
    o.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(url, &o, &array, &err), err);
    return array;
}

/* Also with a fill, which takes a key of its own. */
static void compare_copy(caterva_array *array, const model *m)
{
    caterva_error err;
    caterva_array *copy;
    caterva_create_options c = CATERVA_CREATE_INIT;
    caterva_copy_options o = CATERVA_COPY_INIT;
    int32_t fill = 9;
    c.fill = CATERVA_FILL_VALUE;
    c.fill_value = &fill;
    o.create = &c;
    CHECK_OK(caterva_copy(array, "mem:", &o, &copy, &err), err);
    compare(copy, m);
    caterva_discard(copy);
}

static void live(rng *r, const char *url, bool has_fill)
{
    static model m;
    memset(&m, 0, sizeof m);
    name_all(r, &m);
    caterva_array *array = create(url, has_fill);
    for (int i = 0; i < STEPS; i++) {
        caterva_error err;
        step(r, array, &m);
        if (rng_one_in(r, 8)) compare(array, &m);
        if (rng_one_in(r, 20)) compare_copy(array, &m);
        if (rng_one_in(r, 15)) CHECK_OK(caterva_commit(array, &err), err);
        if (rng_one_in(r, 15) && strcmp(url, "mem:") != 0) array = reopen(array, url);
    }
    compare(array, &m);
    for (int i = 0; i < N_NAMES; i++) free(m.values[i]);
    caterva_discard(array);
}

/* ---- What is no MessagePack ----------------------------------------------- */

static void set(caterva_array *array, const char *name, const char *value, caterva_status is)
{
    caterva_error err;
    caterva_status status = caterva_attr_set(array, name, value, strlen(value), &err);
    CHECK(status == is, "%s: %s", name, caterva_status_name(status));
}

static bool has_key(caterva_array *array, const char *name)
{
    const cv_trailer *t = &cv_array_state(array)->trailer;
    return cv_metalayers_find(t->attributes, t->n_attributes, name) != NULL;
}

/* Invalid bytes take the keys, and other attributes move into the map. */
static void bytes_have_keys(void)
{
    caterva_array *array = create("mem:", false);
    char name[16];
    for (int i = 0; i < 16; i++) {
        (void)snprintf(name, sizeof name, "v%d", i);
        set(array, name, "\x01", CATERVA_OK);
    }
    CHECK(has_key(array, "v15"), "16 attributes have no keys");
    for (int i = 0; i < 15; i++) {
        (void)snprintf(name, sizeof name, "raw%d", i);
        set(array, name, "no value", CATERVA_OK);
        CHECK(has_key(array, name), "%s has no key", name);
    }
    set(array, "raw15", "no value", CATERVA_EINVAL);
    set(array, "a name that is longer than 31 bytes", "no value", CATERVA_EINVAL);
    set(array, "a name that is longer than 31 bytes", "\x02", CATERVA_OK);
    caterva_error err;
    CHECK_OK(caterva_attr_delete(array, "raw3", &err), err);
    CHECK(has_key(array, "v0") && !has_key(array, "v1"), "the first does not move up");
    caterva_discard(array);
}

/* Attributes that describe the items are where programs that do not know the map find
 * them. */
static void what_is_sought_has_a_key(void)
{
    caterva_array *array = create("mem:", true);
    char name[16];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(name, sizeof name, "v%d", i);
        set(array, name, "\x01", CATERVA_OK);
    }
    set(array, "dims", "\x92\xa1y\xa1x", CATERVA_OK);
    CHECK(has_key(array, "dims") && has_key(array, "_caterva"), "dims has no key");
    CHECK(has_key(array, "v12") && !has_key(array, "v13"), "another one has none");
    caterva_discard(array);
}

/* ---- Dimensions ----------------------------------------------------------- */

static void check_dims(caterva_array *array, const char *const *expected)
{
    const char **names;
    caterva_error err;
    CHECK_OK(caterva_dims_get(array, &names, &err), err);
    for (int d = 0; expected[d] || d < 2; d++) {
        const char *wanted = strcmp(expected[d], "-") == 0 ? NULL : expected[d];
        CHECK((names[d] && wanted && strcmp(names[d], wanted) == 0) || names[d] == wanted,
              "axis %d is %s, not %s", d, names[d] ? names[d] : "none", expected[d]);
    }
    caterva_free(names);
}

static void dims_follow_axes(void)
{
    static const char *const names[] = {"time", NULL};
    caterva_array *array = create("mem:", true), *copy;
    caterva_view *whole, *view;
    caterva_error err;
    const char **got;
    int order[] = {1, 0};
    CHECK(caterva_dims_get(array, &got, &err) == CATERVA_ENOTFOUND, "no names are found");
    set(array, "_ARRAY_DIMENSIONS", "\x92\xa1y\xa1x", CATERVA_OK);
    check_dims(array, (const char *[]){"y", "x", NULL});
    set(array, "dimension_names", "\x92\xa1p\xc0", CATERVA_OK);
    check_dims(array, (const char *[]){"p", "-", NULL});
    set(array, "dims", "\x91\xa1q", CATERVA_OK); /* of one axis: passed over */
    check_dims(array, (const char *[]){"p", "-", NULL});
    CHECK_OK(caterva_dims_set(array, names, &err), err);
    check_dims(array, (const char *[]){"time", "-", NULL});
    CHECK(!has_key(array, "_ARRAY_DIMENSIONS") && !has_key(array, "dimension_names"),
          "other conventions say something else");

    CHECK_OK(caterva_copy(array, "mem:", NULL, &copy, &err), err);
    check_dims(copy, (const char *[]){"time", "-", NULL});
    caterva_discard(copy);
    CHECK_OK(caterva_view_of(array, &whole, &err), err);
    CHECK_OK(caterva_view_transpose(whole, order, &view, &err), err);
    CHECK_OK(caterva_view_copy(view, "mem:", NULL, &copy, &err), err);
    check_dims(copy, (const char *[]){"-", "time", NULL});
    caterva_discard(copy);
    caterva_axis axes[] = {{.kind = CATERVA_AXIS_SLICE, .start = 1, .stop = 4, .step = 2},
                           {.kind = CATERVA_AXIS_INDEX, .start = 2}};
    caterva_view_free(view);
    CHECK_OK(caterva_view_select(whole, axes, 2, &view, &err), err);
    CHECK_OK(caterva_view_copy(view, "mem:", NULL, &copy, &err), err);
    CHECK_OK(caterva_dims_get(copy, &got, &err), err);
    CHECK(strcmp(got[0], "time") == 0, "the axis that stays has another name");
    caterva_free(got);
    caterva_discard(copy);
    caterva_view_free(view);
    caterva_view_free(whole);

    CHECK_OK(caterva_dims_set(array, NULL, &err), err);
    CHECK(caterva_dims_get(array, &got, &err) == CATERVA_ENOTFOUND, "names stay");
    static const char *const bad[] = {"\xff", "x"};
    CHECK(caterva_dims_set(array, bad, &err) == CATERVA_EINVAL, "no UTF-8 is taken");
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    char path[SCRATCH_PATH];
    scratch_path(path, "attributes.b2nd");
    for (int i = 0; i < 6; i++) live(&r, i % 3 ? path : "mem:", i % 2);
    bytes_have_keys();
    what_is_sought_has_a_key();
    dims_follow_axes();
    return 0;
}
