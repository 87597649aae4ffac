/* Helper of test_select.py: a few arrays, and views of them, read and written through
 * selections, driven by commands on stdin. A command is a line of words, followed by raw bytes
 * for some commands; the response is "ok SIZE" followed by SIZE raw bytes, or
 * "failed STATUS MESSAGE".
 *
 *   array ITEM_SIZE NDIM shape.. chunks.. blocks.. PLACE   + the array's bytes
 *         PLACE 0: with its items pending; 1: committed; 2: opened again
 *   whole                              the array's bytes, by caterva_read
 *   read SEL BUF                       all of the buffer's memory, also what the
 *                                      read must not change (0xA5)
 *   write SEL BUF                      + the buffer's memory
 *   shape SEL                          the result's shape as words
 *   dtypes ARRAY BUFFER CASTING        of later arrays and buffers; "-": none
 *   field NAME                         of structured items, in later buffers; "-": all
 *   slot N                             selects the current array, N < 4
 *
 *   view                               pushes a view of the array; the next commands
 *                                      use the view pushed last
 *   vselect SEL | vtranspose N axis.. | vexpand AXIS | vsqueeze AXIS
 *   vjoin N AXIS NEW                   the last N views become one, NEW: stacked
 *   vpop
 *   vshape                             its shape
 *   vread SEL BUF | vwrite SEL BUF     as read and write
 *
 *   SEL: none | box N start.. stop.. | points N NDIM index.. | mask N bits
 *        | axes N, each: a | i INDEX | s START STOP STEP | l N index.. | m N bits
 *        ("o" is a bound left out)
 *   BUF: SIZE POS, then "c" for C order or NDIM shape.. strides..; POS is the byte
 *        of the first item in the memory of SIZE bytes */
#include "caterva.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 22, SLOTS = 4, MAX_VIEWS = 32 };

static caterva_array *arrays[SLOTS];
static int slot;
static caterva_view *views[MAX_VIEWS];
static int n_views;
static char array_dtype[512] = "-", buffer_dtype[64] = "-", field[64] = "-";
static caterva_casting casting;

typedef struct words {
    caterva_selection selection;
    int none; /* a NULL selection */
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    caterva_axis axes[CATERVA_MAX_DIMS];
    void *lists[CATERVA_MAX_DIMS + 1];
    int n_lists;
    caterva_buffer buffer;
    int64_t shape[CATERVA_MAX_DIMS], strides[CATERVA_MAX_DIMS];
    uint8_t *memory;
} words;

static char line[MAX_LINE];

static const char *next_word(int first)
{
    const char *word = strtok(first ? line : NULL, " \n");
    CHECK(word != NULL, "a command ends early");
    return word;
}

static int64_t next_number(void)
{
    const char *word = next_word(0);
    return *word == 'o' ? CATERVA_AXIS_OMIT : strtoll(word, NULL, 10);
}

static void next_numbers(int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = next_number();
}

static void read_bytes(void *dst, size_t size)
{
    CHECK(fread(dst, 1, size, stdin) == size, "stdin ends early");
}

static void answer(caterva_status status, const caterva_error *err, const void *bytes,
                   size_t size)
{
    if (status != CATERVA_OK) {
        printf("failed %s %s\n", caterva_status_name(status), err->message);
    } else {
        printf("ok %zu\n", size);
        fwrite(bytes, 1, size, stdout);
    }
    fflush(stdout);
}

/* ---- Words of a selection and of a buffer --------------------------------- */

/* Memory of exactly that size, so that a sanitizer detects each access beside it. */
static void *keep(words *w, size_t size)
{
    return w->lists[w->n_lists++] = check_alloc(size);
}

static int64_t *next_list(words *w, int64_t n)
{
    int64_t *list = keep(w, (size_t)n * sizeof(*list));
    next_numbers(list, n);
    return list;
}

static uint8_t *next_bits(words *w, int64_t n)
{
    uint8_t *mask = keep(w, (size_t)n);
    const char *bits = n > 0 ? next_word(0) : "";
    for (int64_t i = 0; i < n; i++) mask[i] = (uint8_t)(bits[i] == '1' ? 1 + i % 255 : 0);
    return mask;
}

static void parse_axis(words *w, caterva_axis *axis)
{
    const char *kind = next_word(0);
    switch (*kind) {
    case 'a': axis->kind = CATERVA_AXIS_ALL; break;
    case 'i':
        axis->kind = CATERVA_AXIS_INDEX;
        axis->start = next_number();
        break;
    case 's':
        axis->kind = CATERVA_AXIS_SLICE;
        axis->start = next_number();
        axis->stop = next_number();
        axis->step = next_number();
        break;
    case 'l':
        axis->kind = CATERVA_AXIS_LIST;
        axis->n = next_number();
        axis->indices = next_list(w, axis->n);
        break;
    default:
        axis->kind = CATERVA_AXIS_MASK;
        axis->n = next_number();
        axis->mask = next_bits(w, axis->n);
    }
}

