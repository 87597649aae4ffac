/* Room: format. The journal of a commit of several files. Promises: what is parsed is whole,
 * each text ends with the NUL that is its last byte, and memory is in proportion to what is
 * there. */
#include "format/journal.h"

#include "base/crc.h"
#include "base/heap.h"
#include "format/msgpack.h"

static const char magic[] = "caterva-commit", header_word[] = "header", file_word[] = "file";
enum { VERSION = 1, CRC_SIZE = 5, LEAST_STEP = 20 };

/* ---- Writing -------------------------------------------------------------- */

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

/* ---- Parsing -------------------------------------------------------------- */

/* NULL after a failure. */
static const char *read_text(cv_reader *r, const char *field)
{
    size_t at = r->at;
    uint32_t size = cv_read_bin32(r, field);
    const char *text = (const char *)cv_read_bytes(r, size, field);
    if (!text) return NULL;
    if (size > 1 && size <= UINT16_MAX && memchr(text, 0, size) == text + size - 1)
        return text;
    cv_reader_fail(r, CATERVA_ECORRUPT, at, "%s at byte %zu is no text of 1 to 65534 bytes",
                   field, at);
    return NULL;
}

static void read_header(cv_reader *r, cv_journal_step *step)
{
    step->commit = cv_read_u64(r, "a commit's number");
    step->old_name = cv_read_u32(r, "a state's name");
    step->header_size = cv_read_bin32(r, "a header");
    step->header = cv_read_bytes(r, step->header_size, "a header");
}

static void read_file(cv_reader *r, cv_journal_step *step)
{
    step->replaces = cv_read_bool(r, "whether a file is replaced");
    step->file = read_text(r, "a file's name");
}

static void read_step(cv_reader *r, cv_journal_step *step)
{
    char word[32] = "";
    *step = (cv_journal_step){.path = read_text(r, "a path")};
    size_t at = r->at;
    uint8_t size = cv_read_fixstr(r, "a step's kind");
    const uint8_t *text = cv_read_bytes(r, size, "a step's kind");
    if (text) memcpy(word, text, size);
    if (strcmp(word, header_word) == 0)
        read_header(r, step);
    else if (strcmp(word, file_word) == 0)
        read_file(r, step);
    else
        cv_reader_fail(r, CATERVA_ECORRUPT, at, "a step at byte %zu is of no known kind", at);
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
                       "a commit's journal: version %u, 1 is known", version);
    CV_TRY(cv_reader_check(&r, err));
    if (size < r.at + CRC_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)size,
                       "a commit's journal: it was cut to %zu bytes", size);
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
        cv_reader_fail(&r, CATERVA_ECORRUPT, r.at, "%u steps cannot be in %zu bytes", count,
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
