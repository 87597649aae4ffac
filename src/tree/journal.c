/* Room: tree. The journal of a commit of several files: its bytes, and its effect on the files of a
 * directory. Memory grows with the bytes that exist, not with the numbers they state. A new header
 * is written only over the header that it replaces, and only if all chunks it refers to exist, so
 * an outdated journal does no harm. Independent of the contents of arrays. */
#include "tree/journal.h"

#include "base/crc.h"
#include "base/os_dir.h"
#include "format/msgpack.h"
#include "frame/commit.h"
#include "frame/snapshot.h"
#include "store/descriptors.h"
#include "store/file.h"
#include "store/open.h"
#include "store/place.h"
#include "tree/names.h"

#include <stdio.h>

static const char magic[] = "caterva-commit", header_word[] = "header", file_word[] = "file";
enum { VERSION = 1, CRC_SIZE = 5, LEAST_STEP = 20 };

static void write_text(cv_writer *w, const char *text)
{
    cv_write_bin32(w, (const uint8_t *)text, (uint32_t)strlen(text) + 1);
}

static void write_step(cv_writer *w, const cv_journal_step *step)
{
    write_text(w, step->path);
    if (step->file) {
        cv_write_fixstr(w, file_word, sizeof file_word - 1);
        cv_write_bool(w, step->replaces);
        write_text(w, step->file);
        return;
    }
    cv_write_fixstr(w, header_word, sizeof header_word - 1);
    cv_write_u64(w, step->commit);
    cv_write_u32(w, step->old_name);
    cv_write_bin32(w, step->header, step->header_size);
}

cv_status cv_journal_write(const cv_journal_step *steps, size_t n, cv_buffer *out,
                           cv_error *err)
{
    size_t start = out->size;
    cv_writer w = cv_writer_open(out, err);
    if (n > UINT32_MAX) return cv_fail(err, CATERVA_EINVAL, -1, "a commit of %zu files", n);
    cv_write_fixstr(&w, magic, sizeof magic - 1);
    cv_write_u32(&w, VERSION);
    cv_write_u32(&w, (uint32_t)n);
    for (size_t i = 0; i < n; i++) write_step(&w, &steps[i]);
    if (w.status == CV_OK)
        cv_write_u32(&w, cv_crc32c(0, out->data + start, out->size - start));
    return w.status;
}

/* Reads a text field; NULL after a failure. */
static const char *read_text(cv_reader *r, const char *field)
{
    size_t at = r->at;
    uint32_t size = cv_read_bin32(r, field);
    const char *text = (const char *)cv_read_bytes(r, size, field);
    if (!text) return NULL;
    if (size > 1 && size <= UINT16_MAX && memchr(text, 0, size) == text + size - 1)
        return text;
    cv_reader_fail(r, CATERVA_ECORRUPT, at,
                   "%s at byte %zu is not a text of 1 to 65534 bytes", field, at);
    return NULL;
}

static void read_header(cv_reader *r, cv_journal_step *step)
{
    step->commit = cv_read_u64(r, "a commit's number");
    step->old_name = cv_read_u32(r, "a state's name");
    step->header_size = cv_read_bin32(r, "a header");
    step->header = cv_read_bytes(r, step->header_size, "a header");
}

static void read_step(cv_reader *r, cv_journal_step *step)
{
    char word[32] = "";
    *step = (cv_journal_step){.path = read_text(r, "a path")};
    size_t at = r->at;
    uint8_t size = cv_read_fixstr(r, "a step's kind");
    const uint8_t *text = cv_read_bytes(r, size, "a step's kind");
    if (text) memcpy(word, text, size);
    if (strcmp(word, header_word) == 0) {
        read_header(r, step);
    } else if (strcmp(word, file_word) == 0) {
        step->replaces = cv_read_bool(r, "whether a file is replaced");
        step->file = read_text(r, "a file's name");
    } else {
        cv_reader_fail(r, CATERVA_ECORRUPT, at, "a step at byte %zu is of an unknown kind",
                       at);
    }
}

