/* Room: frame. Space for a writer of a contiguous frame: known holes, holes found between the
 * chunks of the opened state, and the end. Never hands out bytes needed by the committed state, an
 * older reader, or a header that a power cut may restore. */
#include "frame/space.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "format/chunk_header.h"
#include "frame/layout.h"
#include "frame/lookup.h"

#include <stdlib.h>
#include <string.h>

enum { CV_SPACE_OURS = 65536 };

/* ---- Extents ------------------------------------------------------------ */

static size_t find(const cv_extents *e, uint64_t pos)
{
    size_t low = 0, high = e->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->items[middle].pos < pos)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void erase(cv_extents *e, size_t i)
{
    memmove(&e->items[i], &e->items[i + 1], (e->n - i - 1) * sizeof e->items[0]);
    e->n--;
}

static uint64_t end_of(cv_extent extent) { return extent.pos + extent.size; }

void cv_extents_add(cv_extents *e, cv_extent extent, bool merge)
{
    size_t i = find(e, extent.pos);
    if (merge && i > 0 && end_of(e->items[i - 1]) == extent.pos) {
        extent.pos = e->items[i - 1].pos;
        extent.size += e->items[i - 1].size;
        erase(e, --i);
    }
    if (merge && i < e->n && end_of(extent) == e->items[i].pos) {
        extent.size += e->items[i].size;
        erase(e, i);
    }
    if (extent.size == 0) return;
    cv_extent *items = cv_grow(e->items, e->n, &e->max, sizeof *items);
    e->forgot = e->forgot || !items;
    if (!items) return;
    memmove(&items[i + 1], &items[i], (e->n - i) * sizeof items[0]);
    items[i] = extent;
    e->items = items;
    e->n++;
}

static bool remove_extent(cv_extents *e, uint64_t pos, cv_extent *out)
{
    size_t i = find(e, pos);
    if (i == e->n || e->items[i].pos != pos) return false;
    *out = e->items[i];
    erase(e, i);
    return true;
}

bool cv_extents_has(const cv_extents *e, uint64_t pos, uint64_t *size)
{
    size_t i = find(e, pos);
    if (i == e->n || e->items[i].pos != pos) return false;
    *size = e->items[i].size;
    return true;
}

bool cv_extents_take(cv_extents *e, uint64_t size, cv_extent *out)
{
    size_t best = e->n;
    for (size_t i = 0; i < e->n; i++) {
        if (e->items[i].size < size) continue;
        if (best == e->n || e->items[i].size < e->items[best].size) best = i;
        if (e->items[i].size == size) break;
    }
    if (best == e->n) return false;
    cv_extent *from = &e->items[best];
    bool all = from->size - size <= size / CV_SPACE_SLACK;
    *out = (cv_extent){from->pos, all ? from->size : size};
    from->pos += out->size;
    from->size -= out->size;
    if (all) erase(e, best);
    return true;
}

static bool fits(const cv_extents *e, uint64_t size)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->items[i].size >= size) return true;
    return false;
}

static uint64_t bytes_below(const cv_extents *e, uint64_t end)
{
    uint64_t total = 0;
    for (size_t i = 0; i < e->n && e->items[i].pos < end; i++) {
        uint64_t left = end - e->items[i].pos;
        total += e->items[i].size < left ? e->items[i].size : left;
    }
    return total;
}

/* Removes the range [pos, pos + size) from the holes. */
static void cut(cv_extents *holes, uint64_t pos, uint64_t size)
{
    uint64_t end = pos + size;
    size_t first = find(holes, pos);
    if (first > 0 && end_of(holes->items[first - 1]) > pos) first--;
    size_t last = find(holes, end); /* index behind the last overlapping one */
    if (first == last) return;
    uint64_t before = holes->items[first].pos, behind = end_of(holes->items[last - 1]);
    memmove(&holes->items[first], &holes->items[last],
            (holes->n - last) * sizeof holes->items[0]);
    holes->n -= last - first;
    if (behind > end) cv_extents_add(holes, (cv_extent){end, behind - end}, false);
    if (before < pos) cv_extents_add(holes, (cv_extent){before, pos - before}, false);
}

static void clear(cv_extents *e) { e->n = 0; }

static void move(cv_extents *to, cv_extents *from)
{
    for (size_t i = 0; i < from->n; i++) cv_extents_add(to, from->items[i], true);
    to->forgot = to->forgot || from->forgot;
    clear(from);
}

