/* Misuse of creating and opening: every rule of the options broken once, each refused with a
 * defined status and a message, leaving nothing at the path. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/refuse.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* `number`: the row of a table, for the message. */
static void refuse_create(const caterva_create_options *options, unsigned allowed,
                          const char *what, int number)
{
    char path[SCRATCH_PATH];
    char label[80];
    struct stat st;
    caterva_error err = {.code = CATERVA_OK};
    caterva_array *array = NULL;
    snprintf(label, sizeof(label), "create with a bad %s (%d)", what, number);
    caterva_status status = caterva_create("mem:", options, &array, &err);
    check_refusal(allowed, status, &err, __LINE__, label);
    status = caterva_create(scratch_path(path, "refused.b2nd"), options, &array, NULL);
    check_refusal(allowed, status, NULL, __LINE__, label);
    CHECK(array == NULL, "%s: a handle in spite of the refusal", label);
    CHECK(stat(path, &st) != 0, "%s: a file in spite of the refusal", label);
}

static void abuse_create_arguments(void)
{
    caterva_create_options o = small_options();
    caterva_array *array = NULL;
    char path[SCRATCH_PATH];
    REFUSE(EINVAL_BIT, caterva_create(NULL, &o, &array, err));
    REFUSE(EINVAL_BIT, caterva_create("mem:", NULL, &array, err));
    REFUSE(EINVAL_BIT, caterva_create("mem:", &o, NULL, err));
    REFUSE(EINVAL_BIT, caterva_create("", &o, &array, err));
    o.struct_size = 0;
    refuse_create(&o, EINVAL_BIT, "struct size", 0);
    o = small_options();
    o.layout = CATERVA_LAYOUT_SPARSE;
    REFUSE(EINVAL_BIT, caterva_create("mem:", &o, &array, err));
    scratch_path(path, "no-such-folder/array.b2nd");
    o = small_options();
    caterva_error detail;
    caterva_status status = caterva_create(path, &o, &array, &detail);
    if (status == CATERVA_OK) /* may fail as late as the first commit */
        status = caterva_close(array, &detail);
    check_refusal(EIO_BIT | ENOTFOUND_BIT, status, &detail, __LINE__, "create in no folder");
}

static void abuse_ndim(void)
{
    static const int ndims[] = {-1, 16, 17, 127, 1000, INT32_MAX, INT32_MIN};
    for (int i = 0; i < COUNT(ndims); i++) {
        caterva_create_options o = small_options();
        o.ndim = ndims[i];
        refuse_create(&o, EINVAL_BIT, "ndim", i);
    }
    caterva_create_options o = small_options();
    o.shape = NULL;
    refuse_create(&o, EINVAL_BIT, "shape pointer", 0);
}

static void abuse_shapes(void)
{
    static const int64_t shapes[][2] = {{-1, 7},
                                        {6, -1},
                                        {INT64_MIN, 7},
                                        {INT64_MAX, INT64_MAX},
                                        {INT64_MAX, 1},
                                        {INT64_MAX / 4, 1},
                                        {(int64_t)1 << 40, 1 << 20},
                                        {(int64_t)1 << 32, (int64_t)1 << 32}};
    static const int32_t chunks[][2] = {{0, 3},
                                        {4, 0},
                                        {-1, 3},
                                        {4, INT32_MIN},
                                        {INT32_MAX, INT32_MAX},
                                        {1 << 16, 1 << 16},
                                        {INT32_MAX, 1}};
    static const int32_t blocks[][2] = {{0, 3},  {2, 0},         {5, 3},        {2, 4},
                                        {-2, 3}, {INT32_MAX, 3}, {INT32_MIN, 3}};
    for (int i = 0; i < COUNT(shapes); i++) {
        caterva_create_options o = small_options();
        o.shape = shapes[i];
        refuse_create(&o, EINVAL_BIT, "shape", i);
    }
    for (int i = 0; i < COUNT(chunks); i++) {
        caterva_create_options o = small_options();
        o.chunk_shape = chunks[i];
        refuse_create(&o, EINVAL_BIT, "chunk shape", i);
    }
    for (int i = 0; i < COUNT(blocks); i++) {
        caterva_create_options o = small_options();
        o.block_shape = blocks[i];
        refuse_create(&o, EINVAL_BIT, "block shape", i);
    }
}

