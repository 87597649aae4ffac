/* Arrays stored in a SQLite database, beside its other tables.
 *
 * A custom store is a few functions that read and write a sequence of bytes. Here the bytes
 * of each array are divided into pages, one row of a table for each page. A commit of the
 * array is a commit of the database: sync ends the transaction that the first write began. */
#include <caterva.h>
#include <caterva_store.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 16384 };

typedef struct table {
    sqlite3 *db;
    const char *name; /* of the array */
    int is_changing;  /* a transaction is open */
} table;

static const char schema[] =
    "create table if not exists arrays(name text primary key, size integer not null);"
    "create table if not exists pages(name text, page integer, bytes blob not null,"
    " primary key(name, page)) without rowid";

/* ---- SQL ---------------------------------------------------------------- */

static caterva_status fail(const table *t, caterva_error *err)
{
    snprintf(err->message, sizeof err->message, "%s", sqlite3_errmsg(t->db));
    return CATERVA_EIO;
}

/* Prepares a statement and binds the name to ?1 and the number to ?2. If this fails, every use of
 * the NULL statement fails. */
static sqlite3_stmt *prepare(const table *t, const char *sql, uint64_t number)
{
    sqlite3_stmt *s = NULL;
    sqlite3_prepare_v2(t->db, sql, -1, &s, NULL);
    sqlite3_bind_text(s, 1, t->name, -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(s) > 1) sqlite3_bind_int64(s, 2, (int64_t)number);
    return s;
}

static caterva_status run(const table *t, sqlite3_stmt *s, caterva_error *err)
{
    int done = sqlite3_step(s) == SQLITE_DONE;
    return sqlite3_finalize(s) == SQLITE_OK && done ? CATERVA_OK : fail(t, err);
}

static caterva_status begin(table *t, caterva_error *err)
{
    if (t->is_changing) return CATERVA_OK;
    if (sqlite3_exec(t->db, "begin immediate", NULL, NULL, NULL)) return fail(t, err);
    t->is_changing = 1;
    return CATERVA_OK;
}

/* Loads a page: zeros if it was never written. */
static caterva_status load(const table *t, uint64_t page, unsigned char bytes[PAGE],
                           caterva_error *err)
{
    sqlite3_stmt *s =
        prepare(t, "select bytes from pages where name = ?1 and page = ?2", page);
    memset(bytes, 0, PAGE);
    if (sqlite3_step(s) == SQLITE_ROW) {
        int size = sqlite3_column_bytes(s, 0);
        memcpy(bytes, sqlite3_column_blob(s, 0), size < PAGE ? (size_t)size : PAGE);
    }
    return sqlite3_finalize(s) == SQLITE_OK ? CATERVA_OK : fail(t, err);
}

static caterva_status save(const table *t, uint64_t page, const unsigned char bytes[PAGE],
                           caterva_error *err)
{
    sqlite3_stmt *s = prepare(t, "insert or replace into pages values(?1, ?2, ?3)", page);
    sqlite3_bind_blob(s, 3, bytes, PAGE, SQLITE_STATIC);
    return run(t, s, err);
}

/* ---- The store ---------------------------------------------------------- */

static caterva_status get_size(void *context, uint64_t *size, caterva_error *err)
{
    table *t = context;
    sqlite3_stmt *s = prepare(t, "select size from arrays where name = ?1", 0);
    *size = sqlite3_step(s) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(s, 0) : 0;
    return sqlite3_finalize(s) == SQLITE_OK ? CATERVA_OK : fail(t, err);
}

static caterva_status set_size(table *t, uint64_t size, caterva_error *err)
{
    return run(t, prepare(t, "insert or replace into arrays values(?1, ?2)", size), err);
}

/* Reads from one page only. The library calls again for the other bytes. */
static caterva_status read_bytes(void *context, uint64_t pos, void *dst, size_t size,
                                 size_t *done, caterva_error *err)
{
    unsigned char bytes[PAGE];
    uint64_t end;
    caterva_status status = get_size(context, &end, err);
    if (status == CATERVA_OK) status = load(context, pos / PAGE, bytes, err);
    size_t room = PAGE - pos % PAGE;
    uint64_t left = status == CATERVA_OK && pos < end ? end - pos : 0;
    *done = size < room ? size : room;
    if (*done > left) *done = (size_t)left;
    memcpy(dst, bytes + pos % PAGE, *done);
    return status;
}