static void destroy(cv_extents *e)
{
    cv_free(e->items);
    *e = (cv_extents){0};
}

/* ---- The life of a chunk's bytes ---------------------------------------- */

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size)
{
    if (space->ours.n < CV_SPACE_OURS)
        cv_extents_add(&space->ours, (cv_extent){pos, size}, false);
    else
        space->forgot_ours = true;
}

static void died(cv_space *space, cv_extent chunk)
{
    cv_extents_add(&space->replaced, chunk, false);
    cv_extents_add(&space->dead, chunk, true);
}

bool cv_space_replaced(cv_space *space, uint64_t pos)
{
    cv_extent extent;
    if (!remove_extent(&space->ours, pos, &extent)) return false;
    died(space, extent);
    return true;
}

static bool ours_end(const cv_space *space, uint64_t *end)
{
    const cv_extents *ours = &space->ours;
    *end = ours->n > 0 ? end_of(ours->items[ours->n - 1]) : 0;
    return !ours->forgot && !space->forgot_ours && !space->replaced.forgot;
}

bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out)
{
    if (!cv_extents_take(&space->free, size, out)) return false;
    cv_extents_add(&space->taken, *out, true);
    return true;
}

static bool overlaps(const cv_extents *e, uint64_t pos, uint64_t size)
{
    size_t i = find(e, pos);
    if (i > 0 && end_of(e->items[i - 1]) > pos) return true;
    return i < e->n && e->items[i].pos < pos + size;
}

bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size)
{
    if (space->dead.forgot || space->aging.forgot) return false;
    return !overlaps(&space->dead, pos, size) && !overlaps(&space->aging, pos, size);
}

void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size)
{
    cut(&space->free, pos, size);
}

static void release_aging(cv_space *space) { move(&space->free, &space->aging); }

void cv_space_committed(cv_space *space, bool header_is_durable)
{
    release_aging(space);
    move(header_is_durable ? &space->free : &space->aging, &space->dead);
    clear(&space->taken);
    clear(&space->replaced);
}

/* Releases everything put and taken since the commit. Chunks at or behind `end` are new. */
void cv_space_rolled_back(cv_space *space, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->replaced.n; i++)
        cv_space_put(space, space->replaced.items[i].pos, space->replaced.items[i].size);
    clear(&space->replaced);
    for (size_t i = 0; i < space->ours.n; i++) {
        cv_extent extent = space->ours.items[i];
        size_t t = find(&space->taken, extent.pos + 1);
        bool taken = t > 0 && end_of(space->taken.items[t - 1]) > extent.pos;
        if (extent.pos < end && !taken) space->ours.items[kept++] = extent;
    }
    space->ours.n = kept;
    move(&space->free, &space->taken);
    clear(&space->dead);
}

void cv_space_destroy(cv_space *space)
{
    destroy(&space->ours);
    destroy(&space->dead);
    destroy(&space->aging);
    destroy(&space->free);
    destroy(&space->taken);
    destroy(&space->replaced);
}

/* ---- The survey: dead space between the chunks of an opened frame ---------- */

enum {
    MOST_ROOMS = 1 << 20,
    MOST_FOREIGN = 1 << 16, /* rooms of other programs: all headers are read */
    FIRST_CREDIT = 64,      /* measurements allowed at first; EARNED more for each good one */
    EARNED = 4,
    AT_ONCE = 16,
    MOST_REST = 4096,
    GOOD_GAP = 64,
};

static void free_survey(cv_survey *s)
{
    cv_free(s->rooms);
    cv_free(s->order);
    *s = (cv_survey){0};
}

static cv_status read_chunk_header(cv_frame *frame, const cv_room *room, cv_chunk_header *out,
                                   cv_error *err)
{
    const cv_grid *grid = &frame->current->grid; /* item size and partition never change */
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    cv_chunk_expect expect = {
        .pos = (int64_t)room->pos,
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = room->size < INT32_MAX ? (int64_t)room->size : INT32_MAX,
    };
    CV_TRY(cv_store_read(frame->store, CV_FRAME_OBJECT, room->pos, bytes, sizeof bytes, err));
    return cv_chunk_header_parse(bytes, &expect, out, err);
}

