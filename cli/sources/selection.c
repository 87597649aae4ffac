/* Room: cli/sources. Parses selections. selection_box.c computes their geometry; index_file.c reads
 * masks and indices from files. A parsed selection lies inside the array: bounds of slices are
 * clamped as in NumPy, but a single index out of range is an error. */
#include "sources/selection.h"

#include "formats/numbers.h"
#include "sources/index_file.h"

#include <stdlib.h>
#include <string.h>

/* A comma-separated part that is being parsed. */
typedef struct part {
    const char *text; /* the whole selection, for messages */
    const char *at;
    int axis;
    int64_t extent;
} part;

static cli_exit malformed(const part *p, const char *expected)
{
    return cli_fail(CLI_USAGE, "selection '%s': expected %s at position %d, found '%s'",
                    p->text, expected, (int)(p->at - p->text) + 1,
                    *p->at ? p->at : "the end");
}

/* Skips blanks, which are allowed everywhere, as in Python. */
static const char *skip_blanks(const char *at) { return at + strspn(at, " \t"); }

static bool scan_number(part *p, int64_t *out)
{
    p->at = skip_blanks(p->at);
    if (!number_scan(&p->at, out)) return false;
    p->at = skip_blanks(p->at);
    return true;
}

/* Parses a bound of a slice; a missing one has the value `missing`. A negative value counts from
 * the end. The result is clamped to [lowest, highest] as in NumPy. */
static cli_exit scan_bound(part *p, int64_t missing, int64_t lowest, int64_t highest,
                           int64_t *out)
{
    *out = missing;
    p->at = skip_blanks(p->at);
    if (!*p->at || *p->at == ':' || *p->at == ',') return CLI_OK;
    int64_t value;
    if (!scan_number(p, &value)) return malformed(p, "a number or ':'");
    if (value < 0) value += p->extent;
    *out = value < lowest ? lowest : value > highest ? highest : value;
    return CLI_OK;
}

/* Looks ahead for the step of a slice, because its sign determines the values of missing bounds. */
static cli_exit scan_step(const part *p, int64_t *step)
{
    part ahead = *p;
    int colons = 0;
    for (; *ahead.at && *ahead.at != ',' && colons < 2; ahead.at++)
        colons += *ahead.at == ':';
    ahead.at = skip_blanks(ahead.at);
    *step = 1;
    if (colons < 2 || !*ahead.at || *ahead.at == ',') return CLI_OK;
    if (!scan_number(&ahead, step)) return malformed(&ahead, "a step");
    if (*step == 0 || *step == INT64_MIN)
        return cli_fail(CLI_USAGE, "selection '%s': the step of axis %d is %s", p->text,
                        p->axis, *step ? "out of range" : "0");
    return CLI_OK;
}

static int64_t slice_count(int64_t start, int64_t stop, int64_t step)
{
    int64_t length = step > 0 ? stop - start : start - stop;
    int64_t stride = step > 0 ? step : -step;
    return length > 0 ? (length - 1) / stride + 1 : 0;
}

static cli_exit scan_slice(part *p, selection_axis *out)
{
    int64_t stop;
    CLI_TRY(scan_step(p, &out->step));
    bool back = out->step < 0;
    int64_t lowest = back ? -1 : 0, highest = back ? p->extent - 1 : p->extent;
    CLI_TRY(scan_bound(p, back ? highest : lowest, lowest, highest, &out->start));
    if (*p->at != ':') return malformed(p, "':'");
    p->at++;
    CLI_TRY(scan_bound(p, back ? lowest : highest, lowest, highest, &stop));
    if (*p->at == ':') {
        int64_t step;
        p->at = skip_blanks(p->at + 1);
        scan_number(p, &step); /* scan_step has already parsed it */
    }
    out->count = slice_count(out->start, stop, out->step);
    if (out->count <= 1) out->step = 1;
    if (out->count == 0) out->start = 0;
    return CLI_OK;
}

static bool part_is_slice(const part *p) { return p->at[strcspn(p->at, ",:")] == ':'; }

static cli_exit check_index(const part *p, int64_t index, int64_t *out)
{
    if (index < -p->extent || index >= p->extent)
        return cli_fail(
            CLI_USAGE,
            "selection '%s': index %lld is out of range for axis %d with %lld items", p->text,
            (long long)index, p->axis, (long long)p->extent);
    *out = index < 0 ? index + p->extent : index;
    return CLI_OK;
}

static cli_exit scan_index(part *p, int64_t *out)
{
    int64_t index;
    if (!scan_number(p, &index)) return malformed(p, "a number, ':', '[' or '...'");
    return check_index(p, index, out);
}

/* ---- Lists and masks ---------------------------------------------------- */

static cli_exit check_mask_length(const part *p, int64_t n)
{
    if (n == p->extent) return CLI_OK;
    return cli_fail(CLI_USAGE,
                    "selection '%s': the mask has %lld items, but axis %d has %lld", p->text,
                    (long long)n, p->axis, (long long)p->extent);
}

