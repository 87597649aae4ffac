/* Attributes in both places: what a map may be, which of equal names counts, and any bytes in
 * place of the map. */
#include "frame/attributes.h"

#include "codec/encode.h"
#include "format/values.h"
#include "random.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define BYTES(text) text, sizeof(text) - 1

/* A trailer's list: `units` and `attrs`, with a given value. */
typedef struct two {
    cv_metalayer layers[3];
    cv_buffer encoded[3];
    cv_trailer trailer;
} two;

static void set_layer(two *t, int i, const char *name, const void *value, size_t size)
{
    assert_int_equal(cv_encode_plain(value, size, NULL, &t->encoded[i], NULL), CV_OK);
    t->layers[i] =
        (cv_metalayer){.data = t->encoded[i].data, .size = (uint32_t)t->encoded[i].size};
    strcpy(t->layers[i].name, name);
}

static cv_attributes *load(two *t, const void *map, size_t size)
{
    cv_attributes *all;
    memset(t, 0, sizeof *t);
    set_layer(t, 0, "units", "\xa1K", 2);
    set_layer(t, 1, "attrs", map, size);
    set_layer(t, 2, "_caterva", "\x80", 1);
    t->trailer = (cv_trailer){.attributes = t->layers, .n_attributes = 3};
    assert_int_equal(cv_attributes_load(&t->trailer, &all, NULL), CV_OK);
    return all;
}

static void release(two *t, cv_attributes *all)
{
    cv_attributes_free(all);
    for (int i = 0; i < 3; i++) cv_buffer_free(&t->encoded[i]);
}

static void maps_are_merged(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        size_t size;
        const char *names; /* of the list */
    } cases[] = {
        {BYTES("\x80"), "units"},
        {BYTES("\x82\xa1x\x01\xa1y\x02"), "units x y"},
        {BYTES("\x82\xa5units\x01\xa1y\x02"), "units y"},        /* its own key counts */
        {BYTES("\x83\xa1x\x01\xa1y\x02\xa1x\x03"), "units y x"}, /* and here the last */
        {BYTES("\x81\xa5"
               "attrs\x01"),
         "units attrs"},
        {BYTES("\x81\xa8_caterva\x01"), "units"},
        {BYTES("\xaa{\"x\": [1]}\x20"), "units attrs"}, /* more than a text */
        {BYTES("\xaa{\"x\": [1]}"), "units x"},
        {BYTES("{\"x\": [1], \"y\": 2}"), "units x y"},
        {BYTES("{\"x\": [1], }"), "units attrs"},
        {BYTES("\x05"), "units attrs"},
        {BYTES("\x91\x05"), "units attrs"},
        {BYTES("\x81\x01\x02"), "units attrs"},      /* a number is no name */
        {BYTES("\x81\xa0\x02"), "units attrs"},      /* nor is nothing */
        {BYTES("\x81\xa1\xff\x02"), "units attrs"},  /* nor what is no UTF-8 */
        {BYTES("\x81\xa2x\0\x02"), "units attrs"},   /* nor what ends inside */
        {BYTES("\x81\xa1x"), "units attrs"},         /* cut */
        {BYTES("\x81\xa1x\x01\x01"), "units attrs"}, /* too long */
        {BYTES("\xdf\xff\xff\xff\xff\xa1x\x01"), "units attrs"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        two t;
        char names[200] = "";
        cv_attributes *all = load(&t, cases[i].map, cases[i].size);
        for (int k = 0; k < all->n; k++) {
            const cv_attribute *found;
            strcat(strcat(names, k ? " " : ""), all->list[k].name);
            assert_int_equal(cv_attributes_find(all, all->list[k].name, &found, NULL), CV_OK);
            assert_ptr_equal(found, &all->list[k]);
        }
        assert_string_equal(names, cases[i].names);
        release(&t, all);
    }
}

static void the_last_of_a_map_counts(void **state)
{
    (void)state;
    two t;
    const cv_attribute *found;
    cv_buffer value = {0};
    cv_attributes *all = load(&t, BYTES("\x83\xa1x\x01\xa1y\x02\xa1x\x03"));
    assert_int_equal(cv_attributes_find(all, "x", &found, NULL), CV_OK);
    assert_int_equal(cv_attribute_value(found, &value, NULL, NULL), CV_OK);
    assert_int_equal(value.size, 1);
    assert_int_equal(value.data[0], 3);
    cv_buffer_free(&value);
    release(&t, all);
}

/* A damaged map is reported to readers of attributes that may be in it, and hides no other
 * attribute. */