/* Checks that the table named by the seal ends `size` bytes behind the beginning of the room. */
static cv_status check_name(cv_frame *frame, const cv_room *room, uint64_t size,
                            cv_error *err)
{
    uint8_t name[CV_SEAL_NAME];
    if (size <= room->size) {
        uint64_t pos = room->pos + size - sizeof name;
        CV_TRY(cv_store_read(frame->store, CV_FRAME_OBJECT, pos, name, sizeof name, err));
        if (cv_load_le32(name) == room->name) return CV_OK;
    }
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)room->pos,
                   "the chunk at byte %llu is not followed by its block table",
                   (unsigned long long)room->pos);
}

static cv_status size_of(cv_frame *frame, const cv_room *room, uint64_t *size, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(read_chunk_header(frame, room, &header, err));
    int64_t n = cv_block_table_blocks(&header, frame->current->grid.n_blocks);
    uint64_t table = cv_block_table_size(n);
    *size = (uint64_t)header.cbytes; /* at most its room, as expected */
    if (room->name != 0) {
        *size += table;
        return check_name(frame, room, *size, err);
    }
    if (room->reserved) *size = room->size - *size < table ? room->size : *size + table;
    return CV_OK;
}

/* Measures a room. *sure: false if the chunk cannot be parsed; its room stays whole. *gap: unused
 * bytes. */
static cv_status measure(cv_frame *frame, cv_room *room, cv_extents *found, uint64_t *gap,
                         bool *sure, cv_error *err)
{
    uint64_t size = room->size;
    cv_error reason = {0};
    cv_status status = size_of(frame, room, &size, &reason);
    *gap = 0;
    *sure = status == CV_OK;
    if (status != CV_OK && !cv_is_doubtful(status)) {
        if (err) *err = reason;
        return status;
    }
    room->measured = true;
    if (!*sure || size == room->size) return CV_OK;
    *gap = room->size - size;
    cv_extents_add(found, (cv_extent){room->pos + size, *gap}, true);
    room->size = size;
    return CV_OK;
}

static int by_pos(const void *a, const void *b)
{
    const cv_room *x = a, *y = b;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

static size_t run_end(const cv_room *rooms, size_t i, size_t n)
{
    for (i++; i < n && rooms[i].pos >= rooms[i - 1].pos; i++) continue;
    return i;
}

static void merge(const cv_room *from, size_t low, size_t middle, size_t high, cv_room *to)
{
    size_t a = low, b = middle;
    for (size_t i = low; i < high; i++)
        to[i] =
            b == high || (a < middle && from[a].pos <= from[b].pos) ? from[a++] : from[b++];
}

/* Merge sort of ascending runs, which are few because chunks are mostly in order. */
static cv_status sort_rooms(cv_survey *s, cv_error *err)
{
    size_t size = (s->n + 1) * sizeof s->rooms[0];
    if (s->n == 0 || run_end(s->rooms, 0, s->n) == s->n) return CV_OK;
    cv_room *other = cv_malloc(size);
    if (!other) return cv_fail_memory(err, size, "a survey");
    for (bool sorted = false; !sorted;) {
        for (size_t low = 0; low < s->n;) {
            size_t middle = run_end(s->rooms, low, s->n);
            size_t high = middle < s->n ? run_end(s->rooms, middle, s->n) : middle;
            merge(s->rooms, low, middle, high, other);
            sorted = low == 0 && high == s->n;
            low = high;
        }
        cv_room *sorted_part = other;
        other = s->rooms;
        s->rooms = sorted_part;
    }
    cv_free(other);
    return CV_OK;
}

static size_t count_stored(const cv_index *index)
{
    size_t n = index->strays ? (size_t)index->strays->n : 0;
    for (int64_t i = 0; i < index->n; i++) n += !cv_offset_is_special(cv_index_get(index, i));
    return n;
}

/* Lists chunks and separate tables. Returns whether each chunk has a table right behind it. */
static bool list_chunks(cv_survey *s, const cv_snapshot *state, const cv_index *index)
{
    bool ours = state->seal != CV_SEAL_NONE && !state->unchecked;
    for (int64_t i = 0; i < index->n; i++) {
        int64_t offset = cv_index_get(index, i);
        if (cv_offset_is_special(offset)) continue;
        uint32_t name = cv_index_name(index, i);
        bool apart = name != 0 && index->strays && cv_index_table_pos(index, i) != 0;
        s->rooms[s->n++] = (cv_room){
            .pos = state->header.header_size + (uint64_t)offset,
            .name = apart ? 0 : name,
            .reserved = name == 0,
        };
        ours = ours && name != 0 && !apart;
    }
    for (int64_t i = 0; index->strays && i < index->strays->n; i++)
        s->rooms[s->n++] = (cv_room){.pos = index->strays->items[i].pos, .measured = true};
    return ours;
}

/* Sets the sizes of sorted rooms. False if two begin at the same position or one lies outside. */
static bool give_rooms(cv_survey *s, uint64_t begin, uint64_t end, cv_extents *found)
{
    uint64_t first = s->n > 0 ? s->rooms[0].pos : end;
    if (first < begin || end < first) return false;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t next = i + 1 < s->n ? s->rooms[i + 1].pos : end;
        if (next <= s->rooms[i].pos) return false;
        s->rooms[i].size = next - s->rooms[i].pos;
    }
    cv_extents_add(found, (cv_extent){begin, first - begin}, true);
    return true;
}

