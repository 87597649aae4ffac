/* Room: remote. A cache of byte ranges of one object version, in a folder that processes share.
 * Ranges are cut into extents of at most 64 KiB; files called packs contain extents (little-endian,
 * sizes in bytes, sums are CRC32C):
 *
 *     | magic 8 | key 32 | n 4 | n x (pos 8, size 4, sum 4) | sum of all before 4 | bytes |
 *
 * A pack is named <half of its key in hex>-<random bytes in hex>.pack and never changes. The list
 * in memory has the extents that were in the folder when it was last listed, and those added since
 * by this process. If a pack was deleted meanwhile, reading it fails, and its extents leave the
 * list. When the folder is full, the least recently used packs are deleted. Independent of what the
 * bytes mean. */
#include "remote/transfer.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "store/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 64 }; /* of packs */

typedef struct pack_extent {
    uint64_t pos;
    uint32_t size, sum; /* CRC32C of the bytes */
} pack_extent;

typedef struct range_folder {
    cv_dir dir;
    uint64_t bound; /* bytes that the folder may hold */
    cv_mutex lock;  /* guards: */
    uint64_t left;  /* bytes that may be written before the next sweep */
} range_folder;

static const char magic[8] = {'c', 'v', 'p', 'a', 'c', 'k', 0, 1};
static const char suffix[] = ".pack";

enum {
    FIXED = sizeof magic + CV_PACK_KEY + 4,
    EXTENT = 16,
    SUM = 4,
    MOST_EXTENTS = 1 << 16,
    PER_FILE = 32 << 10, /* added to a file's size: listing many small files takes long */
    KEY_HEX = 32,        /* hex digits of the key in a name */
    OLD_US = 600000000u, /* age at which a temporary file counts as left by a dead process */
};

/* Size of everything before the bytes of the first extent. */
static uint64_t pack_head_size(size_t n) { return FIXED + (uint64_t)n * EXTENT + SUM; }

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

static void make_name(const uint8_t key[CV_PACK_KEY], char name[NAME_SIZE])
{
    uint8_t chance[8];
    char first[KEY_HEX + 1], last[2 * sizeof chance + 1];
    cv_os_random(chance, sizeof chance);
    put_hex(key, KEY_HEX / 2, first);
    put_hex(chance, sizeof chance, last);
    (void)snprintf(name, NAME_SIZE, "%s-%s%s", first, last, suffix);
}

static bool is_pack(const char *name)
{
    size_t size = strlen(name);
    return size == KEY_HEX + 17 + sizeof suffix - 1 && name[KEY_HEX] == '-' &&
           strcmp(name + size - (sizeof suffix - 1), suffix) == 0;
}

static bool is_pack_of(const char *name, const uint8_t key[CV_PACK_KEY])
{
    char first[KEY_HEX + 1];
    put_hex(key, KEY_HEX / 2, first);
    return is_pack(name) && strncmp(name, first, KEY_HEX) == 0;
}

static bool open_folder(const char *path, uint64_t bound, range_folder *out)
{
    *out = (range_folder){.bound = bound};
    int error = cv_dir_open(cv_dir_here, path, 0, &out->dir);
    if (error == ENOENT) {
        (void)cv_dir_make(cv_dir_here, path, 0777);
        error = cv_dir_open(cv_dir_here, path, 0, &out->dir);
    }
    if (error) return false;
    cv_mutex_init(&out->lock);
    return true;
}

static void remove_pack(range_folder *folder, const char *name)
{
    (void)cv_dir_remove(folder->dir, name);
}

/* ---- Making room --------------------------------------------------------------------------- */

typedef struct used_file {
    char name[NAME_SIZE];
    uint64_t size, used;
} used_file;

typedef struct used_files {
    used_file *list;
    size_t n, room;
    uint64_t total;
} used_files;

static bool add_used(used_files *files, const char *name, const cv_file_info *info)
{
    used_file *list = cv_grow(files->list, files->n, &files->room, sizeof *list);
    if (!list) return false;
    files->list = list;
    used_file *f = &files->list[files->n++];
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->size = info->size + PER_FILE;
    f->used = info->changed_ns;
    files->total += f->size;
    return true;
}

