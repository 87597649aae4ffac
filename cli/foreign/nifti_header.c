/* Room: cli/foreign. The fields of NIfTI headers, by one table that reads and writes them. The
 * layout is that of nifti1.h and nifti2.h, https://nifti.nimh.nih.gov. */
#include "foreign/nifti_header.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Kinds: i signed, u unsigned, f float, s text. Positions and sizes of one entry are those of
 * version 1 and of version 2; a size of 0: the version lacks the field. */
typedef struct field {
    const char *name;
    char kind;
    int count;
    uint16_t at[2];
    uint8_t size[2];
} field;

static const field fields[] = {
    {"sizeof_hdr", 'i', 1, {0, 0}, {4, 4}},
    {"data_type", 's', 1, {4, 0}, {10, 0}},
    {"db_name", 's', 1, {14, 0}, {18, 0}},
    {"extents", 'i', 1, {32, 0}, {4, 0}},
    {"session_error", 'i', 1, {36, 0}, {2, 0}},
    {"regular", 's', 1, {38, 0}, {1, 0}},
    {"dim_info", 'u', 1, {39, 524}, {1, 1}},
    {"dim", 'i', 8, {40, 16}, {2, 8}},
    {"intent_p1", 'f', 1, {56, 80}, {4, 8}},
    {"intent_p2", 'f', 1, {60, 88}, {4, 8}},
    {"intent_p3", 'f', 1, {64, 96}, {4, 8}},
    {"intent_code", 'i', 1, {68, 504}, {2, 4}},
    {"datatype", 'i', 1, {70, 12}, {2, 2}},
    {"bitpix", 'i', 1, {72, 14}, {2, 2}},
    {"slice_start", 'i', 1, {74, 224}, {2, 8}},
    {"pixdim", 'f', 8, {76, 104}, {4, 8}},
    {"vox_offset", 'f', 1, {108, 0}, {4, 0}},
    {"vox_offset", 'i', 1, {0, 168}, {0, 8}},
    {"scl_slope", 'f', 1, {112, 176}, {4, 8}},
    {"scl_inter", 'f', 1, {116, 184}, {4, 8}},
    {"slice_end", 'i', 1, {120, 232}, {2, 8}},
    {"slice_code", 'u', 1, {122, 0}, {1, 0}},
    {"slice_code", 'i', 1, {0, 496}, {0, 4}},
    {"xyzt_units", 'u', 1, {123, 0}, {1, 0}},
    {"xyzt_units", 'i', 1, {0, 500}, {0, 4}},
    {"cal_max", 'f', 1, {124, 192}, {4, 8}},
    {"cal_min", 'f', 1, {128, 200}, {4, 8}},
    {"slice_duration", 'f', 1, {132, 208}, {4, 8}},
    {"toffset", 'f', 1, {136, 216}, {4, 8}},
    {"glmax", 'i', 1, {140, 0}, {4, 0}},
    {"glmin", 'i', 1, {144, 0}, {4, 0}},
    {"descrip", 's', 1, {148, 240}, {80, 80}},
    {"aux_file", 's', 1, {228, 320}, {24, 24}},
    {"qform_code", 'i', 1, {252, 344}, {2, 4}},
    {"sform_code", 'i', 1, {254, 348}, {2, 4}},
    {"quatern_b", 'f', 1, {256, 352}, {4, 8}},
    {"quatern_c", 'f', 1, {260, 360}, {4, 8}},
    {"quatern_d", 'f', 1, {264, 368}, {4, 8}},
    {"qoffset_x", 'f', 1, {268, 376}, {4, 8}},
    {"qoffset_y", 'f', 1, {272, 384}, {4, 8}},
    {"qoffset_z", 'f', 1, {276, 392}, {4, 8}},
    {"srow_x", 'f', 4, {280, 400}, {4, 8}},
    {"srow_y", 'f', 4, {296, 432}, {4, 8}},
    {"srow_z", 'f', 4, {312, 464}, {4, 8}},
    {"intent_name", 's', 1, {328, 508}, {16, 16}},
    {"unused_str", 's', 1, {0, 525}, {0, 15}},
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

static const uint8_t end_check[] = {0x0D, 0x0A, 0x1A,
                                    0x0A}; /* of version 2, after the magic */

size_t nifti_header_size(int version) { return version == 1 ? 348 : 540; }

/* ---- Numbers ---------------------------------------------------------------------------- */

static const field *find(const nifti_header *h, const char *name, size_t size)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (fields[i].size[h->version - 1] > 0 && strlen(fields[i].name) == size &&
            memcmp(fields[i].name, name, size) == 0)
            return &fields[i];
    return NULL;
}

