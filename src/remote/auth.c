/* Room: remote. Authentication of S3 requests: signatures (AWS Signature Version 4), and
 * credentials from options, environment and profile files, in the order that other S3 clients use.
 * Secrets never appear in messages and are overwritten before their memory is freed. */
#include "remote/server.h"

#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/os_process.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

/* ---- Signatures ---------------------------------------------------------------------------
 * Follows "Signing AWS API requests": hashes the canonical request, then signs a text that contains
 * this hash with a key derived from secret, day, region and service. Pure functions. */

static const char algorithm[] = "AWS4-HMAC-SHA256";

/* Text to which parts are appended until one fails; `status` is checked once, at the end. */
typedef struct signed_text {
    cv_buffer bytes;
    cv_status status;
    cv_error *err;
} signed_text;

static void add(signed_text *t, const char *s)
{
    if (t->status == CV_OK) t->status = cv_buffer_append(&t->bytes, s, strlen(s), t->err);
}

static void add_names(signed_text *t, const cv_signing *s)
{
    for (int i = 0; i < s->n_fields; i++) {
        if (i > 0) add(t, ";");
        add(t, s->fields[i].name);
    }
}

static void add_canonical(signed_text *t, const cv_signing *s)
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

/* Appends a scope like "20130524/us-east-1/s3/aws4_request". */
static void add_scope(signed_text *t, const cv_signing *s)
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
    signed_text first = {.err = err};
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

static void add_to_sign(signed_text *t, const cv_signing *s,
                        const char canonical[CV_SHA256_HEX])
{
    const char *const parts[] = {algorithm, "\n", s->time, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) add(t, parts[i]);
    add_scope(t, s);
    add(t, "\n");
    add(t, canonical);
}

static void add_result(signed_text *t, const cv_signing *s,
                       const char signature[CV_SHA256_HEX])
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
    signed_text canonical = {.err = err}, to_sign = {.err = err}, result = {.err = err};
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

/* Counts days of the Gregorian calendar from 1 March of year 0. */
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

/* ---- Profile files ------------------------------------------------------------------------ */

typedef struct text {
    const char *at, *end;
} text;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static text strip(text t)
{
    while (t.at < t.end && is_blank(*t.at)) t.at++;
    while (t.end > t.at && is_blank(t.end[-1])) t.end--;
    return t;
}

static bool equals(text t, const char *word)
{
    size_t size = (size_t)(t.end - t.at);
    return size == strlen(word) && memcmp(t.at, word, size) == 0;
}

static text take_line(text *rest)
{
    text line = *rest;
    size_t left = (size_t)(rest->end - rest->at);
    const char *end = left > 0 ? memchr(rest->at, '\n', left) : NULL;
    if (end) line.end = end;
    rest->at = end ? end + 1 : rest->end;
    return line;
}

/* Whether the line is "[name]" (~/.aws/credentials) or "[profile name]" (~/.aws/config). */
static bool is_section(text line, const char *section)
{
    static const char word[] = "profile";
    if (line.end - line.at < 2 || line.end[-1] != ']') return false;
    line.at++;
    line.end--;
    line = strip(line);
    if (equals(line, section)) return true;
    size_t size = sizeof word - 1;
    if ((size_t)(line.end - line.at) <= size || memcmp(line.at, word, size) != 0)
        return false;
    line.at += size;
    return is_blank(*line.at) && equals(strip(line), section);
}

const char *cv_profile_value(const char *bytes, size_t text_size, const char *section,
                             const char *key, size_t *size)
{
    text rest = {bytes, bytes + text_size};
    const char *found = NULL;
    bool is_inside = false;
    *size = 0;
    while (rest.at < rest.end) {
        text raw = take_line(&rest), line = strip(raw), name = line;
        bool is_nested = raw.at < line.at; /* a setting nested in another one */
        if (line.at == line.end || *line.at == '#' || *line.at == ';') continue;
        if (*line.at == '[') is_inside = is_section(line, section);
        const char *equal = memchr(line.at, '=', (size_t)(line.end - line.at));
        if (!is_inside || !equal || is_nested) continue;
        name.end = equal;
        if (!equals(strip(name), key)) continue;
        text value = {equal + 1, line.end};
        value = strip(value);
        if (value.at == value.end) continue;
        found = value.at;
        *size = (size_t)(value.end - value.at);
    }
    return found;
}

