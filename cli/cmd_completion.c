/* Room: cli. `caterva completion`: scripts for the shells, made of the same tables that
 * the parser and the help read, so that they cannot know less or more. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const char *const shells[] = {"bash", "zsh", "fish"};
#define N_SHELLS (sizeof shells / sizeof shells[0])

/* Prints `text` with a backslash before each of `special`. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text)) putchar('\\');
        putchar(*text);
    }
}

static void print_commands(void)
{
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_at(i)); i++)
        printf("%s%s", i ? " " : "", command->name);
}

static void print_shells(void)
{
    for (size_t i = 0; i < N_SHELLS; i++) printf("%s%s", i ? " " : "", shells[i]);
}

/* ---- bash ------------------------------------------------------------------- */

static void print_bash_options(const cli_command *command)
{
    cli_option_info o;
    const char *space = "";
    for (size_t i = 0; cli_option_at(command, i, &o); i++) {
        if (o.letter) printf("%s-%c", space, o.letter);
        if (o.letter) space = " ";
        printf("%s--%s", space, o.name);
        space = " ";
    }
}

static void print_bash(void)
{
    const cli_command *command;
    fputs("# Completion of caterva for bash: source it, or put it where bash-completion\n"
          "# looks, as .../completions/caterva\n"
          "_caterva() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} words=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        words='",
          stdout);
    print_commands();
    fputs(" help --help --version'\n"
          "    elif [[ $current == -* ]]; then\n"
          "        case ${COMP_WORDS[1]} in\n",
          stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        printf("            %s) words='", command->name);
        print_bash_options(command);
        fputs("' ;;\n", stdout);
    }
    fputs("        esac\n"
          "    elif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "        case ${COMP_WORDS[1]} in\n"
          "            help) words='",
          stdout);
    print_commands();
    fputs("' ;;\n            completion) words='", stdout);
    print_shells();
    fputs("' ;;\n"
          "        esac\n"
          "    fi\n"
          "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    return 0\n"
          "}\n"
          "complete -o default -F _caterva caterva\n", /* nothing found: files */
          stdout);
}

/* ---- zsh -------------------------------------------------------------------- */

/* Inside '...': a quote ends and begins again. Brackets and colons are _arguments'. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_option(const cli_option_info *o)
{
    fputs("                ", stdout);
    if (o->letter)
        printf("'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        printf("'--%s[", o->name);
    print_zsh_text(o->help);
    putchar(']');
    if (o->value) {
        putchar(':');
        print_zsh_text(o->value);
        fputs(":_files", stdout);
    }
    fputs("' \\\n", stdout);
}

static void print_zsh(void)
{
    const cli_command *command;
    cli_option_info o;
    fputs("#compdef caterva\n"
          "# Completion of caterva for zsh: put it in a folder of $fpath, as _caterva\n"
          "_caterva() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        printf("        '%s:", command->name);
        print_zsh_text(command->summary);
        fputs("'\n", stdout);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $command in\n"
          "        help) _describe command commands ;;\n"
          "        completion) _values shell ",
          stdout);
    print_shells();
    fputs(" ;;\n", stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (strcmp(command->name, "completion") == 0) continue;
        printf("        %s)\n            _arguments -s \\\n", command->name);
        for (size_t k = 0; cli_option_at(command, k, &o); k++) print_zsh_option(&o);
        fputs("                '*:file:_files' ;;\n", stdout);
    }
    fputs("    esac\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _caterva ]; then _caterva \"$@\"; "
          "else compdef _caterva caterva; fi\n",
          stdout);
}

/* ---- fish ------------------------------------------------------------------- */

static void print_fish_text(const char *text)
{
    putchar('\'');
    print_escaped(text, "'\\");
    putchar('\'');
}

static void print_fish(void)
{
    const cli_command *command;
    cli_option_info o;
    fputs("# Completion of caterva for fish: put it into ~/.config/fish/completions\n",
          stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        printf("complete -c caterva -n __fish_use_subcommand -f -a %s -d ", command->name);
        print_fish_text(command->summary);
        putchar('\n');
    }
    fputs("complete -c caterva -n '__fish_seen_subcommand_from completion' -f -a '", stdout);
    print_shells();
    fputs("'\ncomplete -c caterva -n '__fish_seen_subcommand_from help' -f -a '", stdout);
    print_commands();
    fputs("'\n", stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        for (size_t k = 0; cli_option_at(command, k, &o); k++) {
            printf("complete -c caterva -n '__fish_seen_subcommand_from %s' -l %s",
                   command->name, o.name);
            if (o.letter) printf(" -s %c", o.letter);
            fputs(o.value ? " -r -d " : " -d ", stdout);
            print_fish_text(o.help);
            putchar('\n');
        }
    }
}

static cli_exit run_completion(const cli_args *args)
{
    static void (*const printers[])(void) = {print_bash, print_zsh, print_fish};
    const char *shell = args->positional[0];
    for (size_t i = 0; i < N_SHELLS; i++) {
        if (strcmp(shell, shells[i]) != 0) continue;
        printers[i]();
        return CLI_OK;
    }
    return cli_fail(CLI_USAGE, "there is no completion for '%s'; bash, zsh and fish have one",
                    shell);
}

const cli_command cli_command_completion = {
    .name = "completion",
    .synopsis = "SHELL",
    .summary = "print the completion script of bash, zsh or fish",
    .details = "Prints a script that makes SHELL complete commands, options and file names:\n"
               "source <(caterva completion bash)",
    .options = CLI_OPT_NONE,
    .min_args = 1,
    .max_args = 1,
    .run = run_completion,
};
