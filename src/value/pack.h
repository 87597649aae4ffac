/* Writes one MessagePack value, each number and each head in its shortest form, as
 * python-blosc2 does. Sticky: the first failure is kept, and the caller asks once, at the
 * end:
 *
 *     cv_packer p = {0};
 *     cv_pack_begin(&p, CV_PACK_LIST);
 *     cv_pack_text(&p, "x", 1);
 *     cv_pack_end(&p);
 *     status = cv_pack_finish(&p, &out, err);
 */
#ifndef CV_VALUE_PACK_H
#define CV_VALUE_PACK_H

#include "base/heap.h"
#include "value/token.h"

typedef enum cv_pack_kind {
    CV_PACK_LIST,
    CV_PACK_MAP, /* keys and values, alternating */
    CV_PACK_SET
} cv_pack_kind;

/* A head whose number is known only when what stands behind it is written. */
typedef struct cv_pack_head {
    cv_pack_kind kind;
    size_t at, end; /* what stands behind it: bytes [at, end) of the body, */
    size_t next;    /* and the heads between it and this one               */
    uint64_t count; /* values */
} cv_pack_head;

typedef struct cv_packer {
    cv_buffer body; /* all but the heads of lists, maps and sets */
    cv_pack_head *heads;
    size_t n_heads, heads_capacity;
    size_t open[CV_VALUE_DEPTH];
    int depth;
    bool too_deep;
    cv_watch *watch; /* counts steps: bytes of extensions; or NULL */
    bool only_asks;  /* the watch counts something else: it may stop what is large */
    cv_status status;
    cv_error error;
} cv_packer;

void cv_pack_nil(cv_packer *p);
void cv_pack_bool(cv_packer *p, bool value);
void cv_pack_uint(cv_packer *p, uint64_t value);
void cv_pack_int(cv_packer *p, int64_t value);
void cv_pack_real(cv_packer *p, double value);
void cv_pack_text(cv_packer *p, const void *text, size_t size);
void cv_pack_binary(cv_packer *p, const void *bytes, size_t size);
void cv_pack_ext(cv_packer *p, int type, const void *bytes, size_t size);

/* An extension of bytes that lie in two places, of which the watch hears of the second; and
 * the head of a binary whose `size` bytes come by themselves, as those do. */
void cv_pack_ext_of_two(cv_packer *p, int type, const cv_buffer *first, const void *bytes,
                        size_t size);
void cv_pack_binary_head(cv_packer *p, size_t size);

/* One whole value, packed already. */
void cv_pack_value(cv_packer *p, const void *bytes, size_t size);

/* What is packed until the end stands inside. */
void cv_pack_begin(cv_packer *p, cv_pack_kind kind);
void cv_pack_end(cv_packer *p);

/* Appends the value to `out`, or says the first failure; frees the packer. */
cv_status cv_pack_finish(cv_packer *p, cv_buffer *out, cv_error *err);
void cv_pack_free(cv_packer *p);

#endif
