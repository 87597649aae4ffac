/* Room: value. MessagePack written. A head says a number that is known only at the end:
 * heads are kept aside and put between the other bytes when all is there. */
#include "value/pack.h"

#include "base/heap.h"

#include <string.h>

enum { HEAD_BYTES = 10 }; /* at most: ext32 of a set, and its list */

static bool failed(const cv_packer *p) { return p->status != CV_OK || p->too_deep; }

static void append(cv_packer *p, const void *bytes, size_t size)
{
    if (!failed(p)) p->status = cv_buffer_append(&p->body, bytes, size, &p->error);
}

/* A type byte and `size` bytes of a number, the highest first. */
static size_t put_number(uint8_t *to, uint8_t type, uint64_t value, int size)
{
    to[0] = type;
    for (int i = 0; i < size; i++) to[1 + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    return 1 + (size_t)size;
}

static void append_number(cv_packer *p, uint8_t type, uint64_t value, int size)
{
    uint8_t bytes[9];
    append(p, bytes, put_number(bytes, type, value, size));
}

static void count_value(cv_packer *p)
{
    if (p->depth > 0 && !failed(p)) p->heads[p->open[p->depth - 1]].count++;
}

/* Where types for 1, 2 and 4 bytes of a count follow each other. */
static size_t put_count(uint8_t *to, uint8_t type, uint64_t count)
{
    if (count <= UINT8_MAX) return put_number(to, type, count, 1);
    if (count <= UINT16_MAX) return put_number(to, type + 1, count, 2);
    return put_number(to, type + 2, count, 4);
}

static void check_count(cv_packer *p, uint64_t count)
{
    if (count > UINT32_MAX && !failed(p))
        p->status = cv_fail(&p->error, CATERVA_EINVAL, -1,
                            "a value of %llu parts: MessagePack has %llu at most",
                            (unsigned long long)count, (unsigned long long)UINT32_MAX);
}

/* ---- Scalars ------------------------------------------------------------ */

void cv_pack_nil(cv_packer *p)
{
    count_value(p);
    append(p, "\xc0", 1);
}

void cv_pack_bool(cv_packer *p, bool value)
{
    count_value(p);
    append(p, value ? "\xc3" : "\xc2", 1);
}

void cv_pack_uint(cv_packer *p, uint64_t value)
{
    count_value(p);
    if (value < 0x80)
        append(p, &(uint8_t){(uint8_t)value}, 1);
    else if (value <= UINT8_MAX)
        append_number(p, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        append_number(p, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        append_number(p, 0xce, value, 4);
    else
        append_number(p, 0xcf, value, 8);
}

void cv_pack_int(cv_packer *p, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (value >= 0) {
        cv_pack_uint(p, bits);
        return;
    }
    count_value(p);
    if (value >= -32)
        append(p, &(uint8_t){(uint8_t)bits}, 1);
    else if (value >= INT8_MIN)
        append_number(p, 0xd0, bits, 1);
    else if (value >= INT16_MIN)
        append_number(p, 0xd1, bits, 2);
    else if (value >= INT32_MIN)
        append_number(p, 0xd2, bits, 4);
    else
        append_number(p, 0xd3, bits, 8);
}

void cv_pack_real(cv_packer *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    count_value(p);
    append_number(p, 0xcb, bits, 8);
}

/* ---- Bytes -------------------------------------------------------------- */

void cv_pack_text(cv_packer *p, const void *text, size_t size)
{
    uint8_t head[5];
    count_value(p);
    check_count(p, size);
    if (size < 32) {
        head[0] = (uint8_t)(0xa0 | size);
        append(p, head, 1);
    } else {
        append(p, head, put_count(head, 0xd9, size));
    }
    append(p, text, size);
}

/* Much of it in pieces, where somebody listens. */
static void append_told(cv_packer *p, const uint8_t *bytes, size_t size)
{
    enum { PIECE = 1 << 20 };
    if (!failed(p) && size > 0)
        p->status = cv_buffer_reserve(&p->body, p->body.size + size, &p->error);
    while (size > 0 && !failed(p)) {
        size_t n = size < PIECE || !p->watch ? size : PIECE;
        append(p, bytes, n);
        bytes += n;
        size -= n;
        if (!failed(p) && (!p->only_asks || n == PIECE))
            p->status = cv_watch_step(p->watch, p->only_asks ? 0 : (int64_t)n, &p->error);
    }
}

void cv_pack_binary_head(cv_packer *p, size_t size)
{
    uint8_t head[5];
    count_value(p);
    check_count(p, size);
    append(p, head, put_count(head, 0xc4, size));
}

void cv_pack_binary(cv_packer *p, const void *bytes, size_t size)
{
    cv_pack_binary_head(p, size);
    append_told(p, bytes, size);
}

static size_t put_ext(uint8_t *to, int type, uint64_t size)
{
    static const uint8_t short_forms[] = {
        [1] = 0xd4, [2] = 0xd5, [4] = 0xd6, [8] = 0xd7, [16] = 0xd8};
    size_t n = 1;
    if (size < sizeof short_forms && short_forms[size])
        to[0] = short_forms[size];
    else
        n = put_count(to, 0xc7, size);
    to[n] = (uint8_t)type;
    return n + 1;
}

void cv_pack_ext(cv_packer *p, int type, const void *bytes, size_t size)
{
    cv_pack_ext_of_two(p, type, NULL, bytes, size);
}

void cv_pack_ext_of_two(cv_packer *p, int type, const cv_buffer *first, const void *bytes,
                        size_t size)
{
    uint8_t head[6];
    size_t before = first ? first->size : 0;
    count_value(p);
    check_count(p, (uint64_t)before + size);
    append(p, head, put_ext(head, type, (uint64_t)before + size));
    if (first) append(p, first->data, before);
    append_told(p, bytes, size);
}

void cv_pack_value(cv_packer *p, const void *bytes, size_t size)
{
    count_value(p);
    append(p, bytes, size);
}

/* ---- What has parts ----------------------------------------------------- */

static bool reserve_head(cv_packer *p)
{
    if (p->n_heads < p->heads_capacity) return true;
    size_t old = p->heads_capacity * sizeof p->heads[0];
    size_t n = p->heads_capacity > 0 ? p->heads_capacity * 2 : 16;
    cv_pack_head *more = cv_realloc(p->heads, old, n * sizeof p->heads[0]);
    if (!more) {
        p->status = cv_fail_memory(&p->error, n * sizeof p->heads[0], "a value");
        return false;
    }
    p->heads = more;
    p->heads_capacity = n;
    return true;
}

void cv_pack_begin(cv_packer *p, cv_pack_kind kind)
{
    if (p->depth == CV_VALUE_DEPTH) p->too_deep = true;
    count_value(p);
    if (failed(p) || !reserve_head(p)) return;
    p->heads[p->n_heads] = (cv_pack_head){.kind = kind, .at = p->body.size};
    p->open[p->depth++] = p->n_heads++;
}

void cv_pack_end(cv_packer *p)
{
    if (failed(p)) return;
    cv_pack_head *head = &p->heads[p->open[--p->depth]];
    head->end = p->body.size;
    head->next = p->n_heads;
    check_count(p, head->count);
}

void cv_pack_free(cv_packer *p)
{
    cv_buffer_free(&p->body);
    cv_free(p->heads);
    *p = (cv_packer){.status = CV_OK};
}

/* ---- The result --------------------------------------------------------- */

static size_t put_list(uint8_t *to, uint64_t count)
{
    if (count > 15)
        return put_number(to, count > UINT16_MAX ? 0xdd : 0xdc, count,
                          count > UINT16_MAX ? 4 : 2);
    to[0] = (uint8_t)(0x90 | count);
    return 1;
}

/* `inside`: bytes that stand behind the head of a set, but for that of its list. */
static size_t put_head(uint8_t *to, const cv_pack_head *head, uint64_t inside)
{
    uint64_t pairs = head->count / 2;
    uint8_t list[5];
    size_t n, size;
    switch (head->kind) {
    case CV_PACK_LIST: return put_list(to, head->count);
    case CV_PACK_MAP:
        if (pairs > 15)
            return put_number(to, pairs > UINT16_MAX ? 0xdf : 0xde, pairs,
                              pairs > UINT16_MAX ? 4 : 2);
        to[0] = (uint8_t)(0x80 | pairs);
        return 1;
    default:
        size = put_list(list, head->count);
        n = put_ext(to, CV_EXT_SET, inside + size);
        memcpy(to + n, list, size);
        return n + size;
    }
}

/* sizes[i]: bytes of the heads from i on. A set's depends on those inside it, which come
 * behind it: backwards, each is known when it is needed. */
static void measure_heads(const cv_packer *p, uint64_t *sizes)
{
    uint8_t scratch[16];
    _Static_assert(sizeof scratch >= HEAD_BYTES + 1, "a head fits");
    sizes[p->n_heads] = 0;
    for (size_t i = p->n_heads; i-- > 0;) {
        const cv_pack_head *h = &p->heads[i];
        uint64_t inside = h->end - h->at + sizes[i + 1] - sizes[h->next];
        sizes[i] = sizes[i + 1] + put_head(scratch, h, inside);
    }
}

static void merge(const cv_packer *p, const uint64_t *sizes, uint8_t *to)
{
    size_t from = 0;
    for (size_t i = 0; i <= p->n_heads; i++) {
        const cv_pack_head *h = &p->heads[i];
        size_t until = i < p->n_heads ? h->at : p->body.size;
        if (until > from) memcpy(to, p->body.data + from, until - from);
        to += until - from;
        from = until;
        if (i == p->n_heads) break;
        to += put_head(to, h, h->end - h->at + sizes[i + 1] - sizes[h->next]);
    }
}

static cv_status finish(cv_packer *p, cv_buffer *out, cv_error *err)
{
    if (p->n_heads == 0 && out->size == 0) {
        const cv_buffer body = p->body;
        p->body = *out;
        *out = body;
        return CV_OK;
    }
    if (p->n_heads == 0) return cv_buffer_append(out, p->body.data, p->body.size, err);
    size_t old = out->size, wanted = (p->n_heads + 1) * sizeof(uint64_t);
    uint64_t *sizes = cv_malloc(wanted);
    if (!sizes) return cv_fail_memory(err, wanted, "a value");
    measure_heads(p, sizes);
    cv_status status = CV_OK;
    if (p->body.size + sizes[0] > UINT32_MAX)
        status = cv_fail(err, CATERVA_EINVAL, -1, "a value of %llu bytes: %llu is the most",
                         (unsigned long long)(p->body.size + sizes[0]),
                         (unsigned long long)UINT32_MAX);
    if (status == CV_OK)
        status = cv_buffer_resize(out, old + p->body.size + (size_t)sizes[0], err);
    if (status == CV_OK) merge(p, sizes, out->data + old);
    cv_free(sizes);
    return status;
}

cv_status cv_pack_finish(cv_packer *p, cv_buffer *out, cv_error *err)
{
    cv_status status = p->status;
    if (status != CV_OK && err) *err = p->error;
    if (status == CV_OK && p->too_deep)
        status =
            cv_fail(err, CATERVA_EINVAL, -1, "a value nested deeper than %d", CV_VALUE_DEPTH);
    if (status == CV_OK) status = finish(p, out, err);
    cv_pack_free(p);
    return status;
}
