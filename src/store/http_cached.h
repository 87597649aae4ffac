/* Ranges of an object, read from a folder that keeps what was read before, and from the
 * server. */
#ifndef CV_STORE_HTTP_CACHED_H
#define CV_STORE_HTTP_CACHED_H

#include "store/http_piece.h"
#include "store/http_read.h"
#include "store/range_cache.h"

/* What was read of this version of the object, in the folder of the session's options, when
 * they name one. `end`: its last bytes, which tell versions apart; or NULL. NULL: nothing is
 * kept. */
cv_range_cache *cv_http_cache_open(const cv_http_object *object, const uint8_t *end,
                                   size_t end_size);

/* cv_http_begin, cv_http_read and cv_http_read_piece, of which only the server is asked for what is not in
 * the cache (NULL: everything), and what it says is kept there. With `is_anew` the server is
 * asked in any case. */
cv_status cv_http_cached_begin(const cv_http_window *window, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);
cv_status cv_http_cached_read(const cv_http_window *window, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);
cv_status cv_http_cached_piece(cv_http_object *object, cv_range_cache *cache,
                               const cv_ask *ask, cv_watch *watch, cv_http_piece *out,
                               bool *has_no_ranges, cv_error *err);

#endif
