/* The program that tools/reliability runs with crashes and I/O errors, and checks, for trees:
 * commits over three arrays and the attributes of two groups.
 *
 *   tool_trees init KIND PATH         creates the tree; KIND: one of the words below
 *   tool_trees work KIND PATH N       N commits in one session, each followed by a line
 *                                     "ACK <commits so far>"; ends without a close
 *   tool_trees sessions KIND PATH N   the same; closes and opens everything after every second
 *   tool_trees check KIND PATH ACK    with our reader: 0 if all arrays are in the state after
 *                                     commit ACK, or all in that after the next
 *   tool_trees write KIND PATH ACK    the same, opened for writing; commits once more
 *   tool_trees b2nd KIND PATH ACK     with C-Blosc2: each array is in one of both states
 *   tool_trees pack KIND PATH N       N commits, each packed to "t.b2z" next to PATH
 *   tool_trees packed KIND PATH ACK   the archive is that of ACK or the next
 *   tool_trees zarr KIND PATH N       the same with Zarr groups, and the first array as a Zarr array
 *   tool_trees zarred KIND PATH ACK   each of them is that of ACK or the next, and sound
 *
 * Statuses: tools/reliability/README.md. If work fails without a fault, the status is 9. */
#include "check.h"

#define print_error blosc2_print_error
#include <b2nd.h>
#include <blosc2.h>
#include <caterva_tree.h>
#include <caterva_upkeep.h>
#undef print_error

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GOOD, NO_OPEN, LOST, WRONG, NO_READ, HALF, FAILED = 9, USAGE = 64 };
enum { ARRAYS = 3, COLUMNS = 6, MOST_ROWS = 200 };

/* What a kind of workload does besides writing. */
typedef struct workload {
    const char *name;
    bool grows, shrinks, creates, attributes;
    caterva_durability durability;
} workload;

static const workload kinds[] = {
    {"overwrite", false, false, false, false, CATERVA_DURABILITY_FULL},
    {"grow", true, false, false, false, CATERVA_DURABILITY_FULL},
    {"shrink", false, true, false, false, CATERVA_DURABILITY_FULL},
    {"create", false, false, true, false, CATERVA_DURABILITY_FULL},
    {"attributes", false, false, false, true, CATERVA_DURABILITY_FULL},
    {"mixed", true, false, true, true, CATERVA_DURABILITY_FULL},
    {"ordered", true, false, true, true, CATERVA_DURABILITY_ORDERED},
    {"unsynced", true, false, true, true, CATERVA_DURABILITY_NONE},
};

static const char *const keys[ARRAYS] = {"/a", "/g/b", "/g/h/c"};
static const char *const files[ARRAYS] = {"a.b2nd", "g/b.b2nd", "g/h/c.b2nd"};
static const char *const groups[] = {"/", "/g"};

/* ---- The model ------------------------------------------------------------ */

/* Rows of array `i` after commit `k`; 0: it does not exist. */
static int64_t rows_of(const workload *kind, int i, int k)
{
    if (kind->creates && i == 2 && k == 0) return 0;
    if (kind->grows) return 7 + 3 * k + i;
    if (kind->shrinks) return k % 3 == 2 && i == 0 ? 0 : 20 - 3 * (k % 4);
    return 11 + i;
}

/* The third array is replaced after some commits. */
static bool is_made(const workload *kind, int i, int k)
{
    return kind->creates && i == 2 && k % 3 == 1;
}

static bool is_written(const workload *kind, int i, int k, int64_t row)
{
    return k == 0 || is_made(kind, i, k) || row >= rows_of(kind, i, k - 1) ||
           (row + k + i) % 3 == 0;
}

static int32_t item_of(const workload *kind, int i, int k, int64_t row, int column)
{
    while (!is_written(kind, i, k, row)) k--;
    return i * 1000000 + k * 10000 + (int32_t)row * 10 + column;
}

static bool is_after(const workload *kind, int i, int k, const int64_t shape[2],
                     const int32_t *items)
{
    if (shape[0] != rows_of(kind, i, k) || shape[1] != COLUMNS) return false;
    for (int64_t n = 0; n < shape[0] * COLUMNS; n++)
        if (items[n] != item_of(kind, i, k, n / COLUMNS, (int)(n % COLUMNS))) return false;
    return true;
}

