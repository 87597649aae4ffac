/* Lists of the values that options and arguments accept, for completion and for "did you mean". */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli.h"

/* Returns the i-th word of a list, or NULL after the last. */
typedef const char *(*words_list)(size_t i);

/* Returns the values that an option accepts; NULL if there is no list. `option` has no dashes. */
words_list words_of_option(const char *option);

/* Whether the option's value is a list of words separated by commas. */
bool words_are_many(const char *option);

/* Returns the words that a command accepts as its first argument; NULL if it accepts any word. */
words_list words_of_command(const char *command);

const char *words_commands(size_t i);

/* "; did you mean 'zstd'?", or "" if no word of the list resembles `word`. */
typedef struct words_hint {
    char text[80];
} words_hint;
words_hint words_suggest(const char *word, words_list list);

/* Like words_suggest, for the options of a command. `word` has no dashes. */
words_hint words_suggest_option(const char *word, const cli_command *command);

#endif
