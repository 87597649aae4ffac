/* Any bytes opened as a frame: what opens must answer every question, be read
 * and verified, with whatever status, in bounded memory. */
#include "fuzz.h"

enum { MAX_READ = 1 << 16, MAX_CHUNKS = 64 };

static void look_at_chunks(caterva_array *array, const caterva_info *info)
{
    for (int64_t i = 0; i < info->n_chunks && i < MAX_CHUNKS; i++) {
        caterva_chunk_info chunk;
        caterva_describe_chunk(array, i, &chunk, NULL);
    }
}

static void look_at_names(caterva_array *array)
{
    const char *name;
    for (int i = 0; (name = caterva_attr_name(array, i)) && i < 32; i++) {
        void *value;
        size_t size;
        if (caterva_attr_get(array, name, &value, &size, NULL) == CATERVA_OK)
            caterva_free(value);
    }
    for (int i = 0; (name = caterva_meta_name(array, i)); i++) {
        const void *content;
        size_t size;
        FUZZ_NEED(caterva_meta_get(array, name, &content, &size, NULL) == CATERVA_OK,
                  "a metalayer that is named is not there");
    }
}

/* A box of at most MAX_READ bytes, at the array's begin or end. */
static void read_box(caterva_array *array, const caterva_info *info, int at_end)
{
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    int64_t room = MAX_READ / info->item_size;
    if (room < 1) return;
    for (int d = info->ndim - 1; d >= 0; d--) {
        int64_t n = info->shape[d] < room ? info->shape[d] : room;
        start[d] = at_end ? info->shape[d] - n : 0;
        stop[d] = start[d] + n;
        if (n > 0) room /= n;
    }
    static uint8_t items[MAX_READ];
    caterva_read(array, start, stop, items, sizeof items, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    if (caterva_open_frame(bytes, size, 0, &options, &array, NULL) != CATERVA_OK) return 0;
    const caterva_info *info = caterva_describe(array);
    look_at_names(array);
    look_at_chunks(array, info);
    read_box(array, info, 0);
    read_box(array, info, 1);
    if (info->chunk_bytes <= 1 << 20 && info->n_chunks <= 256) {
        caterva_verify_options verify = CATERVA_VERIFY_INIT;
        caterva_verify_result result;
        caterva_space space;
        caterva_verify(array, &verify, &result, NULL);
        caterva_measure(array, &space, NULL);
    }
    caterva_discard(array);
    return 0;
}
