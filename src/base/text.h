/* Text that came from elsewhere: is it UTF-8, and how it is shown to people. Names of
 * files, attributes and fields may hold any byte; what a terminal would obey does not
 * get there. */
#ifndef CV_BASE_TEXT_H
#define CV_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cv_is_utf8(const char *text);

/* Bytes of the character at `text`, of which `size` >= 1 are there; 0 when it is no
 * well-formed UTF-8. */
size_t cv_utf8_length(const char *text, size_t size);

/* Writes the character `code`, at most U+10FFFF and no surrogate; returns its bytes. */
size_t cv_utf8_encode(uint32_t code, char out[4]);

/* Copies `text` to `dst` of `size` >= 1 bytes, NUL included: control characters, also
 * those above U+0080, and bytes that are no UTF-8 become "\xNN". What does not fit is
 * cut between characters. */
void cv_show_text(char *dst, size_t size, const char *text);

#endif
