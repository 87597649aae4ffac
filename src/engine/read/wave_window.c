/* Room: engine/read. What a wave reads. When, and by how many requests, is not known here. */
#include "engine/read/wave_window.h"

#include "base/arith.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"

#include <stdlib.h>

static cv_window_chunk *chunk_at(const cv_window *w, size_t i)
{
    return (cv_window_chunk *)(void *)w->chunks.data + i;
}

static cv_wanted *list_of(const cv_window *w, size_t chunk)
{
    return (cv_wanted *)(void *)w->wanted.data + chunk_at(w, chunk)->first;
}

static int64_t count_of(const cv_window *w, size_t chunk)
{
    return chunk_at(w, chunk)->last - chunk_at(w, chunk)->first;
}

void cv_window_free(cv_window *w)
{
    cv_buffer_free(&w->wanted);
    cv_buffer_free(&w->chunks);
    cv_buffer_free(&w->wishes);
    cv_buffer_free(&w->runs);
}

/* ---- Chunks -------------------------------------------------------------------- */

static cv_status add_chunk(cv_window *w, const cv_walk_chunk *c, cv_error *err)
{
    int64_t first = (int64_t)w->n_wanted;
    cv_window_chunk chunk = {.number = w->next, .first = first, .last = first + c->n_wanted};
    cv_layout_wish wish = {.ref = c->ref,
                           .end = cv_source_guess_end(w->walk->source, &c->ref)};
    CV_TRY(cv_buffer_append(&w->wanted, w->worker->wanted,
                            (size_t)c->n_wanted * sizeof(cv_wanted), err));
    CV_TRY(cv_buffer_append(&w->chunks, &chunk, sizeof chunk, err));
    CV_TRY(cv_buffer_append(&w->wishes, &wish, sizeof wish, err));
    w->n_wanted += (size_t)c->n_wanted;
    w->n_chunks++;
    return CV_OK;
}

/* The next touched chunk: delivered as far as it is there, the rest listed. One of more
 * blocks than a window holds, and what is not stored, is done at once. */
static cv_status plan_chunk(cv_window *w, bool *is_full, cv_error *err)
{
    const cv_source *s = w->walk->source;
    cv_walk_chunk c;
    CV_TRY(cv_walk_enter(&c, w->walk, w->next, w->worker, err));
    CV_TRY(cv_watch_tick(s->watch, 0, err));
    *is_full = w->n_wanted > 0 && (int64_t)w->n_wanted + c.n_blocks > CV_WAVE_BLOCKS;
    if (*is_full) return CV_OK;
    if (c.n_blocks > CV_WAVE_BLOCKS || c.ref.kind != CV_REF_STORED) {
        CV_TRY(cv_walk_blocks(&c, 0, c.n_blocks, err));
    } else {
        CV_TRY(cv_walk_find(&c, err));
        if (c.n_wanted > 0) CV_TRY(add_chunk(w, &c, err));
    }
    w->next++;
    return CV_OK;
}

static size_t most_chunks(const cv_grid *grid)
{
    size_t n = CV_WAVE_HEADS / cv_layout_wave_bytes(grid);
    return n < 1 ? 1 : n < CV_WAVE_CHUNKS ? n : CV_WAVE_CHUNKS;
}

cv_status cv_window_fill(cv_window *w, cv_error *err)
{
    size_t most = most_chunks(&w->walk->source->snapshot->grid);
    bool is_full = false;
    w->wanted.size = w->chunks.size = w->wishes.size = w->runs.size = 0;
    w->n_wanted = w->n_chunks = w->n_asked = w->n_runs = w->n_at_hand = 0;
    w->n_bytes = 0;
    while (w->next < w->walk->n_chunks && w->n_chunks < most && !is_full)
        CV_TRY(plan_chunk(w, &is_full, err));
    return CV_OK;
}

/* ---- Chunks that are read whole -------------------------------------------------- */

/* Of a chunk all of which is wanted nobody needs to know first where its blocks are. A larger
 * one takes longer than a round trip, and holds up who decodes. */