static void parse_selection(words *w)
{
    const char *kind = next_word(0);
    caterva_selection *s = &w->selection;
    *s = (caterva_selection)CATERVA_SELECTION_INIT;
    w->none = strcmp(kind, "none") == 0;
    if (w->none) return;
    int64_t n = next_number();
    if (strcmp(kind, "box") == 0) {
        next_numbers(w->start, n);
        next_numbers(w->stop, n);
        s->start = w->start;
        s->stop = w->stop;
    } else if (strcmp(kind, "axes") == 0) {
        s->kind = CATERVA_SELECTION_AXES;
        s->axes = w->axes;
        s->n_axes = (int)n;
        for (int64_t d = 0; d < n; d++) parse_axis(w, &w->axes[d]);
    } else if (strcmp(kind, "points") == 0) {
        s->kind = CATERVA_SELECTION_POINTS;
        s->n_points = n;
        s->points = next_list(w, n * next_number());
    } else {
        s->kind = CATERVA_SELECTION_MASK;
        s->mask_size = (size_t)n;
        s->mask = next_bits(w, n);
    }
}

static void parse_buffer(words *w)
{
    caterva_buffer *b = &w->buffer;
    *b = (caterva_buffer)CATERVA_BUFFER_INIT;
    b->size = (size_t)next_number();
    w->memory = keep(w, b->size);
    if (*buffer_dtype != '-') b->dtype = buffer_dtype;
    if (*field != '-') b->field = field;
    b->casting = casting;
    b->data = w->memory + next_number();
    const char *order = next_word(0);
    if (*order == 'c') return;
    b->ndim = (int)strtoll(order, NULL, 10);
    next_numbers(w->shape, b->ndim);
    next_numbers(w->strides, b->ndim);
    b->shape = w->shape;
    b->strides = w->strides;
}

static void free_words(words *w)
{
    for (int i = 0; i < w->n_lists; i++) free(w->lists[i]);
}

/* ---- Commands ------------------------------------------------------------- */

static caterva_array *reopen(caterva_array *array)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    void *frame;
    size_t size;
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    caterva_discard(array);
    CHECK_OK(caterva_frame_open(frame, size, 1, &options, &array, &err), err);
    caterva_free(frame);
    return array;
}

static caterva_array *make_array(void)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options options = CATERVA_CREATE_INIT;
    int64_t shape[CATERVA_MAX_DIMS], parts[2][CATERVA_MAX_DIMS];
    int32_t chunks[CATERVA_MAX_DIMS], blocks[CATERVA_MAX_DIMS];
    options.item_size = (int32_t)next_number();
    options.ndim = (int)next_number();
    next_numbers(shape, options.ndim);
    for (int i = 0; i < 2; i++) next_numbers(parts[i], options.ndim);
    size_t size = (size_t)options.item_size;
    for (int d = 0; d < options.ndim; d++) {
        size *= (size_t)shape[d];
        chunks[d] = (int32_t)parts[0][d];
        blocks[d] = (int32_t)parts[1][d];
    }
    int64_t place = next_number();
    options.shape = shape;
    if (*array_dtype != '-') options.dtype = array_dtype;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    uint8_t *bytes = check_alloc(size);
    read_bytes(bytes, size);
    CHECK_OK(caterva_create_from_memory("mem:", &options, bytes, size, &array, &err), err);
    free(bytes);
    if (place == 1) CHECK_OK(caterva_commit(array, &err), err);
    if (place == 2) array = reopen(array);
    answer(CATERVA_OK, &err, "", 0);
    return array;
}

static void answer_whole(caterva_array *array)
{
    static const int64_t origin[CATERVA_MAX_DIMS] = {0};
    caterva_error err = {.code = CATERVA_OK};
    const caterva_info *info = info_of(array);
    size_t size = (size_t)info->data_bytes;
    uint8_t *bytes = check_alloc(size);
    caterva_status status = caterva_read(array, origin, info->shape, bytes, size, &err);
    answer(status, &err, bytes, size);
    free(bytes);
}

static void answer_shape(caterva_array *array, const caterva_selection *selection)
{
    caterva_error err = {.code = CATERVA_OK};
    char text[512] = "";
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim = 0, used = 0;
    caterva_status status = caterva_selection_shape(array, selection, &ndim, shape, &err);
    for (int d = 0; d < ndim; d++)
        used +=
            snprintf(text + used, sizeof(text) - (size_t)used, "%lld ", (long long)shape[d]);
    answer(status, &err, text, (size_t)used);
}

static caterva_status read_into(const caterva_selection *selection, const words *w,
                                int of_view, caterva_error *err)
{
    memset(w->memory, 0xA5, w->buffer.size);
    if (of_view) return caterva_view_read(views[n_views - 1], selection, &w->buffer, err);
    return caterva_read_selection(arrays[slot], selection, &w->buffer, err);
}

static caterva_status write_from(const caterva_selection *selection, const words *w,
                                 int to_view, caterva_error *err)
{
    read_bytes(w->memory, w->buffer.size);
    if (to_view) return caterva_view_write(views[n_views - 1], selection, &w->buffer, err);
    return caterva_write_selection(arrays[slot], selection, &w->buffer, err);
}