static void abuse_items(void)
{
    static const struct {
        const char *dtype;
        int32_t item_size;
    } items[] = {{NULL, 0},    {NULL, -1},   {NULL, INT32_MIN},    {NULL, INT32_MAX},
                 {"<i4", 8},   {"<i4", 3},   {"<i4", -4},          {"|S7", 8},
                 {"|u1", 300}, {"<c16", 15}, {"[('a', '<f4')]", 5}};
    for (int i = 0; i < COUNT(items); i++) {
        caterva_create_options o = small_options();
        o.dtype = items[i].dtype;
        o.item_size = items[i].item_size;
        refuse_create(&o, EINVAL_BIT, "dtype and item size", i);
    }
}

static void abuse_codec(void)
{
    enum { NUMBER = EINVAL_BIT, UNKNOWN = EUNSUPPORTED_BIT, DICT = EPIPELINE_BIT };
    static const struct {
        unsigned allowed;
        int codec, codec_meta, level, use_dict;
    } codecs[] = {
        {NUMBER, -1, 0, 5, 0},  {UNKNOWN, 3, 0, 5, 0},  {UNKNOWN, 6, 0, 5, 0},
        {UNKNOWN, 31, 0, 5, 0}, {UNKNOWN, 99, 0, 5, 0}, {UNKNOWN, 255, 0, 5, 0},
        {NUMBER, 257, 0, 5, 0}, {NUMBER, 1, -1, 5, 0},  {NUMBER, 1, 256, 5, 0},
        {NUMBER, 1, 0, -2, 0},  {NUMBER, 1, 0, 10, 0},  {NUMBER, 5, 0, 100, 0},
        {DICT, 256, 0, 5, 1},    {DICT, 4, 0, 5, 1},     {NUMBER, 5, 0, INT32_MIN, 0},
        {DICT, 1, 0, 5, 1},     {DICT, 2, 0, 5, 1}};
    for (int i = 0; i < COUNT(codecs); i++) {
        caterva_create_options o = small_options();
        o.codec = codecs[i].codec;
        o.codec_meta = codecs[i].codec_meta;
        o.level = codecs[i].level;
        o.use_dict = codecs[i].use_dict;
        refuse_create(&o, codecs[i].allowed, "codec", i);
    }
}

static void abuse_filters(void)
{
    static const int filters[][2] = {{-1, 0},      {5, 0},         {31, 0},       {37, 0},
                                     {255, 0},     {257, 0},       {1, 256},      {1, -129},
                                     {1 << 20, 0}, {INT32_MIN, 0}, {1, INT32_MAX}};
    for (int i = 0; i < COUNT(filters); i++) {
        caterva_create_options o = small_options();
        o.filters[i % CATERVA_MAX_FILTERS] = filters[i][0];
        o.filters_meta[i % CATERVA_MAX_FILTERS] = filters[i][1];
        bool is_number = filters[i][0] >= 5 && filters[i][0] <= 255; /* no filter */
        refuse_create(&o, is_number ? EUNSUPPORTED_BIT : EINVAL_BIT, "filter", i);
    }
}

static void abuse_choices(void)
{
    caterva_create_options o = small_options();
    o.layout = (caterva_layout)7;
    refuse_create(&o, EINVAL_BIT, "layout", 0);
    o = small_options();
    o.metalayer = (caterva_metalayer_kind)5;
    refuse_create(&o, EINVAL_BIT, "metalayer kind", 0);
    o = small_options();
    o.fill = (caterva_fill)9;
    refuse_create(&o, EINVAL_BIT, "fill", 0);
    o.fill = CATERVA_FILL_VALUE;
    refuse_create(&o, EINVAL_BIT, "fill value", 0);
    o.fill = CATERVA_FILL_NAN;
    o.dtype = "|S3";
    refuse_create(&o, EDTYPE_BIT, "NaN size", 0);
    o = small_options();
    o.durability = (caterva_durability)4;
    refuse_create(&o, EINVAL_BIT, "durability", 0);
    o = small_options();
    o.threads = -1;
    refuse_create(&o, EINVAL_BIT, "threads", 0);
}