static cv_status check_crc(const uint8_t *bytes, size_t size, cv_error *err)
{
    cv_reader r = cv_reader_open(bytes, size, 0, "a commit's journal");
    cv_expect(&r,
              "\xae"
              "caterva-commit",
              sizeof magic, "the opening words");
    uint32_t version = cv_read_u32(&r, "the version");
    if (r.status == CV_OK && version != VERSION)
        return cv_fail(err, version > VERSION ? CATERVA_EUNSUPPORTED : CATERVA_ECORRUPT, -1,
                       "a commit's journal has version %u, but only 1 is known", version);
    CV_TRY(cv_reader_check(&r, err));
    if (size < r.at + CRC_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)size,
                       "a commit's journal was cut to %zu bytes", size);
    cv_reader end = cv_reader_open(bytes + size - CRC_SIZE, CRC_SIZE,
                                   (int64_t)(size - CRC_SIZE), "a commit's journal");
    uint32_t crc = cv_read_u32(&end, "the checksum");
    CV_TRY(cv_reader_finish(&end, err));
    uint32_t found = cv_crc32c(0, bytes, size - CRC_SIZE);
    if (found == crc) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "a commit's journal is damaged: its checksum is %08x, it should be %08x",
                   found, crc);
}

cv_status cv_journal_parse(const uint8_t *bytes, size_t size, cv_journal_step **steps,
                           size_t *n, cv_error *err)
{
    CV_TRY(check_crc(bytes, size, err));
    cv_reader r = cv_reader_open(bytes, size - CRC_SIZE, 0, "a commit's journal");
    (void)cv_read_bytes(&r, sizeof magic + 5, "the opening words");
    uint32_t count = cv_read_u32(&r, "the number of steps");
    if (count > (size - r.at) / LEAST_STEP)
        cv_reader_fail(&r, CATERVA_ECORRUPT, r.at, "%u steps do not fit in %zu bytes", count,
                       size);
    CV_TRY(cv_reader_check(&r, err));
    cv_journal_step *list = cv_malloc((count + (size_t)1) * sizeof *list);
    if (!list) return cv_fail_memory(err, count * sizeof *list, "a commit's journal");
    for (uint32_t i = 0; i < count && r.status == CV_OK; i++) read_step(&r, &list[i]);
    cv_status status = cv_reader_finish(&r, err);
    if (status != CV_OK) {
        cv_free(list);
        return status;
    }
    *steps = list;
    *n = count;
    return CV_OK;
}

enum { LONGEST = 1 << 30 };

void cv_journal_free(cv_journal *journal)
{
    cv_free(journal->steps);
    cv_buffer_free(&journal->bytes);
    *journal = (cv_journal){.n = 0};
}

static cv_status read_bytes(cv_file file, const char *shown, cv_buffer *out, cv_error *err)
{
    uint64_t size;
    size_t done = 0;
    int error = cv_file_size(file, &size);
    if (!error && size > LONGEST)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "%s in %s has %llu bytes", CV_TREE_JOURNAL,
                       shown, (unsigned long long)size);
    if (!error) {
        CV_TRY(cv_buffer_resize(out, (size_t)size, err));
        error = cv_file_read(file, out->data, out->size, 0, &done);
        out->size = done;
    }
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot read %s in %s", CV_TREE_JOURNAL, shown);
}

static cv_status check_step(const cv_journal_step *step, cv_error *err)
{
    CV_TRY(cv_tree_check_path(step->path, strlen(step->path), err));
    bool good = cv_os_can_name(step->path);
    if (step->file) {
        CV_TRY(cv_tree_check_path(step->file, strlen(step->file), err));
        good = good && cv_os_can_name(step->file) && cv_tree_is_leaf(step->path) &&
               step->file[0] == '.' && !strchr(step->file, '/');
    } else {
        good = good && step->header_size > 16;
    }
    if (good) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1, "the step for %.100s is invalid", step->path);
}

static cv_status parse(cv_journal *journal, cv_error *err)
{
    CV_TRY(cv_journal_parse(journal->bytes.data, journal->bytes.size, &journal->steps,
                            &journal->n, err));
    for (size_t i = 0; i < journal->n; i++) CV_TRY(check_step(&journal->steps[i], err));
    return CV_OK;
}

