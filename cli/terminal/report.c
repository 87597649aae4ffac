/* Room: cli/terminal. Reports: all sentences on stderr are printed here, so that each begins with
 * "caterva: " and ends with a line end. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a sentence, which may contain names with any bytes. */
static void print_sentence(const char *prefix, const char *fmt, va_list arguments)
{
    char sentence[sizeof(cli_shown)];
    vsnprintf(sentence, sizeof sentence, fmt, arguments);
    fflush(stdout); /* keeps the order of the streams on a terminal */
    fputs(prefix, stderr);
    fputs(cli_show_sentence(sentence).text, stderr);
}

cli_exit cli_fail(cli_exit code, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    print_sentence("caterva: ", fmt, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return code;
}

void cli_warn(const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    print_sentence("caterva: warning: ", fmt, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

cli_exit cli_fail_sys(const char *fmt, ...)
{
    int sys_errno = errno;
    if (sys_errno == EINTR && cli_interrupted()) return CLI_INTERRUPTED;
    va_list arguments;
    va_start(arguments, fmt);
    print_sentence("caterva: ", fmt, arguments);
    va_end(arguments);
    fprintf(stderr, ": %s\n", strerror(sys_errno));
    return CLI_IO;
}

static cli_exit exit_of_status(caterva_status status)
{
    switch (status) {
    case CATERVA_OK: return CLI_OK;
    case CATERVA_EINVAL:
    case CATERVA_ESHORT:
    case CATERVA_EREADONLY:
    case CATERVA_ERANGE:
    case CATERVA_ECAST:
    case CATERVA_ESHAPE:
    case CATERVA_EROLLBACK:
    case CATERVA_ESTALE:
    case CATERVA_EPIPELINE: return CLI_USAGE;
    case CATERVA_ECORRUPT: return CLI_CORRUPT;
    case CATERVA_EDTYPE:
    case CATERVA_EUNSUPPORTED: return CLI_UNSUPPORTED;
    default: return CLI_IO;
    }
}

bool cli_is_damage(caterva_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

cli_exit cli_fail_array(const char *path, const caterva_error *err)
{
    if (err->code == CATERVA_ESTOPPED || cli_interrupted()) return CLI_INTERRUPTED;
    cli_exit code = exit_of_status(err->code);
    cli_shown shown = cli_show_place(path);
    if (strstr(err->message, shown.text)) return cli_fail(code, "%s", err->message);
    return cli_fail(code, "%s: %s", shown.text, err->message);
}

void *cli_alloc(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) cli_fail(CLI_IO, "no memory for %zu bytes", size);
    return memory;
}

char *cli_copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = cli_alloc(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}

cli_exit cli_flush_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_OK;
    return cli_fail_sys("cannot write to standard output");
}

cli_exit cli_each_file(const cli_args *args,
                       cli_exit (*run)(const cli_args *args, const char *path))
{
    cli_exit worst = CLI_OK;
    for (int i = 0; i < args->n_positional && worst != CLI_INTERRUPTED; i++) {
        cli_exit code = run(args, args->files[i]);
        if (code > worst) worst = code;
    }
    return worst;
}

cli_exit cli_finish_array(caterva_array *array, const char *path, cli_exit code)
{
    if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
    if (code != CLI_OK) {
        caterva_discard(array);
        return code;
    }
    caterva_error err;
    return caterva_close(array, &err) == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}
