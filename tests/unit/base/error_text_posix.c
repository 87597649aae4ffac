/* Unit: base/error_text with POSIX's strerror_r, the one of musl and macOS. */
#undef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L /* NOLINT(bugprone-reserved-identifier) */
#include "unit/error_text.h"

/* Otherwise this would repeat error_text.c. */
_Static_assert(_Generic(strerror_r(0, (char[1]){0}, 1), int : 1, default : 0),
               "not POSIX's form");

int main(void) { return run_error_text(); }