/* ---- Work ----------------------------------------------------------------- */

typedef struct session {
    const workload *kind;
    const char *path;
    caterva_tree *tree;
    caterva_array *arrays[ARRAYS];
    caterva_error err;
} session;

static caterva_status write_rows(session *s, int i, int k)
{
    for (int64_t row = 0; row < rows_of(s->kind, i, k); row++) {
        int32_t items[COLUMNS];
        int64_t start[] = {row, 0}, stop[] = {row + 1, COLUMNS};
        if (!is_written(s->kind, i, k, row)) continue;
        for (int c = 0; c < COLUMNS; c++) items[c] = item_of(s->kind, i, k, row, c);
        caterva_status status =
            caterva_write(s->arrays[i], start, stop, items, sizeof items, &s->err);
        if (status != CATERVA_OK) return status;
    }
    return CATERVA_OK;
}

static caterva_status create(session *s, int i, int k)
{
    static const int32_t chunk[] = {5, 4}, block[] = {3, 2};
    int64_t shape[] = {rows_of(s->kind, i, k), COLUMNS};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "<i4";
    o.threads = 1;
    o.overwrite = 1;
    o.durability = s->kind->durability;
    caterva_status status = caterva_close(s->arrays[i], &s->err);
    s->arrays[i] = NULL;
    if (status != CATERVA_OK) return status;
    return caterva_tree_create_array(s->tree, keys[i], &o, &s->arrays[i], &s->err);
}

static caterva_status change_array(session *s, int i, int k)
{
    int64_t shape[] = {rows_of(s->kind, i, k), COLUMNS};
    caterva_status status = CATERVA_OK;
    if (is_made(s->kind, i, k) || (k == 0 && shape[0] > 0)) status = create(s, i, k);
    if (!s->arrays[i] || status != CATERVA_OK) return status;
    status = caterva_resize(s->arrays[i], shape, &s->err);
    return status == CATERVA_OK ? write_rows(s, i, k) : status;
}

static caterva_status change(session *s, int k)
{
    caterva_status status = CATERVA_OK;
    uint8_t number = (uint8_t)k;
    for (int i = 0; i < ARRAYS && status == CATERVA_OK; i++) status = change_array(s, i, k);
    for (int g = 0; g < 2 && s->kind->attributes && status == CATERVA_OK; g++)
        status = caterva_tree_attr_set(s->tree, groups[g], "k", &number, 1, &s->err);
    return status == CATERVA_OK ? caterva_tree_commit(s->tree, &s->err) : status;
}

static caterva_status open_session(session *s)
{
    caterva_tree_options t = CATERVA_TREE_INIT;
    caterva_open_options o = CATERVA_OPEN_INIT;
    t.mode = o.mode = CATERVA_MODE_WRITE;
    t.durability = o.durability = s->kind->durability;
    o.threads = 1;
    caterva_status status = caterva_tree_open(s->path, &t, &s->tree, &s->err);
    for (int i = 0; i < ARRAYS && status == CATERVA_OK; i++) {
        status = caterva_tree_open_array(s->tree, keys[i], &o, &s->arrays[i], &s->err);
        if (status == CATERVA_ENOTFOUND) status = CATERVA_OK;
    }
    return status;
}

static caterva_status close_session(session *s)
{
    caterva_status status = CATERVA_OK;
    for (int i = 0; i < ARRAYS; i++) {
        caterva_status one = caterva_close(s->arrays[i], &s->err);
        s->arrays[i] = NULL;
        if (status == CATERVA_OK) status = one;
    }
    caterva_status one = caterva_tree_close(s->tree, &s->err);
    s->tree = NULL;
    return status == CATERVA_OK ? one : status;
}

static void abandon(session *s)
{
    for (int i = 0; i < ARRAYS; i++) caterva_discard(s->arrays[i]);
    caterva_tree_close(s->tree, NULL);
}

static int finish(session *s, caterva_status status)
{
    abandon(s);
    if (status != CATERVA_OK) fprintf(stderr, "%s\n", s->err.message);
    return status == CATERVA_OK ? 0 : FAILED;
}

/* Uses write(2), so that the shim's journal records it in order. */
static void acknowledge(int n)
{
    char line[32];
    int size = snprintf(line, sizeof line, "ACK %d\n", n);
    if (write(1, line, (size_t)size) != size) exit(FAILED);
}

