/* Room: engine/cache. Slabs of one piece size each, a free list in each. What the
 * pieces hold is not known here. */
#include "engine/cache/block_memory.h"

#include "base/heap.h"
#include "base/os.h"

#include <stdbool.h>

/* Of smaller blocks a slab holds so many that one in use would hold back the memory
 * of hundreds; larger ones come from the system in pages of their own anyway. */
enum { SMALLEST = 16 * 1024, LARGEST = CV_LARGE_PAGE / 8, LINE = 64 };

typedef struct free_piece {
    struct free_piece *next;
} free_piece;

struct cv_slab {
    cv_slab *before, *behind; /* in the list of open ones */
    uint8_t *bytes;
    size_t piece_size;
    size_t n_used;  /* pieces given out */
    size_t n_begun; /* pieces that ever were; behind them nothing was touched */
    free_piece *free;
};

void cv_block_memory_init(cv_block_memory *memory)
{
    cv_mutex_init(&memory->lock);
    memory->open = NULL;
}

void cv_block_memory_destroy(cv_block_memory *memory) { cv_mutex_destroy(&memory->lock); }

static bool is_full(const cv_slab *slab)
{
    return !slab->free && (slab->n_begun + 1) * slab->piece_size > CV_LARGE_PAGE;
}

static void add_open(cv_block_memory *memory, cv_slab *slab)
{
    slab->before = NULL;
    slab->behind = memory->open;
    if (slab->behind) slab->behind->before = slab;
    memory->open = slab;
}

static void remove_open(cv_block_memory *memory, cv_slab *slab)
{
    *(slab->before ? &slab->before->behind : &memory->open) = slab->behind;
    if (slab->behind) slab->behind->before = slab->before;
}

static cv_slab *new_slab(cv_block_memory *memory, size_t piece_size)
{
    cv_slab *slab = cv_malloc(sizeof *slab);
    uint8_t *bytes = cv_large_pages(CV_LARGE_PAGE);
    if (!slab || !bytes) {
        cv_free(slab);
        cv_free(bytes);
        return NULL;
    }
    *slab = (cv_slab){.bytes = bytes, .piece_size = piece_size};
    add_open(memory, slab);
    return slab;
}

static uint8_t *take_piece(cv_slab *slab)
{
    slab->n_used++;
    free_piece *piece = slab->free;
    if (!piece) return slab->bytes + slab->n_begun++ * slab->piece_size;
    slab->free = piece->next;
    return (uint8_t *)piece;
}

cv_block_bytes cv_block_memory_get(cv_block_memory *memory, size_t size)
{
    if (size < SMALLEST || size > LARGEST) return (cv_block_bytes){.bytes = cv_malloc(size)};
    /* A line more: blocks that stood apart by a power of two would meet in the same
     * sets of the processor's caches, and a column through them wait for memory. */
    size_t piece_size = (size + LINE - 1) / LINE * LINE + LINE;
    cv_block_bytes got = {NULL, NULL};
    cv_mutex_lock(&memory->lock);
    cv_slab *slab = memory->open;
    while (slab && slab->piece_size != piece_size) slab = slab->behind;
    if (!slab) slab = new_slab(memory, piece_size);
    if (slab) {
        got = (cv_block_bytes){take_piece(slab), slab};
        if (is_full(slab)) remove_open(memory, slab);
    }
    cv_mutex_unlock(&memory->lock);
    return got;
}

void cv_block_memory_free(cv_block_memory *memory, cv_block_bytes block)
{
    cv_slab *slab = block.slab;
    if (!slab) {
        cv_free(block.bytes);
        return;
    }
    cv_mutex_lock(&memory->lock);
    bool was_full = is_full(slab);
    free_piece *piece = (free_piece *)(void *)block.bytes;
    piece->next = slab->free;
    slab->free = piece;
    bool is_last = --slab->n_used == 0;
    if (was_full && !is_last) add_open(memory, slab);
    if (!was_full && is_last) remove_open(memory, slab);
    cv_mutex_unlock(&memory->lock);
    if (!is_last) return;
    cv_free(slab->bytes);
    cv_free(slab);
}
