/* Room: cli/terminal. Names as they may be shown. A file's name, a key or a field's name
 * holds any bytes; those that a terminal would obey, or that are no UTF-8, are written
 * out. */
#include "cli.h"
#include "formats/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* C0, DEL, and C1, which is two bytes. */
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

cli_shown cli_show_place(const char *path)
{
    cli_shown shown = cli_show(path);
    bool has_query = cli_is_url(path) && strncasecmp(path, "http", 4) == 0;
    if (has_query) shown.text[strcspn(shown.text, "?")] = '\0';
    return shown;
}