static void abuse_metalayers(void)
{
    static const caterva_metalayer layers[] = {
        {.name = NULL, .content = "x", .size = 1},
        {.name = "", .content = "x", .size = 1},
        {.name = "b2nd", .content = "x", .size = 1},
        {.name = "caterva", .content = "x", .size = 1},
        {.name = "a-name-of-more-than-31-characters", .content = "x", .size = 1},
        {.name = "user", .content = NULL, .size = 1},
        {.name = "user", .content = "x", .size = (size_t)1 << 40},
    };
    for (int i = 0; i < COUNT(layers); i++) {
        caterva_create_options o = small_options();
        o.metalayers = &layers[i];
        o.n_metalayers = 1;
        refuse_create(&o, EINVAL_BIT, "metalayer", i);
    }
    static const caterva_metalayer same[] = {
        {.name = "user", .content = "x", .size = 1},
        {.name = "user", .content = "y", .size = 1}};
    static const int counts[] = {-1, 16, 1000, INT32_MAX};
    caterva_create_options o = small_options();
    o.metalayers = same;
    o.n_metalayers = 2;
    refuse_create(&o, EINVAL_BIT, "metalayer name", 0);
    for (int i = 0; i < COUNT(counts); i++) {
        o.n_metalayers = counts[i];
        refuse_create(&o, EINVAL_BIT, "metalayer count", i);
    }
    o.n_metalayers = 1;
    o.metalayers = NULL;
    refuse_create(&o, EINVAL_BIT, "metalayer list", 0);
}

static void abuse_open(void)
{
    char path[SCRATCH_PATH];
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *array = NULL;
    scratch_path(path, "missing.b2nd");
    REFUSE(EINVAL_BIT, caterva_open(NULL, &o, &array, err));
    REFUSE(EINVAL_BIT, caterva_open(path, &o, NULL, err));
    REFUSE(ENOTFOUND_BIT, caterva_open(path, &o, &array, err));
    REFUSE(EINVAL_BIT, caterva_open("", &o, &array, err));
    REFUSE(EINVAL_BIT, caterva_open("mem:", &o, &array, err));
    scratch_path(path, "folder");
    CHECK(mkdir(path, 0777) == 0, "cannot make %s", path);
    REFUSE(ECORRUPT_BIT | EUNSUPPORTED_BIT | ENOTFOUND_BIT,
           caterva_open(path, &o, &array, err));

    scratch_path(path, "open.b2nd");
    caterva_error detail;
    CHECK_OK(caterva_close(make_small_array(path), &detail), detail);
    o.struct_size = 0;
    REFUSE(EINVAL_BIT, caterva_open(path, &o, &array, err));
    o.struct_size = sizeof(o);
    o.mode = (caterva_mode)9;
    REFUSE(EINVAL_BIT, caterva_open(path, &o, &array, err));
    o.mode = CATERVA_MODE_WRITE;
    o.offset = 1;
    REFUSE(EINVAL_BIT, caterva_open(path, &o, &array, err));
    o.mode = CATERVA_MODE_READ;
    static const uint64_t offsets[] = {1, 100, 1u << 30, INT64_MAX, UINT64_MAX};
    for (int i = 0; i < COUNT(offsets); i++) {
        o.offset = offsets[i];
        REFUSE(EINVAL_BIT | ECORRUPT_BIT | EUNSUPPORTED_BIT | EIO_BIT,
               caterva_open(path, &o, &array, err));
    }
}

static void abuse_modes(void)
{
    char path[SCRATCH_PATH];
    caterva_error detail;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_create_options create = small_options();
    caterva_array *array = NULL;
    caterva_array *second = NULL;
    int64_t start[2] = {0, 0};
    scratch_path(path, "modes.b2nd");
    array = make_small_array(path);
    o.mode = CATERVA_MODE_WRITE;
    REFUSE(EBUSY_BIT, caterva_open(path, &o, &second, err));
    CHECK_OK(caterva_close(array, &detail), detail);
    REFUSE(EEXIST_BIT, caterva_create(path, &create, &second, err));

    CHECK_OK(caterva_open(path, NULL, &array, &detail), detail);
    REFUSE(EREADONLY_BIT,
           caterva_write(array, start, small_shape, small_values, sizeof(small_values), err));
    check_small_array(array);
    CHECK_OK(caterva_close(array, &detail), detail);
}

