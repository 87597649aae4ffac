/* The wings of this build. This file includes the faces of all wings; no other file depends on
 * it. */
#include "array/wings.h"

#include "jobs/jobs.h"
#include "remote/remote.h"
#include "tree/tree.h"

#ifdef CATERVA_REMOTE
static const cv_remote_calls remote_calls = {
    .begin = cv_session_begin,
    .retain = cv_session_retain,
    .release = cv_session_release,
    .open = cv_remote_open,
    .reopen = cv_remote_reopen,
    .part = cv_remote_part,
    .session = cv_remote_session,
};
#define REMOTE &remote_calls
#else
#define REMOTE NULL
#endif

#ifdef CATERVA_TREES
static const cv_tree_calls tree_calls = {
    .open_leaf = cv_tree_open_leaf_url,
    .leaf_place = cv_tree_leaf_place,
    .leaf_file = cv_tree_leaf_file,
    .parts_place = cv_tree_parts_place,
    .is_tree = cv_is_tree,
    .pack_for_zarr = cv_tree_pack_for_zarr,
    .archive_open = cv_archive_open,
    .archive_check = cv_archive_check,
    .archive_close = cv_archive_close,
};
#define TREES &tree_calls
#else
#define TREES NULL
#endif

#ifdef CATERVA_JOBS
static const cv_jobs_calls jobs_calls = {
    .committed = cv_jobs_committed,
    .check_none = cv_jobs_check_none,
    .has_folder = cv_jobs_has_folder,
};
#define JOBS &jobs_calls
#else
#define JOBS NULL
#endif

const struct cv_wings cv_wings = {.remote = REMOTE, .tree = TREES, .jobs = JOBS};
