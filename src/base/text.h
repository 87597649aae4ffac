/* Text that came from elsewhere: is it UTF-8, and how it is shown to people. Names of
 * files, attributes and fields may hold any byte; what a terminal would obey does not
 * get there. */
#ifndef CV_BASE_TEXT_H
#define CV_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

bool cv_is_utf8(const char *text);

/* Copies `text` to `dst` of `size` >= 1 bytes, NUL included: control characters, also
 * those above U+0080, and bytes that are no UTF-8 become "\xNN". What does not fit is
 * cut between characters. */
void cv_show_text(char *dst, size_t size, const char *text);

#endif