static cv_status load(cv_file file, const char *shown, cv_journal *out, cv_error *err)
{
    cv_error reason = {0};
    CV_TRY(read_bytes(file, shown, &out->bytes, err));
    cv_status status = parse(out, &reason);
    if (status == CV_OK) return CV_OK;
    return cv_fail(err, status, reason.position, "%s in %.60s: %.120s", CV_TREE_JOURNAL,
                   shown, reason.message);
}

cv_status cv_journal_look(cv_dir dir, const char *shown, cv_journal *out, cv_error *err)
{
    cv_file file;
    *out = (cv_journal){.n = 0};
    int error = cv_open_file(dir, CV_TREE_JOURNAL, CV_OPEN_READ | CV_OPEN_NO_LINK, 0, &file);
    if (error == ENOENT) return CV_OK;
    if (error) return cv_fail_sys(err, error, "cannot open %s in %s", CV_TREE_JOURNAL, shown);
    cv_status status = load(file, shown, out, err);
    cv_file_close(&file);
    if (status != CV_OK) cv_journal_free(out);
    return status;
}

const cv_journal_step *cv_journal_find(const cv_journal *journal, const char *path)
{
    for (size_t i = 0; i < journal->n; i++)
        if (strcmp(journal->steps[i].path, path) == 0) return &journal->steps[i];
    return NULL;
}

static int parent_size(const cv_journal_step *step)
{
    const char *slash = strrchr(step->path, '/');
    return slash ? (int)(slash - step->path) + 1 : 0; /* a path is short */
}

cv_status cv_journal_file(const cv_journal_step *step, char **out, cv_error *err)
{
    int parent = parent_size(step);
    size_t size = (size_t)parent + strlen(step->file) + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%.*s%s", parent, step->path, step->file);
    return CV_OK;
}

bool cv_journal_has_file(cv_dir dir, const cv_journal_step *step, uint64_t *size)
{
    char file[8192]; /* two names in a tree are shorter, see cv_tree_check_path */
    cv_file_info info = {.size = 0};
    if (!step->file) return false;
    (void)snprintf(file, sizeof file, "%.*s%s", parent_size(step), step->path, step->file);
    bool found = cv_dir_get_link_info(dir, file, &info) == 0 && info.kind == CV_KIND_FILE;
    *size = info.size;
    return found;
}

/* Whether the file with the new header is complete: sealed, and with the step's commit number. */
static cv_status holds_new(cv_store *headed, const cv_journal_step *step, bool *out,
                           cv_error *err)
{
    cv_snapshot *s = NULL;
    cv_status status = cv_snapshot_load_any(headed, &s, err);
    *out = status == CV_OK && s->seal == CV_SEAL_WHOLE && s->footer.commit == step->commit;
    cv_snapshot_release(s);
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED ? CV_OK : status;
}

/* Whether the file still has the header that the step replaces, or a torn one. */
static cv_status has_old(cv_store *store, const cv_journal_step *step, bool *out,
                         cv_error *err)
{
    cv_snapshot *s = NULL;
    cv_status status = cv_snapshot_load_any(store, &s, err);
    *out = status == CATERVA_ECORRUPT ||
           (status == CV_OK && s->header_bytes.size == step->header_size &&
            cv_snapshot_name(s) == step->old_name);
    cv_snapshot_release(s);
    return status == CATERVA_ECORRUPT ? CV_OK : status;
}

/* Sets *out to the file in the state after the step, or to NULL if the file already has the new
 * header, or that of another state. Takes ownership of `store`, also on failure. */
static cv_status judge(cv_store *store, const cv_journal_step *step, cv_store **out,
                       cv_error *err)
{
    uint64_t size;
    bool is_old = false, is_whole = false;
    cv_store *headed = NULL;
    *out = NULL;
    cv_status status = cv_store_size(store, CV_FRAME_OBJECT, &size, err);
    if (status == CV_OK) status = has_old(store, step, &is_old, err);
    if (status == CV_OK && is_old && size >= step->header_size)
        status = cv_store_headed(store, step->header, step->header_size, &headed, err);
    if (headed) status = holds_new(headed, step, &is_whole, err);
    if (status == CV_OK && is_whole)
        *out = headed;
    else
        cv_store_close(headed ? headed : store);
    return status;
}

