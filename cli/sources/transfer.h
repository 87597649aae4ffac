/* Moves items from a source to a sink, box by box, in bounded memory.
 *
 *   array file, npy, raw, pipe,         source -> box -> sink    array file,
 *   a selection of one, one value                                npy, raw, text
 *
 * A source delivers boxes, and a sink takes them, in coordinates of the array that is moved.
 * Sources and sinks that can only move forward (pipes, text) are `in_order`: for them, each box is
 * the next run of items in C order. */
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
    int64_t align[CATERVA_MAX_DIMS];   /* boxes that end at its multiples are cheapest */
    int64_t stretch[CATERVA_MAX_DIMS]; /* items in memory per delivered item, by axis */
    int axes[CATERVA_MAX_DIMS]; /* axes of the underlying array, from 1; 0: a new axis */
    bool in_order;
    bool takes_lists;        /* lists work without read_selected, item by item */
    bool decodes;            /* reading takes CPU time, not only disk accesses */
    bool decodes_whole;      /* a read decodes whole chunks, which `align` has */
    bool first_axis_fastest; /* Fortran order: long boxes along axis 0 are cheapest */
    cli_exit (*read)(source *self, const box *b, void *dst);
    /* Reads a box of a selection of this source. NULL: the source reads boxes only. */
    cli_exit (*read_selected)(source *self, const selection *sel, const box *b, void *dst);
    /* Whether nothing is stored for the box: its items are the source's fill. NULL: not known. */
    bool (*is_fill)(source *self, const box *b);
    void (*close)(source *self); /* releases members, not `self` */
};

typedef struct sink sink;
struct sink {
    int64_t align[CATERVA_MAX_DIMS];
    int64_t phase[CATERVA_MAX_DIMS]; /* offset of item 0 from a multiple of align */
    int64_t stretch[CATERVA_MAX_DIMS];
    bool in_order;
    bool first_axis_fastest; /* as in source */
    bool encodes;    /* writing takes CPU time, as in source.decodes */
    bool holds_fill; /* items that are not written are the source's fill */
    int64_t boxes_done; /* the first boxes, which an interrupted transfer has written */
    cli_exit (*write)(sink *self, const box *b, const void *src);
    /* Makes the first `boxes` boxes last, so that a later run need not repeat them. Called every few
     * seconds; NULL: the sink cannot. */
    cli_exit (*commit)(sink *self, int64_t boxes);
    cli_exit (*finish)(sink *self); /* makes the result appear; releases the sink */
    void (*abandon)(sink *self);    /* deletes the result; releases the sink */
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
    int64_t phase[CATERVA_MAX_DIMS]; /* items by which the first tile is shorter */
    box next;
    bool done;
} walk;

typedef struct walk_plan {
    const int64_t *align, *phase, *stretch;
    bool in_order, first_axis_fastest;
    int64_t memory; /* bytes for one stretched box */
} walk_plan;

/* Cuts `shape` into boxes, of whole aligned rows if these fit in memory. */
void walk_begin(walk *w, const array_shape *shape, const walk_plan *plan);
bool walk_next(walk *w, box *out);

/* Returns the bytes of the largest box. */
size_t walk_box_size(const walk *w, int64_t item_size);

/* ---- Moving ----------------------------------------------------------------------------- */

/* Moves all items, with a progress bar, but does not finish the sink. Stops at a signal. */
cli_exit transfer_items(const cli_args *args, source *from, sink *to);

/* Calls transfer_items, then finish or abandon. */
cli_exit transfer(const cli_args *args, source *from, sink *to);

/* Compares the bytes of all items of two sources. Returns CLI_CORRUPT with a message that names `what`
 * and the box in which the first differences are. If shape, item size or byte order differ, nothing is
 * compared, and a warning says so. */
cli_exit transfer_compare(const cli_args *args, const char *what, source *a, source *b);

#endif
