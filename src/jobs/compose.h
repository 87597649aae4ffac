/* Composes one chunk from the array's items and the items that one or several parts wrote. */
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
    cv_marks marks; /* with chunk numbers of the array */
    int users;
    uint64_t used; /* clock of cv_part_files when it was last taken */
} cv_part_file;

/* The parts of one job. `path` is the array's; `grid` is that of the array with the job's shape. */
typedef struct cv_part_files {
    const char *path;
    const cv_grid *grid;
    const cv_part_token *tokens;
    int64_t n;
    bool checks, gives, is_durable; /* as in cv_source */
    cv_mutex lock;                  /* protects the members below */
    cv_part_file **files;           /* n entries; NULL: not open */
    int64_t *opened;                /* numbers of the parts that are open */
    int64_t n_open;
    uint64_t clock;
} cv_part_files;

/* Initialises from the members of `what` above the lock. Borrows what they point to. */
cv_status cv_part_files_init(cv_part_files *all, const cv_part_files *what, cv_error *err);
void cv_part_files_destroy(cv_part_files *all);

/* Opens part `number` unless it is open. It stays open until it is given back. CATERVA_ENOTFOUND if
 * its file is missing, CATERVA_ECORRUPT if the file contradicts its token. Any thread. */
cv_status cv_part_files_take(cv_part_files *all, int64_t number, cv_part_file **out,
                             cv_error *err);
void cv_part_files_give(cv_part_files *all, cv_part_file *file); /* NULL is fine */

/* Converts the number of a chunk in the array, which the token lists, to that in the part. */
int64_t cv_part_file_chunk(const cv_part_file *file, const cv_grid *grid, int64_t chunk);

/* Prefixes a failure's message with the part's name. Returns `status`; EUNSUPPORTED as ECORRUPT. */
cv_status cv_fail_in_part(const cv_part_token *token, cv_status status, cv_error *err);

typedef struct cv_composition {
    cv_pending *target;
    int64_t chunk;              /* number in the array */
    cv_part_file *const *files; /* later files override earlier ones */
    int64_t n;
    int64_t n_side;    /* chunks that are composed in parallel */
    int64_t n_decoded; /* out: blocks that were decoded */
    bool spliced;      /* out: the other blocks were copied as stored */
} cv_composition;

/* Composes the chunk and puts it into the transaction. Any thread, with a worker of the target. */
cv_status cv_compose_chunk(cv_composition *c, cv_worker *worker, cv_error *err);

/* Returns in *done whether the array's chunk already has all items of the parts. Puts nothing. */
cv_status cv_compose_is_done(const cv_composition *c, cv_worker *worker, bool *done,
                             cv_error *err);

/* Finds two files that wrote the same item, and its block. False if no two files did. */
bool cv_compose_meet(const cv_composition *c, int64_t *a, int64_t *b, int64_t *block);

#endif