static int work(const workload *kind, const char *path, int n, bool sessions)
{
    session s = {.kind = kind, .path = path};
    caterva_status status = open_session(&s);
    for (int k = 1; k <= n && status == CATERVA_OK; k++) {
        status = change(&s, k);
        if (status != CATERVA_OK) break;
        acknowledge(k);
        if (sessions && k % 2 == 0) status = close_session(&s);
        if (sessions && k % 2 == 0 && status == CATERVA_OK) status = open_session(&s);
    }
    return finish(&s, status);
}

static int init(const workload *kind, const char *path)
{
    session s = {.kind = kind, .path = path};
    caterva_status status = caterva_tree_create(path, NULL, &s.tree, &s.err);
    if (status == CATERVA_OK) status = change(&s, 0);
    if (status == CATERVA_OK) status = close_session(&s);
    return finish(&s, status);
}

/* ---- Archives ------------------------------------------------------------- */

/* What a tree is packed into: "t.b2z", "t.zarr", or "t.a.zarr" from one array. */
static const char *archive_of(const char *path, const char *suffix)
{
    static char archive[4096];
    snprintf(archive, sizeof archive, "%s%s", path, suffix);
    return archive;
}

static caterva_status copy_first(session *s)
{
    caterva_array *array;
    caterva_copy_options o = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.overwrite = 1;
    create.threads = 1;
    o.create = &create;
    o.zarr = 1;
    caterva_status status = caterva_tree_open_array(s->tree, keys[0], NULL, &array, &s->err);
    if (status != CATERVA_OK) return status;
    status = caterva_copy(array, archive_of(s->path, ".a.zarr"), &o, NULL, &s->err);
    caterva_discard(array);
    return status;
}

static int pack(const workload *kind, const char *path, int n, bool zarr)
{
    session s = {.kind = kind, .path = path};
    caterva_tree_pack_options o = CATERVA_TREE_PACK_INIT;
    o.overwrite = 1;
    o.zarr = zarr;
    caterva_status status = open_session(&s);
    for (int k = 1; k <= n && status == CATERVA_OK; k++) {
        status = change(&s, k);
        if (status == CATERVA_OK) status = close_session(&s);
        if (status == CATERVA_OK) status = open_session(&s);
        for (int i = 0; i < ARRAYS && status == CATERVA_OK; i++) {
            status = caterva_close(s.arrays[i], &s.err);
            s.arrays[i] = NULL;
        }
        if (status == CATERVA_OK)
            status = caterva_tree_pack(s.tree, archive_of(path, zarr ? ".zarr" : ".b2z"), &o,
                                       &s.err);
        if (status == CATERVA_OK && zarr) status = copy_first(&s);
        if (status != CATERVA_OK) break;
        acknowledge(k);
        status = caterva_tree_close(s.tree, &s.err);
        s.tree = NULL;
        if (status == CATERVA_OK) status = open_session(&s);
    }
    return finish(&s, status);
}

/* ---- Checks --------------------------------------------------------------- */

/* One finding, and the states that it matches. */
typedef struct finding {
    bool is_old, is_new, is_older;
} finding;

static finding find_array(const workload *kind, int i, int ack, const int64_t shape[2],
                          const int32_t *items)
{
    finding f = {.is_old = is_after(kind, i, ack, shape, items),
                 .is_new = is_after(kind, i, ack + 1, shape, items)};
    for (int k = 0; k < ack; k++)
        if (is_after(kind, i, k, shape, items)) f.is_older = true;
    return f;
}

static finding find_number(int ack, int k)
{
    return (finding){k == ack, k == ack + 1, k < ack};
}

static finding find_missing(const workload *kind, int i, int ack)
{
    bool was = rows_of(kind, i, ack) == 0 && kind->creates;
    return (finding){.is_old = was, .is_older = kind->creates && i == 2};
}

static int judge(const finding *all, int n)
{
    bool all_old = true, all_new = true, each = true;
    for (int i = 0; i < n; i++) {
        all_old = all_old && all[i].is_old;
        all_new = all_new && all[i].is_new;
        each = each && (all[i].is_old || all[i].is_new);
        if (!all[i].is_old && !all[i].is_new) return all[i].is_older ? LOST : WRONG;
    }
    return all_old || all_new ? GOOD : each ? HALF : WRONG;
}