static cv_status join(const char *root, const char *path, char **out, cv_error *err)
{
    size_t size = strlen(root) + strlen(path) + 2;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s/%s", root, path);
    return CV_OK;
}

static cv_status open_path(const char *root, const char *path, bool writable, cv_store **out,
                           cv_error *err)
{
    char *whole;
    CV_TRY(join(root, path, &whole, err));
    cv_status status = cv_store_file_open(whole, 0, writable, out, err);
    cv_free(whole);
    return status;
}

/* Opens the file of a step. If the old name no longer exists, the file has its new name. */
static cv_status open_file(const char *root, const cv_journal_step *step, cv_store **out,
                           cv_error *err)
{
    char *file;
    cv_error why = {0};
    CV_TRY(cv_journal_file(step, &file, err));
    cv_status status = open_path(root, file, false, out, &why);
    cv_free(file);
    if (status == CATERVA_ENOTFOUND) return open_path(root, step->path, false, out, err);
    if (status != CV_OK && err) *err = why;
    return status;
}

static cv_status open_header(const char *root, const cv_journal_step *step, cv_store **out,
                             cv_error *err)
{
    cv_store *store;
    CV_TRY(open_path(root, step->path, false, &store, err));
    CV_TRY(judge(store, step, out, err));
    if (*out) return CV_OK;
    return open_path(root, step->path, false, out, err);
}

cv_status cv_journal_open(const cv_journal *journal, const char *root, const char *path,
                          cv_store **out, cv_error *err)
{
    const cv_journal_step *step = cv_journal_find(journal, path);
    if (!step) return open_path(root, path, false, out, err);
    return step->file ? open_file(root, step, out, err) : open_header(root, step, out, err);
}

/* ---- Publishing and deleting ------------------------------------------------------------ */

/* Writes the journal under a temporary name, so that a published journal is always complete. */
static cv_status write_temp(cv_dir dir, const cv_buffer *bytes, bool durable,
                            char temp[CV_OS_TEMP_NAME], cv_error *err)
{
    cv_file file;
    int error = cv_open_temp_file(dir, "caterva-commit", 0666, temp, &file);
    if (error) return cv_fail_sys(err, error, "cannot create %s", CV_TREE_JOURNAL);
    error = cv_file_write(file, bytes->data, bytes->size, 0);
    if (!error && durable) error = cv_file_sync(file);
    cv_file_close(&file);
    if (!error) return CV_OK;
    (void)cv_dir_remove(dir, temp);
    return cv_fail_sys(err, error, "cannot write %s", CV_TREE_JOURNAL);
}

cv_status cv_journal_publish(cv_dir dir, const char *shown, const cv_journal_step *steps,
                             size_t n, bool durable, bool *doubtful, cv_error *err)
{
    char temp[CV_OS_TEMP_NAME];
    cv_buffer bytes = {0};
    *doubtful = false;
    cv_status status = cv_journal_write(steps, n, &bytes, err);
    if (status == CV_OK) status = write_temp(dir, &bytes, durable, temp, err);
    cv_buffer_free(&bytes);
    CV_TRY(status);
    int error = cv_dir_rename(dir, temp, CV_TREE_JOURNAL);
    if (error) {
        (void)cv_dir_remove(dir, temp);
        return cv_fail_sys(err, error, "cannot commit to %s", shown);
    }
    error = durable ? cv_dir_sync(dir) : 0;
    *doubtful = error != 0;
    if (!error) return CV_OK;
    return cv_fail_sys(
        err, error,
        "cannot sync %s: it is not known whether the commit is published; close all "
        "handles of the tree and open it again",
        shown);
}

cv_status cv_journal_remove(cv_dir dir, const char *shown, cv_error *err)
{
    int error = cv_dir_remove(dir, CV_TREE_JOURNAL);
    if (!error || error == ENOENT) return CV_OK;
    return cv_fail_sys(err, error, "cannot delete %s in %s", CV_TREE_JOURNAL, shown);
}