enum { CLASSES = 64 * 8 };

/* Returns the size class; there are eight for each power of two. */
static uint16_t class_of(uint64_t size)
{
    unsigned octave = 0;
    for (; size >= 16; size >>= 1) octave++;
    return (uint16_t)(octave * 8 + (size & 7));
}

/* Orders the rooms by size class, the largest first, by a counting sort. */
static cv_status make_order(cv_survey *s, cv_error *err)
{
    size_t at[CLASSES + 1] = {0};
    size_t size = (s->n + 1) * sizeof s->order[0];
    s->order = cv_malloc(size);
    if (!s->order) return cv_fail_memory(err, size, "a survey");
    for (size_t i = 0; i < s->n; i++) {
        s->rooms[i].rank = class_of(s->rooms[i].size);
        at[CLASSES - s->rooms[i].rank]++;
    }
    for (int c = 1; c <= CLASSES; c++) at[c] += at[c - 1];
    for (size_t i = s->n; i-- > 0;) s->order[--at[CLASSES - s->rooms[i].rank]] = (uint32_t)i;
    s->n_order = s->n;
    return CV_OK;
}

static cv_status measure_all(cv_survey *s, cv_frame *frame, cv_extents *found, cv_error *err)
{
    uint64_t gap;
    s->whole = s->n <= MOST_FOREIGN;
    for (size_t i = 0; i < s->n && s->whole; i++)
        if (!s->rooms[i].measured)
            CV_TRY(measure(frame, &s->rooms[i], found, &gap, &s->whole, err));
    return CV_OK;
}

static cv_status make(cv_survey *s, cv_frame *frame, cv_snapshot *state, uint64_t end,
                      cv_extents *found, cv_error *err)
{
    const cv_index none = {.same = cv_offset_of_kind(CV_REF_ZEROS)}, *index = &none;
    if (state->grid.n_chunks > 0) CV_TRY(cv_snapshot_index(state, frame->store, &index, err));
    size_t n = count_stored(index);
    if (n > MOST_ROOMS) return CV_OK;
    s->rooms = cv_calloc(n + 1, sizeof s->rooms[0]);
    if (!s->rooms) return cv_fail_memory(err, (n + 1) * sizeof s->rooms[0], "a survey");
    bool ours = list_chunks(s, state, index);
    CV_TRY(sort_rooms(s, err));
    if (!give_rooms(s, state->header.header_size, end, found)) return CV_OK;
    if (!ours) return measure_all(s, frame, found, err);
    s->whole = true;
    s->credit = FIRST_CREDIT;
    return make_order(s, err);
}

/* Lists the rooms of `state`, all before `end`; the space before the first one goes to `found`. If
 * the frame is damaged or has too many chunks, the survey is empty. A failing store is an error. */
static cv_status survey_make(cv_survey *s, cv_frame *frame, cv_snapshot *state, uint64_t end,
                             cv_extents *found, cv_error *err)
{
    cv_extents mine = {0};
    *s = (cv_survey){0};
    cv_status status = make(s, frame, state, end, &mine, err);
    if (status != CV_OK || mine.forgot) s->whole = false;
    if (s->whole)
        move(found, &mine);
    else
        free_survey(s);
    destroy(&mine);
    return status;
}

/* Measures rooms of more than `size` bytes until one gap has `size` bytes and all gaps together
 * have `enough`, or until several were useless. Gaps go to `found`. */
