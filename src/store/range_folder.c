/* Room: store. Packs in a folder, little-endian:
 *
 *     | magic 8 | key 32 | n 4 | n x (pos 8, size 4, sum 4) | sum of all before 4 | bytes |
 *
 * A pack is called <half of its key in hex>-<chance in hex>.pack. Must not know what is kept.
 */
#include "store/range_folder.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "store/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "cvpack\0\1";
static const char suffix[] = ".pack";

enum {
    FIXED = sizeof magic + CV_PACK_KEY + 4,
    EXTENT = 16,
    SUM = 4,
    MOST_EXTENTS = 1 << 16,
    PER_FILE =
        32 << 10, /* what a file counts for besides its bytes: many take long to list */
    KEY_HEX = 32, /* of the key in the name */
    OLD_NS = 600000000u, /* a file without its name is nobody's after a thousand of these */
};

uint64_t cv_pack_head_size(size_t n) { return FIXED + (uint64_t)n * EXTENT + SUM; }

/* ---- Names ------------------------------------------------------------------------ */

static void put_hex(const uint8_t *bytes, size_t n, char *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * n] = '\0';
}

static void make_name(const uint8_t key[CV_PACK_KEY], char name[CV_PACK_NAME])
{
    uint8_t chance[8];
    char first[KEY_HEX + 1], last[2 * sizeof chance + 1];
    cv_os_random(chance, sizeof chance);
    put_hex(key, KEY_HEX / 2, first);
    put_hex(chance, sizeof chance, last);
    (void)snprintf(name, CV_PACK_NAME, "%s-%s%s", first, last, suffix);
}

static bool is_pack(const char *name)
{
    size_t size = strlen(name);
    return size == KEY_HEX + 17 + sizeof suffix - 1 && name[KEY_HEX] == '-' &&
           strcmp(name + size - (sizeof suffix - 1), suffix) == 0;
}

bool cv_pack_is_of(const char *name, const uint8_t key[CV_PACK_KEY])
{
    char first[KEY_HEX + 1];
    put_hex(key, KEY_HEX / 2, first);
    return is_pack(name) && strncmp(name, first, KEY_HEX) == 0;
}

/* ---- The folder ---------------------------------------------------------------------- */

bool cv_range_folder_open(const char *path, uint64_t bound, cv_range_folder *out)
{
    *out = (cv_range_folder){.bound = bound};
    int error = cv_dir_open(cv_dir_here, path, 0, &out->dir);
    if (error == ENOENT) {
        (void)cv_dir_make(cv_dir_here, path);
        error = cv_dir_open(cv_dir_here, path, 0, &out->dir);
    }
    if (error) return false;
    cv_mutex_init(&out->lock);
    return true;
}

void cv_range_folder_close(cv_range_folder *folder)
{
    cv_dir_close(&folder->dir);
    cv_mutex_destroy(&folder->lock);
}

void cv_pack_remove(cv_range_folder *folder, const char *name)
{
    (void)cv_dir_remove(folder->dir, name);
}

/* ---- Room ------------------------------------------------------------------------------ */

typedef struct used_file {
    char name[CV_PACK_NAME];
    uint64_t size, used;
} used_file;

typedef struct used_files {
    used_file *list;
    size_t n, room;
    uint64_t total;
} used_files;

static bool add_used(used_files *files, const char *name, const cv_file_info *info)
{
    if (files->n == files->room) {
        size_t room = files->room > 0 ? 2 * files->room : 256;
        used_file *more =
            cv_realloc(files->list, files->n * sizeof *more, room * sizeof *more);
        if (!more) return false;
        files->list = more;
        files->room = room;
    }
    used_file *f = &files->list[files->n++];
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->size = info->size + PER_FILE;
    f->used = info->changed_ns;
    files->total += f->size;
    return true;
}

/* What a process left that was killed. */
static void remove_old_temporary(cv_range_folder *folder, const char *name,
                                 const cv_file_info *info)
{
    uint64_t now = cv_os_time_ns();
    bool is_old = info->changed_ns / 1000 + OLD_NS < now / 1000;
    if (name[0] == '.' && strstr(name, ".tmp-") && strstr(name, suffix) && is_old)
        (void)cv_dir_remove(folder->dir, name);
}

static bool list_used(cv_range_folder *folder, used_files *files)
{
    cv_dir dir;
    cv_listing listing;
    cv_file_info info;
    const char *name;
    int error;
    if (cv_dir_open(folder->dir, ".", 0, &dir) || cv_listing_open(dir, &listing))
        return false;
    bool good = true;
    while (good && (name = cv_listing_next(&listing, &error))) {
        if (cv_dir_get_link_info(folder->dir, name, &info) || info.kind != CV_KIND_FILE)
            continue;
        if (is_pack(name))
            good = add_used(files, name, &info);
        else
            remove_old_temporary(folder, name, &info);
    }
    cv_listing_close(&listing);
    return good;
}

