/* Room: cli/terminal. Printable forms of names. The name of a file, key or field may contain any
 * bytes. Bytes that a terminal would interpret, or that are not UTF-8, are escaped. */
#include "cli.h"
#include "formats/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Whether the character is a control character: C0, DEL, or C1 (two bytes in UTF-8). */
static bool is_control(const char *at, size_t length)
{
    unsigned char first = (unsigned char)at[0];
    if (length == 1) return first < 0x20 || first == 0x7F;
    return length == 2 && first == 0xC2 && (unsigned char)at[1] < 0xA0;
}

cli_shown cli_show(const char *text)
{
    cli_shown shown;
    size_t left = strlen(text), used = 0, length;
    for (; left > 0; text += length, left -= length) {
        length = json_utf8_length(text, left);
        bool plain = length > 0 && !is_control(text, length);
        if (length == 0) length = 1;
        size_t room = plain ? length : 4 * length;
        if (used + room >= sizeof shown.text) break;
        if (plain) memcpy(shown.text + used, text, length);
        for (size_t i = 0; i < length && !plain; i++)
            snprintf(shown.text + used + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
        used += room;
    }
    shown.text[used] = '\0';
    return shown;
}

bool cli_is_url(const char *path)
{
    static const char *const schemes[] = {"http://", "https://", "s3://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncasecmp(path, schemes[i], strlen(schemes[i])) == 0) return true;
    return false;
}

static bool is_web(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Returns the size of a URL in a sentence: up to a blank, without punctuation after the URL. */
static size_t url_size(const char *text)
{
    size_t size = strcspn(text, " ");
    while (size > 0 && strchr(":,;.)'\"", text[size - 1])) size--;
    return size;
}

/* Returns the last @ among `size` bytes, or NULL. */
static char *last_at(char *text, size_t size)
{
    while (size > 0 && text[size - 1] != '@') size--;
    return size > 0 ? text + size - 1 : NULL;
}

/* Returns the host of a URL after user and password. These may contain unescaped characters: if the
 * text before the first slash is not a host and port, they extend to the last @. */
static char *skip_user(char *host, size_t size)
{
    size_t authority = strcspn(host, "/?#");
    char *at = last_at(host, authority < size ? authority : size);
    if (!at && authority < size) {
        char *port = memchr(host, ':', authority);
        bool is_port = !port || port + 1 + strspn(port + 1, "0123456789") == host + authority;
        if (!is_port && *host != '[') at = last_at(host, size);
    }
    return at ? at + 1 : host;
}

/* Removes the user and the query of a URL of `size` bytes, but keeps the key of an array in a tree.
 * Returns the new size. */
static size_t cut_url(char *text, size_t size)
{
    char *host = strstr(text, "://") + 3, *end = text + size;
    char *from = skip_user(host, (size_t)(end - host));
    memmove(host, from, strlen(from) + 1);
    end -= from - host;
    char *query = host + strcspn(host, "?#");
    if (query >= end) return (size_t)(end - text);
    char *key = strstr(query, "::/");
    if (!key || key > end) key = end;
    memmove(query, key, strlen(key) + 1);
    return (size_t)(query + (end - key) - text);
}

cli_shown cli_show_place(const char *path)
{
    cli_shown shown = cli_show(path);
    if (is_web(path)) cut_url(shown.text, strlen(shown.text));
    return shown;
}

cli_shown cli_show_sentence(const char *text)
{
    cli_shown shown = cli_show(text);
    for (char *at = shown.text; *at;) {
        size_t size = is_web(at) ? url_size(at) : 0;
        at += size > 0 ? cut_url(at, size) : 1;
    }
    return shown;
}
