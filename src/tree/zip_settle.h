/* Members of an archive whose directory says something else than the headers before them. */
#ifndef CV_TREE_ZIP_SETTLE_H
#define CV_TREE_ZIP_SETTLE_H

#include "tree/zip_directory.h"

/* Makes the complete list say of each such member what fits its bytes: the header's word or the
 * directory's, whichever has the right checksum. What neither fits stays as the directory has it.
 * Names have no checksum: where there are two, the one that makes more sense counts, and the
 * member keeps the other one (cv_members_other_name). A name of attributes or embed.b2e comes before
 * a leaf's in a group that has other members, any leaf's before one that is none, and that before
 * another member's; between equal ones the directory's counts. Reads the header of each member, and the bytes of those alone. */
cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err);

#endif