static cv_status survey_find(cv_survey *s, cv_frame *frame, uint64_t size, uint64_t enough,
                             cv_extents *found, cv_error *err)
{
    uint64_t largest = 0, total = 0;
    for (int left = AT_ONCE; left > 0 && s->credit > 0 && s->next < s->n_order;) {
        cv_room *room = &s->rooms[s->order[s->next]];
        if (!room->measured && room->size > 0) {
            uint64_t gap;
            bool sure;
            if (room->size <= size) return CV_OK; /* the following ones are hardly larger */
            CV_TRY(measure(frame, room, found, &gap, &sure, err));
            s->credit += gap >= GOOD_GAP ? EARNED - 1 : -1;
            left--;
            total += gap;
            if (gap > largest) largest = gap;
            if (largest >= size && total >= enough) left = 0;
        }
        s->next++;
    }
    return CV_OK;
}

static cv_status survey_rest(cv_survey *s, cv_frame *frame, cv_extents *found, cv_error *err)
{
    uint64_t gap;
    bool sure;
    for (int left = MOST_REST; left > 0 && s->next < s->n_order; s->next++, left--) {
        cv_room *room = &s->rooms[s->order[s->next]];
        if (!room->measured && room->size > 0)
            CV_TRY(measure(frame, room, found, &gap, &sure, err));
    }
    return CV_OK;
}

static cv_status survey_end(cv_survey *s, cv_frame *frame, cv_extents *found, uint64_t *end,
                            cv_error *err)
{
    uint64_t gap;
    bool sure;
    *end = 0;
    while (s->n > 0 && s->rooms[s->n - 1].size == 0) s->n--;
    if (s->n == 0) return CV_OK;
    cv_room *last = &s->rooms[s->n - 1];
    if (!last->measured) CV_TRY(measure(frame, last, found, &gap, &sure, err));
    *end = last->pos + last->size;
    return CV_OK;
}

/* Removes the chunk at `pos` and returns its room. False if none begins there. */
static bool survey_replaced(cv_survey *s, uint64_t pos, cv_extent *out)
{
    cv_room key = {.pos = pos};
    cv_room *room = s->n ? bsearch(&key, s->rooms, s->n, sizeof key, by_pos) : NULL;
    if (!room || room->size == 0) return false;
    *out = (cv_extent){room->pos, room->size};
    room->size = 0;
    return true;
}

/* ---- The second trailer ---------------------------------------------------- */

/* Whether C-Blosc2 expects the trailer in front, that is, right behind the header. */
static bool has_front(const cv_snapshot *state)
{
    return !state->header.sparse && state->grid.n_chunks == 0;
}

bool cv_second_trailer_is_apart(const cv_snapshot *state)
{
    return has_front(state) &&
           state->header.frame_size != state->header.header_size + state->trailer_bytes.size;
}

/* Makes the new header durable: the old one may need the bytes that are overwritten next. */
static cv_status sync_new_header(const cv_frame *frame)
{
    if (!frame->store->published || frame->durability != CATERVA_DURABILITY_ORDERED)
        return CV_OK;
    return cv_store_sync(frame->store, CV_FRAME_OBJECT, NULL);
}

void cv_second_trailer_write(cv_allocator *a, const cv_snapshot *state)
{
    cv_store *store = a->frame->store;
    const cv_buffer *trailer = &state->trailer_bytes;
    a->owes_second = cv_second_trailer_is_apart(state);
    if (!a->owes_second || a->frame->poisoned) return;
    bool is_read = store->published && cv_snapshot_has_older_readers(state, store);
    if (is_read || sync_new_header(a->frame) != CV_OK) return;
    if (cv_store_write(store, CV_FRAME_OBJECT, state->header.header_size, trailer->data,
                       trailer->size, NULL) != CV_OK)
        return;
    a->owes_second = false;
    if (store->published && a->frame->durability == CATERVA_DURABILITY_FULL)
        (void)cv_store_sync(store, CV_FRAME_OBJECT, NULL);
}

uint64_t cv_allocator_behind_front(const cv_allocator *a, const cv_snapshot *next,
                                   uint64_t pos, uint64_t size)
{
    uint64_t front = next->header.header_size;
    bool is_front = pos == front && !a->frame->store->published;
    if (!has_front(next) || is_front || pos >= front + size) return pos;
    return front + size;
}

/* ---- The allocator: beginning ------------------------------------------------ */

/* A sync is worth it for 1/WORTH_PART of the frame, or for WORTH_TIMES the requested space. */
enum { WORTH_PART = 8, WORTH_TIMES = 16 };

