/* Room: cli/sources. Sources without a file of their own: an open array, a repeated value, and the
 * selected items of another source. Scratch memory holds at most the bounds of one box. */
#include "formats/descr.h"
#include "sources/described.h"
#include "sources/source.h"
#include "sources/strides.h"

#include <stdlib.h>
#include <string.h>

/* ---- An open array ------------------------------------------------------ */

typedef struct array_source {
    source base;
    caterva_array *array;
    const char *path;
    const char *field; /* NULL: whole items */
} array_source;

static cli_exit read_array_selected(source *self, const selection *sel, const box *b,
                                    void *dst)
{
    array_source *s = (array_source *)self;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_selection words;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    caterva_error err;
    selection_of_box(sel, b, axes, &words);
    buffer.data = dst;
    buffer.size = (size_t)(box_items(b, sel->n_result) * self->shape.item_size);
    buffer.field = s->field;
    if (caterva_read_selection(s->array, &words, &buffer, &err) != CATERVA_OK)
        return cli_fail_array(s->path, &err);
    return CLI_OK;
}

static cli_exit read_array(source *self, const box *b, void *dst)
{
    array_source *s = (array_source *)self;
    size_t size = (size_t)(box_items(b, self->shape.ndim) * self->shape.item_size);
    caterva_error err;
    if (s->field) {
        selection all;
        selection_whole(self->shape.ndim, self->shape.shape, &all);
        return read_array_selected(self, &all, b, dst);
    }
    if (caterva_read(s->array, b->start, b->stop, dst, size, &err) != CATERVA_OK)
        return cli_fail_array(s->path, &err);
    return CLI_OK;
}

cli_exit source_of_array(caterva_array *array, const char *path, source **out)
{
    const caterva_info *info = info_of(array);
    array_source *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (array_source){.array = array, .path = path};
    s->base.read = read_array;
    s->base.read_selected = read_array_selected;
    s->base.decodes = true;
    s->base.shape.ndim = info->ndim;
    s->base.shape.item_size = info->item_size;
    s->base.dtype = cli_copy_text(info->dtype);
    transfer_neutral(s->base.align, s->base.stretch);
    for (int d = 0; d < info->ndim; d++) {
        s->base.shape.shape[d] = info->shape[d];
        s->base.axes[d] = d + 1;
        s->base.align[d] = info->chunk_shape[d] > 0 ? info->chunk_shape[d] : 1;
    }
    if (!s->base.dtype) {
        source_close(&s->base);
        return CLI_IO;
    }
    *out = &s->base;
    return CLI_OK;
}

/* Finds a field. A dot separates the name of a field from that of a field inside it. */
static const caterva_field *find_field(const caterva_dtype *dtype, const char *name)
{
    for (;;) {
        size_t size = strcspn(name, ".");
        const caterva_field *found = NULL;
        for (int i = 0; i < dtype->n_fields && !found; i++)
            if (strcmp(dtype->fields[i].name, name) == 0 ||
                (strlen(dtype->fields[i].name) == size &&
                 memcmp(dtype->fields[i].name, name, size) == 0))
                found = &dtype->fields[i];
        if (!found || strcmp(found->name, name) == 0 || !name[size]) return found;
        dtype = found->dtype;
        name += size + 1;
    }
}

cli_exit source_take_field(source *of_array, const char *name)
{
    array_source *s = (array_source *)of_array;
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, s->path, of_array->dtype, &dtype));
    const caterva_field *field = find_field(dtype, name);
    cli_exit code = CLI_OK;
    char *text = NULL;
    if (!field)
        code = cli_fail(CLI_USAGE, "--field: the items of %s (%s) have no field '%s'",
                        s->path, of_array->dtype, name);
    else if (field->dtype->ndim > 0)
        code = cli_fail(CLI_UNSUPPORTED,
                        "--field: '%s' is a sub-array, which cannot be read alone", name);
    if (code == CLI_OK) code = descr_of(field->dtype, &text);
    if (code == CLI_OK) {
        free(of_array->dtype);
        of_array->dtype = text;
        of_array->shape.item_size = field->dtype->item_size;
        s->field = name;
    }
    caterva_dtype_free(dtype);
    return code;
}