/* Reports a status on stderr; returns whether the file is at fault. */
static int fail(const char *what, const caterva_error *err, int verdict)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return verdict;
}

static int read_array(const workload *kind, caterva_array *array, int i, int ack,
                      finding *out)
{
    static int32_t items[MOST_ROWS * COLUMNS];
    caterva_error err;
    const caterva_info *info;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) return NO_READ;
    int64_t start[] = {0, 0}, shape[] = {info->shape[0], info->shape[1]};
    caterva_info_release(info);
    if (shape[0] > MOST_ROWS || shape[1] != COLUMNS) return WRONG;
    size_t size = (size_t)shape[0] * COLUMNS * sizeof items[0];
    if (caterva_read(array, start, shape, items, size, &err) != CATERVA_OK)
        return fail(keys[i], &err, NO_READ);
    *out = find_array(kind, i, ack, shape, items);
    return GOOD;
}

static int check_array(const workload *kind, caterva_tree *tree, int i, int ack, finding *out)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = 1;
    caterva_status status = caterva_tree_open_array(tree, keys[i], &o, &array, &err);
    *out = find_missing(kind, i, ack);
    if (status == CATERVA_ENOTFOUND) return GOOD;
    if (status != CATERVA_OK) return fail(keys[i], &err, NO_OPEN);
    int verdict = read_array(kind, array, i, ack, out);
    caterva_discard(array);
    return verdict;
}

static int check_group(caterva_tree *tree, const char *group, int ack, finding *out)
{
    void *value;
    size_t size;
    caterva_error err;
    if (caterva_tree_attr_get(tree, group, "k", &value, &size, &err) != CATERVA_OK)
        return fail(group, &err, NO_READ);
    *out = find_number(ack, size == 1 ? *(uint8_t *)value : -1);
    caterva_free(value);
    return GOOD;
}

/* Each array must open as listed. */
static int check_list(caterva_tree *tree)
{
    caterva_error err;
    const caterva_tree_list *list;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    if (caterva_tree_get_list(tree, NULL, &list, &err) != CATERVA_OK)
        return fail("list", &err, NO_READ);
    int bad = 0;
    for (size_t i = 0; i < list->n; i++) bad += list->entries[i]->kind == CATERVA_TREE_OTHER;
    caterva_tree_list_release(list);
    if (caterva_tree_verify(tree, NULL, NULL, &result, &err) != CATERVA_OK)
        return fail("verify", &err, NO_READ);
    return bad || result.damages ? NO_READ : GOOD;
}

static int check_tree(const workload *kind, caterva_tree *tree, int ack)
{
    finding all[ARRAYS + 2];
    int n = 0, verdict = check_list(tree);
    for (int i = 0; i < ARRAYS && verdict == GOOD; i++)
        verdict = check_array(kind, tree, i, ack, &all[n++]);
    for (int g = 0; g < 2 && verdict == GOOD && kind->attributes; g++)
        verdict = check_group(tree, groups[g], ack, &all[n++]);
    if (verdict == GOOD) verdict = judge(all, n);
    if (verdict != GOOD) fprintf(stderr, "%s after %d: %d\n", kind->name, ack, verdict);
    return verdict;
}

static int check(const workload *kind, const char *path, int ack)
{
    caterva_error err;
    caterva_tree *tree;
    if (caterva_tree_open(path, NULL, &tree, &err) != CATERVA_OK)
        return fail(path, &err, NO_OPEN);
    int verdict = check_tree(kind, tree, ack);
    caterva_tree_close(tree, NULL);
    return verdict;
}

static bool has_journal(const char *path)
{
    char journal[4096];
    snprintf(journal, sizeof journal, "%s/.caterva-commit", path);
    return access(journal, F_OK) == 0;
}

/* Checks the present state, and then the one after another commit. */
static int check_writing(const workload *kind, const char *path, int ack)
{
    session s = {.kind = kind, .path = path};
    if (open_session(&s) != CATERVA_OK) return fail(path, &s.err, NO_OPEN);
    int verdict = check_tree(kind, s.tree, ack);
    finding now;
    if (verdict == GOOD) verdict = check_array(kind, s.tree, 1, ack, &now);
    if (verdict == GOOD) {
        int k = now.is_new ? ack + 1 : ack;
        if (change(&s, k + 1) != CATERVA_OK) verdict = fail("a commit", &s.err, NO_READ);
        if (verdict == GOOD) verdict = check(kind, path, k + 1);
    }
    abandon(&s);
    return verdict == GOOD && has_journal(path) ? WRONG : verdict;
}