/* Returns the text after "True" or "False", and sets *out to it. NULL for other text. */
static const char *behind_truth(const char *at, bool *out)
{
    *out = strncmp(at, "True", 4) == 0;
    if (*out) return at + 4;
    return strncmp(at, "False", 5) == 0 ? at + 5 : NULL;
}

/* Parses entry `n` of a list and appends an index to out->list: the entry itself or, in a mask, `n`
 * if the entry is "True". */
static cli_exit scan_entry(part *p, bool is_mask, int64_t n, selection_axis *out)
{
    bool wanted;
    if (!is_mask) return scan_index(p, &out->list[out->count++]);
    const char *behind = behind_truth(skip_blanks(p->at), &wanted);
    if (!behind) return malformed(p, "True or False");
    p->at = skip_blanks(behind);
    if (wanted) out->list[out->count++] = n;
    return CLI_OK;
}

/* Parses "[1,5,7]" or "[True,False]", after the bracket. */
static cli_exit scan_list(part *p, selection_axis *out)
{
    size_t most = 1;
    bool wanted;
    for (const char *at = p->at; *at && *at != ']'; at++) most += *at == ',';
    out->list = cli_alloc(most * sizeof out->list[0]);
    if (!out->list) return CLI_IO;
    p->at = skip_blanks(p->at);
    bool is_mask = behind_truth(p->at, &wanted) != NULL;
    int64_t n = 0;
    for (; *p->at != ']'; n++) {
        CLI_TRY(scan_entry(p, is_mask, n, out));
        if (*p->at != ',' && *p->at != ']') return malformed(p, "',' or ']'");
        if (*p->at == ',') p->at = skip_blanks(p->at + 1);
    }
    p->at = skip_blanks(p->at + 1);
    return is_mask ? check_mask_length(p, n) : CLI_OK;
}

static cli_exit take_mask(const part *p, const index_file *file, selection_axis *out)
{
    CLI_TRY(check_mask_length(p, file->n));
    out->list = cli_alloc((size_t)file->n * sizeof out->list[0]);
    if (!out->list) return CLI_IO;
    for (int64_t i = 0; i < file->n; i++)
        if (file->mask[i]) out->list[out->count++] = i;
    return CLI_OK;
}

static cli_exit take_indices(const part *p, const index_file *file, selection_axis *out)
{
    out->list = cli_alloc((size_t)file->n * sizeof out->list[0]);
    if (!out->list) return CLI_IO;
    for (int64_t i = 0; i < file->n; i++)
        CLI_TRY(check_index(p, file->indices[i], &out->list[out->count++]));
    return CLI_OK;
}

/* Sets out->points to the indices of the true items of a mask of the whole array, in C order. */
static cli_exit take_points(const index_file *file, selection *out)
{
    int64_t index[CATERVA_MAX_DIMS] = {0}, n = 0;
    for (int64_t i = 0; i < file->n; i++) n += file->mask[i] != 0;
    int64_t *row = cli_alloc((size_t)n * (size_t)out->ndim * sizeof *row);
    if (!row) return CLI_IO;
    out->points = row;
    out->n_points = n;
    for (int64_t i = 0; i < file->n; i++) {
        if (file->mask[i]) {
            memcpy(row, index, (size_t)out->ndim * sizeof *row);
            row += out->ndim;
        }
        for (int d = out->ndim - 1; d >= 0 && ++index[d] == file->shape[d]; d--) index[d] = 0;
    }
    out->n_result = 1;
    out->result[0] = -1;
    return CLI_OK;
}

static bool is_alone(const part *p) { return p->at == p->text && !strchr(p->at, ','); }

static cli_exit take_file(part *p, const index_file *file, const int64_t *shape,
                          selection *out)
{
    if (file->ndim == 1 && file->mask) return take_mask(p, file, &out->axis[p->axis]);
    if (file->ndim == 1) return take_indices(p, file, &out->axis[p->axis]);
    if (!file->mask)
        return cli_fail(CLI_USAGE,
                        "selection '%s': a file of indices must have one axis, not %d",
                        p->text, file->ndim);
    bool fits = file->ndim == out->ndim && is_alone(p);
    for (int d = 0; d < file->ndim && fits; d++) fits = file->shape[d] == shape[d];
    if (fits) return take_points(file, out);
    return cli_fail(
        CLI_USAGE,
        "selection '%s': a mask of %d axes must be alone and have the array's shape", p->text,
        file->ndim);
}

static const char *end_of_part(const char *at);