enum { MOST_WHOLE = 8 << 20 };

static int64_t blocks_inside(const cv_grid *grid, int64_t chunk)
{
    int64_t index[CV_MAX_DIMS], n = 1;
    cv_grid_chunk_index(grid, chunk, index);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t left = grid->shape[d] - index[d] * grid->chunk_shape[d];
        n *= cv_ceil_div(cv_min_i64(left, grid->chunk_shape[d]), grid->block_shape[d]);
    }
    return n;
}

static uint64_t extent_of(const cv_layout_wish *wish)
{
    return wish->end > wish->ref.pos ? wish->end - wish->ref.pos : 0;
}

static bool can_be_whole(const cv_layout_wish *wish)
{
    uint64_t extent = extent_of(wish);
    return extent >= CV_CHUNK_HEADER_SIZE && extent <= MOST_WHOLE && wish->ref.table_pos == 0;
}

static bool has_layout(const cv_source *s, const cv_layout_wish *wish)
{
    cv_layout *known = cv_layout_find(s->frame->layouts, s->snapshot, &wish->ref);
    cv_layout_release(known);
    return known != NULL;
}

static bool is_all_wanted(const cv_window *w, size_t i)
{
    const cv_grid *grid = &w->walk->source->snapshot->grid;
    return count_of(w, i) >= blocks_inside(grid, cv_window_wish(w, i)->ref.chunk);
}

/* Bytes of a chunk that are wanted, about: as many as its blocks are, those outside of the
 * array included, which may have some; rounded up. */
static uint64_t needed_of(const cv_window *w, size_t i)
{
    uint64_t extent = extent_of(cv_window_wish(w, i));
    if (is_all_wanted(w, i)) return extent;
    double n_blocks = (double)w->walk->source->snapshot->grid.n_blocks;
    uint64_t needed = (uint64_t)((double)extent * (double)count_of(w, i) / n_blocks) + 1;
    return needed < extent ? needed : extent;
}

/* Those of which all is wanted; and all others too, where then no layout is waited for, and
 * what is read over is worth that. */
static void choose_wholes(cv_window *w)
{
    const cv_source *s = w->walk->source;
    uint64_t over = 0, needed = 0;
    bool all_can = true;
    for (size_t i = 0; i < w->n_chunks; i++) {
        cv_window_chunk *chunk = chunk_at(w, i);
        const cv_layout_wish *wish = cv_window_wish(w, i);
        uint64_t of_chunk = needed_of(w, i);
        needed += of_chunk;
        chunk->lacks_layout = !has_layout(s, wish);
        if (!chunk->lacks_layout) continue;
        all_can = all_can && can_be_whole(wish);
        chunk->is_whole = can_be_whole(wish) && is_all_wanted(w, i);
        over += extent_of(wish) - of_chunk;
    }
    if (!all_can || over > cv_store_spare(s->frame->store, needed)) return;
    for (size_t i = 0; i < w->n_chunks; i++)
        chunk_at(w, i)->is_whole = chunk_at(w, i)->lacks_layout;
}

/* Few bytes are read in one wave in any case. */
static bool may_be_whole(const cv_window *w)
{
    const cv_source *s = w->walk->source;
    uint64_t size = 0, most = s->frame->store->most_whole;
    if (!s->frame->store->is_far || most == 0) return false;
    if (cv_layout_is_small(&s->snapshot->grid)) return false;
    for (size_t i = 0; i < w->n_chunks && size <= most; i++)
        size += extent_of(cv_window_wish(w, i));
    return size > most;
}

static cv_status move_chunks(cv_window *w, bool wholes, cv_buffer *chunks, cv_buffer *wishes,
                             cv_error *err)
{
    for (size_t i = 0; i < w->n_chunks; i++) {
        if (chunk_at(w, i)->is_whole != wholes) continue;
        CV_TRY(cv_buffer_append(chunks, chunk_at(w, i), sizeof(cv_window_chunk), err));
        CV_TRY(cv_buffer_append(wishes, cv_window_wish(w, i), sizeof(cv_layout_wish), err));
    }
    if (!wholes) w->n_asked = wishes->size / sizeof(cv_layout_wish);
    return CV_OK;
}

