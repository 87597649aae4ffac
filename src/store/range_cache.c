/* Room: store. Which bytes of a thing stand in which packs. The list is what the folder held
 * when it was looked at, and what was added since; packs that are gone are noticed when they
 * are read. */
#include "store/range_cache.h"

#include "base/heap.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_EXTENT = 64 << 10,
    LEAST_PACK = 4 << 10, /* smaller ones are not worth a file */
    LOOK_NS = 1000000000,
    TOUCH_NS = 1000000000,
    BUCKETS = 1024,
    FEW = 8
};

typedef struct pack {
    char name[CV_PACK_NAME];
    uint64_t touched;
    bool is_gone;
    struct pack *next;
} pack;

typedef struct extent {
    cv_pack_extent what;
    uint64_t at; /* in its pack */
    pack *pack;
} extent;

struct cv_range_cache {
    cv_range_folder folder;
    uint8_t key[CV_PACK_KEY];
    cv_mutex lock;        /* over all below */
    pack *packs[BUCKETS]; /* by their names; those that are gone stay listed */
    extent *extents;      /* by position, when sorted */
    size_t n, room;
    bool is_sorted, was_listed;
    uint64_t changed, listed; /* the folder was, when; and when that was looked at */
};

/* ---- Life ---------------------------------------------------------------------------- */

cv_range_cache *cv_range_cache_open(const char *folder, uint64_t bound,
                                    const uint8_t key[CV_PACK_KEY])
{
    cv_range_cache *c = cv_calloc(1, sizeof *c);
    if (!c || !cv_range_folder_open(folder, bound, &c->folder)) {
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
    cv_range_folder_close(&c->folder);
    cv_mutex_destroy(&c->lock);
    cv_free(c);
}

/* ---- The list, with the lock ------------------------------------------------------------ */

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

/* Those before it begin at `pos` or earlier. */
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

/* A few go where they belong; with many it is quicker to sort the list when it is asked. */
static void add_extent(cv_range_cache *c, const extent *e, bool is_of_few)
{
    bool stays_sorted = c->is_sorted && is_of_few;
    size_t at = stays_sorted ? place_of(c, e->what.pos) : c->n;
    memmove(c->extents + at + 1, c->extents + at, (c->n - at) * sizeof *e);
    c->extents[at] = *e;
    c->n++;
    c->is_sorted = stays_sorted;
}

static void add_pack(cv_range_cache *c, const char *name, const cv_pack_extent *extents,
                     size_t n)
{
    uint64_t at = cv_pack_head_size(n);
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

static void sort(cv_range_cache *c)
{
    if (!c->is_sorted && c->n > 0) qsort(c->extents, c->n, sizeof *c->extents, by_position);
    c->is_sorted = true;
}

/* The one that reaches furthest of those that hold byte `pos`; NULL: none does. */
static const extent *find(cv_range_cache *c, uint64_t pos)
{
    sort(c);
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

/* ---- Looking ------------------------------------------------------------------------------ */

static bool are_sound(const cv_pack_extent *extents, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const cv_pack_extent *e = &extents[i];
        if (e->size == 0 || e->size > MOST_EXTENT || e->pos > INT64_MAX) return false;
        total += e->size;
    }
    return total <= CV_PACK_MOST;
}

static void take_in(cv_range_cache *c, const char *name)
{
    cv_pack_extent *extents;
    size_t n;
    if (!cv_pack_is_of(name, c->key) || is_listed(c, name)) return;
    if (!cv_pack_read_head(&c->folder, name, c->key, &extents, &n)) return;
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

/* ---- Reading ------------------------------------------------------------------------------- */

/* True: it is to be told that it was used. */
static bool is_worth_a_touch(pack *p)
{
    uint64_t now = cv_os_clock_ns();
    if (p->touched != 0 && now - p->touched < TOUCH_NS) return false;
    p->touched = now;
    return true;
}

/* An extent that holds byte `pos`; false: none does. */
static bool look_up(cv_range_cache *c, uint64_t pos, extent *out)
{
    cv_mutex_lock(&c->lock);
    const extent *found = find(c, pos);
    bool touches = found && is_worth_a_touch(found->pack);
    if (found) *out = *found;
    cv_mutex_unlock(&c->lock);
    if (touches) cv_pack_touch(&c->folder, out->pack->name);
    return found != NULL;
}

/* Its pack is damaged, or gone. */
static void drop(cv_range_cache *c, pack *p)
{
    cv_mutex_lock(&c->lock);
    drop_pack(c, p);
    cv_mutex_unlock(&c->lock);
}

/* Bytes from `pos` on, at most `size`, of an extent: how many; 0: it cannot be read. */
static size_t get_some(cv_range_cache *c, const extent *e, uint64_t pos, uint8_t *dst,
                       size_t size, uint8_t *scratch)
{
    size_t from = (size_t)(pos - e->what.pos), n = e->what.size - from;
    bool is_straight = from == 0 && n <= size;
    uint8_t *to = is_straight ? dst : scratch;
    if (!cv_pack_read(&c->folder, e->pack->name, e->at, &e->what, to)) return 0;
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

/* ---- Adding -------------------------------------------------------------------------------- */

/* Extents of one pack, in the making. */
typedef struct making {
    cv_pack_extent *extents;
    size_t n, room;
    uint64_t size;
    const uint8_t *bytes;
} making;

static void write_pack(cv_range_cache *c, making *m)
{
    char name[CV_PACK_NAME];
    if (m->n > 0 && cv_pack_write(&c->folder, c->key, m->extents, m->n, m->bytes, name)) {
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
    uint64_t room = cv_pack_room(&c->folder), part = 1 + c->folder.bound / 32;
    uint64_t most = part < CV_PACK_MOST ? part : CV_PACK_MOST;
    if (most > room) most = room;
    if (most < LEAST_PACK) return;
    m.extents = cv_calloc(m.room, sizeof *m.extents);
    for (size_t i = 0; m.extents && i < n; i++) {
        for (size_t done = 0, size; done < sizes[i]; done += size) {
            uint64_t piece = most < MOST_EXTENT ? most : MOST_EXTENT;
            size = sizes[i] - done < piece ? sizes[i] - done : (size_t)piece;
            if (m.n == m.room || m.size + size > most) write_pack(c, &m);
            m.extents[m.n++] = (cv_pack_extent){positions[i] + done, (uint32_t)size, 0};
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
            if (!p->is_gone) cv_pack_remove(&c->folder, p->name);
            p->is_gone = true;
        }
    }
    c->n = 0;
    cv_mutex_unlock(&c->lock);
}
