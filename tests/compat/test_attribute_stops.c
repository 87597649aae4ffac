/* Reading a large attribute, stored plain by this library or compressed by C-Blosc2, and
 * setting one report progress and can be stopped at each call of on_progress. */
#include "caterva.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <blosc2.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE = 9 << 20 };
static char path[SCRATCH_PATH];

static void save_with(const uint8_t *value)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.dtype = "<i4";
    create.overwrite = 1;
    CHECK_OK(caterva_create(path, &create, &array, &err), err);
    if (value) CHECK_OK(caterva_attr_set(array, "large", value, VALUE, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void add_compressed(uint8_t *value)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    cparams.typesize = 1;
    cparams.compcode = BLOSC_LZ4;
    cparams.blocksize = 64 << 10;
    blosc2_schunk *schunk = blosc2_schunk_open(path);
    CHECK(schunk != NULL, "blosc2_schunk_open");
    CHECK(blosc2_vlmeta_add(schunk, "large", value, VALUE, &cparams) >= 0, "vlmeta_add");
    blosc2_schunk_free(schunk);
}

/* Returns the number of calls. */
static int stop_reading(const uint8_t *value)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options open = CATERVA_OPEN_INIT;
    patience p;
    int chance = 0;
    open.progress = every_step(patience_on_progress, &p);
    CHECK_OK(caterva_open(path, &open, &array, &err), err);
    for (caterva_status status = CATERVA_ESTOPPED; status != CATERVA_OK; chance++) {
        void *got = NULL;
        size_t size = 0;
        p = (patience){.left = chance};
        status = caterva_attr_get(array, "large", &got, &size, &err);
        CHECK(p.total == VALUE, "%lld bytes", (long long)p.total);
        if (status != CATERVA_OK) {
            CHECK(status == CATERVA_ESTOPPED && !got, "%s", caterva_status_name(status));
            continue;
        }
        CHECK(p.done == VALUE, "%lld bytes", (long long)p.done);
        CHECK(size == VALUE && memcmp(got, value, size) == 0, "another value");
        caterva_free(got);
    }
    caterva_discard(array);
    return chance;
}

/* If stopped, the array has no attribute; if not, it has the same bytes as without
 * on_progress. */
static int stop_setting(const uint8_t *value)
{
    void *frame, *plain;
    size_t size, plain_size;
    int chance = 0;
    caterva_error err;
    caterva_array *array;
    patience p = {.left = -1};
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.dtype = "<i4";
    CHECK_OK(caterva_create("mem:", &create, &array, &err), err);
    CHECK_OK(caterva_attr_set(array, "large", value, VALUE, &err), err);
    CHECK_OK(caterva_frame_copy(array, &plain, &plain_size, &err), err);
    caterva_discard(array);
    create.progress = every_step(patience_on_progress, &p);
    CHECK_OK(caterva_create("mem:", &create, &array, &err), err);
    for (caterva_status status = CATERVA_ESTOPPED; status != CATERVA_OK; chance++) {
        int64_t n;
        p = (patience){.left = chance};
        status = caterva_attr_set(array, "large", value, VALUE, &err);
        CHECK(p.total == VALUE, "%lld bytes", (long long)p.total);
        CHECK(status == CATERVA_OK || status == CATERVA_ESTOPPED, "%s", err.message);
        CHECK(status != CATERVA_OK || p.done == VALUE, "%lld bytes", (long long)p.done);
        CHECK((caterva_attr_read(array, "large", 0, NULL, 0, &n, &err) == CATERVA_OK) ==
                  (status == CATERVA_OK),
              "half an attribute at chance %d", chance);
    }
    p = (patience){.left = -1};
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    CHECK(size == plain_size, "%zu bytes, not %zu", size, plain_size);
    void *back, *plain_back;
    caterva_array *other;
    CHECK_OK(caterva_frame_open(plain, plain_size, 1, NULL, &other, &err), err);
    CHECK_OK(caterva_attr_get(other, "large", &plain_back, &plain_size, &err), err);
    CHECK_OK(caterva_attr_get(array, "large", &back, &size, &err), err);
    CHECK(size == VALUE && memcmp(back, value, VALUE) == 0, "another value");
    CHECK(plain_size == VALUE && memcmp(plain_back, value, VALUE) == 0, "another value");
    caterva_free(back);
    caterva_free(plain_back);
    caterva_free(frame);
    caterva_discard(other);
    caterva_discard(array);
    caterva_free(plain);
    return chance;
}

int main(void)
{
    uint8_t *value = check_alloc(VALUE);
    for (int i = 0; i < VALUE; i++) value[i] = (uint8_t)(i / 999 + i % 13);
    blosc2_init();
    scratch_path(path, "array");
    save_with(value);
    CHECK(stop_reading(value) > 8, "few chances");
    save_with(NULL);
    add_compressed(value);
    CHECK(stop_reading(value) > 8, "few chances");
    CHECK(stop_setting(value) > 3, "few chances");
    for (int i = 0; i < VALUE; i++) value[i] = (uint8_t)((uint32_t)i * 2654435761U >> 13);
    CHECK(stop_setting(value) > 3, "few chances");
    memset(value, 0, VALUE);
    CHECK(stop_setting(value) > 3, "few chances");
    blosc2_destroy();
    free(value);
    return 0;
}
