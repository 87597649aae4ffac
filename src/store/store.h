/* The store: (object, byte range) -> bytes, behind one small vtable. What a
 * frame is made of is not known here.
 *
 * Objects: CV_FRAME_OBJECT is the frame itself (the file, the memory, or
 * chunks.b2frame of a directory); objects >= 0 are the chunk files of a
 * directory (%08X.chunk) and exist only there.
 *
 * A store made by a *_create function is unpublished: closing it leaves nothing behind.
 * In the file system it lives under a temporary name beside its target, and publish
 * renames it into place. One opened with a *_open function is published.
 *
 * With `overwrite`, what stands at the path of a new store is replaced, and the new one
 * lets in whom the old one did: permissions, owner and group, lists of access and
 * extended attributes. CATERVA_EBUSY, by create as by publish, when it is open for
 * writing, or is a directory that is open for reading.
 *
 * Threads: read, read_many, begin_wave, read_at_once, view, warm, read_anew and size may run at once with each
 * other and with one writer, as long as nobody reads the bytes being written (the frame's
 * protocol sees to that: committed bytes are never overwritten). All others: one thread at
 * a time, but `write` of disjoint ranges may run in parallel, and `share` of different
 * objects beside it. */
#ifndef CV_STORE_STORE_H
#define CV_STORE_STORE_H

#include "base/os_file.h"
#include "base/status.h"
#include "base/watch.h"

#include <stdatomic.h>

typedef int64_t cv_object;
#define CV_FRAME_OBJECT ((cv_object) - 1)

typedef struct cv_store cv_store;
typedef struct cv_gathering cv_gathering; /* store/reading.h */

/* Which version of the frame object this is, as far as its storage can tell: inode, time and
 * size of a file, ETag and date of a URL. Two are equal when all numbers are. */
typedef struct cv_stamp {
    uint64_t object, time, size;
} cv_stamp;

/* One of several ranges that are read together. */
typedef struct cv_store_range {
    cv_object object;
    uint64_t pos;
    size_t size;
    void *dst;
} cv_store_range;

/* Who waits for ranges. */
typedef struct cv_arrivals {
    /* Called for each range as soon as its bytes are there, in any order, on the thread that
     * asked; what is not CV_OK cancels the rest and is returned. It waits for nobody and
     * reads nothing: more ranges arrive meanwhile. */
    cv_status (*arrived)(void *context, size_t range, cv_error *err);
    /* Told which range it is that could not be read, before that is returned. NULL: nobody
     * asks. */
    void (*failed)(void *context, size_t range);
    void *context;
    /* Or NULL: all ranges have their memory. Else those without `dst` borrow it when bytes of
     * theirs come, on any thread: *dst, or NULL when there is none until some was given back,
     * which `resume` says. It is to be found, or CATERVA_ENOMEM, when no more ranges than
     * `stuck` have memory: those miss bytes, and none come before this one has some; SIZE_MAX: in
     * any case. Of stores that borrow only. */
    cv_status (*lend)(void *context, size_t range, size_t stuck, uint8_t **dst,
                      cv_error *err);
    cv_watch *watch; /* told now and then by a store that waits long; or NULL */
    /* Of waves of one reader that are under way together: bytes of all of them; and whether
     * another one is on its way since somebody last waited for one. */
    size_t together;
    bool is_along;
} cv_arrivals;

/* A wave that has begun. */
typedef struct cv_reading cv_reading;
struct cv_reading {
    /* Comes back when nothing of it is under way any more, and frees it. */
    void (*end)(cv_reading *reading, bool gives_up);
};