/* Reads a whole file, owned; NULL if that fails. */
static char *read_file(const char *path, size_t *size)
{
    enum { MOST = 1 << 20 };
    cv_file file;
    char *bytes = NULL;
    size_t done = 0;
    *size = 0;
    if (cv_dir_open_file(cv_dir_here, path, CV_OPEN_READ, 0, &file) != 0) return NULL;
    cv_file_info info;
    bool good = cv_file_get_info(file, &info) == 0 && info.kind == CV_KIND_FILE &&
                info.size > 0 && info.size <= MOST;
    if (good) bytes = cv_malloc((size_t)info.size);
    if (bytes && cv_file_read(file, bytes, (size_t)info.size, 0, &done) == 0) *size = done;
    cv_file_close(&file);
    return bytes;
}

typedef struct profile {
    char *name;
    char *files[2]; /* credentials, config */
    size_t sizes[2];
    bool is_named; /* named by option or variable: it must exist */
} profile;

static char *path_of(const char *variable, const char *in_home)
{
    char *path = cv_os_variable(variable);
    char *home = path ? NULL : cv_os_variable("HOME");
    if (home) {
        size_t size = strlen(home) + strlen(in_home) + 2;
        path = cv_malloc(size);
        if (path) (void)snprintf(path, size, "%s/%s", home, in_home);
        cv_free(home);
    }
    return path;
}

/* Strips trailing line ends from a variable's value. */
static char *variable_of(const char *name)
{
    char *value = cv_os_variable(name);
    size_t size = value ? strlen(value) : 0;
    while (size > 0 && (value[size - 1] == '\n' || value[size - 1] == '\r')) size--;
    if (value) value[size] = '\0';
    return value;
}

static void open_profile(const char *name, profile *out)
{
    static const char *const places[2][2] = {
        {"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"},
        {"AWS_CONFIG_FILE", ".aws/config"}};
    *out = (profile){.name = name ? cv_strdup(name) : variable_of("AWS_PROFILE")};
    out->is_named = out->name != NULL;
    if (!out->name) out->name = cv_strdup("default");
    for (int i = 0; i < 2; i++) {
        char *path = path_of(places[i][0], places[i][1]);
        if (path) out->files[i] = read_file(path, &out->sizes[i]);
        cv_free(path);
    }
}

static void close_profile(profile *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->files[i]) memset(p->files[i], 0, p->sizes[i]);
        cv_free(p->files[i]);
    }
    cv_free(p->name);
}

static bool profile_is_there(const profile *p)
{
    for (int i = 0; i < 2 && p->name; i++) {
        text rest = {p->files[i], p->files[i] ? p->files[i] + p->sizes[i] : NULL};
        while (rest.at < rest.end)
            if (is_section(strip(take_line(&rest)), p->name)) return true;
    }
    return false;
}

static char *profile_value(const profile *p, const char *key)
{
    for (int i = 0; i < 2 && p->name; i++) {
        size_t size;
        const char *value =
            p->files[i] ? cv_profile_value(p->files[i], p->sizes[i], p->name, key, &size)
                        : NULL;
        if (value) return cv_strndup(value, size);
    }
    return NULL;
}

/* ---- Credentials -------------------------------------------------------------------------- */

static void wipe(char **secret)
{
    if (*secret) memset(*secret, 0, strlen(*secret));
    cv_free(*secret);
    *secret = NULL;
}

static void wipe_keys(cv_credentials *c)
{
    wipe(&c->access_key);
    wipe(&c->secret_key);
    wipe(&c->session_token);
}

void cv_credentials_free(cv_credentials *c)
{
    wipe_keys(c);
    cv_free(c->region);
    cv_free(c->endpoint);
    *c = (cv_credentials){0};
}

static char *copy(const char *given) { return given && *given ? cv_strdup(given) : NULL; }

typedef enum pair { NO_PAIR, HALF_A_PAIR, WHOLE_PAIR } pair;

static pair take_pair(cv_credentials *c, char *access, char *secret, char *token)
{
    c->access_key = access;
    c->secret_key = secret;
    c->session_token = token;
    if (access && secret) return WHOLE_PAIR;
    wipe_keys(c);
    return access || secret ? HALF_A_PAIR : NO_PAIR;
}

