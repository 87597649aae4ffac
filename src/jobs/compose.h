/* One chunk put together of what several parts wrote of it, or one wrote in part, and of what
 * the array has. */
#ifndef CV_JOBS_COMPOSE_H
#define CV_JOBS_COMPOSE_H

#include "engine/pending/pending.h"
#include "engine/read/source.h"
#include "jobs/marks.h"
#include "jobs/record.h"

typedef struct cv_part_file {
    const cv_part_token *token; /* borrowed */
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_workers workers;
    cv_source source;
    cv_marks marks; /* in the numbers of the array */
    int users;
    uint64_t used; /* when, counted in openings */
} cv_part_file;

/* Parts of one job of the array at `path`, whose grid is that of the job. */
typedef struct cv_part_files {
    const char *path;
    const cv_grid *grid;
    const cv_part_token *tokens;
    int64_t n;
    bool checks, gives, is_durable; /* as in cv_source */
    cv_mutex lock;                  /* of all below */
    cv_part_file **files;           /* n, NULL: not open */
    int64_t *opened;                /* numbers of those that are */
    int64_t n_open;
    uint64_t clock;
} cv_part_files;

/* Borrows all of it. */
cv_status cv_part_files_init(cv_part_files *all, const cv_part_files *what, cv_error *err);
void cv_part_files_destroy(cv_part_files *all);

/* Opens part `number` until it is released. CATERVA_ENOTFOUND if missing, CATERVA_ECORRUPT if
 * it contradicts its token. Any thread. */
cv_status cv_part_files_take(cv_part_files *all, int64_t number, cv_part_file **out,
                             cv_error *err);
void cv_part_files_give(cv_part_files *all, cv_part_file *file); /* NULL is fine */

/* The number in the part of a chunk of the array that the token names. */
int64_t cv_part_file_chunk(const cv_part_file *file, const cv_grid *grid, int64_t chunk);

/* Puts the name of the part in front of a failure's sentence; returns the status. */
cv_status cv_fail_in_part(const cv_part_token *token, cv_status status, cv_error *err);

typedef struct cv_composition {
    cv_pending *target;
    int64_t chunk;              /* its number in the array */
    cv_part_file *const *files; /* the later lie over the earlier */
    int64_t n;
    int64_t n_side;    /* chunks that are worked on side by side */
    int64_t n_decoded; /* out: blocks decoded to be put together */
    bool spliced;      /* out: the others kept their bytes */
} cv_composition;

/* Puts the chunk into the target's transaction. Any thread, with a worker of the target. */
cv_status cv_compose_chunk(cv_composition *c, cv_worker *worker, cv_error *err);

/* Whether the array holds all that the parts wrote of the chunk; nothing is put. */
cv_status cv_compose_is_done(const cv_composition *c, cv_worker *worker, bool *done,
                             cv_error *err);

/* Two of the files that wrote the same item of a chunk, and the block; false: there are none. */
bool cv_compose_meet(const cv_composition *c, int64_t *a, int64_t *b, int64_t *block);

#endif