typedef struct cv_store_ops {
    const char *name; /* "file", "memory", ...: sentences say "this %s", "a %s" */
    /* What changes when another writer changes the frame object in place, or another one takes
     * its place. Op may be NULL: not known, all zeros. */
    void (*stamp)(cv_store *store, cv_stamp *out);
    /* Bytes of an object. CATERVA_ENOTFOUND when it does not exist. */
    cv_status (*size)(cv_store *store, cv_object object, uint64_t *size, cv_error *err);
    /* Reads exactly `size` bytes; fewer in the object is CATERVA_ECORRUPT with
     * the position where they end. */
    cv_status (*read)(cv_store *store, cv_object object, uint64_t pos, void *dst, size_t size,
                      cv_error *err);
    /* A wave: reads n ranges, each as `read` does, all of them under way at once; which were
     * read after a failure is not said. Op may be NULL: one after the other. */
    cv_status (*read_many)(cv_store *store, const cv_store_range *ranges, size_t n,
                           const cv_arrivals *arrivals, cv_error *err);
    /* The same in steps, for who reads several waves at once: begins one, of which `all` says
     * what arrives; ranges that are at hand may arrive before it returns. What it is given
     * stays until it has ended, which it has to after failures, too; NULL: it has ended
     * already. Op may be NULL: no two waves are under way at once. */
    cv_status (*begin_wave)(cv_store *store, const cv_store_range *ranges, size_t n,
                            const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                            cv_error *err);
    /* Whether waves borrow memory (cv_arrivals.lend), now; and: some was given back, by any
     * thread. Ops may be NULL: they never do. */
    bool (*borrows)(cv_store *store);
    void (*resume)(cv_store *store);
    /* Bytes of a wave from which on its round trip is a small part of its time, and that
     * memory allows; 0, or op is NULL: not known. */
    size_t (*wave_bytes)(cv_store *store);
    /* Bytes that may be read beside `needed` ones where a round trip is saved by that. Op may
     * be NULL: none. */
    uint64_t (*spare)(cv_store *store, uint64_t needed);
    /* Chunk objects that are going to be read, their sizes first: what is not known of them is
     * asked for all at once. CATERVA_ENOMEM, CATERVA_ESTOPPED; what else fails is told by who
     * reads. Op may be NULL: that takes no time. */
    cv_status (*meet)(cv_store *store, const cv_object *objects, size_t n, cv_error *err);
    /* Reads the range if its bytes are in memory, as far as can be told for less than the
     * read costs. Op may be NULL: they are as near as they get. Not asked of a store that
     * `is_far`. */
    cv_at_once (*read_at_once)(cv_store *store, const cv_store_range *range);
    /* Borrowed bytes, valid and unmoved until the store is closed, or NULL
     * when this store or this range cannot lend them. Op may be NULL. */
    const uint8_t *(*view)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* Has bytes of the frame that are wanted together lent by `view` from now on, as far as
     * that is worth it. Op may be NULL: nothing. */
    cv_status (*bring)(cv_store *store, uint64_t pos, uint64_t size, cv_error *err);
    /* Warms bytes that `view` would lend now (base/warm.h). Op may be NULL. */
    void (*warm)(cv_store *store, cv_object object, uint64_t pos, size_t size);
    /* What was kept in memory of a file is not lent any more: it is read anew. Op may
     * be NULL: nothing is kept. */
    void (*read_anew)(cv_store *store);
    /* Bytes were read that cannot be right: they are fetched past all caches from now on, and
     * may be read once more (store/reading.h). CATERVA_EIO: they are of another version than
     * what was opened, unless the reader `begins` and remembers nothing. Op may be NULL: they
     * are what they are. */
    cv_status (*doubt)(cv_store *store, bool begins, cv_error *err);
    /* Whether the frame still exists: a chunk object that is missing is damage only while it
     * does. Op may be NULL: `doubt` finds out. */
    cv_status (*check_frame)(cv_store *store, cv_error *err);
    /* What was read once more after a doubt is right; or it is not: CATERVA_EIO when that is
     * because it is of another version. Where there is `doubt`. */
    cv_status (*settle)(cv_store *store, bool is_right, cv_error *err);
    /* Writes all of `size` bytes; the object is created or grown as needed (a
     * gap reads as zeros). Chunk objects are written once, from position 0. */
    cv_status (*write)(cv_store *store, cv_object object, uint64_t pos, const void *src,
                       size_t size, cv_error *err);
    /* Makes the chunk object `there` of another store, all `size` bytes of it, the object
     * `object` of this one as well, without a copy: one file of two names. Neither store
     * writes it again, and removing it from one leaves it in the other. False, and nothing
     * has changed: it cannot be, and is to be copied. Op may be NULL: it never can. */
    bool (*share)(cv_store *store, cv_object object, cv_store *from, cv_object there,
                  uint64_t size);
    /* Makes bytes of the frame object of another store, at `there`, those at `pos` of this
     * one's as well, without a copy. Positions and size are multiples of CV_CLONE_UNIT.
     * False: they are to be written. Op may be NULL: it never can. `may_clone` says whether
     * that is worth trying. */
    bool (*clone)(cv_store *store, uint64_t pos, cv_store *from, uint64_t there,
                  uint64_t size);
    bool (*may_clone)(cv_store *store, cv_store *from);
    /* Much will be written to the frame object behind its end, in many pieces: room for all
     * of it may be taken at once, as zeros. Who asks cuts off what is not written. Op may be
     * NULL: nothing. */
    void (*take_room)(cv_store *store, uint64_t pos, uint64_t size);
    /* Copies bytes of the frame object to another place in it, apart from the
     * first; those must be there. Any thread. Op may be NULL: read and write. */
    cv_status (*copy)(cv_store *store, uint64_t from, uint64_t to, size_t size,
                      cv_error *err);
    cv_status (*truncate)(cv_store *store, cv_object object, uint64_t size, cv_error *err);
    /* Makes the object's bytes durable. */
    cv_status (*sync)(cv_store *store, cv_object object, cv_error *err);
    /* Puts new bytes in the place of the whole frame object by write to a
     * temporary name, sync (when `durable`) and rename: on failure the old one is
     * still there. The new one is sure to stay after a sync of CV_FRAME_OBJECT.
     * The way a directory commits; files answer CATERVA_EINVAL. CATERVA_ECORRUPT, and
     * nothing has changed: an object shared since the last one has other bytes by now. */
    cv_status (*replace)(cv_store *store, const void *bytes, size_t size, bool durable,
                         cv_error *err);
    /* Removes a chunk object; one that does not exist is fine. */
    cv_status (*remove)(cv_store *store, cv_object object, cv_error *err);
    /* The chunk objects that are there, in any order; owned, free with cv_free. NULL:
     * there are none. */
    cv_status (*list)(cv_store *store, cv_object **objects, size_t *n, cv_error *err);
    /* Moves an unpublished store to its target (sync of the directory when
     * `durable`). CATERVA_EEXIST when the target exists and the store was
     * created without `overwrite`, CATERVA_EBUSY when it is in use. A published
     * one: nothing. */
    cv_status (*publish)(cv_store *store, bool durable, cv_error *err);
    /* Openings for reading say so by a shared lock, and by `reads_state` which state it
     * is, once they know: a number that tells states of one array apart; 0: one that
     * needs nothing of what is stored any more, as if it were not open. May be NULL. */
    void (*reads_state)(cv_store *store, uint64_t state);
    /* Might another opening, anywhere, read here? NULL: no. And might one read another
     * state than `state`? NULL: as has_readers. */
    bool (*has_readers)(cv_store *store);
    bool (*has_others)(cv_store *store, uint64_t state);
    /* Is another opening writing here, as far as can be told? What is read may be half of what
     * it writes then, and whole soon after. May be NULL: what is read is whole. */
    bool (*has_writer)(cv_store *store);
    /* CATERVA_EIO when a published store that is open for writing does not have its name
     * any more: others moved, deleted or replaced it. NULL: it has no name. */
    cv_status (*check_name)(cv_store *store, cv_error *err);
    /* A new store of the same kind that publish puts in the place of `old`, which is open
     * for writing and stays so until then: its lock keeps others out. CATERVA_EBUSY then
     * for a directory that is read elsewhere. NULL: nothing can take its place. */
    cv_status (*create_over)(cv_store *old, cv_store **out, cv_error *err);
    /* Deletes what is open for writing by its name: a regular file, or a directory with
     * nothing but an array's files, which is renamed first and so never found half deleted.
     * CATERVA_EBUSY for a directory that is read elsewhere. `watch`, or NULL, hears of each
     * file of a chunk; stopped before the first one goes, nothing is deleted, and later what
     * is left is an array of the name that the sentence says. The store is still to be
     * closed. NULL: it cannot be deleted. */
    cv_status (*unlink)(cv_store *store, cv_watch *watch, cv_error *err);
    /* Closes and frees; unpublished: removes every trace. */
    void (*close)(cv_store *store);
} cv_store_ops;

