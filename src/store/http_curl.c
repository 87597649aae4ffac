/* Room: store. Finding libcurl and its functions. They are looked up by name, so that what
 * they are is checked by the compiler against curl.h, and where they are by the system. */
#include "store/http_curl.h"

#ifdef CATERVA_HAS_CURL

#include "base/os_process.h"
#include "base/thread.h"

#include <stddef.h>
#include <stdio.h>

/* Its interface has had this number since 2006. */
static const char *const names[] = {"libcurl.so.4",    "libcurl-gnutls.so.4", "libcurl.so",
                                    "libcurl.4.dylib", "libcurl.dylib",       NULL};

/* curl_multi_wakeup is of 7.68. */
enum { LEAST_VERSION = 0x074400 };

static struct {
    cv_once once;
    cv_curl curl;
    cv_status status;
    cv_error error;
} loaded = {.once = CV_ONCE_INIT};

#define ENTRY(name)                                                                          \
    {                                                                                        \
        "curl_" #name, offsetof(cv_curl, name)                                               \
    }
static const struct {
    const char *name;
    size_t at;
} functions[] = {
    ENTRY(global_init),   ENTRY(version_info),     ENTRY(easy_init),
    ENTRY(easy_cleanup),  ENTRY(easy_reset),       ENTRY(easy_setopt),
    ENTRY(easy_getinfo),  ENTRY(easy_strerror),    ENTRY(multi_init),
    ENTRY(multi_setopt),  ENTRY(multi_add_handle), ENTRY(multi_remove_handle),
    ENTRY(multi_perform), ENTRY(multi_info_read),  ENTRY(multi_poll),
    ENTRY(multi_wakeup),  ENTRY(slist_append),     ENTRY(slist_free_all),
    ENTRY(easy_pause),
};

static cv_status find_functions(cv_library library, cv_error *err)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!cv_library_find(library, functions[i].name,
                             (char *)&loaded.curl + functions[i].at))
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "URLs need libcurl 7.68 or newer: the one that is here has no %s",
                           functions[i].name);
    return CV_OK;
}

static cv_status load(cv_error *err)
{
    cv_library library;
    if (!cv_library_load(names, &library))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl, which is not installed: %s (package libcurl4) "
                       "was not found",
                       names[0]);
    CV_TRY(find_functions(library, err));
    const curl_version_info_data *version = loaded.curl.version_info(CURLVERSION_NOW);
    if (version->version_num < LEAST_VERSION)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "URLs need libcurl 7.68 or newer, this is %s", version->version);
    if (loaded.curl.global_init(CURL_GLOBAL_ALL) == CURLE_OK) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "libcurl %s does not start", version->version);
}

static void load_once(void) { loaded.status = load(&loaded.error); }

cv_status cv_curl_load(const cv_curl **out, cv_error *err)
{
    cv_once_run(&loaded.once, load_once);
    *out = &loaded.curl;
    if (loaded.status != CV_OK && err) *err = loaded.error;
    return loaded.status;
}

#else

/* Who asks is told by http.c. */
typedef int cv_no_curl;

#endif
