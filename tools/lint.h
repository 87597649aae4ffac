/* Put before each file that clang-tidy reads (scripts/lint), and before no compiler.
 * It looks at one file at a time and would believe that what fails may return OK. */
#if __has_include("base/status.h")
#include "base/status.h"

#define cv_fail(err, code, ...) (cv_fail(err, code, __VA_ARGS__), (code))
#define cv_fail_sys(...) (cv_fail_sys(__VA_ARGS__), CATERVA_EIO)
#define cv_fail_memory(...) (cv_fail_memory(__VA_ARGS__), CATERVA_ENOMEM)
#endif

#if __has_include("cli.h")
#include "cli.h"

#define cli_fail(code, ...) (cli_fail(code, __VA_ARGS__), (code))
#define cli_fail_sys(...) (cli_fail_sys(__VA_ARGS__), CLI_IO)
#define cli_fail_array(...) (cli_fail_array(__VA_ARGS__), CLI_IO)
#endif
