/* Any bytes as a multipart/byteranges body, received in pieces that the input chooses. Each
 * byte of a range is one that a body part contained, and none is received twice. Other
 * pieces, or a pause, give the same result. The first bytes choose ranges and pieces. */
#include "fuzz.h"

#include "remote/http.h"

enum { N = 4, OBJECT = 256 };

typedef struct received {
    cv_byte_range spans[N];
    int taken[OBJECT]; /* byte + 1; 0: not received */
    int n_ends;
    bool is_bad;
} received;

static void receive_part(received *h, cv_multipart *body, const uint8_t *bytes, size_t n)
{
    uint64_t first, last;
    FUZZ_NEED(n > 0 && n <= body->end - body->pos, "%zu bytes of a part", n);
    for (size_t i = 0; i < N; i++) {
        i = cv_ranges_take(h->spans, N, i, body->pos, body->pos + n, &first, &last);
        if (i == N) break;
        FUZZ_NEED(first < last && last <= body->pos + n && last <= h->spans[i].end,
                  "bytes of another range");
        for (uint64_t at = first; at < last; at++) {
            FUZZ_NEED(h->taken[at] == 0, "byte %llu twice", (unsigned long long)at);
            h->taken[at] = bytes[at - body->pos] + 1;
        }
    }
    cv_multipart_take(body, n);
}

/* Takes at most `most` bytes of a body part at a time. */
static void receive(received *h, const uint8_t *bytes, size_t size, size_t piece, size_t most)
{
    cv_multipart body;
    cv_multipart_begin(&body, "b");
    for (size_t at = 0, n; at < size && !h->is_bad; at += n) {
        size_t given = size - at < piece ? size - at : piece;
        uint8_t *copy = fuzz_alloc(given);
        memcpy(copy, bytes + at, given);
        cv_part_event event = cv_multipart_next(&body, copy, given, &n);
        FUZZ_NEED(n <= given, "%zu bytes of %zu", n, given);
        if (event == CV_PART_BEGINS)
            FUZZ_NEED(body.pos < body.end && body.end <= body.total, "a part outside");
        if (event == CV_PART_BYTES) {
            n = n < most ? n : most;
            receive_part(h, &body, copy, n);
        }
        FUZZ_NEED(event != CV_PART_ENDS || body.pos == body.end,
                  "a part that is not over ends");
        h->n_ends += event == CV_PART_ENDS;
        h->is_bad = event == CV_PART_BAD;
        FUZZ_NEED(h->is_bad || n > 0, "nothing is used");
        free(copy);
    }
    h->n_ends += cv_multipart_end(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    received one = {.is_bad = false}, other;
    if (size < N + 2) return 0;
    uint64_t at = 0;
    for (int i = 0; i < N; i++) {
        at += bytes[i] & 15;
        one.spans[i] = (cv_byte_range){at, at + 1 + (bytes[i] >> 4), at};
        at = one.spans[i].end;
    }
    other = one;
    receive(&one, bytes + N + 2, size - N - 2, SIZE_MAX, SIZE_MAX);
    receive(&other, bytes + N + 2, size - N - 2, 1 + bytes[N], 1 + bytes[N + 1] % 16);
    FUZZ_NEED(memcmp(&one, &other, sizeof one) == 0, "it depends on the pieces");
    return 0;
}