/* Finds the beginning of the committed tail: the header copy if there is one, else the index. */
static cv_status find_tail(cv_allocator *a, uint64_t *n_commits, cv_error *err)
{
    const cv_snapshot *base = a->base;
    const cv_frame_header *h = &base->header;
    cv_buffer bytes = {0};
    cv_header_copy copy;
    bool found;
    cv_status status = cv_tail_read_copy(base, a->frame->store, &bytes, &copy, &found, err);
    if (status == CV_OK) {
        uint64_t index_pos =
            h->frame_size - base->trailer.size - base->footer.size - base->index_size;
        uint64_t now = cv_os_time_ns();
        a->tail_pos = found ? copy.pos : index_pos;
        a->base_chunks_end = found ? copy.pos : h->header_size + (uint64_t)h->cbytes;
        *n_commits = found && copy.commit > now ? copy.commit : now;
    }
    cv_buffer_free(&bytes);
    return status;
}

/* An array behind the frame was appended to the file (caterva_frame_append): its bytes are in
 * use. */
static cv_status find_follower(cv_allocator *a, uint64_t pos, uint64_t size, cv_error *err)
{
    uint8_t bytes[CV_FRAME_MAGIC_SIZE];
    if (size < sizeof bytes) return CV_OK;
    CV_TRY(cv_store_read(a->frame->store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, err));
    if (memcmp(bytes, a->base->header_bytes.data, sizeof bytes) == 0) a->follower = pos;
    return CV_OK;
}

/* Bytes behind the frame's end count as aging. An older header may need them after a power cut, or
 * they are the former chunk area of a frame that C-Blosc2 emptied. */
cv_status cv_allocator_begin(cv_allocator *a, cv_frame *frame, uint64_t *n_commits,
                             cv_error *err)
{
    const cv_frame_header *h = &frame->current->header;
    *a = (cv_allocator){.frame = frame,
                        .base = frame->current,
                        .base_end = h->header_size,
                        .base_chunks_end = h->header_size,
                        .is_surveyed = true,
                        .owes_second = cv_second_trailer_is_apart(frame->current)};
    a->survey.whole = !frame->store->published; /* nothing to find */
    if (h->sparse || !frame->store->published) return CV_OK;
    uint64_t stored, end = h->frame_size;
    CV_TRY(cv_store_size(frame->store, CV_FRAME_OBJECT, &stored, err));
    CV_TRY(find_tail(a, n_commits, err));
    a->base_end = stored > end ? stored : end;
    if (a->base_end < a->base_chunks_end) a->base_end = a->base_chunks_end;
    a->is_unsettled = frame->durability != CATERVA_DURABILITY_NONE;
    a->is_surveyed = false;
    if (stored <= end) return CV_OK;
    CV_TRY(find_follower(a, end, stored - end, err));
    if (!a->follower)
        cv_extents_add(&a->space.aging, (cv_extent){end, a->base_end - end}, true);
    return CV_OK;
}

void cv_allocator_free(cv_allocator *a)
{
    cv_space_destroy(&a->space);
    free_survey(&a->survey);
}

void cv_allocator_reset(cv_allocator *a, cv_snapshot *base)
{
    a->base = base;
    a->end = a->base_end;
    a->chunks_end = a->base_chunks_end;
    a->may_reuse = false;
}

void cv_allocator_roll_back(cv_allocator *a) { cv_space_rolled_back(&a->space, a->end); }

/* Whether no reader holds a state older than the committed one. Once true, the answer stays true
 * until the next commit. */
static bool may_reuse(cv_allocator *a)
{
    if (!a->may_reuse)
        a->may_reuse = !cv_snapshot_has_older_readers(a->base, a->frame->store);
    return a->may_reuse;
}

/* ---- Holes -------------------------------------------------------------------- */

/* Makes the committed header durable, so that no older one can be restored. If the sync fails, new
 * chunks may be lost: poisons the frame. */
static cv_status make_header_durable(cv_allocator *a, cv_error *err)
{
    if (a->is_unsettled) {
        cv_status status = cv_store_sync(a->frame->store, CV_FRAME_OBJECT, err);
        if (status != CV_OK) a->frame->poisoned = true;
        CV_TRY(status);
    }
    a->is_unsettled = false;
    release_aging(&a->space);
    return CV_OK;
}

