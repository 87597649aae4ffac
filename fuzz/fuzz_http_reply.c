/* Any bytes as a server's answer: what is taken is what was asked for, whatever is said. The
 * first bytes choose what was asked, and of what identity. */
#include "fuzz.h"

#include "store/http_reply.h"
#include "store/http_xml.h"

static void check_grant(const cv_ask *ask, const cv_reply *reply, const cv_grant *grant)
{
    uint64_t first = ask->first, end = ask->end < grant->total ? ask->end : grant->total;
    if (ask->is_suffix) {
        first = grant->total - end;
        end = grant->total;
    }
    bool is_whole = grant->first == 0 && grant->size == grant->total;
    bool is_asked = grant->first == first && grant->size == end - first;
    FUZZ_NEED(grant->size > 0 && grant->size <= grant->total - grant->first,
              "%llu bytes of %llu", (unsigned long long)grant->size,
              (unsigned long long)grant->total);
    FUZZ_NEED(is_asked || (is_whole && reply->status == 200), "bytes that nobody asked for");
    FUZZ_NEED(!reply->is_encoded && !reply->is_odd, "a body that is something else");
    if (ask->identity->size != UINT64_MAX)
        FUZZ_NEED(
            grant->total == ask->identity->size &&
                (!*ask->identity->etag || strcmp(reply->etag, ask->identity->etag) == 0),
            "another version");
}

/* The same bytes as S3's answer. */
static void check_xml(const char *text, size_t size)
{
    cv_xml rest = {text, text + size}, part;
    char out[40];
    while (cv_xml_next(&rest, "Part", &part)) {
        FUZZ_NEED(part.at >= text && part.at <= part.end && part.end <= text + size,
                  "an element outside of its document");
        if (cv_xml_text(part, "ETag", out, sizeof out))
            for (const char *c = out; *c; c++)
                FUZZ_NEED(*c >= ' ' && *c < 0x7f, "a text with %d", *c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 4) return 0;
    cv_identity identity = {.size = bytes[0] & 1 ? 100 : UINT64_MAX};
    if (bytes[0] & 2) strcpy(identity.etag, "\"a\"");
    const cv_ask ask = {.is_suffix = (bytes[0] & 4) != 0,
                        .first = bytes[1],
                        .end = (uint64_t)bytes[1] + bytes[2] + 1,
                        .identity = &identity};
    cv_reply reply;
    cv_grant grant = {0};
    cv_error error = {0};
    char *text = fuzz_alloc(size - 3);
    memcpy(text, bytes + 3, size - 3);
    check_xml(text, size - 3);
    if (cv_reply_parse(text, size - 3, &reply, &error) == CATERVA_OK) {
        FUZZ_NEED(reply.status >= 100 && reply.status <= 999, "status %d", reply.status);
        cv_verdict verdict = cv_reply_judge(&reply, &ask, "URL", &grant, &error);
        if (verdict == CV_REPLY_TAKE)
            check_grant(&ask, &reply, &grant);
        else
            FUZZ_NEED(error.message[0], "a refusal without a sentence");
    }
    free(text);
    return 0;
}
