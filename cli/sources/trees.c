/* Room: cli/sources. Trees: the text that names one, opened and listed. */
#include "sources/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where "::" stands before a key; as the library, a file of that whole name comes first. */
static const char *find_key(const char *text)
{
    if (access(text, F_OK) == 0) return NULL;
    for (const char *at = strstr(text, "::"); at; at = strstr(at + 1, "::"))
        if (at > text && (!at[2] || at[2] == '/')) return at;
    return NULL;
}

bool tree_part_is_within(const char *text) { return find_key(text) != NULL; }

cli_exit tree_part_split(const char *text, char **path, const char **group)
{
    const char *at = find_key(text);
    *path = cli_copy_text(text);
    if (!*path) return CLI_IO;
    if (at) (*path)[at - text] = '\0';
    *group = at && at[2] ? at + 2 : "/";
    return CLI_OK;
}

static caterva_status open_and_list(tree_part *part, caterva_error *err)
{
    caterva_status status = caterva_tree_open(part->path, NULL, &part->tree, err);
    if (status != CATERVA_OK) return status;
    return caterva_tree_get_list(part->tree, part->group, &part->list, err);
}

cli_exit tree_part_open(const char *text, tree_part *out)
{
    caterva_error err;
    *out = (tree_part){.path = NULL};
    CLI_TRY(tree_part_split(text, &out->path, &out->group));
    if (open_and_list(out, &err) == CATERVA_OK) return CLI_OK;
    return cli_fail_array(text, &err);
}

void tree_part_close(tree_part *part)
{
    caterva_tree_list_release(part->list);
    caterva_tree_close(part->tree, NULL);
    free(part->path);
    *part = (tree_part){.path = NULL};
}

/* Of a member that any archive may have: an .npz file is no tree. */
static bool is_anything(const caterva_tree_entry *entry)
{
    static const char *const kinds[] = {"file", "deflated", "encrypted"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(entry->kind_name, kinds[i]) == 0) return true;
    return false;
}

/* Of a URL its name tells: to look would take requests. */
static bool is_array_url(const char *text)
{
    size_t size = strncasecmp(text, "s3:", 3) == 0 ? strlen(text) : strcspn(text, "?");
    bool is_archive = size > 4 && memcmp(text + size - 4, ".b2z", 4) == 0;
    return cli_is_url(text) && !find_key(text) && !is_archive;
}

bool tree_part_is(const char *text)
{
    if (is_array_url(text)) return false;
    tree_part part = {.path = NULL};
    bool is_it = tree_part_split(text, &part.path, &part.group) == CLI_OK &&
                 open_and_list(&part, NULL) == CATERVA_OK;
    struct stat st;
    size_t n = 0;
    if (is_it && stat(part.path, &st) == 0 && S_ISREG(st.st_mode) && part.list->n > 0) {
        while (n < part.list->n && is_anything(part.list->entries[n])) n++;
        is_it = n < part.list->n;
    }
    tree_part_close(&part);
    return is_it;
}

char *tree_part_url(const tree_part *part, const caterva_tree_entry *entry)
{
    size_t size = strlen(part->path) + strlen(entry->key) + 3;
    char *url = cli_alloc(size);
    if (url) snprintf(url, size, "%s::%s", part->path, entry->key);
    return url;
}

const char *tree_part_name(const tree_part *part, const caterva_tree_entry *entry)
{
    size_t size = strcmp(part->group, "/") == 0 ? 0 : strlen(part->group);
    return entry->key + size + 1;
}
