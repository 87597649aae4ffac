/* Room: cli/foreign. NumPy's archives of arrays, .npz: a zip archive with one .npy file for each
 * array, stored or deflated. The array of the member a/b.npy is /a/b. An npz file has no place for
 * attributes. */
#include "foreign/formats.h"
#include "foreign/items.h"
#include "foreign/packer.h"
#include "foreign/values.h"

#include "formats/descr.h"
#include "formats/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Bytes ------------------------------------------------------------------------------ */

enum { LOCAL_SIZE = 30, RECORD_SIZE = 46, END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20 };
#define LOCAL_MAGIC 0x04034b50U
#define RECORD_MAGIC 0x02014b50U
#define END_MAGIC 0x06054b50U
#define END64_MAGIC 0x06064b50U
#define LOCATOR_MAGIC 0x07064b50U
#define WIDE UINT32_MAX /* the number is in the extra field, or in the zip64 end */
#define MAX_DIRECTORY ((uint64_t)256 << 20)
enum { FLAG_ENCRYPTED = 1, FLAG_UTF8 = 1 << 11 };

static uint64_t load(const uint8_t *bytes, int size)
{
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* Appends little-endian numbers to a record. */
typedef struct record {
    uint8_t bytes[128];
    size_t size;
} record;

static void put(record *r, int size, uint64_t value)
{
    for (int i = 0; i < size; i++, value >>= 8) r->bytes[r->size++] = (uint8_t)value;
}

static uint32_t narrow(uint64_t value) { return value < WIDE ? (uint32_t)value : WIDE; }

/* ---- The directory ---------------------------------------------------------------------- */

typedef struct member {
    char *name;
    int flags, method;
    uint32_t crc;
    uint64_t packed, size, header; /* header: position of its local header */
} member;

typedef struct directory {
    packed *file;
    const char *path;
    uint8_t *bytes;
    size_t size, at; /* of the next record */
    uint64_t n;
    uint64_t shift; /* bytes before the archive */
} directory;

static cli_exit damaged(const char *path, const char *what)
{
    return cli_fail(CLI_CORRUPT, "%s: the zip archive %s", path, what);
}

/* Finds the end of the archive: the last record of its kind, before a comment. */
static cli_exit read_end(directory *d, uint64_t file_size, uint64_t *position, uint64_t *size)
{
    size_t room = END_SIZE + 65535, at;
    if (file_size < END_SIZE) return damaged(d->path, "has no end");
    if (room > file_size) room = (size_t)file_size;
    uint64_t tail_at = file_size - room;
    uint8_t *tail = cli_alloc(room);
    if (!tail) return CLI_IO;
    cli_exit code = packed_read(d->file, tail, room, (int64_t)tail_at);
    for (at = room - END_SIZE; code == CLI_OK && load(tail + at, 4) != END_MAGIC && at > 0;)
        at--;
    if (code == CLI_OK && load(tail + at, 4) != END_MAGIC)
        code = damaged(d->path, "has no end");
    if (code == CLI_OK) {
        d->n = load(tail + at + 10, 2);
        *size = load(tail + at + 12, 4);
        *position = load(tail + at + 16, 4);
    }
    free(tail);
    CLI_TRY(code);
    uint64_t end_at = tail_at + at;
    uint8_t end[END64_SIZE];
    if (end_at >= LOCATOR_SIZE) {
        CLI_TRY(packed_read(d->file, end, LOCATOR_SIZE, (int64_t)(end_at - LOCATOR_SIZE)));
        if (load(end, 4) == LOCATOR_MAGIC && end_at >= LOCATOR_SIZE + END64_SIZE) {
            end_at -= LOCATOR_SIZE + END64_SIZE;
            CLI_TRY(packed_read(d->file, end, END64_SIZE, (int64_t)end_at));
            if (load(end, 4) != END64_MAGIC) return damaged(d->path, "has no zip64 end");
            d->n = load(end + 32, 8);
            *size = load(end + 40, 8);
            *position = load(end + 48, 8);
        }
    }
    if (*size > end_at || *position > end_at - *size)
        return damaged(d->path, "has a directory beyond its end");
    d->shift = end_at - *size - *position;
    *position += d->shift;
    return CLI_OK;
}

static cli_exit read_directory(directory *d, packed *file, const char *path)
{
    struct stat st;
    uint64_t position = 0, size = 0;
    *d = (directory){.file = file, .path = path};
    if (stat(path, &st) != 0) return cli_fail_sys("cannot open %s", path);
    CLI_TRY(read_end(d, (uint64_t)st.st_size, &position, &size));
    if (size > MAX_DIRECTORY) return damaged(path, "has a directory of more than 256 MiB");
    d->bytes = cli_alloc((size_t)size);
    if (!d->bytes) return CLI_IO;
    d->size = (size_t)size;
    return packed_read(file, d->bytes, d->size, (int64_t)position);
}

/* Takes a wide number from the zip64 extra field, in which only those that need it are. */
static bool take_wide(const uint8_t **extra, size_t *left, uint64_t *value)
{
    if (*value != WIDE) return true;
    if (*left < 8) return false;
    *value = load(*extra, 8);
    *extra += 8;
    *left -= 8;
    return true;
}

/* Parses the next record. Release out->name with free. */
static cli_exit next_member(directory *d, member *out)
{
    const uint8_t *b = d->bytes + d->at;
    size_t left = d->size - d->at;
    if (left < RECORD_SIZE || load(b, 4) != RECORD_MAGIC)
        return damaged(d->path, "has a directory that is not valid");
    size_t name_size = load(b + 28, 2), extra_size = load(b + 30, 2);
    size_t size = RECORD_SIZE + name_size + extra_size + load(b + 32, 2);
    if (size > left) return damaged(d->path, "has a directory that is not valid");
    *out = (member){.flags = (int)load(b + 8, 2), .method = (int)load(b + 10, 2)};
    out->crc = (uint32_t)load(b + 16, 4);
    out->packed = load(b + 20, 4);
    out->size = load(b + 24, 4);
    out->header = load(b + 42, 4);
    const uint8_t *extra = b + RECORD_SIZE + name_size;
    while (extra_size >= 4) {
        const uint8_t *at = extra + 4;
        size_t n = load(extra + 2, 2);
        if (n > extra_size - 4) break;
        extra = at + n;
        extra_size -= 4 + n;
        if (load(at - 4, 2) == 1 &&
            !(take_wide(&at, &n, &out->size) && take_wide(&at, &n, &out->packed) &&
              take_wide(&at, &n, &out->header)))
            return damaged(d->path, "has a directory that is not valid");
    }
    out->header += d->shift;
    if (out->size > INT64_MAX || out->packed > INT64_MAX || out->header > INT64_MAX / 2)
        return damaged(d->path, "has a directory that is not valid");
    out->name = cli_alloc(name_size + 1);
    if (!out->name) return CLI_IO;
    memcpy(out->name, b + RECORD_SIZE, name_size);
    out->name[name_size] = '\0';
    d->at += size;
    return CLI_OK;
}

/* ---- Reading ---------------------------------------------------------------------------- */

typedef struct npz_array {
    member member;
    int64_t position; /* of the items in the member */
    int64_t data;     /* of the member in the file */
    packed *bytes;    /* NULL: not open */
} npz_array;

typedef struct npz_file {
    packed *file;
    npz_array *current; /* the only array whose bytes are open */
} npz_file;

static void close_member(npz_array *array)
{
    packed_close(array->bytes);
    array->bytes = NULL;
}

static void free_array(npz_array *array)
{
    if (!array) return;
    close_member(array);
    free(array->member.name);
    free(array);
}

static void close_file(foreign_file *self)
{
    npz_file *own = self->own;
    for (size_t i = 0; i < self->n; i++) free_array(self->nodes[i].own);
    packed_close(own->file);
    free(own);
}

/* Opens the bytes of a member. */
static cli_exit open_member(const char *path, npz_array *array)
{
    const member *m = &array->member;
    CLI_TRY(packed_open(path, m->method == 8 ? PACKING_DEFLATE : PACKING_NONE, array->data,
                        (int64_t)m->packed, &array->bytes));
    return packed_expect_crc(array->bytes, (int64_t)m->size, m->crc);
}

/* Opens a member for its items. The checksum begins with the header. */
static cli_exit open_items(const char *path, npz_array *array)
{
    uint8_t piece[4096];
    CLI_TRY(open_member(path, array));
    for (int64_t at = 0, n; at < array->position; at += n) {
        n = array->position - at;
        if (n > (int64_t)sizeof piece) n = sizeof piece;
        CLI_TRY(packed_read(array->bytes, piece, (size_t)n, at));
    }
    return CLI_OK;
}

static cli_exit read_box(foreign_file *self, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    npz_file *own = self->own;
    npz_array *array = node->own;
    if (own->current && own->current != array) close_member(own->current);
    own->current = array;
    if (!array->bytes) CLI_TRY(open_items(self->path, array));
    return items_read(array->bytes, array->position, node, start, stop, dst);
}

/* Sets the position of a member's bytes, behind its local header. */
static cli_exit find_data(foreign_file *file, npz_array *array)
{
    uint8_t local[LOCAL_SIZE];
    const npz_file *own = file->own;
    CLI_TRY(packed_read(own->file, local, LOCAL_SIZE, (int64_t)array->member.header));
    if (load(local, 4) != LOCAL_MAGIC)
        return damaged(file->path, "has a directory that does not fit its members");
    array->data = (int64_t)(array->member.header + LOCAL_SIZE + load(local + 26, 2) +
                            load(local + 28, 2));
    return CLI_OK;
}

typedef struct reading {
    packed *bytes;
    int64_t at;
} reading;

static cli_exit read_forward(void *context, void *dst, size_t size)
{
    reading *r = context;
    int64_t at = r->at;
    r->at += (int64_t)size;
    return packed_read(r->bytes, dst, size, at);
}

/* Whether each part of the name between slashes can be that of a node. */
static bool is_key(const char *name)
{
    if (!values_is_utf8(name, strlen(name))) return false;
    for (const char *at = name;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && *at == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
        if (!*at) return true;
    }
}

/* Adds the groups above a key. *is_below: one of them is an array, and no other one is added. */
static cli_exit add_groups(foreign_file *file, char *key, bool *is_below)
{
    *is_below = false;
    for (char *slash = strchr(key + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const foreign_node *above = foreign_find(file, key);
        if (above) *is_below = !above->is_group;
        cli_exit code = !above && !foreign_add(file, key, true) ? CLI_IO : CLI_OK;
        *slash = '/';
        CLI_TRY(code);
        if (*is_below) return CLI_OK;
    }
    return CLI_OK;
}

static bool is_of_no_bytes(const char *dtype)
{
    caterva_dtype *parsed;
    if (caterva_dtype_parse(dtype, &parsed, NULL) != CATERVA_OK) return false;
    bool none = parsed->item_size == 0;
    caterva_dtype_free(parsed);
    return none;
}

/* Reads the header of an array, and adds its node. */
static cli_exit add_array(foreign_file *file, const char *key, npz_array *array)
{
    npy_header header;
    int64_t size;
    CLI_TRY(find_data(file, array));
    CLI_TRY(open_member(file->path, array));
    reading r = {array->bytes, 0};
    CLI_TRY(npy_read_header(file->path, read_forward, &r, &header));
    array->position = header.data_position;
    if (header.has_objects) {
        free(header.dtype);
        return foreign_lose(file, "%s: Python objects, which have no fixed size", key);
    }
    char *dtype = NULL;
    cli_exit code = descr_for_array(CLI_CORRUPT, file->path, header.dtype, &dtype);
    foreign_node *node = NULL;
    if (code == CLI_OK && header.ndim > CATERVA_MAX_WRITE_DIMS) {
        code = foreign_lose(file, "%s: an array of %d axes", key, header.ndim);
    } else if (code == CLI_OK && is_of_no_bytes(dtype)) {
        code = foreign_lose(file, "%s: items of no bytes", key);
    } else if (code == CLI_OK) {
        node = foreign_add(file, key, false);
        code =
            node ? foreign_set_shape(file, node, dtype, header.ndim, header.shape) : CLI_IO;
    }
    free(dtype);
    free(header.dtype);
    if (code != CLI_OK || !node) return code;
    node->first_axis_fastest = header.fortran_order && header.ndim > 1;
    CLI_TRY(items_size(file->path, node, &size));
    if ((uint64_t)size + (uint64_t)array->position != array->member.size)
        return cli_fail(CLI_CORRUPT, "%s: the member %s has %llu bytes instead of %llu",
                        file->path, array->member.name,
                        (unsigned long long)array->member.size,
                        (unsigned long long)size + (unsigned long long)array->position);
    node->own = array;
    return CLI_OK;
}

/* Adds the array of a member, whose `own` has its name. */
static cli_exit add_member(foreign_file *file, npz_array *own)
{
    const member *m = &own->member;
    size_t size = strlen(m->name);
    if (size > 0 && m->name[size - 1] == '/') return CLI_OK;
    if (size < 5 || strcmp(m->name + size - 4, ".npy") != 0)
        return foreign_lose(file, "/%s: a member that is not an array", m->name);
    if ((m->flags & FLAG_ENCRYPTED) || (m->method != 0 && m->method != 8))
        return foreign_lose(file, "/%s: a member that is encrypted or packed by method %d",
                            m->name, m->method);
    char *key = cli_alloc(size + 2);
    if (!key) return CLI_IO;
    snprintf(key, size + 2, "/%.*s", (int)size - 4, m->name);
    cli_exit code;
    bool is_below = false;
    if (!is_key(key + 1) || foreign_find(file, key)) {
        code = foreign_lose(file, "/%s: a member whose name is not valid, or occurs twice",
                            m->name);
    } else {
        code = add_groups(file, key, &is_below);
        if (code == CLI_OK && is_below)
            code = foreign_lose(file, "%s: a member below an array", key);
        else if (code == CLI_OK)
            code = add_array(file, key, own);
    }
    free(key);
    return code;
}

/* Parses the next record, and adds its array. */
static cli_exit take_member(foreign_file *file, directory *d)
{
    npz_array *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (npz_array){0};
    cli_exit code = next_member(d, &own->member);
    if (code == CLI_OK) code = add_member(file, own);
    close_member(own);
    if (file->nodes[file->n - 1].own != own) free_array(own);
    return code;
}

static cli_exit open_npz(foreign_file *file)
{
    directory d;
    npz_file *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (npz_file){0};
    file->own = own;
    file->close = close_file;
    file->read = read_box;
    CLI_TRY(packed_open(file->path, PACKING_NONE, 0, -1, &own->file));
    if (!foreign_add(file, "/", true)) return CLI_IO;
    cli_exit code = read_directory(&d, own->file, file->path);
    while (code == CLI_OK && d.at < d.size && d.n-- > 0) code = take_member(file, &d);
    free(d.bytes);
    return code;
}

/* ---- Writing ---------------------------------------------------------------------------- */

/* A member of the archive that is written. */
typedef struct written {
    char *name;
    int64_t size; /* with the header of the npy file */
    uint32_t crc;
    int64_t packed, header; /* header: position of its local header */
} written;

/* Boxes arrive in C order, and arrays one after another: the last member is packed as they come. */
typedef struct npz_writer {
    output out;
    packer packer;
    bool is_open; /* the last member is not complete */
    int64_t at;   /* bytes of the file before the last member's packed ones */
    written *members;
    size_t n;
} npz_writer;

static void release(npz_writer *w)
{
    if (w->is_open) packer_end(&w->packer, CLI_INTERRUPTED);
    output_abandon(&w->out);
    for (size_t i = 0; i < w->n; i++) free(w->members[i].name);
    free(w->members);
    free(w);
}

static void abandon(foreign_writer *self) { release(self->own); }

static bool is_wide(const written *m)
{
    return m->size + m->size / 1000 + 1024 >= WIDE; /* deflate may add five bytes to 16 KiB */
}

/* Makes a local header. Its sizes and checksum are known only after the member was written. */
static void make_local(const written *m, record *r)
{
    bool wide = is_wide(m);
    r->size = 0;
    put(r, 4, LOCAL_MAGIC);
    put(r, 2, wide ? 45 : 20); /* version of the format */
    put(r, 2, FLAG_UTF8);
    put(r, 2, 8);
    put(r, 2, 0);    /* time */
    put(r, 2, 0x21); /* 1980-01-01, as NumPy has it */
    put(r, 4, m->crc);
    put(r, 4, wide ? WIDE : (uint64_t)m->packed);
    put(r, 4, wide ? WIDE : (uint64_t)m->size);
    put(r, 2, strlen(m->name));
    put(r, 2, wide ? 20 : 0);
}

/* Makes the extra field of a member that may need wide sizes. */
static void make_extra(const written *m, record *r)
{
    r->size = 0;
    if (!is_wide(m)) return;
    put(r, 2, 1);
    put(r, 2, 16);
    put(r, 8, (uint64_t)m->size);
    put(r, 8, (uint64_t)m->packed);
}

/* Writes a local header and the name, and begins to pack. */
static cli_exit begin_member(npz_writer *w, written *m)
{
    record local, extra;
    m->header = w->at;
    make_local(m, &local);
    make_extra(m, &extra);
    CLI_TRY(output_write(&w->out, local.bytes, local.size));
    CLI_TRY(output_write(&w->out, m->name, strlen(m->name)));
    CLI_TRY(output_write(&w->out, extra.bytes, extra.size));
    w->at += (int64_t)(local.size + strlen(m->name) + extra.size);
    CLI_TRY(packer_begin(&w->packer, &w->out, PACKING_DEFLATE));
    w->is_open = true;
    return CLI_OK;
}

/* Completes the last member, and writes its local header again, now with everything. */
static cli_exit end_member(npz_writer *w)
{
    record local, extra;
    if (!w->is_open) return CLI_OK;
    w->is_open = false;
    CLI_TRY(packer_end(&w->packer, CLI_OK));
    written *m = &w->members[w->n - 1];
    m->crc = w->packer.crc;
    m->packed = w->packer.packed;
    w->at += m->packed;
    make_local(m, &local);
    make_extra(m, &extra);
    CLI_TRY(output_write_at(&w->out, local.bytes, local.size, m->header));
    return output_write_at(&w->out, extra.bytes, extra.size,
                           m->header + (int64_t)(local.size + strlen(m->name)));
}

/* Begins the member of an array, up to its items. */
static cli_exit add_member_of(foreign_writer *self, const foreign_node *node,
                              const char *head, size_t head_size)
{
    npz_writer *w = self->own;
    size_t size = strlen(node->key) + 5;
    written *members = realloc(w->members, (w->n + 1) * sizeof *members);
    if (!members) return cli_fail(CLI_IO, "out of memory");
    w->members = members;
    written *m = &members[w->n];
    *m = (written){.name = cli_alloc(size)};
    if (!m->name) return CLI_IO;
    w->n++;
    snprintf(m->name, size, "%s.npy", node->key + 1);
    CLI_TRY(items_size(self->path, node, &m->size));
    if (m->size > INT64_MAX / 2 - w->at)
        return cli_fail(CLI_UNSUPPORTED, "%s: the arrays have too many bytes", self->path);
    m->size += (int64_t)head_size;
    CLI_TRY(begin_member(w, m));
    return packer_write(&w->packer, head, head_size);
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    char *head;
    size_t size;
    for (size_t i = 0; i < node->n_attributes; i++)
        CLI_TRY(foreign_lose_writing(self, "%s: the attribute %s", node->key,
                                     node->attributes[i].name));
    if (node->dims && !node->is_group)
        CLI_TRY(foreign_lose_writing(self, "%s: the names of its axes", node->key));
    if (node->is_group) return CLI_OK;
    CLI_TRY(end_member(self->own));
    CLI_TRY(npy_make_header(node->dtype, node->ndim, node->shape, &head, &size));
    cli_exit code = add_member_of(self, node, head, size);
    free(head);
    node->first_axis_fastest = false;
    memset(node->chunk_shape, 0, sizeof node->chunk_shape);
    return code;
}

static cli_exit write_box(foreign_writer *self, const foreign_node *array,
                          const int64_t *start, const int64_t *stop, const void *src)
{
    npz_writer *w = self->own;
    int64_t size = array->item_size;
    for (int d = 0; d < array->ndim; d++) size *= stop[d] - start[d];
    return packer_write(&w->packer, src, (size_t)size);
}

static cli_exit write_record(npz_writer *w, const written *m)
{
    record r = {.size = 0}, extra = {.size = 0};
    uint64_t size = (uint64_t)m->size;
    bool wide = size >= WIDE || m->packed >= (int64_t)WIDE || m->header >= (int64_t)WIDE;
    put(&r, 4, RECORD_MAGIC);
    put(&r, 2, 3 << 8 | 45); /* made on Unix */
    put(&r, 2, wide || is_wide(m) ? 45 : 20);
    put(&r, 2, FLAG_UTF8);
    put(&r, 2, 8);
    put(&r, 2, 0);
    put(&r, 2, 0x21);
    put(&r, 4, m->crc);
    put(&r, 4, wide ? WIDE : (uint64_t)m->packed);
    put(&r, 4, wide ? WIDE : size);
    put(&r, 2, strlen(m->name));
    put(&r, 2, wide ? 28 : 0);
    put(&r, 2, 0); /* comment */
    put(&r, 2, 0);
    put(&r, 2, 0);
    put(&r, 4, (uint64_t)0600 << 16); /* permissions */
    put(&r, 4, wide ? WIDE : (uint64_t)m->header);
    if (wide) {
        put(&extra, 2, 1);
        put(&extra, 2, 24);
        put(&extra, 8, size);
        put(&extra, 8, (uint64_t)m->packed);
        put(&extra, 8, (uint64_t)m->header);
    }
    CLI_TRY(output_write(&w->out, r.bytes, r.size));
    CLI_TRY(output_write(&w->out, m->name, strlen(m->name)));
    CLI_TRY(output_write(&w->out, extra.bytes, extra.size));
    w->at += (int64_t)(r.size + strlen(m->name) + extra.size);
    return CLI_OK;
}

static cli_exit write_end(npz_writer *w, int64_t directory_at)
{
    record r = {.size = 0};
    uint64_t size = (uint64_t)(w->at - directory_at), at = (uint64_t)directory_at, n = w->n;
    if (n >= 0xFFFF || at >= WIDE || size >= WIDE) {
        put(&r, 4, END64_MAGIC);
        put(&r, 8, END64_SIZE - 12);
        put(&r, 2, 3 << 8 | 45);
        put(&r, 2, 45);
        put(&r, 8, 0); /* numbers of disks */
        put(&r, 8, n);
        put(&r, 8, n);
        put(&r, 8, size);
        put(&r, 8, at);
        put(&r, 4, LOCATOR_MAGIC);
        put(&r, 4, 0);
        put(&r, 8, (uint64_t)w->at);
        put(&r, 4, 1);
    }
    put(&r, 4, END_MAGIC);
    put(&r, 4, 0);
    put(&r, 2, n < 0xFFFF ? n : 0xFFFF);
    put(&r, 2, n < 0xFFFF ? n : 0xFFFF);
    put(&r, 4, narrow(size));
    put(&r, 4, narrow(at));
    put(&r, 2, 0);
    return output_write(&w->out, r.bytes, r.size);
}

static cli_exit finish(foreign_writer *self)
{
    npz_writer *w = self->own;
    cli_exit code = end_member(w);
    int64_t directory_at = w->at;
    for (size_t i = 0; i < w->n && code == CLI_OK; i++)
        code = write_record(w, &w->members[i]);
    if (code == CLI_OK) code = write_end(w, directory_at);
    if (code == CLI_OK) code = output_finish(&w->out);
    release(w);
    return code;
}

static cli_exit create_npz(foreign_writer *writer, bool force)
{
    npz_writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (npz_writer){.out.fd = -1};
    cli_exit code = output_open(&w->out, writer->path, force);
    if (code == CLI_OK && !w->out.seekable)
        code = cli_fail(CLI_UNSUPPORTED, "%s: an npz file cannot be written to a pipe",
                        writer->path);
    if (code != CLI_OK) {
        release(w);
        return code;
    }
    writer->own = w;
    writer->in_order = true;
    writer->add = add;
    writer->write = write_box;
    writer->finish = finish;
    writer->abandon = abandon;
    return CLI_OK;
}

const foreign_format foreign_npz = {FOREIGN_INTERFACE, "npz", open_npz, create_npz};