static int by_use(const void *a, const void *b)
{
    const used_file *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Looks it through, and leaves room for a while. A quarter stays free for what others write
 * meanwhile. */
static bool sweep(cv_range_folder *folder)
{
    used_files files = {0};
    bool is_listed = list_used(folder, &files);
    uint64_t most = folder->bound / 4 * 3;
    if (files.total > most) qsort(files.list, files.n, sizeof *files.list, by_use);
    for (size_t i = 0; i < files.n && files.total > most; i++) {
        (void)cv_dir_remove(folder->dir, files.list[i].name);
        files.total -= files.list[i].size;
    }
    cv_free(files.list);
    folder->left = is_listed ? folder->bound / 16 : 0;
    return is_listed;
}

/* One file is a small part of the folder. */
static uint64_t most_of_one(const cv_range_folder *folder) { return folder->bound / 16; }

uint64_t cv_pack_room(const cv_range_folder *folder)
{
    uint64_t least = PER_FILE + cv_pack_head_size(1), most = most_of_one(folder);
    return most > least ? most - least : 0;
}

static bool make_room(cv_range_folder *folder, uint64_t size)
{
    bool has_room = true;
    size += PER_FILE;
    if (size > most_of_one(folder)) return false;
    cv_mutex_lock(&folder->lock);
    if (folder->left < size) has_room = sweep(folder);
    if (has_room) folder->left -= size;
    cv_mutex_unlock(&folder->lock);
    return has_room;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static uint8_t *make_head(const uint8_t key[CV_PACK_KEY], cv_pack_extent *extents, size_t n,
                          const uint8_t *bytes, uint64_t *size)
{
    uint8_t *head = cv_malloc((size_t)cv_pack_head_size(n)), *to = head;
    if (!head) return NULL;
    memcpy(to, magic, sizeof magic);
    memcpy(to + sizeof magic, key, CV_PACK_KEY);
    cv_store_le32(to + sizeof magic + CV_PACK_KEY, (uint32_t)n);
    to += FIXED;
    *size = cv_pack_head_size(n);
    for (size_t i = 0; i < n; i++, to += EXTENT) {
        cv_pack_extent *e = &extents[i];
        e->sum = cv_crc32c(0, bytes, e->size);
        cv_store_le64(to, e->pos);
        cv_store_le32(to + 8, e->size);
        cv_store_le32(to + 12, e->sum);
        bytes += e->size;
        *size += e->size;
    }
    cv_store_le32(to, cv_crc32c(0, head, (size_t)(to - head)));
    return head;
}

bool cv_pack_write(cv_range_folder *folder, const uint8_t key[CV_PACK_KEY],
                   cv_pack_extent *extents, size_t n, const uint8_t *bytes,
                   char name[CV_PACK_NAME])
{
    char temp[CV_OS_TEMP_NAME];
    cv_file file;
    uint64_t size, head_size = cv_pack_head_size(n);
    if (n == 0 || n > MOST_EXTENTS) return false;
    uint8_t *head = make_head(key, extents, n, bytes, &size);
    if (!head) return false;
    make_name(key, name);
    bool good = make_room(folder, size) &&
                cv_dir_create_temp_file(folder->dir, name, 0600, temp, &file) == 0;
    if (good) {
        good = cv_file_write(file, head, (size_t)head_size, 0) == 0 &&
               cv_file_write(file, bytes, (size_t)(size - head_size), head_size) == 0;
        cv_file_close(&file);
        good = good && cv_dir_rename(folder->dir, temp, name) == 0;
        if (!good) (void)cv_dir_remove(folder->dir, temp);
    }
    cv_free(head);
    return good;
}

/* ---- Reading ------------------------------------------------------------------------------- */

static bool open_pack(cv_range_folder *folder, const char *name, cv_file *out)
{
    return cv_open_file(folder->dir, name, CV_OPEN_READ | CV_OPEN_NO_LINK, 0, out) == 0;
}

static bool read_all(cv_file file, void *dst, size_t size, uint64_t pos)
{
    size_t done;
    return cv_file_read(file, dst, size, pos, &done) == 0 && done == size;
}

/* The head, owned, if what it says of itself is true. */
static uint8_t *read_head(cv_file file, const uint8_t key[CV_PACK_KEY], uint32_t *n)
{
    uint8_t fixed[FIXED];
    if (!read_all(file, fixed, sizeof fixed, 0)) return NULL;
    *n = cv_load_le32(fixed + sizeof magic + CV_PACK_KEY);
    bool is_known = memcmp(fixed, magic, sizeof magic) == 0 &&
                    memcmp(fixed + sizeof magic, key, CV_PACK_KEY) == 0;
    if (!is_known || *n == 0 || *n > MOST_EXTENTS) return NULL;
    size_t size = (size_t)cv_pack_head_size(*n);
    uint8_t *head = cv_malloc(size);
    if (head && read_all(file, head, size, 0) &&
        cv_load_le32(head + size - SUM) == cv_crc32c(0, head, size - SUM))
        return head;
    cv_free(head);
    return NULL;
}

bool cv_pack_read_head(cv_range_folder *folder, const char *name,
                       const uint8_t key[CV_PACK_KEY], cv_pack_extent **extents, size_t *n)
{
    cv_file file;
    uint32_t count = 0;
    if (!open_pack(folder, name, &file)) return false;
    uint8_t *head = read_head(file, key, &count);
    cv_file_close(&file);
    *extents = head ? cv_calloc(count, sizeof **extents) : NULL;
    if (!head) cv_pack_remove(folder, name);
    for (uint32_t i = 0; *extents && i < count; i++) {
        const uint8_t *from = head + FIXED + (size_t)i * EXTENT;
        (*extents)[i] = (cv_pack_extent){cv_load_le64(from), cv_load_le32(from + 8),
                                         cv_load_le32(from + 12)};
    }
    cv_free(head);
    *n = count;
    return *extents != NULL;
}

bool cv_pack_read(cv_range_folder *folder, const char *name, uint64_t at,
                  const cv_pack_extent *extent, void *dst)
{
    cv_file file;
    if (!open_pack(folder, name, &file)) return false;
    bool good = read_all(file, dst, extent->size, at) &&
                cv_crc32c(0, dst, extent->size) == extent->sum;
    cv_file_close(&file);
    if (!good) cv_pack_remove(folder, name);
    return good;
}

void cv_pack_touch(cv_range_folder *folder, const char *name)
{
    cv_file file;
    if (!open_pack(folder, name, &file)) return;
    (void)cv_file_touch(file);
    cv_file_close(&file);
}
