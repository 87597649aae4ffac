/* Reads that nobody waits for, inside this room: what is read of each array, and what is done
 * when all of it is there.
 *
 *     request -> turn of an array x n  -> pieces      one errand each, in the array's list
 *             -> rests                                done by the last turn, before on_done
 *
 * Each array's turn stands in a list of its own and needs no lock, so turns may run at once,
 * and who has one array alone never waits for another one. The last turn that is over tells. */
#ifndef CV_ARRAY_ASYNC_H
#define CV_ARRAY_ASYNC_H

#include "array/array.h"
#include "array/view.h"

/* What is read of one array, and where it goes. Behind it lies what the selection points at,
 * unless that is in `mapped.lists`. */
typedef struct cv_read_piece {
    struct cv_read_piece *next;
    caterva_array *array;
    const cv_base *base; /* of a view: whose array is still the same; NULL: no view's */
    cv_mapped mapped;
} cv_read_piece;

typedef struct cv_turn {
    cv_errand errand; /* first: its address is what the list holds */
    caterva_request *request;
    cv_read_piece *first; /* all of one array */
} cv_turn;

struct caterva_request {
    atomic_int references; /* of each turn's list, and of who asked */
    atomic_int n_left;     /* turns that are not over */
    caterva_async_options options;
    const cv_description *description; /* of the array when it was called; NULL: a view's */
    cv_base *base;                     /* of the view; NULL: an array's */
    int n_turns;
    cv_turn *turns;
    cv_read_piece *pieces;
    cv_rest *rests, **last_rest; /* in the order in which they are done */
    atomic_bool has_failed;
    cv_status status;
    cv_error error; /* of the first failure */
};

#endif
