/* Room: store. AWS Signature Version 4, as "Signing AWS API requests" describes it: a request
 * in canonical form, its hash in a text, the text's hash by a key made of the secret, day,
 * region and service. Knows neither clocks nor credentials' places. */
#include "store/http_sign.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static const char algorithm[] = "AWS4-HMAC-SHA256";

/* Appends until something fails; the last status counts. */
typedef struct text {
    cv_buffer bytes;
    cv_status status;
    cv_error *err;
} text;

static void add(text *t, const char *s)
{
    if (t->status == CV_OK) t->status = cv_buffer_append(&t->bytes, s, strlen(s), t->err);
}

static void add_names(text *t, const cv_signing *s)
{
    for (int i = 0; i < s->n_fields; i++) {
        if (i > 0) add(t, ";");
        add(t, s->fields[i].name);
    }
}

static void add_canonical(text *t, const cv_signing *s)
{
    const char *const begin[] = {s->method, "\n", s->path, "\n", s->query, "\n"};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) add(t, begin[i]);
    for (int i = 0; i < s->n_fields; i++) {
        add(t, s->fields[i].name);
        add(t, ":");
        add(t, s->fields[i].value);
        add(t, "\n");
    }
    add(t, "\n");
    add_names(t, s);
    add(t, "\n");
    add(t, s->payload);
}

/* "20130524/us-east-1/s3/aws4_request" */
static void add_scope(text *t, const cv_signing *s)
{
    char day[9];
    (void)snprintf(day, sizeof day, "%.8s", s->time);
    const char *const parts[] = {day, "/", s->region, "/", s->service, "/aws4_request"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) add(t, parts[i]);
}

static void hash(const cv_buffer *bytes, char hex[CV_SHA256_HEX])
{
    cv_sha256 sha;
    uint8_t sum[CV_SHA256_SIZE];
    cv_sha256_begin(&sha);
    cv_sha256_add(&sha, bytes->data, bytes->size);
    cv_sha256_end(&sha, sum);
    cv_sha256_hex(sum, hex);
}

static cv_status make_key(const cv_signing *s, uint8_t key[CV_SHA256_SIZE], cv_error *err)
{
    text first = {.err = err};
    char day[9];
    (void)snprintf(day, sizeof day, "%.8s", s->time);
    const char *const steps[] = {day, s->region, s->service, "aws4_request"};
    add(&first, "AWS4");
    add(&first, s->secret_key);
    if (first.status == CV_OK)
        cv_hmac_sha256(first.bytes.data, first.bytes.size, steps[0], strlen(steps[0]), key);
    for (size_t i = 1; i < sizeof steps / sizeof steps[0]; i++)
        cv_hmac_sha256(key, CV_SHA256_SIZE, steps[i], strlen(steps[i]), key);
    if (first.bytes.size > 0) memset(first.bytes.data, 0, first.bytes.size);
    cv_buffer_free(&first.bytes);
    return first.status;
}

static void add_to_sign(text *t, const cv_signing *s, const char canonical[CV_SHA256_HEX])
{
    const char *const parts[] = {algorithm, "\n", s->time, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) add(t, parts[i]);
    add_scope(t, s);
    add(t, "\n");
    add(t, canonical);
}

static void add_result(text *t, const cv_signing *s, const char signature[CV_SHA256_HEX])
{
    const char *const begin[] = {algorithm, " Credential=", s->access_key, "/"};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) add(t, begin[i]);
    add_scope(t, s);
    add(t, ",SignedHeaders=");
    add_names(t, s);
    add(t, ",Signature=");
    add(t, signature);
    if (t->status == CV_OK) t->status = cv_buffer_append(&t->bytes, "", 1, t->err);
}

cv_status cv_sign(const cv_signing *s, cv_buffer *out, cv_error *err)
{
    char hex[CV_SHA256_HEX];
    uint8_t key[CV_SHA256_SIZE], sum[CV_SHA256_SIZE];
    text canonical = {.err = err}, to_sign = {.err = err}, result = {.err = err};
    add_canonical(&canonical, s);
    hash(&canonical.bytes, hex);
    add_to_sign(&to_sign, s, hex);
    cv_status status = canonical.status != CV_OK ? canonical.status : to_sign.status;
    if (status == CV_OK) status = make_key(s, key, err);
    if (status == CV_OK) {
        cv_hmac_sha256(key, sizeof key, to_sign.bytes.data, to_sign.bytes.size, sum);
        cv_sha256_hex(sum, hex);
        add_result(&result, s, hex);
        status = result.status;
    }
    if (status == CV_OK)
        status = cv_buffer_append(out, result.bytes.data, result.bytes.size, err);
    cv_buffer_free(&canonical.bytes);
    cv_buffer_free(&to_sign.bytes);
    cv_buffer_free(&result.bytes);
    return status;
}

/* By the days of the Gregorian calendar since 1st of March of the year 0. */
void cv_sign_time(uint64_t seconds, char out[CV_SIGN_TIME])
{
    unsigned rest = (unsigned)(seconds % 86400);
    uint64_t days = seconds / 86400 % 2932897 + 719468; /* up to the year 9999 */
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    unsigned in_year = (unsigned)(day - (365 * year + year / 4 - year / 100));
    unsigned month = (5 * in_year + 2) / 153, in_month = in_year - (153 * month + 2) / 5 + 1;
    unsigned full = (unsigned)(year + 400 * era) + (month >= 10 ? 1 : 0);
    month = month < 10 ? month + 3 : month - 9;
    char shown[40];
    (void)snprintf(shown, sizeof shown, "%04u%02u%02uT%02u%02u%02uZ", full % 10000,
                   month % 13, in_month % 32, rest / 3600, rest / 60 % 60, rest % 60);
    memcpy(out, shown, CV_SIGN_TIME - 1);
    out[CV_SIGN_TIME - 1] = '\0';
}
