/* What an array is, as values that never change: each state that somebody asks for has
 * a description of its own, counted, and a change of the array makes the handle turn
 * to a new one. Whoever holds one needs no lock.
 *
 *     handle --> latest <-- references of callers */
#ifndef CV_ARRAY_DESCRIPTION_H
#define CV_ARRAY_DESCRIPTION_H

#include "frame/snapshot.h"

/* The dtype of the items, fixed when an array is made. */
typedef struct cv_item_type {
    char *dtype;  /* fits the item size */
    char *stored; /* what the file says; NULL: nothing */
    bool disagrees;
} cv_item_type;

cv_status cv_item_type_init(cv_item_type *type, const cv_snapshot *snapshot, cv_error *err);
void cv_item_type_free(cv_item_type *type);

typedef struct cv_description {
    caterva_info info; /* first: its address is what callers hold */
    atomic_int references;
} cv_description;

/* What a description is made of. `state` is the array with what is pending, `committed`
 * without. */
typedef struct cv_described {
    const cv_snapshot *state;
    const cv_snapshot *committed;
    const cv_item_type *type;
    const uint8_t *fill; /* NULL: zeros */
    bool in_memory;
    const char *path; /* NULL: none */
    uint64_t offset;
    caterva_mode mode;
    caterva_durability durability;
} cv_described;

caterva_metalayer_kind cv_metalayer_kind(const cv_array_meta *meta);

/* A description with one reference; everything is copied. */
cv_status cv_description_create(const cv_described *from, cv_description **out,
                                cv_error *err);
void cv_description_release(const cv_description *description); /* NULL is fine */

/* Those that a handle keeps. */
typedef struct cv_descriptions {
    cv_mutex lock;
    cv_description *latest; /* NULL: of a state that nobody asked for yet */
} cv_descriptions;

void cv_descriptions_init(cv_descriptions *all);
void cv_descriptions_destroy(cv_descriptions *all);

/* The latest one with a reference added, or NULL. */
const cv_description *cv_descriptions_latest(cv_descriptions *all);

/* Makes `fresh` the latest one, unless another thread was first. */
void cv_descriptions_offer(cv_descriptions *all, cv_description *fresh);

/* The latest one is of the past: `fresh` takes its place, or, NULL, the one that is
 * offered next. */
void cv_descriptions_turn(cv_descriptions *all, cv_description *fresh);

/* Exchanges contents; nobody else may be using either. */
void cv_descriptions_swap(cv_descriptions *a, cv_descriptions *b);

#endif
