/* Moves items from a source to a sink, box by box, in bounded memory.
 *
 *     array file, npy, raw, pipe,       source -> box -> sink      array file,
 *     a selection of one, one value                                npy, raw, text
 *
 * A source delivers boxes, and a sink takes them, in coordinates of the array that is moved. Those
 * that can only move forward (pipes, text) are `in_order`: then each box is the next run of items
 * in C order. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "sources/selection.h"

typedef struct array_shape {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t item_size;
} array_shape;

typedef struct source source;
struct source {
    array_shape shape;
    char *dtype;                       /* NumPy description; owned */
    int64_t align[CATERVA_MAX_DIMS];   /* boxes cut at its multiples are cheapest */
    int64_t stretch[CATERVA_MAX_DIMS]; /* items in memory for each delivered one */
    int axes[CATERVA_MAX_DIMS];        /* of the array below, counted from 1; 0: a new one */
    bool in_order;
    bool takes_lists; /* without read_selected: boxes of single items are cheap enough */
    bool decodes;     /* reading takes CPU time, not only disk accesses */
    bool first_axis_fastest; /* Fortran order: long boxes along axis 0 are cheapest */
    cli_exit (*read)(source *self, const box *b, void *dst);
    /* Reads a box of a selection of it; NULL: only boxes can be read. */
    cli_exit (*read_selected)(source *self, const selection *sel, const box *b, void *dst);
    void (*close)(source *self); /* releases the members, not `self` */
};

typedef struct sink sink;
struct sink {
    int64_t align[CATERVA_MAX_DIMS];
    int64_t phase[CATERVA_MAX_DIMS]; /* offset of the beginning from a multiple of align */
    int64_t stretch[CATERVA_MAX_DIMS];
    bool in_order;
    bool encodes; /* like source.decodes */
    cli_exit (*write)(sink *self, const box *b, const void *src);
    cli_exit (*finish)(sink *self); /* makes the result appear; releases like abandon */
    void (*abandon)(sink *self);    /* leaves nothing behind */
};

/* Sets neutral values of align and stretch. */
void transfer_neutral(int64_t *align, int64_t *stretch);

/* Releases a source and its memory; NULL is fine. */
void source_close(source *s);

/* ---- Iterating over boxes --------------------------------------------------------------- */

typedef struct walk {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t tile[CATERVA_MAX_DIMS];
    int64_t phase[CATERVA_MAX_DIMS]; /* by which the first tile is shorter */
    box next;
    bool done;
} walk;

typedef struct walk_plan {
    const int64_t *align, *phase, *stretch;
    bool in_order, first_axis_fastest;
    int64_t memory; /* bytes for one stretched box */
} walk_plan;

/* Cuts `shape` into boxes of whole aligned rows where these fit. */
void walk_begin(walk *w, const array_shape *shape, const walk_plan *plan);
bool walk_next(walk *w, box *out);

/* Returns the bytes of the largest box. */
size_t walk_box_size(const walk *w, int64_t item_size);

/* ---- Moving ----------------------------------------------------------------------------- */

/* Reads all and writes it, with a progress bar; does not finish the sink. Stops at a signal. */
cli_exit transfer_items(const cli_args *args, source *from, sink *to);

/* Calls transfer_items, then finish or abandon. */
cli_exit transfer(const cli_args *args, source *from, sink *to);

#endif