static uint64_t load(const uint8_t *bytes, int size, bool big_endian)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | bytes[big_endian ? i : size - 1 - i];
    return value;
}

static void store(uint8_t *bytes, int size, bool big_endian, uint64_t value)
{
    for (int i = 0; i < size; i++, value >>= 8)
        bytes[big_endian ? size - 1 - i : i] = (uint8_t)value;
}

static int64_t get_int(const nifti_header *h, const field *f, int i)
{
    int size = f->size[h->version - 1];
    uint64_t bits = load(h->bytes + f->at[h->version - 1] + i * size, size, h->big_endian);
    uint64_t sign = f->kind == 'i' ? (uint64_t)1 << (8 * size - 1) : 0;
    return (int64_t)((bits ^ sign) - sign);
}

static double get_real(const nifti_header *h, const field *f, int i)
{
    int size = f->size[h->version - 1];
    uint64_t bits = load(h->bytes + f->at[h->version - 1] + i * size, size, h->big_endian);
    uint32_t half = (uint32_t)bits;
    float single;
    double real;
    memcpy(&single, &half, 4);
    memcpy(&real, &bits, 8);
    return size == 4 ? (double)single : real;
}

static double get(const nifti_header *h, const field *f, int i)
{
    return f->kind == 'f' ? get_real(h, f, i) : (double)get_int(h, f, i);
}