static caterva_status write_bytes(void *context, uint64_t pos, const void *src, size_t size,
                                  caterva_error *err)
{
    unsigned char bytes[PAGE];
    uint64_t end;
    caterva_status status = begin(context, err);
    if (status == CATERVA_OK) status = get_size(context, &end, err);
    for (size_t done = 0, n; done < size && status == CATERVA_OK; done += n) {
        uint64_t at = pos + done;
        n = PAGE - at % PAGE < size - done ? PAGE - (size_t)(at % PAGE) : size - done;
        status = load(context, at / PAGE, bytes, err);
        memcpy(bytes + at % PAGE, (const char *)src + done, n);
        if (status == CATERVA_OK) status = save(context, at / PAGE, bytes, err);
    }
    return status != CATERVA_OK || pos + size <= end ? status
                                                     : set_size(context, pos + size, err);
}

static caterva_status truncate_to(void *context, uint64_t size, caterva_error *err)
{
    unsigned char bytes[PAGE];
    uint64_t last = size / PAGE;
    caterva_status status = begin(context, err);
    if (status == CATERVA_OK) status = load(context, last, bytes, err);
    memset(bytes + size % PAGE, 0, PAGE - size % PAGE);
    if (status == CATERVA_OK) status = save(context, last, bytes, err);
    if (status == CATERVA_OK)
        status = run(
            context,
            prepare(context, "delete from pages where name = ?1 and page > ?2", last), err);
    return status == CATERVA_OK ? set_size(context, size, err) : status;
}

static caterva_status sync_all(void *context, caterva_error *err)
{
    table *t = context;
    if (t->is_changing && sqlite3_exec(t->db, "commit", NULL, NULL, NULL))
        return fail(t, err);
    t->is_changing = 0;
    return CATERVA_OK;
}

static void close_table(void *context)
{
    caterva_error ignored;
    sync_all(context, &ignored);
    sqlite3_close(((table *)context)->db);
    free(context);
}

/* Makes the store of array `name` in the database at `path`. has_readers is NULL, which means that
 * others may be reading. SQLite runs one operation at a time. */
static caterva_store open_table(const char *path, const char *name)
{
    caterva_store store = CATERVA_STORE_INIT;
    table *t = calloc(1, sizeof *t);
    if (!t || sqlite3_open(path, &t->db) || sqlite3_exec(t->db, schema, NULL, NULL, NULL)) {
        fprintf(stderr, "%s: %s\n", path, t ? sqlite3_errmsg(t->db) : "no memory");
        exit(1);
    }
    sqlite3_busy_timeout(t->db, 10000);
    t->name = name;
    store.context = t;
    store.name = "the database";
    store.one_at_a_time = 1;
    store.size = get_size;
    store.read = read_bytes;
    store.write = write_bytes;
    store.truncate = truncate_to;
    store.sync = sync_all;
    store.close = close_table;
    return store;
}

/* ---- The program ---------------------------------------------------------- */

enum { ROWS = 200, COLUMNS = 300 };

static caterva_status measure(const char *path, const char *name, caterva_error *err)
{
    static float depths[ROWS][COLUMNS];
    int64_t shape[] = {ROWS, COLUMNS}, start[] = {0, 0};
    caterva_store store = open_table(path, name);
    caterva_create_options options = CATERVA_CREATE_INIT;
    caterva_array *array;
    options.ndim = 2;
    options.shape = shape;
    options.dtype = "<f4";
    options.overwrite = 1;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) depths[i][j] = (float)((i * 131 + j * 71) * (i + j) % 4001) / 16;
    caterva_status status = caterva_store_create(&store, &options, &array, err);
    if (status != CATERVA_OK) {
        close_table(store.context);
        return status;
    }
    status = caterva_write(array, start, shape, depths, sizeof depths, err);
    if (status == CATERVA_OK) return caterva_close(array, err);
    caterva_discard(array);
    return status;
}

static caterva_status show(const char *path, const char *name, caterva_error *err)
{
    float depth;
    int64_t start[] = {150, 250}, stop[] = {151, 251};
    uint64_t size = 0;
    caterva_store store = open_table(path, name);
    caterva_array *array;
    caterva_status status = caterva_store_open(&store, NULL, &array, err);
    if (status != CATERVA_OK) {
        close_table(store.context);
        return status;
    }
    status = caterva_read(array, start, stop, &depth, sizeof depth, err);
    if (status == CATERVA_OK) status = get_size(store.context, &size, err);
    if (status == CATERVA_OK)
        printf("%s: %d x %d depths in %d pages of %s; at (150, 250) %.2f m\n", name, ROWS,
               COLUMNS, (int)((size + PAGE - 1) / PAGE), path, depth);
    caterva_discard(array);
    return status;
}

int main(int argc, char **argv)
{
    caterva_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: own-store DATABASE NAME\n");
        return 2;
    }
    if (measure(argv[1], argv[2], &err) || show(argv[1], argv[2], &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    return 0;
}
