/* Any bytes opened as a frame: what opens must answer every query and be read and verified,
 * with any status, in bounded memory. Opens a second time without checks, so that the parsers
 * behind the checksums are reached. */
#include "fuzz.h"
#include <caterva_store.h>
#include <caterva_upkeep.h>

enum { MAX_READ = 1 << 16, MAX_CHUNKS = 64 };

static void look_at_chunks(caterva_array *array, const caterva_info *info)
{
    for (int64_t i = 0; i < info->n_chunks && i < MAX_CHUNKS; i++) {
        caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
        caterva_chunk_describe(array, i, &chunk, NULL);
    }
}

static void look_at_names(caterva_array *array, const caterva_info *info)
{
    for (int i = 0; i < info->n_attributes && i < 32; i++) {
        void *value;
        size_t size;
        if (caterva_attr_get(array, info->attribute_names[i], &value, &size, NULL) ==
            CATERVA_OK)
            caterva_free(value);
    }
    for (int i = 0; i < info->n_metalayers; i++)
        FUZZ_NEED(caterva_info_metalayer(info, info->metalayers[i].name) != NULL,
                  "a metalayer that is named is not there");
}

/* A box of at most MAX_READ bytes, at the beginning or end of the array. */
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

/* Every other item of each axis, and points at the corners. */
static void read_selections(caterva_array *array, const caterva_info *info)
{
    static uint8_t items[MAX_READ];
    caterva_axis axes[CATERVA_MAX_DIMS];
    int64_t points[2 * CATERVA_MAX_DIMS];
    caterva_selection selection = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.data = items;
    buffer.size = sizeof items;
    for (int d = 0; d < info->ndim; d++) {
        axes[d] = (caterva_axis){.kind = CATERVA_AXIS_SLICE, .stop = 4, .step = 2};
        points[d] = 0;
        points[info->ndim + d] = -1;
    }
    selection.kind = CATERVA_SELECTION_AXES;
    selection.axes = axes;
    selection.n_axes = info->ndim;
    caterva_read_selection(array, &selection, &buffer, NULL);
    selection.kind = CATERVA_SELECTION_POINTS;
    selection.points = points;
    selection.n_points = 2;
    caterva_read_selection(array, &selection, &buffer, NULL);
}

/* Returns whether checksums may have prevented a part from being parsed. */
static int look(const uint8_t *bytes, size_t size, int unchecked)
{
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    options.cache_bytes = -1;
    options.unchecked = unchecked;
    if (caterva_frame_open(bytes, size, 0, &options, &array, NULL) != CATERVA_OK) return 1;
    const caterva_info *info;
    FUZZ_NEED(caterva_info_get(array, &info, NULL) == CATERVA_OK, "no description");
    int sealed = info->sealed;
    look_at_names(array, info);
    look_at_chunks(array, info);
    read_box(array, info, 0);
    read_box(array, info, 1);
    read_selections(array, info);
    if (info->chunk_bytes <= 1 << 20 && info->n_chunks <= 256) {
        caterva_verify_options verify = CATERVA_VERIFY_INIT;
        caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
        caterva_space space = CATERVA_SPACE_INIT;
        caterva_verify(array, &verify, &result, NULL);
        caterva_measure(array, &space, NULL);
    }
    caterva_info_release(info);
    caterva_discard(array);
    return sealed;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (look(bytes, size, 0)) look(bytes, size, 1);
    return 0;
}