/* Deletes a temporary file that a killed process left. */
static void remove_old_temporary(range_folder *folder, const char *name,
                                 const cv_file_info *info)
{
    uint64_t now = cv_os_time_ns();
    bool is_old = info->changed_ns / 1000 + OLD_US < now / 1000;
    if (name[0] == '.' && strstr(name, ".tmp-") && strstr(name, suffix) && is_old)
        (void)cv_dir_remove(folder->dir, name);
}

static bool list_used(range_folder *folder, used_files *files)
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

/* Deletes the least recently used packs until at most three quarters of the bound are used. The
 * rest is room for other processes, which write meanwhile. */
static bool sweep(range_folder *folder)
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

static uint64_t most_of_one(const range_folder *folder) { return folder->bound / 16; }

static uint64_t pack_room(const range_folder *folder)
{
    uint64_t least = PER_FILE + pack_head_size(1), most = most_of_one(folder);
    return most > least ? most - least : 0;
}

static bool make_room(range_folder *folder, uint64_t size)
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

static uint8_t *make_head(const uint8_t key[CV_PACK_KEY], pack_extent *extents, size_t n,
                          const uint8_t *bytes, uint64_t *size)
{
    uint8_t *head = cv_malloc((size_t)pack_head_size(n)), *to = head;
    if (!head) return NULL;
    memcpy(to, magic, sizeof magic);
    memcpy(to + sizeof magic, key, CV_PACK_KEY);
    cv_store_le32(to + sizeof magic + CV_PACK_KEY, (uint32_t)n);
    to += FIXED;
    *size = pack_head_size(n);
    for (size_t i = 0; i < n; i++, to += EXTENT) {
        pack_extent *e = &extents[i];
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

/* Writes a pack of extents and sets their sums. `bytes` holds their bytes, one after another. */
static bool write_pack_file(range_folder *folder, const uint8_t key[CV_PACK_KEY],
                            pack_extent *extents, size_t n, const uint8_t *bytes,
                            char name[NAME_SIZE])
{
    char temp[CV_OS_TEMP_NAME];
    cv_file file;
    uint64_t size, head_size = pack_head_size(n);
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

static bool open_pack(range_folder *folder, const char *name, cv_file *out)
{
    return cv_open_file(folder->dir, name, CV_OPEN_READ | CV_OPEN_NO_LINK, 0, out) == 0;
}

static bool read_all(cv_file file, void *dst, size_t size, uint64_t pos)
{
    size_t done;
    return cv_file_read(file, dst, size, pos, &done) == 0 && done == size;
}

/* Reads and checks the head (owned). NULL: it is damaged or has another key. */
static uint8_t *read_head(cv_file file, const uint8_t key[CV_PACK_KEY], uint32_t *n)
{
    uint8_t fixed[FIXED];
    if (!read_all(file, fixed, sizeof fixed, 0)) return NULL;
    *n = cv_load_le32(fixed + sizeof magic + CV_PACK_KEY);
    bool is_known = memcmp(fixed, magic, sizeof magic) == 0 &&
                    memcmp(fixed + sizeof magic, key, CV_PACK_KEY) == 0;
    if (!is_known || *n == 0 || *n > MOST_EXTENTS) return NULL;
    size_t size = (size_t)pack_head_size(*n);
    uint8_t *head = cv_malloc(size);
    if (head && read_all(file, head, size, 0) &&
        cv_load_le32(head + size - SUM) == cv_crc32c(0, head, size - SUM))
        return head;
    cv_free(head);
    return NULL;
}

/* Reads the list of a pack's extents (owned). Deletes a pack that is damaged or has another key. */
static bool read_pack_head(range_folder *folder, const char *name,
                           const uint8_t key[CV_PACK_KEY], pack_extent **extents, size_t *n)
{
    cv_file file;
    uint32_t count = 0;
    if (!open_pack(folder, name, &file)) return false;
    uint8_t *head = read_head(file, key, &count);
    cv_file_close(&file);
    *extents = head ? cv_calloc(count, sizeof **extents) : NULL;
    if (!head) remove_pack(folder, name);
    for (uint32_t i = 0; *extents && i < count; i++) {
        const uint8_t *from = head + FIXED + (size_t)i * EXTENT;
        (*extents)[i] = (pack_extent){cv_load_le64(from), cv_load_le32(from + 8),
                                      cv_load_le32(from + 12)};
    }
    cv_free(head);
    *n = count;
    return *extents != NULL;
}

static bool read_extent(range_folder *folder, const char *name, uint64_t at,
                        const pack_extent *extent, void *dst)
{
    cv_file file;
    if (!open_pack(folder, name, &file)) return false;
    bool good = read_all(file, dst, extent->size, at) &&
                cv_crc32c(0, dst, extent->size) == extent->sum;
    cv_file_close(&file);
    if (!good) remove_pack(folder, name);
    return good;
}

static void touch_pack(range_folder *folder, const char *name)
{
    cv_file file;
    if (!open_pack(folder, name, &file)) return;
    (void)cv_file_touch(file);
    cv_file_close(&file);
}

/* ---- The list of extents -------------------------------------------------------------------- */

enum {
    MOST_EXTENT = 64 << 10,
    LEAST_PACK = 4 << 10, /* smaller packs are not worth a file */
    LOOK_NS = 1000000000,
    TOUCH_NS = 1000000000,
    BUCKETS = 1024,
    FEW = 8
};

typedef struct pack {
    char name[NAME_SIZE];
    uint64_t touched;
    bool is_gone;
    struct pack *next;
} pack;

typedef struct extent {
    pack_extent what;
    uint64_t at; /* offset in the pack */
    pack *pack;
} extent;

struct cv_range_cache {
    range_folder folder;
    uint8_t key[CV_PACK_KEY];
    cv_mutex lock;        /* guards all below */
    pack *packs[BUCKETS]; /* hash table by name; deleted packs stay in it */
    extent *extents;      /* by position, if is_sorted */
    size_t n, room;
    bool is_sorted, was_listed;
    uint64_t changed, listed; /* times of the folder's last change and last check for one */
};

cv_range_cache *cv_range_cache_open(const char *folder, uint64_t bound,
                                    const uint8_t key[CV_PACK_KEY])
{
    cv_range_cache *c = cv_calloc(1, sizeof *c);
    if (!c || !open_folder(folder, bound, &c->folder)) {
        cv_free(c);
        return NULL;
    }
    memcpy(c->key, key, CV_PACK_KEY);
    cv_mutex_init(&c->lock);
    return c;
}

void cv_range_cache_close(cv_range_cache *c)
{
    if (!c) return;
    for (int i = 0; i < BUCKETS; i++) {
        while (c->packs[i]) {
            pack *p = c->packs[i];
            c->packs[i] = p->next;
            cv_free(p);
        }
    }
    cv_free(c->extents);
    cv_dir_close(&c->folder.dir);
    cv_mutex_destroy(&c->folder.lock);
    cv_mutex_destroy(&c->lock);
    cv_free(c);
}

/* The functions up to the next section require the lock. */

static pack **bucket_of(cv_range_cache *c, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *p = name; *p; p++) hash = (hash ^ (unsigned char)*p) * 16777619u;
    return &c->packs[(hash ^ hash >> 16) % BUCKETS];
}

static bool is_listed(cv_range_cache *c, const char *name)
{
    const pack *p = *bucket_of(c, name);
    while (p && strcmp(p->name, name) != 0) p = p->next;
    return p != NULL;
}

static bool reserve(cv_range_cache *c, size_t more)
{
    if (c->n + more <= c->room) return true;
    size_t room = 2 * c->room > c->n + more ? 2 * c->room : c->n + more + 64;
    extent *list =
        cv_realloc(c->extents, c->n * sizeof *c->extents, room * sizeof *c->extents);
    if (!list) return false;
    c->extents = list;
    c->room = room;
    return true;
}

static size_t place_of(const cv_range_cache *c, uint64_t pos)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->extents[middle].what.pos <= pos)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds an extent: in order if it `is_of_few`; else the list is sorted when it is next used. */
static void add_extent(cv_range_cache *c, const extent *e, bool is_of_few)
{
    bool stays_sorted = c->is_sorted && is_of_few;
    size_t at = stays_sorted ? place_of(c, e->what.pos) : c->n;
    memmove(c->extents + at + 1, c->extents + at, (c->n - at) * sizeof *e);
    c->extents[at] = *e;
    c->n++;
    c->is_sorted = stays_sorted;
}

static void add_pack(cv_range_cache *c, const char *name, const pack_extent *extents,
                     size_t n)
{
    uint64_t at = pack_head_size(n);
    pack *p = cv_calloc(1, sizeof *p);
    if (!p || !reserve(c, n)) {
        cv_free(p);
        return;
    }
    pack **bucket = bucket_of(c, name);
    memcpy(p->name, name, strlen(name) + 1);
    p->next = *bucket;
    *bucket = p;
    for (size_t i = 0; i < n; i++) {
        add_extent(c, &(extent){extents[i], at, p}, n <= FEW);
        at += extents[i].size;
    }
}

static void drop_pack(cv_range_cache *c, pack *p)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->extents[i].pack != p) c->extents[n++] = c->extents[i];
    c->n = n;
    p->is_gone = true;
}

