/* A repair of a tree, and what it does of one member. */
#ifndef CV_ARRAY_TREE_REPAIR_MEMBER_H
#define CV_ARRAY_TREE_REPAIR_MEMBER_H

#include "array/array.h"
#include "tree/copy.h"
#include "tree/make.h"
#include "tree/tree.h"

typedef struct cv_tree_repair {
    caterva_tree_repair_options options;
    caterva_tree_repair_result result;
    cv_tree *tree;
    bool durable;
    cv_copy_watch watch;
    cv_new_directory made;        /* with an output */
    char *made_path;              /* of it; NULL: in place */
    caterva_tree_repaired member; /* the one that is looked at */
    char *beside;
    cv_error reason;
} cv_tree_repair;

/* Whether a failure is damage of the member. If not, it ends the repair: a member that cannot
 * be read may be sound. */
bool cv_tree_repair_is_damage(cv_status status);

/* The member gets this outcome, and the reason stands in r->reason. */
void cv_tree_repair_judge(cv_tree_repair *r, caterva_outcome outcome);

/* Repairs the array in the file `member`, and puts it where it goes. */
cv_status cv_tree_repair_array(cv_tree_repair *r, const cv_member *member, cv_error *err);

/* Looks at what is no array, and copies it to the output, if there is one. */
cv_status cv_tree_repair_other(cv_tree_repair *r, const cv_member *member, cv_error *err);

#endif