/* Every store begins with this, set by whoever makes it. */
struct cv_store {
    const cv_store_ops *ops;
    bool has_chunk_objects; /* a directory: chunks are objects of their own */
    bool writable;
    bool in_memory;
    bool slow_writes;     /* the system copies what is written: large writes take long enough
                        * for a thread of their own */
    bool compacts_itself; /* dead space is worth a compact copy when a writer closes; needs
                           * create_over */
    bool published;
    bool is_far;    /* each read takes long, so what is known to be wanted is read in waves */
    bool is_pinned; /* what is read is of one version, or not read at all */
    bool
        is_vouched; /* set by who reads the frame: a seal at its end vouches for every byte */
    uint32_t
        join_gap; /* reading over so many bytes costs less than another range; 0: a page */
    uint32_t most_whole; /* chunks of at most so many bytes, together, are read whole where
                          * that takes fewer waves; 0: none are */
    cv_os_moment opened; /* cv_os_now() when it was made, unless in_memory: whose locks those
                          * of its files are, and that a child of fork does not write */
    cv_watch *watch;     /* told now and then while one read takes long; or NULL */
    atomic_uint n_near;  /* requests since one whose bytes were not in memory */
};

/* ---- Calls through the vtable ------------------------------------------- */

static inline cv_stamp cv_store_stamp(cv_store *s)
{
    cv_stamp stamp = {0};
    if (s->ops->stamp) s->ops->stamp(s, &stamp);
    return stamp;
}

