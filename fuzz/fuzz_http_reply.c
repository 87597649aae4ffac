/* Any bytes as a server's response: only what was requested is accepted. The first bytes
 * choose the request and the expected version. */
#include "fuzz.h"

#include "remote/http.h"

static void check_grant(const cv_range_request *ask, const cv_reply *reply, const cv_content_range *grant)
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
    FUZZ_NEED(is_asked || (is_whole && reply->status == 200), "bytes that were not requested");
    FUZZ_NEED(!reply->is_encoded && !reply->is_malformed, "a body that is something else");
    if (ask->version->size != UINT64_MAX)
        FUZZ_NEED(
            grant->total == ask->version->size &&
                (!*ask->version->etag || strcmp(reply->etag, ask->version->etag) == 0),
            "another version");
}

/* The same response to a request for several ranges of a known object. */
static void check_parts(const cv_version *version, const cv_reply *reply)
{
    cv_version known = *version;
    cv_error error = {0};
    known.size = 100;
    cv_verdict verdict = cv_reply_judge_multirange(reply, &known, "URL", &error);
    bool is_whole = reply->status == 206 && !reply->has_range && !reply->is_malformed;
    if (verdict != CV_REPLY_ACCEPT)
        FUZZ_NEED(error.message[0] && error.code != CATERVA_OK, "a refusal without words");
    switch (verdict) {
    case CV_REPLY_ACCEPT:
        FUZZ_NEED(is_whole && reply->is_multipart && reply->boundary[0],
                  "parts without a boundary");
        FUZZ_NEED(strlen(reply->boundary) < CV_BOUNDARY_SIZE, "a long boundary");
        FUZZ_NEED(!reply->is_encoded, "parts that are something else");
        FUZZ_NEED(!*known.etag || strcmp(reply->etag, known.etag) == 0, "another version");
        break;
    case CV_REPLY_RETRY:
        FUZZ_NEED(cv_reply_is_busy(reply->status), "status %d again", reply->status);
        break;
    case CV_REPLY_REDIRECT:
        FUZZ_NEED(reply->status / 100 == 3, "status %d elsewhere", reply->status);
        break;
    default: FUZZ_NEED(verdict != CV_REPLY_NO_RANGES, "a verdict on one range");
    }
}

/* The server's name in the response has one of few effects. */
static void check_server(const cv_reply *reply)
{
    int most = reply->most_ranges;
    FUZZ_NEED(most == 0 || most == 10 || most == 200, "%d parts", most);
    FUZZ_NEED(most == 0 || !reply->is_relayed, "parts of a relayed response");
}

/* The same bytes as an S3 response. */
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
    cv_version version = {.size = bytes[0] & 1 ? 100 : UINT64_MAX};
    if (bytes[0] & 2) strcpy(version.etag, "\"a\"");
    const cv_range_request ask = {.is_suffix = (bytes[0] & 4) != 0,
                        .first = bytes[1],
                        .end = (uint64_t)bytes[1] + bytes[2] + 1,
                        .version = &version};
    cv_reply reply;
    cv_content_range grant = {0};
    cv_error error = {0};
    char *text = fuzz_alloc(size - 3);
    memcpy(text, bytes + 3, size - 3);
    check_xml(text, size - 3);
    if (cv_reply_parse(text, size - 3, &reply, &error) == CATERVA_OK) {
        FUZZ_NEED(reply.status >= 100 && reply.status <= 999, "status %d", reply.status);
        check_server(&reply);
        check_parts(&version, &reply);
        cv_verdict verdict = cv_reply_judge(&reply, &ask, "URL", &grant, &error);
        if (verdict == CV_REPLY_ACCEPT)
            check_grant(&ask, &reply, &grant);
        else
            FUZZ_NEED(error.message[0], "a refusal without a sentence");
    }
    free(text);
    return 0;
}
