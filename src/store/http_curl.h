/* libcurl, loaded when the first URL is opened and not before: the library itself needs it
 * neither to be built into a wheel nor to be started, and who reads no URLs need not have
 * it. With http_wire.c and http_flight.c all that knows it. */
#ifndef CV_STORE_HTTP_CURL_H
#define CV_STORE_HTTP_CURL_H

#include "base/status.h"

#ifdef CATERVA_HAS_CURL

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

/* Its functions, named as there without "curl_". */
typedef struct cv_curl {
    CURLcode (*global_init)(long flags);
    curl_version_info_data *(*version_info)(CURLversion age);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    void (*easy_reset)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    CURLcode (*easy_pause)(CURL *easy, int what);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned n, int ms,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *multi);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} cv_curl;

/* The same for all, ready for use by any thread. CATERVA_EUNSUPPORTED, with the name of what
 * is missing, when it cannot be loaded or is too old. */
cv_status cv_curl_load(const cv_curl **out, cv_error *err);

#endif
#endif