static inline cv_status cv_store_size(cv_store *s, cv_object o, uint64_t *size, cv_error *e)
{
    return s->ops->size(s, o, size, e);
}
static inline cv_status cv_store_read(cv_store *s, cv_object o, uint64_t pos, void *dst,
                                      size_t size, cv_error *e)
{
    return s->ops->read(s, o, pos, dst, size, e);
}
static inline cv_at_once cv_store_read_at_once(cv_store *s, const cv_store_range *range)
{
    if (s->is_far) return CV_AT_ONCE_NO;
    return s->ops->read_at_once ? s->ops->read_at_once(s, range) : CV_AT_ONCE_UNKNOWN;
}
static inline int64_t cv_store_join_gap(const cv_store *s)
{
    return s->join_gap > 0 ? (int64_t)s->join_gap : 4096;
}
/* One after the other; the first n_read have been read. */
static inline cv_status cv_store_read_from(cv_store *s, const cv_store_range *ranges,
                                           size_t n, size_t n_read,
                                           const cv_arrivals *arrivals, cv_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        cv_status status = CV_OK;
        if (i >= n_read) status = s->ops->read(s, r->object, r->pos, r->dst, r->size, e);
        if (status != CV_OK && arrivals->failed) arrivals->failed(arrivals->context, i);
        CV_TRY(status);
        CV_TRY(arrivals->arrived(arrivals->context, i, e));
    }
    return CV_OK;
}
static inline cv_status cv_store_read_each(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    return cv_store_read_from(s, ranges, n, 0, arrivals, e);
}
/* For who knows that they are not near. */
static inline cv_status cv_store_read_wave(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    if (s->ops->read_many) return s->ops->read_many(s, ranges, n, arrivals, e);
    return cv_store_read_each(s, ranges, n, arrivals, e);
}
static inline void cv_store_end_wave(cv_reading *reading, bool gives_up)
{
    if (reading) reading->end(reading, gives_up);
}
/* Is the first range near, the others mostly are: then a wave would cost, and gain nothing. */
static inline cv_status cv_store_read_many(cv_store *s, const cv_store_range *ranges,
                                           size_t n, const cv_arrivals *arrivals, cv_error *e)
{
    if (n < 2) return cv_store_read_each(s, ranges, n, arrivals, e);
    cv_at_once first = cv_store_read_at_once(s, &ranges[0]);
    if (first == CV_AT_ONCE_NO) {
        atomic_store_explicit(&s->n_near, 0, memory_order_relaxed);
        return cv_store_read_wave(s, ranges, n, arrivals, e);
    }
    return cv_store_read_from(s, ranges, n, first == CV_AT_ONCE_READ, arrivals, e);
}
static inline const uint8_t *cv_store_view(cv_store *s, cv_object o, uint64_t pos,
                                           size_t size)
{
    return s->ops->view ? s->ops->view(s, o, pos, size) : NULL;
}
static inline cv_status cv_store_bring(cv_store *s, uint64_t pos, uint64_t size, cv_error *e)
{
    return s->ops->bring ? s->ops->bring(s, pos, size, e) : CV_OK;
}
static inline void cv_store_read_anew(cv_store *s)
{
    if (s->ops->read_anew) s->ops->read_anew(s);
}
static inline cv_status cv_store_write(cv_store *s, cv_object o, uint64_t pos,
                                       const void *src, size_t size, cv_error *e)
{
    return s->ops->write(s, o, pos, src, size, e);
}
static inline cv_status cv_store_truncate(cv_store *s, cv_object o, uint64_t size,
                                          cv_error *e)
{
    return s->ops->truncate(s, o, size, e);
}
static inline cv_status cv_store_sync(cv_store *s, cv_object o, cv_error *e)
{
    return s->ops->sync(s, o, e);
}
static inline cv_status cv_store_replace(cv_store *s, const void *bytes, size_t size,
                                         bool durable, cv_error *e)
{
    return s->ops->replace(s, bytes, size, durable, e);
}
static inline cv_status cv_store_remove(cv_store *s, cv_object o, cv_error *e)
{
    return s->ops->remove(s, o, e);
}
static inline cv_status cv_store_list(cv_store *s, cv_object **objects, size_t *n,
                                      cv_error *e)
{
    *objects = NULL;
    *n = 0;
    return s->ops->list ? s->ops->list(s, objects, n, e) : CV_OK;
}
static inline cv_status cv_store_publish(cv_store *s, bool durable, cv_error *e)
{
    return s->ops->publish(s, durable, e);
}
static inline bool cv_store_has_readers(cv_store *s)
{
    return s->ops->has_readers && s->ops->has_readers(s);
}
static inline bool cv_store_may_have_writer(const cv_store *s)
{
    return s->ops->has_writer && !s->writable;
}
static inline bool cv_store_has_writer(cv_store *s)
{
    return cv_store_may_have_writer(s) && s->ops->has_writer(s);
}
static inline cv_status cv_store_check_name(cv_store *s, cv_error *e)
{
    return s->ops->check_name ? s->ops->check_name(s, e) : CV_OK;
}
static inline bool cv_store_has_others(cv_store *s, uint64_t state)
{
    return s->ops->has_others ? s->ops->has_others(s, state) : cv_store_has_readers(s);
}
static inline void cv_store_reads_state(cv_store *s, uint64_t state)
{
    if (s->ops->reads_state && !s->writable) s->ops->reads_state(s, state);
}
static inline void cv_store_close(cv_store *s)
{
    if (s) s->ops->close(s);
}

#endif