static void a_damaged_map_is_reported(void **state)
{
    (void)state;
    two t;
    cv_error err;
    cv_attributes *all = load(&t, BYTES("\x81\xa1x\x01"));
    const cv_attribute *found;
    cv_attributes_free(all);
    t.layers[1].size = 20; /* no chunk is that short */
    assert_int_equal(cv_attributes_load(&t.trailer, &all, NULL), CV_OK);
    assert_int_equal(cv_attributes_find(all, "units", &found, &err), CV_OK);
    assert_int_equal(cv_attributes_find(all, "attrs", &found, &err), CV_OK);
    assert_int_equal(cv_attributes_find(all, "x", &found, &err), CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "attrs"));
    release(&t, all);
}

/* A header of a few bytes can claim gigabytes of zeros, which must not be decoded. */
static void a_hostile_size_is_refused(void **state)
{
    (void)state;
    two t;
    cv_error err;
    cv_attributes *all = load(&t, BYTES("\x80"));
    const cv_attribute *found;
    cv_attributes_free(all);
    uint8_t zeros[32] = {5, 1, 0x05, 1};
    zeros[4 + 3] = 0x70; /* nbytes: 0x70000000 */
    zeros[8 + 2] = 0x10;
    zeros[12] = 32;
    zeros[31] = 0x10; /* all zeros */
    t.layers[1].data = zeros;
    t.layers[1].size = 32;
    assert_int_equal(cv_attributes_load(&t.trailer, &all, NULL), CV_OK);
    assert_int_equal(cv_attributes_find(all, "x", &found, &err), CATERVA_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "1879048192 bytes"));
    release(&t, all);
}

static uint64_t seed;

/* Any change of the bytes gives a list whose names are text and can be found, and which can
 * be written again. */
static void mutated_maps_are_read(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    static const char map[] =
        "\x85\xa1x\x01\xa5units\xa1K\xd9\x28"
        "straight_vertical_longitude_from_pole___\xcb\xc0\x46\x80\0\0\0\0\0"
        "\xa1y\x82\xa1"
        "a\x90\xa1"
        "b\xc0\xa5"
        "attrs\xc7\x03\x2d\x92\x01\x02";
    for (int round = 0; round < 5000; round++) {
        uint8_t bytes[sizeof map - 1];
        memcpy(bytes, map, sizeof bytes);
        for (int k = rng_int(&r, 1, 4); k > 0; k--)
            bytes[rng_int(&r, 0, (int)sizeof bytes - 1)] = (uint8_t)rng_next(&r);
        size_t size = rng_one_in(&r, 5) ? (size_t)rng_int(&r, 1, sizeof bytes) : sizeof bytes;
        two t;
        cv_attributes *all = load(&t, bytes, size);
        assert_in_range(all->n, 1, 7);
        for (int k = 0; k < all->n; k++) {
            const cv_attribute *found;
            assert_true(all->list[k].name[0] != '\0');
            assert_int_equal(cv_attributes_find(all, all->list[k].name, &found, NULL), CV_OK);
            assert_ptr_equal(found, &all->list[k]);
        }
        cv_placed placed = {.watch = NULL};
        if (cv_attributes_place(all->list, all->n, &t.layers[2], 1, &placed, NULL) == CV_OK) {
            assert_in_range(placed.n, 2, 8);
            assert_string_equal(placed.layers[1].name, "_caterva");
            cv_placed_free(&placed);
        }
        release(&t, all);
    }
}

/* 100,000 names in one map: each is found. */
static void many_names_are_found(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    cv_packer p = {.status = CV_OK};
    cv_buffer map = {0};
    char name[16];
    cv_pack_begin(&p, CV_PACK_MAP);
    for (int i = 0; i < MANY; i++) {
        cv_pack_text(&p, name, (size_t)snprintf(name, sizeof name, "n%d", i));
        cv_pack_int(&p, i);
    }
    cv_pack_end(&p);
    assert_int_equal(cv_pack_finish(&p, &map, NULL), CV_OK);
    two t;
    const cv_attribute *found;
    cv_attributes *all = load(&t, map.data, map.size);
    assert_int_equal(all->n, MANY + 1);
    for (int i = 0; i < MANY; i += 777) {
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(cv_attributes_find(all, name, &found, NULL), CV_OK);
        assert_string_equal(found->name, name);
    }
    assert_int_equal(cv_attributes_find(all, "n", &found, NULL), CATERVA_ENOTFOUND);
    release(&t, all);
    cv_buffer_free(&map);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_merged),
        cmocka_unit_test(the_last_of_a_map_counts),
        cmocka_unit_test(a_damaged_map_is_reported),
        cmocka_unit_test(a_hostile_size_is_refused),
        cmocka_unit_test(mutated_maps_are_read),
        cmocka_unit_test(many_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