static void set(nifti_header *h, const field *f, int i, double value)
{
    int size = f->size[h->version - 1];
    uint64_t bits = 0;
    float single = (float)value;
    if (f->kind != 'f')
        bits = fabs(value) < 9e18 ? (uint64_t)(int64_t)value : 0;
    else
        memcpy(&bits, size == 4 ? (void *)&single : (void *)&value, (size_t)size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    if (f->kind == 'f' && size == 4) bits >>= 32;
#endif
    store(h->bytes + f->at[h->version - 1] + i * size, size, h->big_endian, bits);
}

double nifti_get(const nifti_header *h, const char *name, int i)
{
    const field *f = find(h, name, strlen(name));
    return f ? get(h, f, i) : 0;
}

void nifti_set(nifti_header *h, const char *name, int i, double value)
{
    const field *f = find(h, name, strlen(name));
    if (f) set(h, f, i, value);
}

/* ---- Magic ------------------------------------------------------------------------------ */

static uint8_t *magic_of(nifti_header *h) { return h->bytes + (h->version == 1 ? 344 : 4); }

cli_exit nifti_recognize(const char *path, size_t size, nifti_header *h, bool *single)
{
    bool found = false;
    for (int i = 0; i < 4 && !found; i++) {
        h->version = 1 + i / 2;
        h->big_endian = i % 2;
        uint64_t stated = load(h->bytes, 4, h->big_endian);
        found = stated == nifti_header_size(h->version) && stated <= size;
    }
    if (!found)
        return cli_fail(CLI_CORRUPT, "%s does not begin with the header of a NIfTI image",
                        path);
    const char *magic = (const char *)magic_of(h);
    char digit = (char)('0' + h->version);
    *single = magic[1] == '+';
    if (magic[0] == 'n' && (*single || magic[1] == 'i') && magic[2] == digit && !magic[3])
        return CLI_OK;
    if (h->version == 1)
        return cli_fail(CLI_UNSUPPORTED, "%s is an image of Analyze 7.5, not of NIfTI", path);
    return cli_fail(CLI_CORRUPT,
                    "%s has the header of a NIfTI-2 image, but not its magic bytes", path);
}

void nifti_begin(nifti_header *h, int version, bool big_endian, bool single)
{
    memset(h->bytes, 0, sizeof h->bytes);
    h->version = version;
    h->big_endian = big_endian;
    uint8_t *magic = magic_of(h);
    magic[0] = 'n';
    magic[1] = single ? '+' : 'i';
    magic[2] = (uint8_t)('0' + version);
    if (version == 2) memcpy(h->bytes + 8, end_check, sizeof end_check);
    nifti_set(h, "sizeof_hdr", 0, (double)nifti_header_size(version));
    if (version == 1) h->bytes[38] = 'r'; /* "regular" */
}

/* ---- Maps ------------------------------------------------------------------------------- */

static size_t text_size(const nifti_header *h, const field *f, const char **text)
{
    size_t size = f->size[h->version - 1];
    *text = (const char *)h->bytes + f->at[h->version - 1];
    while (size > 0 && !(*text)[size - 1]) size--;
    return size;
}

static bool is_zero(const nifti_header *h, const field *f)
{
    const uint8_t *at = h->bytes + f->at[h->version - 1];
    for (int i = 0; i < f->size[h->version - 1] * f->count; i++)
        if (at[i]) return false;
    return true;
}

static void add_field(value_list *list, const nifti_header *h, const field *f)
{
    const char *text;
    size_t list_at = 0;
    values_add_text(list, f->name, strlen(f->name));
    if (f->kind == 's') {
        size_t size = text_size(h, f, &text);
        values_add_text(list, text, size);
        return;
    }
    if (f->count > 1) list_at = values_begin(list, CATERVA_VALUE_LIST);
    for (int i = 0; i < f->count; i++)
        if (f->kind == 'f')
            values_add_real(list, get_real(h, f, i));
        else
            values_add_int(list, get_int(h, f, i));
    if (f->count > 1) values_end(list, list_at, f->count);
}

cli_exit nifti_fields_to_map(const nifti_header *h, foreign_node *node, const char *attribute)
{
    value_list list = {0};
    int64_t n = 0;
    size_t map = values_begin(&list, CATERVA_VALUE_MAP);
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].size[h->version - 1] == 0 || is_zero(h, &fields[i])) continue;
        add_field(&list, h, &fields[i]);
        n++;
    }
    if (h->big_endian) {
        values_add_text(&list, "byte_order", 10);
        values_add_text(&list, ">", 1);
        n++;
    }
    values_end(&list, map, n);
    return values_set(&list, node, attribute);
}

static void set_text(nifti_header *h, const field *f, packed_value value)
{
    size_t size, room = f->size[h->version - 1];
    const char *text = values_text(value, &size);
    uint8_t *at = h->bytes + f->at[h->version - 1];
    if (!text) return;
    memset(at, 0, room);
    memcpy(at, text, size < room ? size : room);
}

void nifti_fields_from_map(nifti_header *h, packed_value map)
{
    packed_value key, value;
    double numbers[8];
    size_t size;
    if (map.bytes) h->bytes[38] = h->version == 1 ? 0 : h->bytes[38];
    for (size_t at = 0; values_next(map, &at, &key, &value);) {
        const char *name = values_text(key, &size);
        const field *f = name ? find(h, name, size) : NULL;
        if (!f || f->at[h->version - 1] == 0) continue; /* the size of the header is known */
        if (f->kind == 's') set_text(h, f, value);
        size_t n = f->kind == 's' ? 0 : values_numbers(value, numbers, (size_t)f->count);
        for (size_t i = 0; i < n; i++) set(h, f, (int)i, numbers[i]);
    }
}

