/* Room: cli. Finds the command and runs it. Each command has its own file; this file implements
 * what commands share: help, the version, and reporting lost output as a failure. */
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {
    &cli_command_info,   &cli_command_get,        &cli_command_put,    &cli_command_append,
    &cli_command_create, &cli_command_convert,    &cli_command_repack, &cli_command_resize,
    &cli_command_verify, &cli_command_repair,     &cli_command_seal,   &cli_command_compact,
    &cli_command_diff,   &cli_command_stats,      &cli_command_view,   &cli_command_attr,
    &cli_command_jobs,   &cli_command_ls,         &cli_command_tree,   &cli_command_pack,
    &cli_command_unpack, &cli_command_publish,    &cli_command_serve,  &cli_command_bench,
    &cli_command_tune,   &cli_command_completion,
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

const cli_command *cli_command_at(size_t i) { return i < N_COMMANDS ? commands[i] : NULL; }

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static void print_overview(FILE *stream)
{
    fputs("usage: caterva COMMAND [OPTION]... ARGUMENT...\n"
          "       caterva help COMMAND | --help | --version\n\n"
          "n-dimensional arrays in compressed chunks, in Blosc2 files (b2nd)\n\n"
          "commands:\n",
          stream);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char spelled[48];
        snprintf(spelled, sizeof spelled, "%s %s", commands[i]->name, commands[i]->synopsis);
        fprintf(stream, "  %-28s %s\n", spelled, commands[i]->summary);
    }
    fputs("\nA selection (SEL) is NumPy's, without brackets: 0:100,::2,-1 or ...,5; several\n"
          "lists select every combination, as with numpy.ix_\n"
          "Exit status: 0 ok, 1 the answer is no, 2 usage, 3 input/output, 4 corrupt,\n"
          "5 unsupported; 130 interrupted (SIGINT), 143 (SIGTERM), 129 (SIGHUP)\n",
          stream);
}

static cli_exit unknown_command(const char *name)
{
    words_hint hint = words_suggest(name, words_commands);
    return cli_fail(CLI_USAGE, "unknown command '%s'%s", name,
                    hint.text[0] ? hint.text : "; see 'caterva --help'");
}

static cli_exit print_help(const char *name)
{
    const cli_command *command = name ? find_command(name) : NULL;
    if (name && !command) return unknown_command(name);
    if (command) {
        cli_print_help(command);
    } else {
        print_overview(stdout);
    }
    return cli_flush_stdout();
}

static cli_exit run(const cli_command *command, int argc, char **argv)
{
    cli_args args;
    CLI_TRY(cli_parse_args(command, argc, argv, &args));
    if (args.help) return print_help(command->name);
    cli_exit code = command->run(&args);
    if (code != CLI_OK && code != CLI_NO) return code;
    CLI_TRY(cli_flush_stdout());
    return code;
}

static bool is_word(const char *text, const char *word, const char *option,
                    const char *letter)
{
    return strcmp(text, word) == 0 || strcmp(text, option) == 0 || strcmp(text, letter) == 0;
}

static cli_exit dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (is_word(name, "help", "--help", "-h")) return print_help(argc > 2 ? argv[2] : NULL);
    if (is_word(name, "version", "--version", "-V")) {
        printf("caterva %s (C-Blosc2 %s)\n", caterva_version(), caterva_codec_version());
        return cli_flush_stdout();
    }
    const cli_command *command = find_command(name);
    return command ? run(command, argc - 2, argv + 2) : unknown_command(name);
}

/* Opens /dev/null in place of each closed standard stream, so that no file opened later gets the
 * descriptor 0, 1 or 2. stdin is opened for writing and the others for reading: using them fails,
 * and the failure is reported. */
static void hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    hold_streams();
    cli_catch_signals();
    cli_exit code = dispatch(argc, argv);
    if (code != CLI_INTERRUPTED) return (int)code;
    cli_fail(code, "interrupted");
    return cli_end_interrupted();
}
