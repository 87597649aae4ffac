/* Room: store. Elements in S3's answers. The bytes come from a server and may be any. */
#include "store/http_xml.h"

#include <string.h>

static const char *find_char(cv_xml t, char c)
{
    return t.at < t.end ? memchr(t.at, c, (size_t)(t.end - t.at)) : NULL;
}

/* Behind "<name", where "name" is all of the name; NULL: something else begins at the "<". */
static const char *match_name(cv_xml t, const char *name)
{
    size_t size = strlen(name);
    if ((size_t)(t.end - t.at) <= size + 1 || memcmp(t.at + 1, name, size) != 0) return NULL;
    const char *behind = t.at + 1 + size;
    return *behind == '>' || *behind == ' ' || *behind == '\t' || *behind == '\n' ? behind
                                                                                  : NULL;
}

/* "</name>" */
static const char *find_end(cv_xml t, const char *name)
{
    size_t size = strlen(name);
    while ((t.at = find_char(t, '<'))) {
        if ((size_t)(t.end - t.at) < size + 3) return NULL;
        if (t.at[1] == '/' && memcmp(t.at + 2, name, size) == 0 && t.at[2 + size] == '>')
            return t.at;
        t.at++;
    }
    return NULL;
}

bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out)
{
    while ((rest->at = find_char(*rest, '<'))) {
        const char *behind = match_name(*rest, name);
        rest->at++;
        if (!behind) continue;
        rest->at = find_char((cv_xml){behind, rest->end}, '>');
        if (!rest->at) break;
        rest->at++;
        const char *end = find_end(*rest, name);
        if (!end) break;
        *out = (cv_xml){rest->at, end};
        rest->at = end;
        return true;
    }
    rest->at = rest->end;
    return false;
}

static const struct {
    const char *text;
    char c;
} references[] = {{"&amp;", '&'},   {"&lt;", '<'},  {"&gt;", '>'},  {"&quot;", '"'},
                  {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};

/* The character that begins at t->at, and behind it; 0: none that is understood. */
static char take_char(cv_xml *t)
{
    if (*t->at != '&') return *t->at++;
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        size_t size = strlen(references[i].text);
        if ((size_t)(t->end - t->at) < size || memcmp(t->at, references[i].text, size) != 0)
            continue;
        t->at += size;
        return references[i].c;
    }
    return '\0';
}

bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room)
{
    cv_xml inside;
    size_t size = 0;
    *out = '\0';
    if (!cv_xml_next(&document, name, &inside)) return false;
    while (inside.at < inside.end) {
        char c = take_char(&inside);
        if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f || size + 1 >= room) {
            *out = '\0';
            return false;
        }
        out[size++] = c;
    }
    out[size] = '\0';
    return true;
}

void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    cv_xml document = {answer, answer ? (const char *)answer + size : answer};
    out[0] = ',';
    out[1] = ' ';
    bool has_name = answer && cv_xml_text(document, "Code", out + 2, CV_XML_REFUSAL_SIZE - 2);
    if (!has_name || out[2] == '\0' || out[2 + strspn(out + 2, letters)] != '\0') *out = '\0';
}
