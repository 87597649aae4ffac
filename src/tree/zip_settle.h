/* Members of an archive whose directory says something else than the headers before them. */
#ifndef CV_TREE_ZIP_SETTLE_H
#define CV_TREE_ZIP_SETTLE_H

#include "tree/zip_directory.h"

/* Makes the complete list say of each such member what fits its bytes: the header's word or the
 * directory's, whichever has the right checksum. What neither fits stays as the directory has it.
 * Names have no checksum: the header's counts where the directory's is another member's, too, or no
 * leaf's. Reads the header of each member, and the bytes of those alone. */
cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err);

#endif
