/* Room: frame. One request brings the end of a far frame, and with it all that an opening
 * needs: another one for the beginning would take as long again. */
#include "frame/far_header.h"

#include "format/frame_header.h"
#include "format/seal.h"

enum { MOST_TAIL = 64 * 1024 };

/* Trailer and footer are where the frame ends; the fingerprint must be of this header. */
static bool is_vouched(const uint8_t *tail, size_t size, int64_t pos,
                       const cv_header_copy *copy)
{
    uint32_t trailer_size;
    cv_frame_header header;
    cv_trailer trailer = {0};
    cv_seal_state state = CV_SEAL_NONE;
    if (cv_trailer_peek(tail + size - CV_TRAILER_TAIL, pos, &trailer_size, NULL) != CV_OK ||
        trailer_size > size - CV_SEAL_FOOTER ||
        cv_frame_header_parse(copy->header, copy->header_size, &header, NULL) != CV_OK)
        return false;
    const uint8_t *at = tail + size - trailer_size;
    if (cv_trailer_parse(at, trailer_size, 0, &trailer, NULL) == CV_OK)
        (void)cv_seal_root_check(at - CV_SEAL_FOOTER, trailer_size + CV_SEAL_FOOTER, &trailer,
                                 copy->header, &header, &state, NULL);
    cv_trailer_free(&trailer);
    return state == CV_SEAL_WHOLE;
}

cv_status cv_far_header(cv_store *store, uint64_t stored, cv_buffer *out, bool *found,
                        cv_error *err)
{
    size_t size = stored < MOST_TAIL ? (size_t)stored : MOST_TAIL, at = size;
    const uint8_t *tail = cv_store_view(store, CV_FRAME_OBJECT, stored - size, size);
    cv_header_copy copy;
    *found = false;
    if (!store->is_pinned || !tail || size < CV_TRAILER_MIN + CV_SEAL_FOOTER) return CV_OK;
    while (!*found && cv_header_copy_before(tail, size, stored - size, &at, &copy)) {
        cv_frame_header header;
        *found =
            cv_frame_header_parse(copy.header, copy.header_size, &header, NULL) == CV_OK &&
            header.frame_size == stored &&
            is_vouched(tail, size, (int64_t)stored - CV_TRAILER_TAIL, &copy);
    }
    return *found ? cv_buffer_append(out, copy.header, copy.header_size, err) : CV_OK;
}
