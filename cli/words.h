/* The words that options and commands take: for completion, and for "did you mean". */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli.h"

/* The i-th word of a list, or NULL behind the last. */
typedef const char *(*words_list)(size_t i);

/* The words that the value of an option can be, or some of them; NULL: there is no list.
 * `option` without dashes. */
words_list words_of_option(const char *option);

/* True when the value is words with commas between. */
bool words_are_many(const char *option);

/* The words that a command's first argument is; NULL: anything. */
words_list words_of_command(const char *command);

const char *words_commands(size_t i);

/* "; did you mean 'zstd'?", or "" when no word of the list is like `word`. */
typedef struct words_hint {
    char text[80];
} words_hint;
words_hint words_suggest(const char *word, words_list list);

/* The same for an option of a command, with its dashes. */
words_hint words_suggest_option(const char *word, const cli_command *command);

#endif
