/* The registry of this build: which wings it has. Nothing includes this; all the rooms together
 * need it. */
#include "array/wings.h"

#include "jobs/jobs.h"
#include "remote/remote.h"
#include "tree/tree.h"

#ifdef CATERVA_HAS_REMOTE
static const cv_remote_calls remote = {
    .begin = cv_session_begin,
    .retain = cv_session_retain,
    .release = cv_session_release,
    .open = cv_remote_open,
    .reopen = cv_remote_reopen,
    .part = cv_remote_part,
    .session = cv_remote_session,
    .transfers = cv_remote_transfers,
};
#endif

#ifdef CATERVA_HAS_TREES
static const cv_tree_calls tree = {
    .open_leaf = cv_tree_open_leaf_url,
    .leaf_place = cv_tree_leaf_place,
    .leaf_file = cv_tree_leaf_file,
    .parts_place = cv_tree_parts_place,
};
#endif

#ifdef CATERVA_HAS_JOBS
static const cv_jobs_calls jobs = {
    .committed = cv_jobs_committed,
    .check_none = cv_jobs_check_none,
    .has_folder = cv_jobs_has_folder,
};
#endif

const struct cv_wings cv_wings = {
#ifdef CATERVA_HAS_REMOTE
    .remote = &remote,
#endif
#ifdef CATERVA_HAS_TREES
    .tree = &tree,
#endif
#ifdef CATERVA_HAS_JOBS
    .jobs = &jobs,
#endif
};