/* ---- Meaning ---------------------------------------------------------------------------- */

bool nifti_shape(const nifti_header *h, int *ndim, int64_t shape[7])
{
    const field *f = find(h, "dim", 3);
    int64_t n = get_int(h, f, 0);
    if (n < 0 || n > 7) return false;
    *ndim = n ? (int)n : 1;
    shape[0] = 0;
    for (int i = 0; i < n; i++) shape[i] = get_int(h, f, i + 1);
    if (h->version == 1 && n >= 3 && shape[1] == 1 && shape[0] == -1 && shape[2] == 1)
        shape[0] = (int64_t)nifti_get(h, "glmin", 0); /* FreeSurfer's vectors */
    if (h->version == 1 && n >= 3 && shape[1] == 1 && shape[0] == 27307 && shape[2] == 6) {
        shape[0] = 163842; /* FreeSurfer's icosahedron */
        shape[2] = 1;
    }
    for (int i = 0; i < n; i++)
        if (shape[i] < 0) return false;
    return true;
}

static void identity(nifti_matrix out)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) out[i][j] = i == j;
}

void nifti_sform(const nifti_header *h, nifti_matrix out)
{
    identity(out);
    for (int j = 0; j < 4; j++) {
        out[0][j] = nifti_get(h, "srow_x", j);
        out[1][j] = nifti_get(h, "srow_y", j);
        out[2][j] = nifti_get(h, "srow_z", j);
    }
}

/* nifti1.h: the rotation of a unit quaternion of which b, c and d are stored, and a >= 0; columns
 * are scaled by the voxel sizes, the last one with the sign of pixdim[0]. */
void nifti_qform(const nifti_header *h, nifti_matrix out)
{
    double b = nifti_get(h, "quatern_b", 0), c = nifti_get(h, "quatern_c", 0),
           d = nifti_get(h, "quatern_d", 0);
    double square = 1 - (b * b + c * c + d * d);
    double least = 3 * (h->version == 1 ? (double)FLT_EPSILON : DBL_EPSILON);
    double a = square < least ? 0 : sqrt(square);
    double norm = a * a + b * b + c * c + d * d, s = norm > 0 ? 2 / norm : 0;
    const double rotation[3][3] = {
        {1 - s * (c * c + d * d), s * (b * c - a * d), s * (b * d + a * c)},
        {s * (b * c + a * d), 1 - s * (b * b + d * d), s * (c * d - a * b)},
        {s * (b * d - a * c), s * (c * d + a * b), 1 - s * (b * b + c * c)}};
    static const char *const offsets[] = {"qoffset_x", "qoffset_y", "qoffset_z"};
    identity(out);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double sign = j == 2 && nifti_get(h, "pixdim", 0) < 0 ? -1 : 1;
            out[i][j] = rotation[i][j] * sign * nifti_get(h, "pixdim", j + 1);
        }
        out[i][3] = nifti_get(h, offsets[i], 0);
    }
}

void nifti_best_affine(const nifti_header *h, nifti_matrix out)
{
    int ndim;
    int64_t shape[7];
    if (nifti_get(h, "sform_code", 0) != 0) {
        nifti_sform(h, out);
        return;
    }
    if (nifti_get(h, "qform_code", 0) != 0) {
        nifti_qform(h, out);
        return;
    }
    identity(out);
    if (!nifti_shape(h, &ndim, shape)) return;
    for (int i = 0; i < 3; i++) {
        double length = i < nifti_get(h, "dim", 0) ? nifti_get(h, "dim", i + 1) : 1;
        double size = i < nifti_get(h, "dim", 0) ? nifti_get(h, "pixdim", i + 1) : 1;
        out[i][i] = i == 0 ? -size : size;
        out[i][3] = -(length - 1) / 2 * out[i][i];
    }
}