static void serve(const char *verb)
{
    words w = {.n_lists = 0};
    caterva_error err = {.code = CATERVA_OK};
    int of_view = *verb == 'v';
    parse_selection(&w);
    const caterva_selection *selection = w.none ? NULL : &w.selection;
    if (strcmp(verb, "shape") == 0) {
        answer_shape(arrays[slot], selection);
    } else if (strcmp(verb + of_view, "read") == 0) {
        parse_buffer(&w);
        caterva_status status = read_into(selection, &w, of_view, &err);
        answer(status, &err, w.memory, w.buffer.size);
    } else {
        parse_buffer(&w);
        caterva_status status = write_from(selection, &w, of_view, &err);
        answer(status, &err, "", 0);
    }
    free_words(&w);
}

/* ---- Views ---------------------------------------------------------------- */

/* Replaces the last view by a view of it. */
static caterva_status change_view(const char *verb, caterva_error *err)
{
    caterva_view *before = views[n_views - 1], *after = NULL;
    caterva_status status;
    if (strcmp(verb, "vselect") == 0) {
        words w = {.n_lists = 0};
        parse_selection(&w);
        status = caterva_view_select(before, w.axes, w.selection.n_axes, &after, err);
        free_words(&w);
    } else if (strcmp(verb, "vtranspose") == 0) {
        int order[CATERVA_MAX_DIMS];
        int n = (int)next_number();
        for (int i = 0; i < n; i++) order[i] = (int)next_number();
        status = caterva_view_transpose(before, n > 0 ? order : NULL, &after, err);
    } else {
        int axis = (int)next_number();
        status = strcmp(verb, "vexpand") == 0
                     ? caterva_view_expand(before, axis, &after, err)
                     : caterva_view_squeeze(before, axis, &after, err);
    }
    if (status != CATERVA_OK) return status;
    caterva_view_free(before);
    views[n_views - 1] = after;
    return CATERVA_OK;
}

static caterva_status join_views(caterva_error *err)
{
    int n = (int)next_number(), axis = (int)next_number();
    int is_new = (int)next_number();
    CHECK(n >= 1 && n <= n_views, "%d views to join", n);
    caterva_view *joined;
    const caterva_view *const *parts = (const caterva_view *const *)(views + n_views - n);
    caterva_status status = is_new ? caterva_view_stack(parts, n, axis, &joined, err)
                                   : caterva_view_concat(parts, n, axis, &joined, err);
    if (status != CATERVA_OK) return status;
    for (; n > 0; n--) caterva_view_free(views[--n_views]);
    views[n_views++] = joined;
    return CATERVA_OK;
}

static void answer_view_shape(void)
{
    char text[512] = "";
    int used = 0;
    const caterva_view *view = views[n_views - 1];
    for (int d = 0; d < caterva_view_ndim(view); d++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%lld ",
                         (long long)caterva_view_shape(view)[d]);
    answer(CATERVA_OK, NULL, text, (size_t)used);
}

static void serve_view(const char *verb)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_status status = CATERVA_OK;
    if (strcmp(verb, "vread") == 0 || strcmp(verb, "vwrite") == 0) {
        serve(verb);
        return;
    }
    if (strcmp(verb, "vshape") == 0) {
        answer_view_shape();
        return;
    }
    if (strcmp(verb, "view") == 0) {
        CHECK(n_views < MAX_VIEWS, "too many views");
        status = caterva_view_of(arrays[slot], &views[n_views], &err);
        n_views += status == CATERVA_OK;
    } else if (strcmp(verb, "vpop") == 0) {
        caterva_view_free(views[--n_views]);
    } else if (strcmp(verb, "vjoin") == 0) {
        status = join_views(&err);
    } else {
        status = change_view(verb, &err);
    }
    answer(status, &err, "", 0);
}

int main(void)
{
    caterva_error err = {.code = CATERVA_OK};
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const char *verb = next_word(1);
        if (strcmp(verb, "dtypes") == 0) {
            snprintf(array_dtype, sizeof(array_dtype), "%s", next_word(0));
            snprintf(buffer_dtype, sizeof(buffer_dtype), "%s", next_word(0));
            casting = (caterva_casting)next_number();
            answer(CATERVA_OK, &err, "", 0);
        } else if (strcmp(verb, "field") == 0) {
            snprintf(field, sizeof(field), "%s", next_word(0));
            answer(CATERVA_OK, &err, "", 0);
        } else if (strcmp(verb, "array") == 0) {
            caterva_discard(arrays[slot]);
            arrays[slot] = make_array();
        } else if (strcmp(verb, "slot") == 0) {
            slot = (int)next_number() % SLOTS;
            answer(CATERVA_OK, &err, "", 0);
        } else if (strcmp(verb, "whole") == 0) {
            answer_whole(arrays[slot]);
        } else if (*verb == 'v') {
            serve_view(verb);
        } else {
            serve(verb);
        }
    }
    while (n_views > 0) caterva_view_free(views[--n_views]);
    for (int i = 0; i < SLOTS; i++) caterva_discard(arrays[i]);
    return 0;
}