/* C-Blosc2 expects the trailer of an array without chunks in front, where it can be written
 * only after the header: between the two writes C-Blosc2 does not open the array
 * (docs/trees.md). */
static bool is_half_emptied(const workload *kind, const char *path, int i, int ack)
{
    return rows_of(kind, i, ack + 1) == 0 && has_journal(path);
}

static int check_b2nd_array(const workload *kind, const char *path, int i, int ack)
{
    static int32_t items[MOST_ROWS * COLUMNS];
    char file[4096];
    b2nd_array_t *array;
    finding f = find_missing(kind, i, ack);
    snprintf(file, sizeof file, "%s/%s", path, files[i]);
    if (access(file, F_OK) != 0) return judge(&f, 1);
    if (b2nd_open(file, &array) < 0)
        return is_half_emptied(kind, path, i, ack) ? GOOD : NO_OPEN;
    size_t size = (size_t)array->nitems * sizeof items[0];
    int result = size <= sizeof items ? b2nd_to_cbuffer(array, items, (int64_t)size) : -1;
    f = find_array(kind, i, ack, array->shape, items);
    b2nd_free(array);
    return result < 0 ? NO_READ : judge(&f, 1);
}

static int check_b2nd(const workload *kind, const char *path, int ack)
{
    int verdict = GOOD;
    blosc2_init();
    for (int i = 0; i < ARRAYS && verdict == GOOD; i++)
        verdict = check_b2nd_array(kind, path, i, ack);
    if (verdict != GOOD) fprintf(stderr, "b2nd: %s after %d: %d\n", kind->name, ack, verdict);
    return verdict;
}

static int check_packed(const workload *kind, const char *path, int ack)
{
    const char *archive = archive_of(path, ".b2z");
    if (ack == 0 && access(archive, F_OK) != 0) return GOOD;
    return check(kind, archive, ack);
}

static int check_first(const workload *kind, const char *path, int ack)
{
    finding f;
    caterva_error err;
    caterva_array *array;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    if (caterva_open(path, NULL, &array, &err) != CATERVA_OK)
        return fail(path, &err, NO_OPEN);
    caterva_status status = caterva_verify(array, NULL, &result, &err);
    int verdict = status != CATERVA_OK ? fail("verify", &err, NO_READ)
                  : result.damages > 0 ? NO_READ
                                       : read_array(kind, array, 0, ack, &f);
    caterva_discard(array);
    return verdict == GOOD ? judge(&f, 1) : verdict;
}

static int check_zarred(const workload *kind, const char *path, int ack)
{
    const char *zarr = archive_of(path, ".zarr");
    int verdict = ack == 0 && access(zarr, F_OK) != 0 ? GOOD : check(kind, zarr, ack);
    if (verdict != GOOD) return verdict;
    zarr = archive_of(path, ".a.zarr");
    return ack == 0 && access(zarr, F_OK) != 0 ? GOOD : check_first(kind, zarr, ack);
}

int main(int argc, char **argv)
{
    const workload *kind = NULL;
    if (argc < 4) return USAGE;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, argv[2]) == 0) kind = &kinds[i];
    if (!kind) return USAGE;
    const char *command = argv[1], *path = argv[3];
    if (strcmp(command, "init") == 0) return init(kind, path);
    if (argc != 5) return USAGE;
    int n = atoi(argv[4]);
    if (strcmp(command, "work") == 0) return work(kind, path, n, false);
    if (strcmp(command, "sessions") == 0) return work(kind, path, n, true);
    if (strcmp(command, "pack") == 0) return pack(kind, path, n, false);
    if (strcmp(command, "zarr") == 0) return pack(kind, path, n, true);
    if (strcmp(command, "zarred") == 0) return check_zarred(kind, path, n);
    if (strcmp(command, "check") == 0) return check(kind, path, n);
    if (strcmp(command, "write") == 0) return check_writing(kind, path, n);
    if (strcmp(command, "b2nd") == 0) return check_b2nd(kind, path, n);
    if (strcmp(command, "packed") == 0) return check_packed(kind, path, n);
    return USAGE;
}
