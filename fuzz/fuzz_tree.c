/* Any bytes as an archive, or as an embed.b2e: listed, and each of its arrays opened both
 * ways and read if small. Each listed array has a valid key and a position. After a repair,
 * it is a tree. */
#include "fuzz.h"

#include <caterva_tree.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 16, MAX_ITEMS = 1 << 12, MAX_ARRAYS = 40 };

static char directory[] = "/dev/shm/caterva-fuzz-XXXXXX";
static char path[sizeof directory + 16], repaired[sizeof directory + 16];

static void clean(void)
{
    unlink(path);
    unlink(repaired);
    rmdir(directory);
}

static void save(const uint8_t *bytes, size_t size)
{
    if (!path[0]) {
        FUZZ_NEED(mkdtemp(directory), "no directory");
        snprintf(path, sizeof path, "%s/a.b2z", directory);
        snprintf(repaired, sizeof repaired, "%s/r.b2z", directory);
        atexit(clean);
    }
    FILE *file = fopen(path, "wb");
    FUZZ_NEED(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
              "%s cannot be written", path);
}

static void read_array(caterva_array *array, const caterva_info *info)
{
    static const int64_t zeros[CATERVA_MAX_DIMS];
    static uint8_t items[MAX_ITEMS];
    if (info->data_bytes <= MAX_ITEMS && info->chunk_bytes <= 1 << 20)
        (void)caterva_read(array, zeros, info->shape, items, sizeof items, NULL);
}

static void open_both_ways(caterva_tree *tree, const caterva_tree_entry *entry)
{
    char url[sizeof path + 8192];
    caterva_array *one = NULL, *other = NULL;
    const caterva_info *info, *same;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    options.cache_bytes = -1;
    caterva_status status = caterva_tree_open_array(tree, entry->key, &options, &one, NULL);
    snprintf(url, sizeof url, "%s::%s", path, entry->key);
    FUZZ_NEED(caterva_open(url, &options, &other, NULL) == status, "%s: two answers", url);
    FUZZ_NEED(status == CATERVA_OK || !one, "a handle after a failure");
    if (status != CATERVA_OK) return;
    FUZZ_NEED(entry->kind == CATERVA_TREE_ARRAY, "%s is a %s, and opens", entry->key,
              entry->kind_name);
    FUZZ_NEED(caterva_info_get(one, &info, NULL) == CATERVA_OK, "no description");
    FUZZ_NEED(caterva_info_get(other, &same, NULL) == CATERVA_OK, "no description");
    FUZZ_NEED(
        info->frame_bytes == same->frame_bytes && info->frame_bytes <= entry->stored_bytes,
        "%s: frames of %lld and %lld bytes in %lld", entry->key, (long long)info->frame_bytes,
        (long long)same->frame_bytes, (long long)entry->stored_bytes);
    read_array(one, info);
    caterva_info_release(info);
    caterva_info_release(same);
    caterva_discard(one);
    caterva_discard(other);
}

static void check_entry(const caterva_tree_entry *entry)
{
    FUZZ_NEED(entry->key[0] == '/' && entry->key[1], "the key \"%s\"", entry->key);
    FUZZ_NEED(!strstr(entry->key, "/../") && !strstr(entry->key, "//"), "the key \"%s\"",
              entry->key);
    FUZZ_NEED(entry->kind_name[0], "%s: no kind", entry->key);
}

/* A few bytes can stand for gigabytes, which would be decoded. */
static int stop_at_large(void *context, const char *key, const caterva_info *info, void *fill)
{
    (void)context, (void)key, (void)fill;
    return info->data_bytes > 1 << 20 || info->n_chunks > 1000;
}

static void repair(void)
{
    caterva_tree *tree;
    const caterva_tree_list *list;
    caterva_error err;
    caterva_tree_repair_options options = CATERVA_TREE_REPAIR_INIT;
    caterva_tree_repair_result result = CATERVA_TREE_REPAIR_RESULT_INIT;
    options.output = repaired;
    options.overwrite = 1;
    options.threads = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    options.on_found = stop_at_large;
    if (caterva_tree_repair(path, &options, &result, NULL) != CATERVA_OK) return;
    FUZZ_NEED(caterva_tree_open(repaired, NULL, &tree, &err) == CATERVA_OK, "%s",
              err.message);
    FUZZ_NEED(caterva_tree_get_list(tree, NULL, &list, &err) == CATERVA_OK, "%s",
              err.message);
    caterva_tree_list_release(list);
    caterva_tree_close(tree, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    caterva_tree *tree;
    const caterva_tree_list *list;
    if (size > MAX_SIZE) return 0;
    save(bytes, size);
    if (size % 8 == 0) repair(); /* for some inputs only, since it writes a tree */
    if (caterva_tree_open(path, NULL, &tree, NULL) != CATERVA_OK) return 0;
    if (caterva_tree_get_list(tree, NULL, &list, NULL) == CATERVA_OK) {
        for (size_t i = 0; i < list->n; i++) check_entry(list->entries[i]);
        for (size_t i = 1; i < list->n; i++)
            FUZZ_NEED(strcmp(list->entries[i - 1]->key, list->entries[i]->key) != 0,
                      "%s stands twice", list->entries[i]->key);
        for (size_t i = 0; i < list->n && i < MAX_ARRAYS; i++)
            open_both_ways(tree, list->entries[i]);
        caterva_tree_list_release(list);
    }
    caterva_tree_close(tree, NULL);
    return 0;
}