/* Parses "@mask.npy": a mask of an axis or of the whole array, or a list of indices, in a file. */
static cli_exit scan_file(part *p, const int64_t *shape, selection *out)
{
    const char *comma = end_of_part(p->at);
    size_t size = comma ? (size_t)(comma - p->at) : strlen(p->at);
    while (size > 1 && strchr(" \t", p->at[size - 1])) size--;
    char *path = cli_alloc(size);
    if (!path) return CLI_IO;
    memcpy(path, p->at + 1, size - 1);
    path[size - 1] = '\0';
    index_file file = {0};
    out->axis[p->axis] = (selection_axis){.step = 1};
    cli_exit code = index_file_load(path, &file);
    if (code == CLI_OK) code = take_file(p, &file, shape, out);
    index_file_free(&file);
    free(path);
    p->at = skip_blanks(p->at + size);
    return code;
}

/* ---- Parts -------------------------------------------------------------- */

static cli_exit scan_part(part *p, selection_axis *out)
{
    *out = (selection_axis){.step = 1};
    if (*p->at == '[') {
        p->at++;
        return scan_list(p, out);
    }
    if (part_is_slice(p)) return scan_slice(p, out);
    CLI_TRY(scan_index(p, &out->start));
    out->count = 1;
    out->dropped = true;
    return CLI_OK;
}

static bool part_is_ellipsis(const char *at) { return strncmp(at, "...", 3) == 0; }

/* Returns the text after the word for a new axis, or NULL. */
static const char *behind_new_axis(const char *at)
{
    static const char *const words[] = {"newaxis", "None"};
    for (int i = 0; i < 2; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
    return NULL;
}

/* Returns the comma after a part, or NULL. Skips commas inside a list. */
static const char *end_of_part(const char *at)
{
    at += *at == '[' ? strcspn(at, "]") : 0;
    return strchr(at, ',');
}

typedef struct part_counts {
    int axes, ellipses, new_axes;
} part_counts;

static part_counts count_parts(const char *text)
{
    part_counts n = {0};
    const char *at = text, *comma;
    do {
        at = skip_blanks(at);
        if (!*at && at != text) break; /* after a trailing comma, as in "1," */
        if (part_is_ellipsis(at))
            n.ellipses++;
        else if (behind_new_axis(at))
            n.new_axes++;
        else
            n.axes++;
        comma = end_of_part(at);
        at = comma ? comma + 1 : at;
    } while (comma);
    return n;
}

/* Checks the number of parts. Sets *covered to the number of axes that no part names. "..." or the
 * end of the text stands for these axes. */
static cli_exit check_parts(const char *text, int ndim, int *covered)
{
    part_counts n = count_parts(text);
    if (n.ellipses > 1)
        return cli_fail(CLI_USAGE, "selection '%s' has more than one '...'", text);
    if (n.axes > ndim)
        return cli_fail(CLI_USAGE, "selection '%s' has %d axes, but the array has %d", text,
                        n.axes, ndim);
    if (ndim + n.new_axes > CATERVA_MAX_DIMS)
        return cli_fail(CLI_USAGE,
                        "selection '%s' has %d new axes, which makes more than %d in total",
                        text, n.new_axes, CATERVA_MAX_DIMS);
    *covered = ndim - n.axes;
    return CLI_OK;
}

/* Adds the next `n` axes of the array to the result, except dropped axes. */
static void keep_axes(part *p, int n, selection *out)
{
    for (; n > 0; n--, p->axis++)
        if (!out->axis[p->axis].dropped) out->result[out->n_result++] = p->axis;
}

static cli_exit parse_part(part *p, const int64_t *shape, int covered, selection *out)
{
    const char *behind = behind_new_axis(p->at);
    if (behind) {
        p->at = skip_blanks(behind);
        out->result[out->n_result++] = -1;
        return CLI_OK;
    }
    if (part_is_ellipsis(p->at)) {
        p->at = skip_blanks(p->at + 3);
        keep_axes(p, covered, out);
        return CLI_OK;
    }
    if (p->axis == out->ndim) return malformed(p, "'...' or 'None'");
    p->extent = shape[p->axis];
    CLI_TRY(*p->at == '@' ? scan_file(p, shape, out) : scan_part(p, &out->axis[p->axis]));
    if (out->points)
        p->axis = out->ndim;
    else
        keep_axes(p, 1, out);
    return CLI_OK;
}

static cli_exit parse_parts(const char *text, const int64_t *shape, selection *out)
{
    int covered = 0;
    CLI_TRY(check_parts(text, out->ndim, &covered));
    part p = {.text = text, .at = text};
    out->n_result = 0;
    do {
        CLI_TRY(parse_part(&p, shape, covered, out));
        if (*p.at && *p.at != ',') return malformed(&p, "',' or the end");
        if (*p.at) p.at = skip_blanks(p.at + 1);
    } while (*p.at);
    keep_axes(&p, out->ndim - p.axis, out);
    return CLI_OK;
}

cli_exit selection_parse(const char *text, int ndim, const int64_t *shape, selection *out)
{
    selection_whole(ndim, shape, out);
    if (text) text = skip_blanks(text);
    if (!text || !*text) return CLI_OK;
    cli_exit code = parse_parts(text, shape, out);
    if (code != CLI_OK) selection_free(out);
    return code;
}
