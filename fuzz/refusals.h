/* Replaces the command line's error output. Include once in a program. */
#ifndef FUZZ_REFUSALS_H
#define FUZZ_REFUSALS_H

#include "fuzz.h"

#include "cli.h"

#include <stdarg.h>

cli_exit cli_fail(cli_exit code, const char *fmt, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, fmt);
    int n = vsnprintf(sentence, sizeof sentence, fmt, arguments);
    va_end(arguments);
    FUZZ_NEED(n > 0, "a refusal without a sentence");
    return code;
}

#endif