/* Puts those behind the others. */
static cv_status find_wholes(cv_window *w, cv_error *err)
{
    cv_buffer chunks = {0}, wishes = {0};
    w->n_asked = w->n_chunks;
    if (!may_be_whole(w)) return CV_OK;
    choose_wholes(w);
    cv_status status = move_chunks(w, false, &chunks, &wishes, err);
    if (status == CV_OK) status = move_chunks(w, true, &chunks, &wishes, err);
    cv_buffer_free(status == CV_OK ? &w->chunks : &chunks);
    cv_buffer_free(status == CV_OK ? &w->wishes : &wishes);
    if (status != CV_OK) return status;
    w->chunks = chunks;
    w->wishes = wishes;
    return CV_OK;
}

static bool are_apart(const cv_layout *layout, const cv_wanted *list, int64_t n)
{
    bool apart = true;
    for (int64_t i = 1; i < n && apart; i++)
        apart = cv_fetch_range(layout, list[i - 1].block).end <=
                cv_fetch_range(layout, list[i].block).start;
    return apart;
}

cv_status cv_window_arrived(cv_window *w, cv_window_run *run, cv_error *err)
{
    const cv_source *s = w->walk->source;
    cv_layout_wish *wish = cv_window_wish(w, run->chunk);
    if (!run->is_whole) return CV_OK;
    CV_TRY(cv_layout_of_bytes(s->frame, s->snapshot, wish, run->bytes, run->run.size, err));
    const cv_layout *layout = wish->layout;
    if (layout->header.special != CV_SPECIAL_NONE || layout->access == CV_ACCESS_CHUNK) {
        int n_parts = run->n_parts; /* all of it is one job */
        run->n_parts = 1;
        atomic_fetch_sub(run->left, n_parts - 1);
        return CV_OK;
    }
    cv_wanted *list = list_of(w, run->chunk);
    cv_fetch_sort(layout, list, run->run.last);
    run->is_apart = are_apart(layout, list, run->run.last);
    return CV_OK;
}

/* ---- Runs ---------------------------------------------------------------------- */

static cv_status add_run(cv_window *w, cv_window_run *run, cv_error *err)
{
    const cv_chunk_ref *ref = &cv_window_wish(w, run->chunk)->ref;
    run->object = ref->object;
    run->pos = ref->pos + (uint64_t)run->run.start;
    CV_TRY(cv_buffer_append(&w->runs, run, sizeof *run, err));
    w->n_runs++;
    w->n_bytes += CV_BLOCK_PREFIX + run->run.size;
    return CV_OK;
}

/* Nothing of it needs to be read any more. */
static bool is_at_hand(const cv_layout *layout)
{
    return layout->header.special != CV_SPECIAL_NONE || layout->chunk;
}

/* The chunk's blocks, cut into runs. */
static cv_status cut_runs(cv_window *w, size_t chunk, cv_error *err)
{
    const cv_layout *layout = cv_window_wish(w, chunk)->layout;
    int64_t n = count_of(w, chunk);
    cv_wanted *list = list_of(w, chunk);
    cv_window_run run = {.chunk = chunk, .run = {.last = n}, .n_parts = 1};
    if (is_at_hand(layout)) return add_run(w, &run, err);
    if (layout->access == CV_ACCESS_CHUNK) {
        run.run.size = (size_t)layout->header.cbytes;
        return add_run(w, &run, err);
    }
    cv_fetch_sort(layout, list, n);
    for (; run.run.first < n; run.run.first = run.run.last) {
        cv_fetch_next_run(w->walk->source->frame, layout, list, n, CV_WAVE_RANGE, &run.run);
        CV_TRY(add_run(w, &run, err));
    }
    return CV_OK;
}