/* ---- One value ---------------------------------------------------------- */

typedef struct value_source {
    source base;
    uint8_t *item;
} value_source;

static cli_exit read_value(source *self, const box *b, void *dst)
{
    value_source *s = (value_source *)self;
    size_t size = (size_t)self->shape.item_size;
    uint8_t *at = dst;
    for (int64_t n = box_items(b, self->shape.ndim); n > 0; n--, at += size)
        memcpy(at, s->item, size);
    return CLI_OK;
}

static void close_value(source *self) { free(((value_source *)self)->item); }

cli_exit source_of_value(const array_shape *shape, const char *dtype, const void *item,
                         source **out)
{
    value_source *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (value_source){.base = {.shape = *shape, .read = read_value, .close = close_value}};
    transfer_neutral(s->base.align, s->base.stretch);
    s->base.dtype = cli_copy_text(dtype);
    s->item = cli_alloc((size_t)shape->item_size);
    if (!s->base.dtype || !s->item) {
        source_close(&s->base);
        return CLI_IO;
    }
    memcpy(s->item, item, (size_t)shape->item_size);
    *out = &s->base;
    return CLI_OK;
}

/* ---- A selection -------------------------------------------------------- */

typedef struct select_source {
    source base;
    source *inner;
    selection sel;
    uint8_t *scratch; /* the bounds of a box that is not contiguous */
    size_t scratch_size;
} select_source;

static cli_exit reserve(select_source *s, size_t size)
{
    if (size <= s->scratch_size) return CLI_OK;
    free(s->scratch);
    s->scratch_size = 0;
    s->scratch = cli_alloc(size);
    if (!s->scratch) return CLI_IO;
    s->scratch_size = size;
    return CLI_OK;
}

/* Reads box `b` of the selection `sel`, which has no lists, to `dst` with these strides. */
static cli_exit read_apart(select_source *s, const selection *sel, const box *b,
                           const int64_t *dst_strides, uint8_t *dst)
{
    box bounds;
    strided_copy copy = {.ndim = s->base.shape.ndim, .item_size = s->base.shape.item_size};
    selection_bounds(sel, b, &bounds);
    for (int d = 0; d < copy.ndim; d++) {
        copy.counts[d] = b->stop[d] - b->start[d];
        copy.dst_strides[d] = dst_strides[d];
    }
    int64_t first = strides_of_selection(sel, b, &bounds, copy.item_size, copy.src_strides);
    CLI_TRY(reserve(s, (size_t)(box_items(&bounds, sel->ndim) * copy.item_size)));
    CLI_TRY(s->inner->read(s->inner, &bounds, s->scratch));
    strided_copy_run(&copy, s->scratch + first, dst);
    return CLI_OK;
}

static bool is_list(const selection *sel, int r)
{
    return sel->result[r] >= 0 && sel->axis[sel->result[r]].list;
}

/* Advances the indices of the axes with lists, in C order. Returns false after the last ones. */
static bool next_listed(const selection *sel, const box *b, int64_t *index)
{
    for (int r = sel->n_result - 1; r >= 0; r--) {
        if (!is_list(sel, r)) continue;
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): read_lists has set it */
        if (++index[r] < b->stop[r]) return true;
        index[r] = b->start[r];
    }
    return false;
}

