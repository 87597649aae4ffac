/* Room: store. The file of an upload that is not finished. It holds no credentials. */
#include "store/upload_state.h"

#include "base/os_dir.h"
#include "store/descriptors.h"
#include "store/refusals.h"

#include <stdio.h>
#include <string.h>

static const char first_line[] = "caterva upload 1\n";

enum { ROOM = sizeof first_line + sizeof(cv_upload_state) + 8 };

static bool is_word(const char *text, size_t size, bool is_hex)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (is_hex ? !is_digit : (unsigned char)c <= 0x20 || (unsigned char)c >= 0x7f)
            return false;
    }
    return size > 0;
}

/* Copies a word up to `end` and goes behind that. */
static bool take(const char **at, char end, char *out, size_t room)
{
    const char *to = strchr(*at, end);
    if (!to || (size_t)(to - *at) >= room) return false;
    memcpy(out, *at, (size_t)(to - *at));
    out[to - *at] = '\0';
    *at = to + 1;
    return true;
}

static bool parse(const char *text, cv_upload_state *out)
{
    const char *at = text + sizeof first_line - 1;
    if (strncmp(text, first_line, sizeof first_line - 1) != 0) return false;
    if (!take(&at, ' ', out->file, sizeof out->file) ||
        !take(&at, ' ', out->url, sizeof out->url) ||
        !take(&at, ' ', out->part_size, sizeof out->part_size) ||
        !take(&at, '\n', out->write_id, sizeof out->write_id) ||
        !take(&at, '\n', out->upload_id, sizeof out->upload_id) || *at)
        return false;
    return strlen(out->file) == CV_SHA256_HEX - 1 && strlen(out->url) == CV_SHA256_HEX - 1 &&
           strlen(out->write_id) == CV_WRITE_ID_SIZE - 1 &&
           is_word(out->file, CV_SHA256_HEX - 1, true) &&
           is_word(out->url, CV_SHA256_HEX - 1, true) &&
           is_word(out->part_size, strlen(out->part_size), true) &&
           is_word(out->write_id, CV_WRITE_ID_SIZE - 1, true) &&
           is_word(out->upload_id, strlen(out->upload_id), false);
}

cv_status cv_upload_state_read(const char *path, cv_upload_state *out, bool *is_there,
                               cv_error *err)
{
    cv_file file;
    char text[ROOM];
    size_t done = 0;
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_READ, 0, &file);
    *is_there = error != ENOENT;
    if (error == ENOENT) return CV_OK;
    if (error) return cv_fail_open(err, error, path);
    error = cv_file_read(file, text, sizeof text - 1, 0, &done);
    cv_file_close(&file);
    if (error) return cv_fail_sys(err, error, "cannot read %s", cv_show_path(path).text);
    text[done] = '\0';
    if (strlen(text) == done && parse(text, out)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "%s is not the state of an upload",
                   cv_show_path(path).text);
}

cv_status cv_upload_state_write(const char *path, const cv_upload_state *s, cv_error *err)
{
    cv_file file;
    char text[ROOM];
    int size = snprintf(text, sizeof text, "%s%s %s %s %s\n%s\n", first_line, s->file, s->url,
                        s->part_size, s->write_id, s->upload_id);
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW,
                             0600, &file);
    if (!error) {
        error = cv_file_write(file, text, (size_t)size, 0);
        cv_file_close(&file);
    }
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot write the upload's state to %s",
                       cv_show_path(path).text);
}

void cv_upload_state_remove(const char *path) { (void)cv_dir_remove(cv_dir_here, path); }