static int by_position(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return (x->what.pos > y->what.pos) - (x->what.pos < y->what.pos);
}

/* Returns the extent that contains byte `pos` and ends last; NULL: none. */
static const extent *find(cv_range_cache *c, uint64_t pos)
{
    if (!c->is_sorted && c->n > 0) qsort(c->extents, c->n, sizeof *c->extents, by_position);
    c->is_sorted = true;
    size_t low = place_of(c, pos);
    const extent *best = NULL;
    uint64_t reach = pos;
    while (low > 0 && pos - c->extents[low - 1].what.pos < MOST_EXTENT) {
        const extent *e = &c->extents[--low];
        if (e->what.pos + e->what.size <= reach) continue;
        reach = e->what.pos + e->what.size;
        best = e;
    }
    return best;
}

/* ---- Looking at the folder ------------------------------------------------------------------- */

static bool are_sound(const pack_extent *extents, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const pack_extent *e = &extents[i];
        if (e->size == 0 || e->size > MOST_EXTENT || e->pos > INT64_MAX) return false;
        total += e->size;
    }
    return total <= CV_PACK_MOST;
}

static void take_in(cv_range_cache *c, const char *name)
{
    pack_extent *extents;
    size_t n;
    if (!is_pack_of(name, c->key) || is_listed(c, name)) return;
    if (!read_pack_head(&c->folder, name, c->key, &extents, &n)) return;
    if (are_sound(extents, n)) add_pack(c, name, extents, n);
    cv_free(extents);
}