/* Reads a box of a selection with lists: one read for each combination of listed indices. */
static cli_exit read_lists(select_source *s, const box *b, uint8_t *dst)
{
    const selection *sel = &s->sel;
    int64_t strides[CATERVA_MAX_DIMS], index[CATERVA_MAX_DIMS];
    strides_of_box(b, sel->n_result, s->base.shape.item_size, strides);
    for (int r = 0; r < sel->n_result; r++) index[r] = b->start[r];
    do {
        selection one = *sel;
        box part = *b;
        int64_t pos = 0;
        for (int r = 0; r < sel->n_result; r++) {
            if (!is_list(sel, r)) continue;
            selection_axis *a = &one.axis[sel->result[r]];
            *a = (selection_axis){.start = a->list[index[r]], .step = 1, .count = 1};
            part.start[r] = 0;
            part.stop[r] = 1;
            pos += (index[r] - b->start[r]) * strides[r];
        }
        CLI_TRY(read_apart(s, &one, &part, strides, dst + pos));
    } while (next_listed(sel, b, index));
    return CLI_OK;
}

static cli_exit read_selection(source *self, const box *b, void *dst)
{
    select_source *s = (select_source *)self;
    int64_t strides[CATERVA_MAX_DIMS];
    box bounds;
    if (s->inner->read_selected) return s->inner->read_selected(s->inner, &s->sel, b, dst);
    if (box_items(b, s->sel.n_result) == 0) return CLI_OK;
    if (selection_has_list(&s->sel)) return read_lists(s, b, dst);
    selection_bounds(&s->sel, b, &bounds);
    if (selection_is_box(&s->sel)) return s->inner->read(s->inner, &bounds, dst);
    strides_of_box(b, s->sel.n_result, self->shape.item_size, strides);
    return read_apart(s, &s->sel, b, strides, dst);
}

static void close_selection(source *self)
{
    select_source *s = (select_source *)self;
    source_close(s->inner);
    selection_free(&s->sel);
    free(s->scratch);
}

/* Describes the result's axes by those of the inner source. */
static void describe_selection(select_source *s)
{
    source *base = &s->base;
    transfer_neutral(base->align, base->stretch);
    base->shape.item_size = s->inner->shape.item_size;
    base->shape.ndim = selection_shape(&s->sel, base->shape.shape);
    base->first_axis_fastest = s->inner->first_axis_fastest;
    base->decodes = s->inner->decodes;
    bool holds_bounds = !s->inner->read_selected; /* scratch holds the bounds of a box */
    for (int r = 0; r < s->sel.n_result; r++) {
        if (s->sel.result[r] < 0) continue;
        const selection_axis *a = &s->sel.axis[s->sel.result[r]];
        base->axes[r] = s->inner->axes[s->sel.result[r]];
        if (a->step == 1 && !a->list) base->align[r] = s->inner->align[s->sel.result[r]];
        if (holds_bounds) base->stretch[r] = a->step < 0 ? -a->step : a->step;
    }
}

static cli_exit check_selectable(const source *inner, const selection *sel)
{
    if (inner->in_order)
        return cli_fail(CLI_UNSUPPORTED, "a selection cannot be taken from a pipe");
    if (selection_has_list(sel) && !inner->read_selected && !inner->takes_lists)
        return cli_fail(CLI_UNSUPPORTED,
                        "a list of indices requires an array, not npy or raw");
    if (sel->points && !inner->read_selected)
        return cli_fail(CLI_UNSUPPORTED,
                        "a mask of the whole array cannot skip damage: use slices");
    return CLI_OK;
}

cli_exit source_select(source *inner, selection *sel, source **out)
{
    cli_exit code = check_selectable(inner, sel);
    select_source *s = code == CLI_OK ? cli_alloc(sizeof *s) : NULL;
    char *dtype = s ? cli_copy_text(inner->dtype) : NULL;
    if (!s || !dtype) {
        free(s);
        source_close(inner);
        selection_free(sel);
        return code == CLI_OK ? CLI_IO : code;
    }
    *s = (select_source){.inner = inner, .sel = *sel};
    s->base.dtype = dtype;
    s->base.read = read_selection;
    s->base.close = close_selection;
    describe_selection(s);
    *out = &s->base;
    return CLI_OK;
}
