/* Unit: base/error_text with the system's default strerror_r: GNU's, on Linux with glibc. */
#include "unit/error_text.h"

int main(void) { return run_error_text(); }