/* ---- Copies ----------------------------------------------------------------- */

static void refuse_copy(caterva_array *source, const caterva_copy_options *options,
                        unsigned allowed)
{
    char path[SCRATCH_PATH];
    struct stat st;
    caterva_array *copy = NULL;
    scratch_path(path, "refused.b2nd");
    REFUSE(allowed, caterva_copy(source, path, options, &copy, err));
    REFUSE(allowed, caterva_copy(source, path, options, NULL, err));
    CHECK(copy == NULL, "a handle in spite of the refusal");
    CHECK(stat(path, &st) != 0, "a file in spite of the refusal");
}

static void abuse_copy_boxes(caterva_array *source)
{
    static const int64_t boxes[][4] = {
        /* start, stop */
        {-1, 0, 2, 2}, {0, 0, 7, 7},         {0, 0, 6, 8},         {3, 0, 2, 7},
        {0, 5, 6, 4},  {INT64_MIN, 0, 6, 7}, {0, 0, 6, INT64_MAX}, {7, 0, 7, 7},
    };
    caterva_copy_options options = CATERVA_COPY_INIT;
    for (int i = 0; i < COUNT(boxes); i++) {
        options.start = boxes[i];
        options.stop = boxes[i] + 2;
        refuse_copy(source, &options, ERANGE_BIT);
    }
    options.start = NULL;
    options.stop = boxes[2] + 2;
    refuse_copy(source, &options, ERANGE_BIT);
}

static void abuse_copy(void)
{
    caterva_array *source = make_small_array("mem:");
    caterva_array *copy = NULL;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    REFUSE(EINVAL_BIT, caterva_copy(NULL, "mem:", NULL, &copy, err));
    REFUSE(EINVAL_BIT, caterva_copy(source, NULL, NULL, &copy, err));
    abuse_copy_boxes(source);
    options.struct_size = 0;
    refuse_copy(source, &options, EINVAL_BIT);
    options = (caterva_copy_options)CATERVA_COPY_INIT;
    options.memory = -1;
    refuse_copy(source, &options, EINVAL_BIT);
    options.memory = 0;
    options.create = &create;
    create.struct_size = 3;
    refuse_copy(source, &options, EINVAL_BIT);

    static const int32_t zero[2] = {0, 3}, large[2] = {INT32_MAX, INT32_MAX};
    static const char *const dtypes[] = {"<f8", "", "<i3", "|S5", "nonsense"};
    for (int i = 0; i < COUNT(dtypes); i++) {
        create = (caterva_create_options)CATERVA_CREATE_INIT;
        create.dtype = dtypes[i];
        bool other_size = i == 0 || i == 3; /* a dtype of another item size */
        refuse_copy(source, &options, other_size ? EDTYPE_BIT : EINVAL_BIT);
    }
    create = (caterva_create_options)CATERVA_CREATE_INIT;
    create.chunk_shape = zero;
    refuse_copy(source, &options, EINVAL_BIT);
    create.chunk_shape = large;
    refuse_copy(source, &options, EINVAL_BIT);
    create.chunk_shape = NULL;
    create.block_shape = zero;
    refuse_copy(source, &options, EINVAL_BIT);
    create = (caterva_create_options)CATERVA_CREATE_INIT;
    create.codec = 99;
    refuse_copy(source, &options, EUNSUPPORTED_BIT);
    create = (caterva_create_options)CATERVA_CREATE_INIT;
    create.threads = -1;
    refuse_copy(source, &options, EINVAL_BIT);
    create = (caterva_create_options)CATERVA_CREATE_INIT;
    create.layout = CATERVA_LAYOUT_SPARSE;
    REFUSE(EINVAL_BIT, caterva_copy(source, "mem:", &options, &copy, err));
    check_small_array(source);
    caterva_discard(source);
}

int main(void)
{
    abuse_copy();
    abuse_create_arguments();
    abuse_ndim();
    abuse_shapes();
    abuse_items();
    abuse_codec();
    abuse_filters();
    abuse_choices();
    abuse_metalayers();
    abuse_open();
    abuse_modes();
    printf("%d misuses refused\n", refusals());
    CHECK(refusals() >= 200, "too few");
    return 0;
}
