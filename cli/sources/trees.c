/* Room: cli/sources. Opens and lists the tree or group that a command-line argument names. */
#include "sources/trees.h"

#include "sources/remote.h"
#include "terminal/progress.h"

#include <caterva_remote.h>
#include <caterva_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the "::" before a key, or NULL. A file with the whole text as its name has precedence. */
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

static caterva_status open_and_list(const cli_args *args, tree_part *part, caterva_error *err)
{
    caterva_tree_options options = CATERVA_TREE_INIT;
    const caterva_remote_options remote = remote_of(args);
    options.remote = &remote;
    options.progress.report = progress_tell;
    caterva_status status = caterva_tree_open(part->path, &options, &part->tree, err);
    if (status != CATERVA_OK) return status;
    return caterva_tree_get_list(part->tree, part->group, &part->list, err);
}

cli_exit tree_part_open(const cli_args *args, const char *text, tree_part *out)
{
    caterva_error err;
    progress bar;
    *out = (tree_part){.path = NULL};
    CLI_TRY(tree_part_split(text, &out->path, &out->group));
    progress_start_telling(&bar, args);
    caterva_status status = open_and_list(args, out, &err);
    progress_end(&bar);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(text, &err);
}

void tree_part_close(tree_part *part)
{
    caterva_tree_list_release(part->list);
    caterva_tree_close(part->tree, NULL);
    free(part->path);
    *part = (tree_part){.path = NULL};
}

/* Whether zip archives that are not trees may also have members of this kind. An archive with only
 * such members, like .npz, is not a tree. */
static bool is_anything(const caterva_tree_entry *entry)
{
    static const char *const kinds[] = {"file", "deflated", "encrypted"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(entry->kind_name, kinds[i]) == 0) return true;
    return false;
}

static bool has_ending(const char *text, const char *ending)
{
    bool is_web = cli_is_url(text) && strncasecmp(text, "s3:", 3) != 0;
    size_t size = is_web ? strcspn(text, "?") : strlen(text), length = strlen(ending);
    while (!cli_is_url(text) && size > 1 && text[size - 1] == '/') size--;
    return size > length && memcmp(text + size - length, ending, length) == 0;
}

/* Whether a URL is taken for an array because of its name. Examining it would take requests. */
static bool is_array_url(const char *text)
{
    return cli_is_url(text) && !find_key(text) && !has_ending(text, ".b2z");
}

/* Whether the name is that of a tree. If the tree is damaged or missing, opening it reports why. */
static bool is_named_tree(const char *text)
{
    if (find_key(text)) return false;
    return has_ending(text, ".b2z") || (!cli_is_url(text) && has_ending(text, ".b2d"));
}

bool tree_part_is(const cli_args *args, const char *text)
{
    if (is_array_url(text)) return false;
    tree_part part = {.path = NULL};
    caterva_status status = CATERVA_EUNSUPPORTED;
    if (tree_part_split(text, &part.path, &part.group) == CLI_OK)
        status = open_and_list(args, &part, NULL);
    bool is_unread =
        status == CATERVA_EIO && part.tree; /* listing the tree again reports why */
    bool is_it = status == CATERVA_OK || is_unread ||
                 (status != CATERVA_EUNSUPPORTED && is_named_tree(text));
    struct stat st;
    size_t n = 0;
    if (status == CATERVA_OK && stat(part.path, &st) == 0 && S_ISREG(st.st_mode) &&
        part.list->n > 0) {
        while (n < part.list->n && is_anything(part.list->entries[n])) n++;
        is_it = n < part.list->n;
    }
    tree_part_close(&part);
    return is_it;
}

/* Whether the status of a list means that the group or tree no longer exists, or is not a tree. */
static bool is_none(caterva_status status)
{
    return status == CATERVA_ENOTFOUND || status == CATERVA_EUNSUPPORTED;
}

static bool is_listed(const tree_part *part, const char *key)
{
    const caterva_tree_list *list;
    bool found = false;
    caterva_status status = caterva_tree_get_list(part->tree, part->group, &list, NULL);
    if (is_none(status)) return false;
    if (status != CATERVA_OK) return true;
    for (size_t i = 0; i < list->n && !found; i++)
        found = strcmp(list->entries[i]->key, key) == 0;
    caterva_tree_list_release(list);
    return found;
}

bool tree_part_is_gone(const tree_part *part)
{
    const caterva_tree_list *list = NULL;
    caterva_status status = caterva_tree_get_list(part->tree, "/", &list, NULL);
    caterva_tree_list_release(list);
    return is_none(status);
}

cli_exit tree_part_open_array(const cli_args *args, const tree_part *part,
                              const caterva_tree_entry *entry, caterva_array **out)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    const caterva_remote_options remote = remote_of(args);
    options.threads = (int)args->threads;
    options.progress.report = progress_tell;
    options.remote = &remote;
    caterva_status status =
        caterva_tree_open_array(part->tree, entry->key, &options, out, &err);
    if (status == CATERVA_OK) return CLI_OK;
    if (status == CATERVA_ENOTFOUND && !is_listed(part, entry->key)) return CLI_NO;
    char *url = tree_part_url(part, entry);
    cli_exit code = url ? cli_fail_array(url, &err) : CLI_IO;
    free(url);
    return code;
}

bool tree_part_lacks(const tree_part *part, const caterva_tree_entry *entry)
{
    struct stat st;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = -1;
    options.threads = 1;
    if (stat(part->path, &st) != 0 || !S_ISDIR(st.st_mode)) return false;
    caterva_status status =
        caterva_tree_open_array(part->tree, entry->key, &options, &array, NULL);
    if (status == CATERVA_OK) caterva_discard(array);
    return status == CATERVA_ENOTFOUND && !is_listed(part, entry->key);
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
