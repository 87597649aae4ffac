/* Room: cli. Lists of words, and the search for the word that a misspelled one may stand for. */
#include "words.h"

#include "commands/tune.h"
#include "foreign/foreign.h"
#include "pictures/colormap.h"

#include <stdio.h>
#include <string.h>

/* ---- Lists ----------------------------------------------------------------- */

/* Returns the i-th name, in the order of the numbers in frames; skips the name `but`. Number 0 in a
 * frame is the constant 256 of the library. */
static const char *name_at(const char *(*name_of)(int), const char *but, size_t i)
{
    for (int number = 0; number <= 255; number++) {
        const char *name = name_of(number == 0 ? 256 : number);
        if (!name || strcmp(name, but) == 0) continue;
        if (i-- == 0) return name;
    }
    return NULL;
}

static const char *codecs(size_t i) { return name_at(caterva_codec_name, "", i); }

/* Omits the old bytedelta filter, which the library can only decode. */
static const char *filters(size_t i)
{
    return name_at(caterva_filter_name, "bytedelta-old", i);
}

#define LIST(name, ...)                                                                      \
    static const char *name(size_t i)                                                        \
    {                                                                                        \
        static const char *const words[] = {__VA_ARGS__};                                    \
        return i < sizeof words / sizeof words[0] ? words[i] : NULL;                         \
    }
LIST(own_formats, "b2nd", "npy", "raw", "text", "csv")
LIST(metalayers, "b2nd", "caterva")
LIST(castings, "safe", "same_kind", "unsafe")
LIST(occasions, "auto", "yes", "no")

static const char *formats(size_t i)
{
    size_t n = 0;
    while (own_formats(n)) n++;
    return i < n ? own_formats(i) : foreign_name(i - n);
}

LIST(fills, "0", "nan", "uninit")
LIST(verbs, "list", "get", "set", "delete")
LIST(job_verbs, "begin", "list", "merge", "delete")
LIST(shells, "bash", "zsh", "fish")
#undef LIST

const char *words_commands(size_t i)
{
    const cli_command *command = cli_command_at(i);
    return command ? command->name : NULL;
}

typedef struct named_list {
    const char *name;
    words_list list;
} named_list;

static words_list find_list(const named_list *lists, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(lists[i].name, name) == 0) return lists[i].list;
    return NULL;
}

words_list words_of_option(const char *option)
{
    static const named_list lists[] = {
        {"codec", codecs},         {"filters", filters},
        {"cmap", colormap_name},   {"prefer", tune_preference_name},
        {"from", formats},         {"to", formats},
        {"metalayer", metalayers}, {"fill", fills},
        {"casting", castings},     {"rgb", occasions},
    };
    return find_list(lists, sizeof lists / sizeof lists[0], option);
}

bool words_are_many(const char *option) { return strcmp(option, "filters") == 0; }

words_list words_of_command(const char *command)
{
    static const named_list lists[] = {{"attr", verbs},
                                       {"completion", shells},
                                       {"help", words_commands},
                                       {"jobs", job_verbs}};
    return find_list(lists, sizeof lists / sizeof lists[0], command);
}

/* ---- Did you mean ------------------------------------------------------------- */

enum { LONGEST = 31 };

static int least(int a, int b, int c)
{
    int d = a < b ? a : b;
    return d < c ? d : c;
}

/* Returns the optimal string alignment distance: the number of letters deleted, inserted, changed,
 * or swapped with the next one. Both words have at most LONGEST letters. */
static int distance(const char *a, const char *b)
{
    int rows[3][LONGEST + 1] = {{0}}, n = (int)strlen(b);
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int k = 0; k <= n; k++) last[k] = k;
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int k = 1; k <= n; k++) {
            int changed = last[k - 1] + (a[i - 1] != b[k - 1]);
            now[k] = least(last[k] + 1, now[k - 1] + 1, changed);
            bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            if (swapped && before[k - 2] + 1 < now[k]) now[k] = before[k - 2] + 1;
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[n];
}

/* State of a search for the most similar word. */
typedef struct search {
    const char *word, *best;
    int distance;
} search;

/* Begins a search. offer() accepts a candidate if at most a third of the letters of `word` differ
 * (one letter in words of 2 to 5), or if the candidate begins with `word`. */
static search search_for(const char *word)
{
    size_t size = strlen(word);
    int most = size < 6 ? size > 1 : (int)size / 3;
    return (search){.word = word, .distance = most + 1};
}

static void offer(search *s, const char *candidate)
{
    size_t size = strlen(s->word);
    if (size == 0 || size > LONGEST || strlen(candidate) > LONGEST) return;
    bool begins = size >= 3 && strncmp(candidate, s->word, size) == 0;
    int d = begins ? 1 : distance(s->word, candidate);
    if (d >= s->distance || d >= (int)strlen(candidate)) return;
    s->best = candidate;
    s->distance = d;
}

static words_hint hint_of(const search *s, const char *dashes)
{
    words_hint hint = {""};
    if (s->best)
        snprintf(hint.text, sizeof hint.text, "; did you mean '%s%s'?", dashes, s->best);
    return hint;
}

words_hint words_suggest(const char *word, words_list list)
{
    const char *candidate;
    search s = search_for(word);
    for (size_t i = 0; (candidate = list(i)); i++) offer(&s, candidate);
    return hint_of(&s, "");
}

words_hint words_suggest_option(const char *word, const cli_command *command)
{
    cli_option_info o;
    char name[LONGEST + 2];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    search s = search_for(name);
    for (size_t i = 0; cli_option_at(command, i, &o); i++) offer(&s, o.name);
    return hint_of(&s, "--");
}
