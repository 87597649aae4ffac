/* Room: remote. Parses multipart/byteranges bodies as they arrive (RFC 9110 section 14.6). The end
 * of a body part is known from its Content-Range, so that bytes of an object cannot be mistaken for
 * a boundary. If no boundary follows there, the bytes were not the object's. Pure, with a fuzz
 * target. fetch.c decides which bytes were requested and what is kept.
 *
 *     PREAMBLE --boundary--> IN_HEADER --empty line--> IN_BODY --last byte--> BEHIND
 *                                ^                                              |
 *                                '----------------- boundary ------------------'--> EPILOGUE */
#include "remote/http.h"

#include <string.h>

/* Put before a part's header, so that cv_reply_parse accepts the header. */
static const char status_line[] = "HTTP/1.1 206 Part\r\n";

static void begin_text(cv_multipart *b, cv_part_state state)
{
    b->state = state;
    b->line = b->size = 0;
    b->has_gap = false;
    if (state != CV_PART_IN_HEADER) return;
    memcpy(b->text, status_line, sizeof status_line - 1);
    b->line = b->size = sizeof status_line - 1;
}

void cv_multipart_begin(cv_multipart *b, const char *boundary)
{
    b->pos = b->end = b->total = 0;
    b->n_outside = 0;
    memcpy(b->boundary, boundary, strlen(boundary) + 1);
    begin_text(b, CV_PART_PREAMBLE);
}

static cv_part_event bad(cv_multipart *b)
{
    b->state = CV_PART_BROKEN;
    return CV_PART_BAD;
}

/* ---- Lines ------------------------------------------------------------------------------ */

static bool take_part_line(cv_multipart *b, const uint8_t *bytes, size_t size, size_t *n)
{
    const uint8_t *end = memchr(bytes, '\n', size);
    *n = end ? (size_t)(end - bytes) + 1 : size;
    if (*n > sizeof b->text - b->size) {
        b->state = CV_PART_BROKEN;
        return false;
    }
    memcpy(b->text + b->size, bytes, *n);
    b->size += *n;
    return end != NULL;
}

static size_t line_size(const cv_multipart *b)
{
    size_t size = b->size - b->line;
    const char *line = b->text + b->line;
    while (size > 0 && strchr("\r\n \t", line[size - 1]) && line[size - 1]) size--;
    return size;
}

/* "--boundary" begins a part; "--boundary--" ends the body. */
static bool is_boundary(const cv_multipart *b, bool *is_last)
{
    const char *line = b->text + b->line;
    size_t size = line_size(b), name = strlen(b->boundary);
    if (size < name + 2 || memcmp(line, "--", 2) != 0) return false;
    if (memcmp(line + 2, b->boundary, name) != 0) return false;
    *is_last = size == name + 4 && memcmp(line + 2 + name, "--", 2) == 0;
    return *is_last || size == name + 2;
}

static cv_part_event begin_part(cv_multipart *b)
{
    cv_reply head;
    if (cv_reply_parse(b->text, b->size, &head, NULL) != CV_OK) return bad(b);
    if (!head.has_range || head.is_malformed || head.is_encoded || head.is_multipart)
        return bad(b);
    if (head.total == UINT64_MAX) return bad(b);
    if (head.has_length && head.length != head.last - head.first + 1) return bad(b);
    b->pos = head.first;
    b->end = head.last + 1;
    b->total = head.total;
    b->has_returns = b->text[b->size - 2] == '\r';
    b->state = CV_PART_IN_BODY;
    return CV_PART_BEGINS;
}

/* Whether the line is empty and ends like the lines of the part's header. If LF were accepted for
 * CR LF, the CR could be the last byte of a part that is one byte too short. */
static bool is_line_end(const cv_multipart *b)
{
    size_t size = b->size - b->line;
    return b->has_returns ? size == 2 && b->text[b->line] == '\r' : size == 1;
}

static cv_part_event end_line(cv_multipart *b)
{
    bool is_last, is_empty = line_size(b) == 0;
    if (b->state == CV_PART_IN_HEADER && is_empty) return begin_part(b);
    if (b->state == CV_PART_IN_HEADER) {
        b->line = b->size;
        return CV_PART_MORE;
    }
    bool is_behind = b->state == CV_PART_BEHIND, is_gap = is_behind && is_line_end(b);
    if (is_behind && is_gap == b->has_gap) return bad(b);
    if (is_boundary(b, &is_last)) {
        begin_text(b, is_last ? CV_PART_EPILOGUE : CV_PART_IN_HEADER);
        return is_behind ? CV_PART_ENDS : CV_PART_MORE;
    }
    if (is_behind && !is_gap) return bad(b);
    begin_text(b, b->state);
    b->has_gap = is_gap;
    return CV_PART_MORE;
}

static bool count_outside(cv_multipart *b, size_t n)
{
    b->n_outside += n <= CV_PART_HEADER_SIZE ? n : CV_PART_HEADER_SIZE + 1;
    return b->n_outside <= CV_PART_HEADER_SIZE;
}

cv_part_event cv_multipart_next(cv_multipart *b, const uint8_t *bytes, size_t size, size_t *n)
{
    cv_part_event event = CV_PART_MORE;
    size_t done = 0, used;
    *n = 0;
    while (event == CV_PART_MORE && done < size) {
        if (b->state == CV_PART_BROKEN) return CV_PART_BAD;
        if (b->state == CV_PART_IN_BODY && b->pos < b->end) {
            uint64_t left = b->end - b->pos;
            if (done == 0) *n = left < size ? (size_t)left : size;
            return done == 0 ? CV_PART_BYTES : CV_PART_MORE;
        }
        if (b->state == CV_PART_IN_BODY) begin_text(b, CV_PART_BEHIND);
        if (b->state == CV_PART_EPILOGUE) {
            *n = size;
            return count_outside(b, size - done) ? CV_PART_MORE : bad(b);
        }
        bool is_before = b->state == CV_PART_PREAMBLE;
        bool is_line = take_part_line(b, bytes + done, size - done, &used);
        done += used;
        *n = done;
        if (b->state == CV_PART_BROKEN) return CV_PART_BAD;
        if (is_before && !count_outside(b, used)) return bad(b);
        if (is_line) event = end_line(b);
    }
    return event;
}

void cv_multipart_take(cv_multipart *b, size_t n) { b->pos += n; }

bool cv_multipart_end(cv_multipart *b)
{
    bool is_last = false;
    bool ends =
        b->state == CV_PART_BEHIND && b->has_gap && is_boundary(b, &is_last) && is_last;
    if (ends) b->state = CV_PART_EPILOGUE;
    return ends;
}
