/* A finished part, opened to be merged: that it is what its token says is checked before
 * anything is read by it. And parts by their number, of which only some are open. */
#ifndef CV_ENGINE_PART_FILE_H
#define CV_ENGINE_PART_FILE_H

#include "engine/plan/marks.h"
#include "engine/read/source.h"
#include "format/part_token.h"

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

/* Part `number`, open until it is released. CATERVA_ENOTFOUND: it is not there;
 * CATERVA_ECORRUPT: it is not what its token says. Any thread. */
cv_status cv_part_files_take(cv_part_files *all, int64_t number, cv_part_file **out,
                             cv_error *err);
void cv_part_files_give(cv_part_files *all, cv_part_file *file); /* NULL is fine */

/* The number in the part of a chunk of the array that the token names. */
int64_t cv_part_file_chunk(const cv_part_file *file, const cv_grid *grid, int64_t chunk);

/* Puts the name of the part in front of a failure's sentence; returns the status. */
cv_status cv_fail_in_part(const cv_part_token *token, cv_status status, cv_error *err);

#endif
