/* The reading of a large attribute, stored plain by this library or compressed by C-Blosc2,
 * tells how far it is and is stopped at each of its chances. */
#include "caterva.h"

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

/* How many chances there were. */
static int stop_reading(const uint8_t *value)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options open = CATERVA_OPEN_INIT;
    patience p;
    int chance = 0;
    open.on_progress = patience_hear;
    open.context = &p;
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
    blosc2_destroy();
    free(value);
    return 0;
}
