/* Room: cli/sources. Recognizes formats by magic bytes. Reads a few bytes; the bytes of a pipe are
 * kept for the source. Formats that are recognized but cannot be read have a name for messages. */
#include "sources/probe.h"

#include "sources/foreign_source.h"
#include "sources/trees.h"
#include "terminal/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_SIZE 520 /* the last magic bytes are those of HDF5 behind a header of MATLAB, at 512 */

typedef struct mark {
    size_t position, size;
    const char *bytes;
    data_format format;
    const char *other;
} mark;

static const mark marks[] = {
    {2, 8, "b2frame\0", FORMAT_ARRAY, NULL},
    {0, 6, "\x93NUMPY", FORMAT_NPY, NULL},
    {0, 4, "PK\3\4", FORMAT_NONE, "a zip archive, as .npz files are"},
    {0, 4, "PK\5\6", FORMAT_NONE, "an empty zip archive"},
    {0, 9, "SIMPLE  =", FORMAT_NONE, "a FITS file"},
    {344, 4, "n+1\0", FORMAT_NONE, "a NIfTI image"},
    {4, 4, "n+2\0", FORMAT_NONE, "a NIfTI image"},
    {0, 10, "MATLAB 5.0", FORMAT_NONE, "a MATLAB file"},
    {0, 4, "PAR1", FORMAT_NONE, "a Parquet file"},
    {0, 6, "ARROW1", FORMAT_NONE, "an Arrow file"},
    {0, 8, "\x89PNG\r\n\x1a\n", FORMAT_NONE, "a PNG picture"},
    {0, 3, "\xff\xd8\xff", FORMAT_NONE, "a JPEG picture"},
    {0, 4, "GIF8", FORMAT_NONE, "a GIF picture"},
    {0, 3, "\x1f\x8b\x08", FORMAT_NONE, "a gzip file"},
    {0, 3, "BZh", FORMAT_NONE, "a bzip2 file"},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     FORMAT_NONE, "an xz file"},
    {0, 4, "\x28\xb5\x2f\xfd", FORMAT_NONE, "a zstd file"},
    {0, 4, "\x04\x22\x4d\x18", FORMAT_NONE, "an lz4 file"},
};

static void look(const uint8_t *head, size_t size, probe *out)
{
    out->empty = size == 0;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const mark *m = &marks[i];
        if (m->position + m->size > size ||
            memcmp(head + m->position, m->bytes, m->size) != 0)
            continue;
        out->format = m->format;
        out->other = m->other;
        return;
    }
    if (foreign_recognize(head, size)) out->format = FORMAT_FOREIGN;
}

static bool holds(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && size < (int)sizeof path && access(path, F_OK) == 0;
}

/* Reads the first bytes of a regular file; returns their number, or -1. */
static ssize_t read_head(const char *path, uint8_t head[HEAD_SIZE])
{
    struct stat st;
    if (cli_is_url(path) || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = pread(fd, head, HEAD_SIZE, 0);
    close(fd);
    return n;
}

/* Whether the first shard of the Zarr array at `path` is a frame. */
static bool holds_frame(const char *path)
{
    char shard[PATH_MAX];
    struct stat st;
    uint8_t head[HEAD_SIZE];
    probe found = PROBE_INIT;
    size_t end = (size_t)snprintf(shard, sizeof shard, "%s/c", path);
    while (end + 3 < sizeof shard && stat(shard, &st) == 0 && S_ISDIR(st.st_mode))
        end += (size_t)snprintf(shard + end, sizeof shard - end, "/0");
    ssize_t n = end < sizeof shard ? read_head(shard, head) : 0;
    if (n > 0) look(head, (size_t)n, &found);
    return found.format == FORMAT_ARRAY;
}

/* Whether the Zarr array is an array of this library, too, even a damaged one: reading that without
 * its seal would hide the damage. */
static bool is_own_array(const char *path)
{
    caterva_array *array;
    caterva_error err;
    if (caterva_open(path, NULL, &array, &err) == CATERVA_OK) {
        caterva_discard(array);
        return true;
    }
    bool is_other = err.code == CATERVA_EUNSUPPORTED || err.code == CATERVA_ENOTFOUND;
    return !is_other || holds_frame(path);
}

static bool opens_as_tree(const char *path)
{
    caterva_tree *tree;
    if (caterva_tree_open(path, NULL, &tree, NULL) != CATERVA_OK) return false;
    caterva_tree_close(tree, NULL);
    return true;
}

/* A Zarr array or group of this library is not of another format. */
static void look_at_directory(const char *path, probe *out)
{
    if (holds(path, "chunks.b2frame") || (holds(path, "zarr.json") && is_own_array(path)))
        out->format = FORMAT_ARRAY;
    else if (holds(path, ".zarray") || holds(path, ".zgroup") ||
             (holds(path, "zarr.json") && !opens_as_tree(path)))
        out->format = FORMAT_FOREIGN;
}

/* Examines a file or pipe. The read position of a file does not change. */
static cli_exit look_at_file(const char *name, const struct stat *st, probe *out)
{
    uint8_t head[HEAD_SIZE];
    if (!S_ISREG(st->st_mode)) {
        CLI_TRY(stream_read(out->fd, name, out->head, sizeof out->head, &out->head_size));
        look(out->head, out->head_size, out);
        return CLI_OK;
    }
    ssize_t n = pread(out->fd, head, sizeof head, 0);
    if (n < 0) return cli_fail_sys("cannot read %s", name);
    look(head, (size_t)n, out);
    return CLI_OK;
}

cli_exit probe_open(const char *path, probe *out)
{
    struct stat st;
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    *out = (probe)PROBE_INIT;
    if (!standard && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        look_at_directory(path, out);
        return CLI_OK;
    }
    if (!standard && foreign_place_is(path)) {
        out->format = FORMAT_FOREIGN;
        return CLI_OK;
    }
    if (!standard && (cli_is_url(path) || tree_part_is_within(path))) {
        out->format = FORMAT_ARRAY;
        return CLI_OK;
    }
    out->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0 || fstat(out->fd, &st) != 0) return cli_fail_sys("cannot open %s", path);
    cli_exit code = look_at_file(name, &st, out);
    if (code != CLI_OK) probe_close(out);
    return code;
}