static pair take_from(caterva_credentials source, const caterva_remote_options *o,
                      const profile *p, cv_credentials *c)
{
    if (source == CATERVA_CREDENTIALS_GIVEN)
        return take_pair(c, copy(o->access_key), copy(o->secret_key), copy(o->session_token));
    if (source == CATERVA_CREDENTIALS_ENVIRONMENT)
        return take_pair(c, variable_of("AWS_ACCESS_KEY_ID"),
                         variable_of("AWS_SECRET_ACCESS_KEY"),
                         variable_of("AWS_SESSION_TOKEN"));
    return take_pair(c, profile_value(p, "aws_access_key_id"),
                     profile_value(p, "aws_secret_access_key"),
                     profile_value(p, "aws_session_token"));
}

/* Takes the keys of the first source that has any. A source with only one key is an error, because
 * a request without keys, or with those of the next source, would be made as another user. */
static cv_status take_keys(const caterva_remote_options *o, const profile *p,
                           cv_credentials *c, cv_error *err)
{
    static const struct {
        caterva_credentials source;
        const char *name;
    } order[] = {
        {CATERVA_CREDENTIALS_GIVEN, "access_key and secret_key of the remote options"},
        {CATERVA_CREDENTIALS_ENVIRONMENT, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
        {CATERVA_CREDENTIALS_PROFILE, "the profile in ~/.aws"}};
    bool finds = o->credentials == CATERVA_CREDENTIALS_FIND;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (!finds && o->credentials != order[i].source) continue;
        pair found = take_from(order[i].source, o, p, c);
        if (found == WHOLE_PAIR) return CV_OK;
        if (found == HALF_A_PAIR)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "only one of the two S3 keys is set in %s", order[i].name);
        if (!finds)
            return cv_fail(err, CATERVA_EINVAL, -1, "no S3 credentials in %s", order[i].name);
    }
    return CV_OK;
}

static bool is_given(const char *word) { return word && *word; }

/* Checks that the profile and the keys named by the caller exist. Without this check the
 * credentials of another user might be used. */
static cv_status check_named(const caterva_remote_options *o, const profile *p,
                             const cv_credentials *c, cv_error *err)
{
    bool reads_profile = o->credentials == CATERVA_CREDENTIALS_PROFILE ||
                         (o->credentials == CATERVA_CREDENTIALS_FIND && !c->access_key);
    if (is_given(o->access_key) != is_given(o->secret_key))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "access_key and secret_key belong together, but only the %s is given",
                       is_given(o->access_key) ? "first" : "second");
    if (!reads_profile || !p->is_named || profile_is_there(p)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "no profile \"%.80s\" in ~/.aws/credentials or ~/.aws/config", p->name);
}

static char *first_of(char *found, const char *variable)
{
    return found ? found : variable_of(variable);
}

static cv_status check_text(const char *value, const char *name, cv_error *err)
{
    for (const char *c = value ? value : ""; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "the %s for S3 contains a line end or another control character",
                           name);
    return CV_OK;
}

static cv_status check_texts(const cv_credentials *c, cv_error *err)
{
    CV_TRY(check_text(c->access_key, "access key", err));
    CV_TRY(check_text(c->secret_key, "secret key", err));
    CV_TRY(check_text(c->session_token, "session token", err));
    CV_TRY(check_text(c->region, "region", err));
    return check_text(c->endpoint, "endpoint", err);
}

static cv_status find_keys(const caterva_remote_options *o, const profile *p,
                           cv_credentials *c, cv_error *err)
{
    CV_TRY(check_text(o->profile, "profile's name", err));
    cv_status status = take_keys(o, p, c, err);
    cv_status named = check_named(o, p, c, err); /* the more specific message */
    return named == CV_OK ? status : named;
}

cv_status cv_credentials_find(const caterva_remote_options *o, cv_credentials *out,
                              cv_error *err)
{
    profile p;
    *out = (cv_credentials){0};
    open_profile(o->profile, &p);
    cv_status status = find_keys(o, &p, out, err);
    out->region = first_of(first_of(copy(o->region), "AWS_REGION"), "AWS_DEFAULT_REGION");
    if (!out->region) out->region = profile_value(&p, "region");
    if (!out->region) out->region = cv_strdup("us-east-1");
    out->endpoint =
        first_of(first_of(copy(o->endpoint), "AWS_ENDPOINT_URL_S3"), "AWS_ENDPOINT_URL");
    if (!out->endpoint) out->endpoint = profile_value(&p, "endpoint_url");
    close_profile(&p);
    if (status == CV_OK && !out->region) status = cv_fail_memory(err, 16, "a region");
    if (status == CV_OK) status = check_texts(out, err);
    if (status != CV_OK) cv_credentials_free(out);
    return status;
}
