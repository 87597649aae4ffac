/* Room: cli/commands. `caterva completion`: scripts for the shells, generated from the tables that
 * the parser and the help use, so that the scripts agree with both. */
#include "words.h"

#include <stdio.h>
#include <string.h>

/* Prints `text` with a backslash before each character of `special`. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text)) putchar('\\');
        putchar(*text);
    }
}

static void print_words(words_list list)
{
    const char *word;
    for (size_t i = 0; (word = list(i)); i++) printf("%s%s", i ? " " : "", word);
}

/* True for the first command that accepts the option, for which the option's values are printed. */
static bool is_first_with(const cli_command *command, const char *option)
{
    const cli_command *other;
    cli_option_info o;
    for (size_t i = 0; (other = cli_command_at(i)) != command; i++)
        for (size_t k = 0; cli_option_at(other, k, &o); k++)
            if (o.value && strcmp(o.name, option) == 0) return false;
    return true;
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

/* Prints the words that complete an option's value. */
static void print_bash_values(void)
{
    const cli_command *command;
    cli_option_info o;
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        for (size_t k = 0; cli_option_at(command, k, &o); k++) {
            words_list list = o.value ? words_of_option(o.name) : NULL;
            if (!list || !is_first_with(command, o.name)) continue;
            printf("        --%s) values='", o.name);
            print_words(list);
            fputs(words_are_many(o.name) ? "'; many=1 ;;\n" : "' ;;\n", stdout);
        }
    }
}

/* bash splits words at "=": "--codec=z" arrives as the three words "--codec", "=" and "z". */
static void print_bash_head(void)
{
    fputs("# Completion of caterva for bash: source it, or put it where bash-completion\n"
          "# looks, as .../completions/caterva\n"
          "_caterva() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} words= values= many= head=\n"
          "    local option=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    COMPREPLY=()\n"
          "    if [ \"$current\" = = ]; then\n"
          "        current=\n"
          "    elif [ \"$option\" = = ] && [ \"$COMP_CWORD\" -ge 2 ]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    case $option in\n",
          stdout);
    print_bash_values();
    fputs("    esac\n"
          "    if [ -n \"$values\" ]; then\n"
          "        if [ -n \"$many\" ] && [[ $current == *,* ]]; then\n"
          "            head=${current%,*},\n"
          "        fi\n"
          "        COMPREPLY=($(compgen -P \"$head\" -W \"$values\" -- "
          "\"${current#\"$head\"}\"))\n"
          "        return 0\n"
          "    fi\n",
          stdout);
}

static void print_bash(void)
{
    const cli_command *command;
    print_bash_head();
    fputs("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        words='",
          stdout);
    print_words(words_commands);
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
    print_words(words_commands);
    fputs("' ;;\n", stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        words_list list = words_of_command(command->name);
        if (!list) continue;
        printf("            %s) words='", command->name);
        print_words(list);
        fputs("' ;;\n", stdout);
    }
    fputs("        esac\n"
          "    fi\n"
          "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    return 0\n"
          "}\n"
          "complete -o default -F _caterva caterva\n", /* no match: bash completes files */
          stdout);
}

/* ---- zsh -------------------------------------------------------------------- */

/* Prints `text` for a zsh string in single quotes. A quote in `text` is printed as '\''. The
 * characters [, ] and : get a backslash, as _arguments requires. */
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

/* Prints the zsh action that completes a value: words, words separated by commas, or files. */
static void print_zsh_action(words_list list, bool many)
{
    if (!list) {
        fputs(":_files", stdout);
        return;
    }
    fputs(many ? ":_values -s , name " : ":(", stdout);
    print_words(list);
    if (!many) putchar(')');
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
        print_zsh_action(words_of_option(o->name), words_are_many(o->name));
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
          "        help) _describe command commands ;;\n",
          stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        printf("        %s)\n            _arguments -s \\\n", command->name);
        for (size_t k = 0; cli_option_at(command, k, &o); k++) print_zsh_option(&o);
        if (words_of_command(command->name)) {
            fputs("                '1:word", stdout);
            print_zsh_action(words_of_command(command->name), false);
            fputs("' \\\n", stdout);
        }
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

static void print_fish_value(const cli_option_info *o)
{
    words_list list = o->value ? words_of_option(o->name) : NULL;
    if (o->value) fputs(list ? " -x -a '" : " -r", stdout);
    if (!list) return;
    print_words(list);
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
    fputs("complete -c caterva -n '__fish_seen_subcommand_from help' -f -a '", stdout);
    print_words(words_commands);
    fputs("'\n", stdout);
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        words_list list = words_of_command(command->name);
        if (!list) continue;
        printf("complete -c caterva -n '__fish_seen_subcommand_from %s' -a '", command->name);
        print_words(list);
        fputs("'\n", stdout);
    }
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        for (size_t k = 0; cli_option_at(command, k, &o); k++) {
            printf("complete -c caterva -n '__fish_seen_subcommand_from %s' -l %s",
                   command->name, o.name);
            if (o.letter) printf(" -s %c", o.letter);
            print_fish_value(&o);
            fputs(" -d ", stdout);
            print_fish_text(o.help);
            putchar('\n');
        }
    }
}

static cli_exit run_completion(const cli_args *args)
{
    static void (*const printers[])(void) = {print_bash, print_zsh, print_fish};
    const char *shell = args->positional[0];
    words_list shells = words_of_command("completion");
    for (size_t i = 0; shells(i); i++) {
        if (strcmp(shell, shells(i)) != 0) continue;
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one printer for each shell */
        printers[i]();
        return CLI_OK;
    }
    words_hint hint = words_suggest(shell, shells);
    return cli_fail(CLI_USAGE, "no completion for '%s'%s", shell,
                    hint.text[0] ? hint.text : "; shells are bash, zsh and fish");
}

const cli_command cli_command_completion = {
    .name = "completion",
    .synopsis = "SHELL",
    .summary = "print a completion script for bash, zsh or fish",
    .details =
        "Prints a script with which SHELL completes commands, options, their values and\n"
        "files:\n"
        "source <(caterva completion bash)",
    .options = CLI_OPT_NONE,
    .min_args = 1,
    .max_args = 1,
    .run = run_completion,
};
