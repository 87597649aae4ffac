/* Shared by the tests of NULL: how a call is recorded and judged, an array and a view to call
 * with, and which of the header's functions each of the two programs calls. */
#ifndef TESTS_NULLS_H
#define TESTS_NULLS_H

#include "support/scratch.h"

#include "caterva.h"
#include "support/buffer.h"
#include "support/info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 10, MAX_NAMES = 300 };

static const char *seen[MAX_NAMES];
static int n_seen;

static void note(const char *call)
{
    if (n_seen < MAX_NAMES) seen[n_seen++] = call;
}

static void check(const char *call, caterva_status status, caterva_status wanted,
                  const caterva_error *err)
{
    note(call);
    if (status != wanted || (wanted != CATERVA_OK && !err->message[0]))
        fail_msg("%s gives %s: %s", call, caterva_status_name(status), err->message);
}

#define REFUSED(call)                                                                        \
    do {                                                                                     \
        caterva_error err = {.code = CATERVA_OK};                                            \
        check(#call, call, CATERVA_EINVAL, &err);                                            \
    } while (0)

#define TAKEN(call)                                                                          \
    do {                                                                                     \
        caterva_error err = {.code = CATERVA_OK};                                            \
        check(#call, call, CATERVA_OK, &err);                                                \
    } while (0)

#define SAYS(call, answer)                                                                   \
    do {                                                                                     \
        note(#call);                                                                         \
        assert_true((call) == (answer));                                                     \
    } while (0)

#define QUIET(call)                                                                          \
    do {                                                                                     \
        note(#call);                                                                         \
        call;                                                                                \
    } while (0)

static const int64_t shape[1] = {N}, origin[1] = {0};
static const int32_t chunks[1] = {4};
static int32_t items[N];
static caterva_create_options create_options = CATERVA_CREATE_INIT;
static caterva_buffer buffer = CATERVA_BUFFER_INIT;
static caterva_array *array;
static caterva_view *view;

static int set_up(void **state)
{
    (void)state;
    create_options.ndim = 1;
    create_options.shape = shape;
    create_options.chunk_shape = chunks;
    create_options.dtype = "<i4";
    buffer.data = items;
    buffer.size = sizeof items;
    if (caterva_create("mem:", &create_options, &array, NULL)) return 1;
    if (caterva_attr_set(array, "name", "value", 5, NULL)) return 1;
    return caterva_commit(array, NULL) || caterva_view_of(array, &view, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    caterva_view_free(view);
    caterva_discard(array);
    return 0;
}

static bool was_seen(const char *name, size_t size)
{
    for (int i = 0; i < n_seen; i++)
        if (strncmp(seen[i], name, size) == 0 && seen[i][size] == '(') return true;
    return false;
}

/* These take numbers or nothing. */
static bool takes_no_pointer(const char *name)
{
    static const char *const names[] = {"caterva_version(",     "caterva_codec_version(",
                                        "caterva_status_name(", "caterva_codec_name(",
                                        "caterva_filter_name(", "caterva_delete_temporaries(",
                                        "caterva_background_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(names[i], name, strlen(names[i])) == 0) return true;
    return false;
}

/* Functions of several arrays, and of values without an array. */
static bool is_of_many(const char *name)
{
    static const char *const names[] = {"caterva_tree_", "caterva_job",    "caterva_part_",
                                        "caterva_merge", "caterva_value_", "caterva_dims_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(names[i], name, strlen(names[i])) == 0) return true;
    return false;
}

/* Visits the functions of one header that `is_mine` assigns to this program; returns their
 * number. */
static int check_header(const char *path, bool (*is_mine)(const char *name))
{
    size_t size;
    int n = 0;
    char *header = (char *)scratch_load(path, &size);
    assert_non_null(header);
    header[size - 1] = '\0';
    for (char *at = strstr(header, "\nCATERVA_API "); at; at = strstr(at, "\nCATERVA_API ")) {
        at = strchr(at, '(');
        assert_non_null(at);
        const char *name = at;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z')) name--;
        if (!is_mine(name)) continue;
        n++;
        if (takes_no_pointer(name) || was_seen(name, (size_t)(at - name))) continue;
        fail_msg("no test passes NULL to %.*s", (int)(at - name), name);
    }
    free(header);
    return n;
}

static void check_none_is_left_out(bool (*is_mine)(const char *name), int least)
{
    static const char *const topics[] = {"",        "_upkeep", "_tree", "_jobs",
                                         "_remote", "_store",  "_value"};
    int n = 0;
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        char path[sizeof CATERVA_SOURCE_DIR + 40];
        (void)snprintf(path, sizeof path, "%s/include/caterva%s.h", CATERVA_SOURCE_DIR,
                       topics[i]);
        n += check_header(path, is_mine);
    }
    assert_true(n >= least);
}

#endif