static cv_status add_whole(cv_window *w, size_t chunk, cv_error *err)
{
    int64_t n = count_of(w, chunk);
    uint64_t extent = extent_of(cv_window_wish(w, chunk));
    int64_t parts = cv_ceil_div((int64_t)extent, CV_WAVE_RANGE);
    cv_window_run run = {.chunk = chunk,
                         .run = {.last = n, .size = (size_t)extent},
                         .is_whole = true,
                         .n_parts = (int)cv_min_i64(parts, n)};
    return add_run(w, &run, err);
}

static int by_position(const void *a, const void *b)
{
    const cv_window_run *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Chunks may stand in any order; what is read together is to lie together, with nothing in
 * between that others read. */
static void sort_runs(cv_window *w)
{
    if (w->n_runs == w->n_at_hand) return;
    qsort(cv_window_run_at(w, w->n_at_hand), w->n_runs - w->n_at_hand, sizeof(cv_window_run),
          by_position);
}

/* First those at hand, then those that are read. */
cv_status cv_window_cut(cv_window *w, cv_error *err)
{
    const cv_source *s = w->walk->source;
    CV_TRY(find_wholes(w, err));
    if (w->n_asked > 0)
        CV_TRY(cv_layout_wave(s->frame, s->snapshot, cv_window_wish(w, 0), w->n_asked,
                              s->watch, err));
    for (size_t i = 0; i < w->n_asked; i++)
        if (is_at_hand(cv_window_wish(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    w->n_at_hand = w->n_runs;
    for (size_t i = 0; i < w->n_asked; i++)
        if (!is_at_hand(cv_window_wish(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    for (size_t i = w->n_asked; i < w->n_chunks; i++) CV_TRY(add_whole(w, i, err));
    sort_runs(w);
    return CV_OK;
}

void cv_window_release(cv_window *w)
{
    cv_layout_wave_release(cv_window_wish(w, 0), w->n_chunks);
}

/* ---- Decoding ---------------------------------------------------------------- */

/* The part's blocks of the list: [first, last). */
static cv_fetch_run part_of(const cv_window_run *run, int part)
{
    cv_fetch_run r = run->run;
    int64_t n = r.last - r.first;
    r.last = r.first + n * (part + 1) / run->n_parts;
    r.first += n * part / run->n_parts;
    return r;
}

/* What stands before the first block of a part is another part's. */
static void place_part(const cv_layout *layout, cv_wanted *list, const cv_window_run *run,
                       const cv_fetch_run *part)
{
    cv_fetch_place(layout, list, part, run->bytes);
    if (!run->is_whole) return;
    for (int64_t i = part->first; i < part->last; i++)
        list[i].packed.in_place = run->is_apart && i > part->first;
}

cv_status cv_window_decode(const cv_window *w, const cv_window_run *run, int part,
                           cv_worker *worker, cv_error *err)
{
    const cv_source *s = w->walk->source;
    const cv_layout_wish *wish = cv_window_wish(w, run->chunk);
    const cv_layout *layout = wish->layout;
    const cv_fetch_run blocks = part_of(run, part);
    size_t size = (size_t)layout->header.cbytes;
    bool is_one = layout->access == CV_ACCESS_CHUNK;
    bool is_here = run->bytes && (!(run->is_whole || is_one) || size <= run->run.size);
    cv_walk_chunk c;
    cv_fetched fetched = {.layout = layout,
                          .wanted = list_of(w, run->chunk) + blocks.first,
                          .n = blocks.last - blocks.first,
                          .is_placed = is_here && !is_one,
                          .chunk = is_here && is_one ? run->bytes : NULL};
    cv_walk_enter_found(&c, w->walk, chunk_at(w, run->chunk)->number, &wish->ref, worker);
    if (fetched.is_placed) place_part(layout, list_of(w, run->chunk), run, &blocks);
    CV_TRY(cv_decode_fetched(s->frame, s->snapshot, &c.ref, worker, &fetched, &c.sink, err));
    return cv_walk_check(&c, err);
}