/* Truncates bytes that a failed or killed writer left behind the frame, if nothing was put yet. */
static cv_status cut_left_behind(cv_allocator *a, cv_error *err)
{
    uint64_t end = a->base->header.frame_size;
    bool is_left = a->base_end > end && a->base_chunks_end <= end && a->end == a->base_end &&
                   !a->follower;
    if (!is_left || a->frame->store->in_memory || !may_reuse(a)) return CV_OK;
    CV_TRY(make_header_durable(a, err));
    if (cv_store_truncate(a->frame->store, CV_FRAME_OBJECT, end, NULL) != CV_OK) return CV_OK;
    cv_space_occupy(&a->space, end, a->base_end - end);
    a->base_end = a->end = end;
    return CV_OK;
}

static cv_extents *found_in(cv_allocator *a)
{
    return a->is_unsettled ? &a->space.aging : &a->space.free;
}

static cv_status look_around(cv_allocator *a, cv_error *err)
{
    if (a->is_surveyed) return CV_OK;
    CV_TRY(cut_left_behind(a, err));
    a->is_surveyed = true; /* only once: chunks put later must not count as found */
    CV_TRY(survey_make(&a->survey, a->frame, a->base, a->tail_pos, found_in(a), err));
    if (has_front(a->base)) {
        uint64_t front = a->base->header.header_size, size = a->base->trailer_bytes.size;
        cv_space_occupy(&a->space, front, size);
        cut(&a->space.aging, front, size);
    }
    return CV_OK;
}

static bool is_worth_a_sync(const cv_allocator *a, uint64_t size)
{
    uint64_t total = bytes_below(&a->space.aging, UINT64_MAX);
    if (!a->is_unsettled || !fits(&a->space.aging, size)) return false;
    return total >= a->base->header.frame_size / WORTH_PART || total / WORTH_TIMES >= size;
}

/* Takes a hole for `size` bytes, if there is one. A sync that fails poisons the frame. */
static cv_status take_hole(cv_allocator *a, uint64_t size, cv_extent *out, bool *found,
                           cv_error *err)
{
    CV_TRY(look_around(a, err));
    *found = may_reuse(a) && cv_space_take(&a->space, size, out);
    if (*found || !a->may_reuse) return CV_OK;
    if (!is_worth_a_sync(a, size)) {
        uint64_t enough = a->is_unsettled ? a->base->header.frame_size / WORTH_PART : size;
        CV_TRY(survey_find(&a->survey, a->frame, size, enough, found_in(a), err));
    }
    if (is_worth_a_sync(a, size)) CV_TRY(make_header_durable(a, err));
    *found = cv_space_take(&a->space, size, out);
    return CV_OK;
}

/* ---- Places for chunks ---------------------------------------------------------- */

static void take_room(cv_allocator *a)
{
    cv_store *store = a->frame->store;
    if (a->expected == 0) return;
    if (store->ops->take_room) store->ops->take_room(store, a->end, a->expected);
    a->expected = 0;
    a->has_room = true;
}

/* Reuse is also faster: writing to existing bytes of a file costs much less than extending it. */
cv_status cv_allocator_take(cv_allocator *a, const cv_space_request *r, uint64_t *pos,
                            cv_error *err)
{
    cv_extent at;
    bool found;
    CV_TRY(take_hole(a, r->size, &at, &found, err));
    if (found) {
        cv_layout_cache_forget(a->frame->layouts, CV_FRAME_OBJECT, at.pos);
    } else {
        take_room(a);
        if (r->is_like) a->end += (r->like - a->end) % CV_CLONE_UNIT;
        at = (cv_extent){a->end, r->size + (r->replaces ? r->size / CV_SPACE_SLACK : 0)};
        a->end += at.size;
    }
    if (at.pos + at.size > a->chunks_end) a->chunks_end = at.pos + at.size;
    cv_space_put(&a->space, at.pos, at.size);
    *pos = at.pos;
    return CV_OK;
}

void cv_allocator_extend(cv_allocator *a, uint64_t end)
{
    a->end = end;
    if (a->chunks_end < end) a->chunks_end = end;
}

void cv_allocator_replaced(cv_allocator *a, uint64_t pos)
{
    cv_extent chunk;
    (void)look_around(a, NULL);
    if (cv_space_replaced(&a->space, pos)) return;
    if (survey_replaced(&a->survey, pos, &chunk)) died(&a->space, chunk);
}

void cv_allocator_expect(cv_allocator *a, uint64_t size) { a->expected = size; }

/* Truncates unused space. If this fails, the close or the next writer truncates it. */
void cv_allocator_expect_end(cv_allocator *a)
{
    cv_store *store = a->frame->store;
    uint64_t stored;
    if (a->has_room && cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) == CV_OK &&
        stored > a->end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, a->end, NULL);
    a->expected = 0;
    a->has_room = false;
}

