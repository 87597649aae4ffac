/* Items on their way from a source to a sink, box by box, in bounded memory.
 *
 *     array file, npy, raw, pipe,       source -> box -> sink      array file,
 *     a selection of one, one value                                npy, raw, text
 *
 * A source delivers and a sink takes boxes in coordinates of the array that is
 * moved. Those that can only go forward (pipes, text) are `in_order`: then each
 * box is the next run of items in C order. */
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
    int64_t align[CATERVA_MAX_DIMS];   /* boxes cut at its multiples cost least */
    int64_t stretch[CATERVA_MAX_DIMS]; /* items held for each one delivered */
    int axes[CATERVA_MAX_DIMS]; /* of the array below, counted from 1; 0: a new one */
    bool in_order;
    bool takes_lists; /* without read_selected: boxes of single items are cheap enough */
    bool decodes;     /* reading takes the processor, not only the disk */
    bool first_axis_fastest; /* Fortran order: long boxes along axis 0 cost least */
    cli_exit (*read)(source *self, const box *b, void *dst);
    /* A box of a selection of it; NULL: only boxes can be read. */
    cli_exit (*read_selected)(source *self, const selection *sel, const box *b, void *dst);
    void (*close)(source *self); /* releases what the kind holds, not `self` */
};

typedef struct sink sink;
struct sink {
    int64_t align[CATERVA_MAX_DIMS];
    int64_t phase[CATERVA_MAX_DIMS]; /* how far behind a multiple of align it begins */
    int64_t stretch[CATERVA_MAX_DIMS];
    bool in_order;
    bool encodes; /* as source.decodes */
    cli_exit (*write)(sink *self, const box *b, const void *src);
    cli_exit (*finish)(sink *self); /* makes the result appear; releases as abandon */
    void (*abandon)(sink *self);    /* leaves nothing behind */
};

/* Sets neutral align and stretch. */
void transfer_neutral(int64_t *align, int64_t *stretch);

/* Releases a source and the memory it stands in; NULL is fine. */
void source_close(source *s);

/* ---- Boxes in turn ------------------------------------------------------ */

typedef struct walk {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t tile[CATERVA_MAX_DIMS];
    int64_t phase[CATERVA_MAX_DIMS]; /* by so much the first tile is shorter */
    box next;
    bool done;
} walk;

typedef struct walk_plan {
    const int64_t *align, *phase, *stretch;
    bool in_order, first_axis_fastest;
    int64_t memory; /* bytes for one box, stretched */
} walk_plan;

/* Cuts `shape` into boxes that hold whole aligned rows where these fit. */
void walk_begin(walk *w, const array_shape *shape, const walk_plan *plan);
bool walk_next(walk *w, box *out);

/* Bytes of the largest box. */
size_t walk_box_size(const walk *w, int64_t item_size);

/* ---- The move ----------------------------------------------------------- */

/* Reads everything and writes it, with a progress bar; does not finish the
 * sink. CLI_INTERRUPTED when a signal came. */
cli_exit transfer_items(const cli_args *args, source *from, sink *to);

/* transfer_items, then finish or abandon. */
cli_exit transfer(const cli_args *args, source *from, sink *to);

#endif