const foreign_info *probe_foreign(const char *path)
{
    uint8_t head[HEAD_SIZE];
    probe found = PROBE_INIT;
    struct stat st;
    if (!cli_is_url(path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        look_at_directory(path, &found);
        return found.format == FORMAT_FOREIGN ? foreign_by_name("zarr") : NULL;
    }
    ssize_t n = read_head(path, head);
    if (n <= 0) return NULL;
    const foreign_info *info = foreign_recognize(head, (size_t)n);
    if (info) return info;
    look(head, (size_t)n, &found);
    return found.format == FORMAT_NONE ? foreign_by_path(path) : NULL;
}

bool probe_is_npy(const char *path)
{
    uint8_t head[HEAD_SIZE];
    probe found = PROBE_INIT;
    ssize_t n = read_head(path, head);
    if (n > 0) look(head, (size_t)n, &found);
    return found.format == FORMAT_NPY;
}

/* Rejects a path such as "tree.b2d::key", whose key lacks the slash, with a hint. */
static cli_exit explain_key(const char *path)
{
    struct stat st;
    const char *key = strstr(path, "::");
    if (!key || key[2] == '/' || !key[2] || stat(path, &st) == 0) return CLI_OK;
    char *tree = cli_copy_text(path);
    if (!tree) return CLI_IO;
    tree[key - path] = '\0';
    cli_exit code = CLI_OK;
    if (stat(tree, &st) == 0)
        code =
            cli_fail(CLI_IO, "%s does not exist: keys in a tree begin with a slash, %s::/%s",
                     path, tree, key + 2);
    free(tree);
    return code;
}

void probe_close(probe *p)
{
    if (p->fd > STDIN_FILENO) close(p->fd);
    p->fd = -1;
}

cli_exit probe_refuse(const char *path, const char *other)
{
    const char *advice = "";
    if (strncmp(other, "a zip", 5) == 0) advice = ": unpack it and use its .npy files";
    if (strcmp(other, "a NIfTI image") == 0)
        advice = "; 'caterva convert --from raw --offset N' reads the items that begin at "
                 "byte N, the header's vox_offset, with the shape reversed";
    if (strcmp(other, "a FITS file") == 0)
        advice = "; in Python, 'python -m caterva convert' does";
    return cli_fail(CLI_UNSUPPORTED, "%s is %s, which caterva cannot read%s", path, other,
                    advice);
}

/* Reports that the path is a tree and not an array, or what is wrong with the tree. */
static cli_exit refuse_tree(const cli_args *args, const char *path)
{
    tree_part part;
    cli_exit code = tree_part_open(args, path, &part);
    tree_part_close(&part);
    if (code != CLI_OK) return code;
    return cli_fail(CLI_UNSUPPORTED,
                    "%s is a tree of arrays: 'caterva ls' lists them; name one as %s::/NAME",
                    path, path);
}

cli_exit probe_explain(const cli_args *args, const char *path)
{
    probe p;
    struct stat st;
    CLI_TRY(explain_key(path));
    bool plain = stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    if (!plain || access(path, R_OK) != 0) return CLI_OK;
    CLI_TRY(probe_open(path, &p));
    probe_close(&p);
    if (p.format == FORMAT_NPY || p.format == FORMAT_FOREIGN)
        return cli_fail(CLI_UNSUPPORTED,
                        "%s is %s, not a b2nd array; 'caterva convert' converts it", path,
                        p.format == FORMAT_NPY ? "a NumPy file" : probe_foreign(path)->title);
    if (tree_part_is(args, path)) return refuse_tree(args, path);
    return p.other ? probe_refuse(path, p.other) : CLI_OK;
}
