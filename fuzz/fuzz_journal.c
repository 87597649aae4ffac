/* Any bytes as the journal of an unfinished commit. What parses is written back the same. In
 * a tree, its arrays are refused, or equal the state of one of two commits, for readers and
 * for the writer that finishes it. If the first byte is odd, the checksum is corrected. */
#include "fuzz.h"

#include "base/crc.h"
#include "base/heap.h"
#include "tree/journal.h"

#include <caterva_tree.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 16, ROWS = 6 };

static char directory[] = "/dev/shm/caterva-fuzz-XXXXXX";
static char path[sizeof directory + 16], array_path[sizeof path + 8],
    journal_path[sizeof path + 24];
static uint8_t file[1 << 14];
static size_t file_size;

static void clean(void)
{
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    if (system(command) != 0) perror(command);
}

/* An array of one value. */
static void make_tree(void)
{
    static const int64_t shape[] = {ROWS}, zero[] = {0};
    int32_t items[ROWS] = {7, 7, 7, 7, 7, 7};
    caterva_tree *tree;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.dtype = "<i4";
    FUZZ_NEED(mkdtemp(directory), "no directory");
    snprintf(path, sizeof path, "%s/t.b2d", directory);
    snprintf(array_path, sizeof array_path, "%s/a.b2nd", path);
    snprintf(journal_path, sizeof journal_path, "%s/.caterva-commit", path);
    atexit(clean);
    FUZZ_NEED(caterva_tree_create(path, NULL, &tree, NULL) == CATERVA_OK, "no tree");
    FUZZ_NEED(caterva_tree_create_array(tree, "/a", &o, &array, NULL) == CATERVA_OK, "none");
    FUZZ_NEED(caterva_write(array, zero, shape, items, sizeof items, NULL) == CATERVA_OK,
              "no items");
    FUZZ_NEED(caterva_close(array, NULL) == CATERVA_OK, "no close");
    FUZZ_NEED(caterva_tree_close(tree, NULL) == CATERVA_OK, "no close");
    FILE *in = fopen(array_path, "rb");
    FUZZ_NEED(in, "no file");
    file_size = fread(file, 1, sizeof file, in);
    fclose(in);
}

static void save(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *out = fopen(name, "wb");
    FUZZ_NEED(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "%s", name);
}

static void check_array(caterva_tree *tree)
{
    static const int64_t zero[] = {0}, shape[] = {ROWS};
    int32_t items[ROWS];
    caterva_array *array;
    if (caterva_tree_open_array(tree, "/a", NULL, &array, NULL) != CATERVA_OK) return;
    if (caterva_read(array, zero, shape, items, sizeof items, NULL) == CATERVA_OK)
        for (int i = 0; i < ROWS; i++) FUZZ_NEED(items[i] == 7, "item %d", items[i]);
    caterva_discard(array);
}

static void try_tree(const uint8_t *bytes, size_t size, caterva_mode mode)
{
    caterva_tree *tree;
    const caterva_tree_list *list;
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.mode = mode;
    save(array_path, file, file_size);
    save(journal_path, bytes, size);
    if (caterva_tree_open(path, &o, &tree, NULL) != CATERVA_OK) return;
    if (caterva_tree_get_list(tree, NULL, &list, NULL) == CATERVA_OK)
        caterva_tree_list_release(list);
    check_array(tree);
    (void)caterva_tree_close(tree, NULL);
}

static void try_parser(const uint8_t *bytes, size_t size)
{
    size_t n;
    cv_buffer out = {0};
    cv_journal_step *steps;
    if (cv_journal_parse(bytes, size, &steps, &n, NULL) != CV_OK) return;
    FUZZ_NEED(cv_journal_write(steps, n, &out, NULL) == CV_OK, "not written");
    FUZZ_NEED(out.size == size && memcmp(out.data, bytes, size) == 0, "written otherwise");
    cv_buffer_free(&out);
    cv_free(steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 6 || size > MAX_SIZE) return 0;
    uint8_t *own = malloc(size - 1);
    FUZZ_NEED(own, "no memory");
    memcpy(own, bytes + 1, size - 1);
    if (bytes[0] & 1) {
        uint32_t crc = cv_crc32c(0, own, size - 6);
        for (int i = 0; i < 4; i++) own[size - 2 - (size_t)i] = (uint8_t)(crc >> (8 * i));
        own[size - 6] = 0xce;
    }
    if (!path[0]) make_tree();
    try_parser(own, size - 1);
    try_tree(own, size - 1, CATERVA_MODE_READ);
    try_tree(own, size - 1, CATERVA_MODE_WRITE);
    free(own);
    return 0;
}
