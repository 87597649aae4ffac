/* Any bytes as the metadata and the shard of a Zarr array in a Zarr group: opened, verified and
 * read alone and in the tree. Both ways give the same answers. A deleted group leaves nothing.
 *
 *     u8 axes, u16 size of the group's metadata, u16 size of the array's, all three texts */
#include "fuzz.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 16, MAX_ITEMS = 1 << 12, MAX_AXES = 3 };

static char directory[] = "/dev/shm/caterva-fuzz-XXXXXX";
static char root[sizeof directory + 8], array[sizeof root + 8];

static void clean(void) { rmdir(directory); }

static void save(const char *folder, const char *name, const uint8_t *bytes, size_t size)
{
    char path[sizeof array + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    FUZZ_NEED(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
              "%s cannot be written", path);
}

static void make_directory(const char *path)
{
    FUZZ_NEED(mkdir(path, 0777) == 0, "%s cannot be made", path);
}

/* Takes at most `size` bytes from the input. */
static const uint8_t *take(fuzz_input *in, size_t *size)
{
    const uint8_t *bytes = in->bytes;
    if (*size > in->size) *size = in->size;
    in->bytes += *size;
    in->size -= *size;
    return bytes;
}

static void lay_out(fuzz_input *in)
{
    static const char *const shards[] = {"c", "c/0", "c/0/0", "c/0/0/0"};
    char path[sizeof array + 32];
    int axes = (int)fuzz_between(in, 0, MAX_AXES);
    size_t of_group = fuzz_byte(in) * 256U, of_array;
    of_group += fuzz_byte(in);
    of_array = fuzz_byte(in) * 256U;
    of_array += fuzz_byte(in);
    const uint8_t *group_meta = take(in, &of_group), *array_meta = take(in, &of_array);
    make_directory(root);
    make_directory(array);
    for (int d = 0; d < axes; d++) {
        snprintf(path, sizeof path, "%s/%s", array, shards[d]);
        make_directory(path);
    }
    save(root, "zarr.json", group_meta, of_group);
    save(array, "zarr.json", array_meta, of_array);
    save(array, shards[axes], in->bytes, in->size);
}

static void read_array(caterva_array *handle)
{
    static const int64_t zeros[CATERVA_MAX_DIMS];
    static uint8_t items[MAX_ITEMS];
    const caterva_info *info;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    FUZZ_NEED(caterva_info_get(handle, &info, NULL) == CATERVA_OK, "no description");
    if (info->data_bytes <= 1 << 20 && info->n_chunks < 1000) {
        if (info->data_bytes <= MAX_ITEMS)
            (void)caterva_read(handle, zeros, info->shape, items, sizeof items, NULL);
        (void)caterva_verify(handle, NULL, &result, NULL);
    }
    caterva_info_release(info);
}

static caterva_status read_alone(void)
{
    caterva_array *handle = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    options.cache_bytes = -1;
    caterva_status status = caterva_open(array, &options, &handle, NULL);
    FUZZ_NEED(status == CATERVA_OK || !handle, "a handle after a failure");
    if (status == CATERVA_OK) read_array(handle);
    caterva_discard(handle);
    return status;
}

static void read_attributes(caterva_tree *tree)
{
    size_t n, size;
    const char **names;
    if (caterva_tree_attr_list(tree, "/", &names, &n, NULL) != CATERVA_OK) return;
    for (size_t i = 0; i < n; i++) {
        void *value;
        caterva_error err;
        FUZZ_NEED(caterva_tree_attr_get(tree, "/", names[i], &value, &size, &err) ==
                      CATERVA_OK,
                  "%s: %s", names[i], err.message);
        caterva_free(value);
    }
    caterva_free(names);
}

static void read_in_tree(caterva_status expected)
{
    caterva_tree *tree;
    caterva_array *handle = NULL;
    const caterva_tree_list *list;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    if (caterva_tree_open(root, NULL, &tree, NULL) != CATERVA_OK) return;
    if (caterva_tree_get_list(tree, NULL, &list, NULL) == CATERVA_OK) {
        FUZZ_NEED(list->n <= 1, "%zu members", list->n);
        for (size_t i = 0; i < list->n; i++)
            FUZZ_NEED(strcmp(list->entries[i]->key, "/x") == 0, "%s", list->entries[i]->key);
        caterva_tree_list_release(list);
    }
    read_attributes(tree);
    caterva_status status = caterva_tree_open_array(tree, "/x", NULL, &handle, NULL);
    FUZZ_NEED(status == expected || expected == CATERVA_EUNSUPPORTED,
              "%d alone, %d in the tree", expected, status);
    caterva_discard(handle);
    if (expected != CATERVA_OK) (void)caterva_tree_verify(tree, NULL, NULL, &result, NULL);
    caterva_tree_close(tree, NULL);
}

/* caterva_delete refuses a directory that is not a group, or that has a shard that is not a frame. */
static void remove_all(void)
{
    static const char *const names[] = {"x/c/0/0/0",   "x/c/0/0",   "x/c/0", "x/c",
                                        "x/zarr.json", "zarr.json", "x"};
    struct stat st;
    caterva_status status = caterva_delete(root, NULL, NULL);
    FUZZ_NEED((status == CATERVA_OK) == (stat(root, &st) != 0), "%d after deleting", status);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[sizeof root + 16];
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        (void)remove(path);
    }
    (void)remove(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_input in = {bytes, size};
    if (size > MAX_SIZE) return 0;
    if (!root[0]) {
        FUZZ_NEED(mkdtemp(directory), "no directory");
        snprintf(root, sizeof root, "%s/z", directory);
        snprintf(array, sizeof array, "%s/x", root);
        atexit(clean);
    }
    lay_out(&in);
    read_in_tree(read_alone());
    remove_all();
    return 0;
}