static void list(cv_range_cache *c)
{
    cv_dir dir;
    cv_listing listing;
    const char *name;
    int error;
    if (cv_dir_open(c->folder.dir, ".", 0, &dir) || cv_listing_open(dir, &listing)) return;
    while ((name = cv_listing_next(&listing, &error))) take_in(c, name);
    cv_listing_close(&listing);
}

void cv_range_cache_look(cv_range_cache *c)
{
    cv_file_info info;
    cv_mutex_lock(&c->lock);
    uint64_t now = cv_os_clock_ns();
    bool is_due = !c->was_listed || now - c->listed > LOOK_NS;
    if (is_due && cv_dir_get_info(c->folder.dir, ".", &info) == 0 &&
        !(c->was_listed && info.changed_ns == c->changed)) {
        c->changed = info.changed_ns;
        list(c);
    }
    if (is_due) c->listed = now;
    c->was_listed = true;
    cv_mutex_unlock(&c->lock);
}

/* ---- Getting ------------------------------------------------------------------------------- */

static bool is_worth_a_touch(pack *p)
{
    uint64_t now = cv_os_clock_ns();
    if (p->touched != 0 && now - p->touched < TOUCH_NS) return false;
    p->touched = now;
    return true;
}

static bool look_up(cv_range_cache *c, uint64_t pos, extent *out)
{
    cv_mutex_lock(&c->lock);
    const extent *found = find(c, pos);
    bool touches = found && is_worth_a_touch(found->pack);
    if (found) *out = *found;
    cv_mutex_unlock(&c->lock);
    if (touches) touch_pack(&c->folder, out->pack->name);
    return found != NULL;
}

