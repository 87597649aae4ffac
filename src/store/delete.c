/* Room: store. Deleting an array, and nothing that is none. */
#include "store/place.h"
#include "store/sframe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int delete_directory(cv_place *place)
{
    int error = EEXIST;
    for (int tries = 0; error == EEXIST && tries < 100; tries++) {
        cv_os_temp_name(place->name, "deleted", place->temp);
        error = cv_os_rename_new_at(place->dir_fd, place->name, place->temp);
    }
    if (!error) cv_sframe_remove_at(place->dir_fd, place->temp);
    return error;
}

cv_status cv_store_delete(const char *path, cv_error *err)
{
    cv_place place;
    struct stat st;
    CV_TRY(cv_place_open(path, true, &place, err)); /* refuses what is no array */
    int error = fstatat(place.dir_fd, place.name, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    if (!error && S_ISDIR(st.st_mode))
        error = delete_directory(&place);
    else if (!error)
        error = unlinkat(place.dir_fd, place.name, 0) ? errno : 0;
    cv_status status = CV_OK;
    if (error) status = cv_fail_sys(err, error, "cannot delete %s", place.shown.text);
    cv_place_close(&place);
    return status;
}