/* ---- The place of the tail -------------------------------------------------------- */

/* Lowers chunks_end to the end of the chunks of the new state. If there is much space before the
 * committed tail, makes sure that it may be used. */
static cv_status lower_chunks_end(cv_allocator *a, uint64_t size, cv_error *err)
{
    uint64_t end, found;
    bool known = ours_end(&a->space, &end);
    if (!a->frame->store->published) return CV_OK;
    CV_TRY(look_around(a, err));
    if (!known || !a->survey.whole || !may_reuse(a)) return CV_OK;
    CV_TRY(survey_end(&a->survey, a->frame, found_in(a), &found, err));
    if (end < found) end = found;
    if (end < a->base->header.header_size) end = a->base->header.header_size;
    if (end < a->chunks_end) a->chunks_end = end;
    if (!a->is_unsettled || end >= a->tail_pos) return CV_OK;
    uint64_t gain = a->tail_pos - end;
    bool is_worth = gain >= size && gain >= a->base->header.frame_size / WORTH_PART;
    return is_worth ? make_header_durable(a, err) : CV_OK;
}

/* Places the tail right behind the chunks if this needs no byte in use, else behind the committed
 * frame, else behind everything. As a rule commits alternate between the first two. */
cv_status cv_allocator_place_tail(cv_allocator *a, const cv_snapshot *next, uint64_t size,
                                  uint64_t *pos, cv_error *err)
{
    CV_TRY(lower_chunks_end(a, size, err));
    *pos = cv_allocator_behind_front(a, next, a->end, size);
    if (!a->frame->store->published || !may_reuse(a)) return CV_OK;
    uint64_t old_end = a->base->header.frame_size;
    uint64_t low = cv_allocator_behind_front(a, next, a->chunks_end, size);
    uint64_t high = low > old_end ? low : old_end;
    if ((low + size <= a->tail_pos || low >= old_end) &&
        cv_space_is_clear(&a->space, low, size))
        *pos = low;
    else if (a->follower != old_end && cv_space_is_clear(&a->space, high, size))
        *pos = high;
    return CV_OK;
}

bool cv_allocator_move_tail(cv_allocator *a, cv_extent place)
{
    release_aging(&a->space);
    if (!cv_space_is_clear(&a->space, place.pos, place.size)) return false;
    a->chunks_end = place.pos;
    a->may_reuse = true;
    return true;
}

/* The old tail becomes dead. Without a second sync the new header may not be durable yet and the
 * old one may be needed; without any sync, nothing is guaranteed after a power cut. */
void cv_allocator_committed(cv_allocator *a, const cv_snapshot *next, cv_extent tail,
                            bool fresh)
{
    uint64_t old_end = a->base->header.frame_size, tail_end = end_of(tail);
    cv_space_occupy(&a->space, tail.pos, tail.size);
    if (!fresh)
        cv_extents_add(&a->space.dead, (cv_extent){a->tail_pos, old_end - a->tail_pos}, true);
    cv_space_committed(&a->space, a->frame->durability != CATERVA_DURABILITY_ORDERED);
    if (has_front(next))
        cv_space_occupy(&a->space, next->header.header_size, next->trailer_bytes.size);
    a->base_end = a->end > tail_end ? a->end : tail_end;
    a->base_chunks_end = a->chunks_end;
    a->tail_pos = tail.pos;
    if (a->frame->durability != CATERVA_DURABILITY_NONE) a->is_unsettled = false;
}

/* ---- Giving back -------------------------------------------------------------------- */

void cv_allocator_cut_back(cv_allocator *a)
{
    cv_store *store = a->frame->store;
    uint64_t stored;
    if (a->base->header.sparse || store->in_memory || !store->published) return;
    if (a->frame->poisoned) return; /* the state on disk may use it */
    if (cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) != CV_OK) return;
    if (stored > a->base_end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, a->base_end, NULL);
}

bool cv_allocator_dead(cv_allocator *a, uint64_t *dead)
{
    cv_space *space = &a->space;
    uint64_t end = a->base->header.frame_size;
    if (!may_reuse(a) || !a->is_surveyed || !a->survey.whole) return false;
    if (survey_rest(&a->survey, a->frame, found_in(a), NULL) != CV_OK) return false;
    *dead = bytes_below(&space->free, end) + bytes_below(&space->aging, end) +
            bytes_below(&space->dead, end);
    return true;
}