static void drop(cv_range_cache *c, pack *p)
{
    cv_mutex_lock(&c->lock);
    drop_pack(c, p);
    cv_mutex_unlock(&c->lock);
}

/* Copies bytes of an extent from `pos` on, and returns their number; 0: it cannot be read. */
static size_t get_some(cv_range_cache *c, const extent *e, uint64_t pos, uint8_t *dst,
                       size_t size, uint8_t *scratch)
{
    size_t from = (size_t)(pos - e->what.pos), n = e->what.size - from;
    bool is_straight = from == 0 && n <= size;
    uint8_t *to = is_straight ? dst : scratch;
    if (!read_extent(&c->folder, e->pack->name, e->at, &e->what, to)) return 0;
    if (n > size) n = size;
    if (!is_straight) memcpy(dst, scratch + from, n);
    return n;
}

bool cv_range_cache_get(cv_range_cache *c, uint64_t pos, void *dst, size_t size)
{
    extent e;
    uint8_t *scratch = cv_malloc(MOST_EXTENT);
    size_t done = 0;
    while (scratch && done < size && look_up(c, pos + done, &e)) {
        size_t n = get_some(c, &e, pos + done, (uint8_t *)dst + done, size - done, scratch);
        if (n == 0) drop(c, e.pack);
        done += n;
    }
    cv_free(scratch);
    return done == size;
}

/* ---- Putting ------------------------------------------------------------------------------- */

typedef struct making {
    pack_extent *extents;
    size_t n, room;
    uint64_t size;
    const uint8_t *bytes;
} making;

static void write_pack(cv_range_cache *c, making *m)
{
    char name[NAME_SIZE];
    if (m->n > 0 && write_pack_file(&c->folder, c->key, m->extents, m->n, m->bytes, name)) {
        cv_mutex_lock(&c->lock);
        add_pack(c, name, m->extents, m->n);
        cv_mutex_unlock(&c->lock);
    }
    m->bytes += m->size;
    m->size = 0;
    m->n = 0;
}

void cv_range_cache_put(cv_range_cache *c, const uint64_t *positions, const size_t *sizes,
                        size_t n, const uint8_t *bytes)
{
    making m = {.room = CV_PACK_MOST / 1024, .bytes = bytes};
    uint64_t room = pack_room(&c->folder), part = 1 + c->folder.bound / 32;
    uint64_t most = part < CV_PACK_MOST ? part : CV_PACK_MOST;
    if (most > room) most = room;
    if (most < LEAST_PACK) return;
    m.extents = cv_calloc(m.room, sizeof *m.extents);
    for (size_t i = 0; m.extents && i < n; i++) {
        for (size_t done = 0, size; done < sizes[i]; done += size) {
            uint64_t piece = most < MOST_EXTENT ? most : MOST_EXTENT;
            size = sizes[i] - done < piece ? sizes[i] - done : (size_t)piece;
            if (m.n == m.room || m.size + size > most) write_pack(c, &m);
            m.extents[m.n++] = (pack_extent){positions[i] + done, (uint32_t)size, 0};
            m.size += size;
        }
    }
    if (m.extents) write_pack(c, &m);
    cv_free(m.extents);
}

void cv_range_cache_forget(cv_range_cache *c)
{
    cv_range_cache_look(c);
    cv_mutex_lock(&c->lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (pack *p = c->packs[i]; p; p = p->next) {
            if (!p->is_gone) remove_pack(&c->folder, p->name);
            p->is_gone = true;
        }
    }
    c->n = 0;
    cv_mutex_unlock(&c->lock);
}
