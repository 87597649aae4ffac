/* One attempt of a request inside libcurl: what it is told, what it calls, how it ended. Used by
 * the thread of http_wire.c alone. */
#ifndef CV_STORE_HTTP_FLIGHT_H
#define CV_STORE_HTTP_FLIGHT_H

#include "store/http_curl.h"
#include "store/http_request.h"

#ifdef CATERVA_HAS_CURL

/* A request inside libcurl; outlives it when it is cancelled. */
typedef struct cv_flight {
    CURL *easy;
    struct curl_slist *fields;
    cv_wire *wire;                /* NULL: cancelled */
    uint64_t body_pos, body_size; /* of what is sent */
    bool is_paused, resumes;
    char reason[CURL_ERROR_SIZE]; /* libcurl's, in detail */
} cv_flight;

/* Sets all options of `easy`, which is new or reset, and those of the body. `may_share`: it waits
 * for a connection that others are making to its server rather than to make one of its own.
 * False: no memory. */
bool cv_flight_set(cv_flight *flight, const cv_curl *curl, const cv_wire_setup *setup,
                   bool may_share);

/* Its texts are libcurl's and the flight's, for as long as the handle is not used again. */
void cv_flight_end(const cv_flight *flight, const cv_curl *curl, CURLcode code,
                   cv_wire_end *end);

bool cv_flight_is_multiplexed(const cv_flight *flight, const cv_curl *curl);

#endif
#endif
