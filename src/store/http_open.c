/* Room: store. Which object or directory a URL names, found by asking for it. */
#include "store/http_open.h"

#include "base/heap.h"
#include "store/http.h"
#include "store/sframe.h"

bool cv_store_is_url(const char *url) { return cv_url_scheme(url) != CV_SCHEME_NONE; }

static cv_status open_object(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err)
{
    cv_http_file *file = NULL;
    CV_TRY(cv_http_file_open(session, url, "", offset, watch, &file, err));
    return cv_store_http_new(file, NULL, url, offset, out, err);
}

static cv_status open_directory(cv_session *session, const char *url, cv_watch *watch,
                                cv_store **out, cv_error *err)
{
    cv_http_file *file = NULL;
    cv_http_chunks *chunks = NULL;
    CV_TRY(cv_http_file_open(session, url, "/" CV_SFRAME_FRAME, 0, watch, &file, err));
    cv_status status = cv_http_chunks_new(session, url, &chunks, err);
    if (status == CV_OK) return cv_store_http_new(file, chunks, url, 0, out, err);
    cv_http_file_release(file);
    return status;
}

cv_status cv_store_http_begin(const char *url, const caterva_remote_options *options,
                              cv_session **out, cv_error *err)
{
    return cv_session_new(options, cv_url_scheme(url) == CV_SCHEME_S3, out, err);
}

/* A name that ends with a slash is a directory's; one that leads to nothing may be. */
cv_status cv_store_http_open(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err)
{
    char *stripped;
    bool has_slash;
    cv_error reason = {0};
    CV_TRY(cv_url_strip(url, &stripped, &has_slash, err));
    cv_status status = CATERVA_ENOTFOUND;
    if (!has_slash) status = open_object(session, url, offset, watch, out, &reason);
    bool is_other = status == CATERVA_ENOTFOUND && offset == 0;
    if (is_other) {
        cv_error ignored = {0};
        status =
            open_directory(session, stripped, watch, out, has_slash ? &reason : &ignored);
    }
    cv_free(stripped);
    if (status != CV_OK && err) *err = reason;
    return status == CV_OK ? CV_OK : reason.code;
}

cv_status cv_store_http_again(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err)
{
    cv_http_given given;
    *out = NULL;
    if (!cv_store_http_given(store, &given)) return CV_OK;
    cv_session *session = cv_store_http_session(store);
    return given.is_directory
               ? open_directory(session, given.url, watch, out, err)
               : open_object(session, given.url, given.offset, watch, out, err);
}