/* ---- Finishing -------------------------------------------------------------------------- */

/* Writes the second copy of the trailer, which frames without chunks have at the end. */
static cv_status write_second_trailer(cv_store *store, cv_error *err)
{
    cv_txn *txn;
    cv_frame *frame;
    CV_TRY(cv_frame_open(store, CATERVA_DURABILITY_FULL, false, &frame, err));
    cv_status status = CV_OK;
    if (frame->current->grid.n_chunks == 0) {
        status = cv_txn_begin(frame, &txn, err);
        if (status == CV_OK) cv_txn_free(txn);
    }
    cv_frame_close(frame);
    return status;
}

/* Writes the header to `store`, which is open for writing, and releases the store. */
static cv_status put_header(cv_store *store, const cv_journal_step *step, cv_error *err)
{
    cv_status status = cv_commit_put_header(store, step->header, step->header_size, err);
    if (status == CV_OK) status = cv_store_sync(store, CV_FRAME_OBJECT, err);
    if (status == CV_OK) return write_second_trailer(store, err);
    cv_store_close(store);
    return status;
}

/* Finishes a header step. The file is locked by `store` while the header is judged. */
static cv_status finish_header(const char *root, const cv_journal_step *step, cv_error *err)
{
    cv_store *reader, *store, *headed = NULL;
    cv_error why = {0};
    cv_status status = open_path(root, step->path, true, &store, &why);
    if (status == CATERVA_ENOTFOUND) return CV_OK; /* deleted since */
    if (status != CV_OK && err) *err = why;
    CV_TRY(status);
    status = open_path(root, step->path, false, &reader, err);
    if (status == CV_OK) status = judge(reader, step, &headed, err);
    cv_store_close(headed);
    if (headed) return put_header(store, step, err);
    cv_store_close(store);
    return status;
}

static cv_status move_file(cv_place *place, const cv_journal_step *step, cv_error *err)
{
    cv_file made;
    bool moved;
    (void)snprintf(place->temp, sizeof place->temp, "%s", step->file);
    int error = cv_open_file(place->dir, step->file, CV_OPEN_BOTH, 0, &made);
    if (error) return cv_fail_open(err, error, step->file);
    cv_status status = cv_place_publish(place, made, (cv_file){0}, true, &moved, err);
    cv_file_close(&made);
    return status;
}

/* Finishes a file step. If a file of another writer has the name by now, the other file stays. */
static cv_status finish_file(cv_dir dir, const char *root, const cv_journal_step *step,
                             cv_error *err)
{
    cv_place place;
    uint64_t bytes;
    char *whole;
    if (!cv_journal_has_file(dir, step, &bytes)) return CV_OK; /* done, or deleted since */
    CV_TRY(join(root, step->path, &whole, err));
    cv_status status = cv_place_open(whole, step->replaces, &place, err);
    cv_free(whole);
    if (status == CV_OK) {
        status = move_file(&place, step, err);
        cv_place_close(&place);
    }
    return status == CATERVA_EEXIST ? CV_OK : status;
}

static cv_status finish(cv_dir dir, const char *root, const cv_journal *journal,
                        cv_error *err)
{
    for (size_t i = 0; i < journal->n; i++) {
        const cv_journal_step *step = &journal->steps[i];
        CV_TRY(step->file ? finish_file(dir, root, step, err)
                          : finish_header(root, step, err));
    }
    return CV_OK;
}

cv_status cv_journal_finish(cv_dir dir, const char *root, const char *shown, cv_error *err)
{
    cv_journal journal;
    CV_TRY(cv_journal_look(dir, shown, &journal, err));
    if (journal.bytes.size == 0) return CV_OK;
    cv_error reason = {0};
    cv_status status = finish(dir, root, &journal, &reason);
    cv_journal_free(&journal);
    if (status == CV_OK) return cv_journal_remove(dir, shown, err);
    return cv_fail(err, status, reason.position,
                   "a commit to %.60s cannot be finished: %.120s", shown, reason.message);
}
