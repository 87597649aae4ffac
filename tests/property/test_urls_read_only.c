/* Only caterva_publish writes to a URL, whatever its scheme: every function that would create
 * or change something there says so, and a scheme that cannot be read is reported. */
#include "check.h"

#include <caterva.h>
#include <caterva_store.h>
#include <caterva_tree.h>
#include <caterva_upkeep.h>

#include <stdio.h>
#include <string.h>

static caterva_error err;

static void refused(caterva_status status, caterva_status expected, const char *what,
                    const char *url)
{
    CHECK(status == expected && err.code == expected, "%s %s: %s: %s", what, url,
          caterva_status_name(status), status == CATERVA_OK ? "" : err.message);
}

static caterva_create_options small(void)
{
    static const int64_t shape[] = {4};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.dtype = "<i4";
    return o;
}

static void arrays(const char *url)
{
    caterva_array *array, *memory;
    caterva_create_options o = small();
    caterva_open_options writing = CATERVA_OPEN_INIT;
    caterva_repair_options repair = CATERVA_REPAIR_INIT;
    caterva_repair_result repaired = CATERVA_REPAIR_RESULT_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    refused(caterva_create(url, &o, &array, &err), CATERVA_EREADONLY, "create", url);
    o.overwrite = 1;
    refused(caterva_create(url, &o, &array, &err), CATERVA_EREADONLY, "create over", url);
    o.layout = CATERVA_LAYOUT_SPARSE;
    refused(caterva_create(url, &o, &array, &err), CATERVA_EREADONLY, "create sparse", url);
    o = small();
    refused(caterva_open(url, &writing, &array, &err), CATERVA_EREADONLY, "open", url);
    refused(caterva_repair(url, &repair, &repaired, &err), CATERVA_EREADONLY, "repair", url);
    refused(caterva_delete(url, NULL, &err), CATERVA_EREADONLY, "unlink", url);

    CHECK_OK(caterva_create("mem:", &o, &memory, &err), err);
    refused(caterva_copy(memory, url, NULL, &array, &err), CATERVA_EREADONLY, "copy", url);
    refused(caterva_frame_append(memory, url, CATERVA_DURABILITY_NONE, NULL, &err),
            CATERVA_EREADONLY, "append a frame", url);
    caterva_discard(memory);
}

static void trees(const char *url)
{
    caterva_tree *tree;
    caterva_tree_options o = CATERVA_TREE_INIT;
    caterva_tree_repair_result repaired = CATERVA_TREE_REPAIR_RESULT_INIT;
    o.mode = CATERVA_MODE_WRITE;
    refused(caterva_tree_create(url, NULL, &tree, &err), CATERVA_EREADONLY, "make", url);
    refused(caterva_tree_open(url, &o, &tree, &err), CATERVA_EREADONLY, "open", url);
    refused(caterva_tree_repair(url, NULL, &repaired, &err), CATERVA_EREADONLY, "repair",
            url);
}

static void what_is_not_read(const char *url)
{
    caterva_tree *tree;
    caterva_array *array;
    refused(caterva_open(url, NULL, &array, &err), CATERVA_EUNSUPPORTED, "read", url);
    CHECK(strstr(err.message, "http://, https:// or s3://"), "%s", err.message);
    refused(caterva_tree_open(url, NULL, &tree, &err), CATERVA_EUNSUPPORTED, "read", url);
}

int main(void)
{
    static const char *const urls[] = {"memory://z.b2nd",           "gs://bucket/z.b2nd",
                                       "file:///tmp/z.b2nd",        "x-y+z.1://z",
                                       "http://127.0.0.1:9/z.b2nd", "s3://bucket/z.b2nd"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        arrays(urls[i]);
        trees(urls[i]);
        if (i < 4) what_is_not_read(urls[i]);
    }
    arrays("memory://z.b2d::/x");
    return 0;
}
