/* Members of an archive whose directory is lost. */
#ifndef CV_TREE_ZIP_RESCUE_H
#define CV_TREE_ZIP_RESCUE_H

#include "tree/zip_directory.h"

/* Finds members by the headers that stand before their data, in the order of the file; names
 * that lead elsewhere are passed over. The last one of an archive that was cut ends with the
 * file. Reads from member to member, and all bytes where no member begins. *is_all: nothing
 * else lay there, but what a directory begins with, or the end behind embed.b2e. */
cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err);

#endif
