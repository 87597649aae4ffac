/* Room: store. Places where credentials are, in the order in which every program for S3 looks
 * there. What is found is never said to anybody. */
#include "store/http_credentials.h"

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/os_process.h"

#include <stdio.h>
#include <string.h>

/* ---- Files of profiles --------------------------------------------------------- */

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

/* "[name]", or "[profile name]" as the one of the two files has it. */
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
        bool is_nested = raw.at < line.at; /* settings within a setting */
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

/* A file, all of it, or nothing. */
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
    bool is_named; /* by option or variable: it is no default */
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

/* A line's end behind what an environment or a file says is nobody's intention. */
static void cut_end(char *value)
{
    size_t size = value ? strlen(value) : 0;
    while (size > 0 && (value[size - 1] == '\n' || value[size - 1] == '\r')) size--;
    if (value) value[size] = '\0';
}

static char *variable_of(const char *name)
{
    char *value = cv_os_variable(name);
    cut_end(value);
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

/* ---- The order ------------------------------------------------------------------- */

static void wipe(char **secret)
{
    if (*secret) memset(*secret, 0, strlen(*secret));
    cv_free(*secret);
    *secret = NULL;
}

void cv_credentials_free(cv_credentials *c)
{
    wipe(&c->access_key);
    wipe(&c->secret_key);
    wipe(&c->session_token);
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
    wipe(&c->access_key);
    wipe(&c->secret_key);
    wipe(&c->session_token);
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

/* Half a pair is nobody's intention: to ask without it, or with those of the next source,
 * would be somebody else's request. */
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
                           "only one of the two keys for S3 is in %s", order[i].name);
        if (!finds)
            return cv_fail(err, CATERVA_EINVAL, -1, "there are no credentials for S3 in %s",
                           order[i].name);
    }
    return CV_OK;
}

static bool is_given(const char *word) { return word && *word; }

/* What somebody names is there, or it is said: another's credentials would be taken else. */
static cv_status check_named(const caterva_remote_options *o, const profile *p,
                             const cv_credentials *c, cv_error *err)
{
    bool reads_profile = o->credentials == CATERVA_CREDENTIALS_PROFILE ||
                         (o->credentials == CATERVA_CREDENTIALS_FIND && !c->access_key);
    if (is_given(o->access_key) != is_given(o->secret_key))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "of access_key and secret_key only the %s is given",
                       is_given(o->access_key) ? "first" : "second");
    if (!reads_profile || !p->is_named || profile_is_there(p)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "there is no profile \"%.80s\" in ~/.aws/credentials and ~/.aws/config",
                   p->name);
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
                           "the %s for S3 has a line's end or another control character",
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
    cv_status named = check_named(o, p, c, err); /* says more than that there are none */
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
