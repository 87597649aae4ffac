/* Room: jobs. Records of jobs and tokens of parts: bytes <-> structs, as drawn in record.h. */
#include "jobs/record.h"

#include "base/arith.h"
#include "base/crc.h"
#include "format/msgpack.h"

/* ---- Records of jobs --------------------------------------------------------------- */

static const char magic[8] = {'c', 'v', 'j', 'o', 'b', 0, 1, '\n'};

void cv_job_name(const uint8_t id[CV_JOB_ID], char out[CV_JOB_NAME])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < CV_JOB_ID; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
    out[2 * CV_JOB_ID] = '\0';
}

cv_status cv_job_record_write(const cv_job_record *record, cv_buffer *out, cv_error *err)
{
    size_t start = out->size;
    cv_writer w = cv_writer_open(out, err);
    cv_write_bytes(&w, magic, sizeof magic);
    cv_write_bytes(&w, record->id, CV_JOB_ID);
    cv_write_u64(&w, record->commit);
    cv_write_u64(&w, record->began_ns);
    cv_write_u32(&w, record->process);
    cv_write_fixstr(&w, record->host, (uint8_t)strlen(record->host));
    cv_write_byte(&w, (uint8_t)record->ndim);
    for (int d = 0; d < record->ndim; d++) cv_write_i64(&w, record->shape[d]);
    cv_write_bin32(&w, record->header, record->header_size);
    if (w.status == CV_OK)
        cv_write_u32(&w, cv_crc32c(0, out->data + start, out->size - start));
    return w.status;
}

static void read_shape(cv_reader *r, cv_job_record *out)
{
    out->ndim = cv_read_byte(r, "the number of axes");
    if (out->ndim > CV_MAX_DIMS)
        cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 1, "%d axes, but at most %d are possible",
                       out->ndim, CV_MAX_DIMS);
    for (int d = 0; d < out->ndim && r->status == CV_OK; d++) {
        out->shape[d] = cv_read_i64(r, "the shape");
        if (out->shape[d] < 0)
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 8, "shape[%d] is %lld, less than 0",
                           d, (long long)out->shape[d]);
    }
}

cv_status cv_job_record_parse(const void *bytes, size_t size, cv_job_record *out,
                              cv_error *err)
{
    *out = (cv_job_record){.ndim = 0};
    cv_reader r = cv_reader_open(bytes, size, -1, "the job");
    cv_expect(&r, magic, sizeof magic, "the magic");
    const uint8_t *id = cv_read_bytes(&r, CV_JOB_ID, "the id");
    if (id) memcpy(out->id, id, CV_JOB_ID);
    out->commit = cv_read_u64(&r, "the commit");
    out->began_ns = cv_read_u64(&r, "the time");
    out->process = cv_read_u32(&r, "the process");
    uint8_t host_size = cv_read_fixstr(&r, "the host");
    const uint8_t *host = cv_read_bytes(&r, host_size, "the host");
    if (host) memcpy(out->host, host, host_size);
    read_shape(&r, out);
    out->header_size = cv_read_bin32(&r, "the header");
    out->header = cv_read_bytes(&r, out->header_size, "the header");
    size_t end = r.at;
    uint32_t crc = cv_read_u32(&r, "the checksum");
    if (r.status == CV_OK && crc != cv_crc32c(0, bytes, end))
        cv_reader_fail(&r, CATERVA_ECORRUPT, end, "its bytes have been changed");
    return cv_reader_finish(&r, err);
}

/* ---- Tokens of parts --------------------------------------------------------------- */

static const char token_magic[8] = {'c', 'v', 't', 'o', 'k', 0, 1, '\n'};

cv_status cv_part_token_write(const cv_part_token *token, cv_buffer *out, cv_error *err)
{
    size_t start = out->size;
    int64_t before = -1;
    cv_writer w = cv_writer_open(out, err);
    cv_write_bytes(&w, token_magic, sizeof token_magic);
    cv_write_bytes(&w, token->job, CV_JOB_ID);
    cv_write_str32(&w, token->name, (uint32_t)strlen(token->name));
    cv_write_u64(&w, token->frame_size);
    cv_write_bytes(&w, token->root, CV_PART_ROOT);
    cv_write_byte(&w, (uint8_t)token->ndim);
    for (int d = 0; d < token->ndim; d++) cv_write_i64(&w, token->first[d]);
    for (int d = 0; d < token->ndim; d++) cv_write_i64(&w, token->n[d]);
    cv_write_u32(&w, (uint32_t)token->n_chunks);
    for (int64_t i = 0; i < token->n_chunks && w.status == CV_OK; i++) {
        const cv_part_chunk *c = &token->chunks[i];
        cv_write_varint(&w, (uint64_t)(c->chunk - before - 1) << 1 | c->in_part);
        before = c->chunk;
    }
    if (w.status == CV_OK)
        cv_write_u32(&w, cv_crc32c(0, out->data + start, out->size - start));
    return w.status;
}

/* Returns whether the name is not hidden and cannot lead out of the folder. */
static bool is_name(const uint8_t *name, uint32_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (size > 0 && name[0] == '.') return false;
    for (uint32_t i = 0; i < size; i++)
        if (!name[i] || !strchr(allowed, name[i])) return false;
    return true;
}

static void read_name(cv_reader *r, cv_part_token *out)
{
    uint32_t size = cv_read_str32(r, "the name");
    size_t at = r->at;
    const uint8_t *name = size < CV_PART_NAME ? cv_read_bytes(r, size, "the name") : NULL;
    if (name && is_name(name, size))
        memcpy(out->name, name, size);
    else
        cv_reader_fail(r, CATERVA_ECORRUPT, at, "the name is not that of a part");
}

static void read_box(cv_reader *r, cv_part_token *out)
{
    out->ndim = cv_read_byte(r, "the number of axes");
    if (out->ndim > CV_MAX_DIMS)
        cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 1, "%d axes, but at most %d are possible",
                       out->ndim, CV_MAX_DIMS);
    for (int d = 0; d < out->ndim && r->status == CV_OK; d++)
        out->first[d] = cv_read_i64(r, "the first chunk");
    for (int d = 0; d < out->ndim && r->status == CV_OK; d++)
        out->n[d] = cv_read_i64(r, "the chunks of an axis");
    for (int d = 0; d < out->ndim && r->status == CV_OK; d++)
        if (out->first[d] < 0 || out->n[d] < 1 || out->n[d] > CV_MAX_CHUNKS ||
            out->first[d] > CV_MAX_CHUNKS)
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at,
                           "%lld as first chunk and %lld chunks are not valid on axis %d",
                           (long long)out->first[d], (long long)out->n[d], d);
}

static cv_status read_chunks(cv_reader *r, cv_part_token *out, cv_error *err)
{
    uint32_t n = cv_read_u32(r, "the number of chunks");
    if (n > r->size - r->at) /* each chunk takes at least a byte */
        cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 4,
                       "%u chunks cannot be listed in %zu bytes", n, r->size - r->at);
    CV_TRY(cv_reader_check(r, err));
    out->chunks = cv_malloc(n * sizeof out->chunks[0]);
    if (n > 0 && !out->chunks)
        return cv_fail_memory(err, n * sizeof out->chunks[0], "a token");
    int64_t next = 0;
    for (uint32_t i = 0; i < n && r->status == CV_OK; i++) {
        uint64_t step = cv_read_varint(r, (uint64_t)CV_MAX_CHUNKS << 1, "a chunk's number");
        next += (int64_t)(step >> 1);
        if (next >= CV_MAX_CHUNKS)
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at, "chunk %lld is not below %lld",
                           (long long)next, (long long)CV_MAX_CHUNKS);
        out->chunks[out->n_chunks++] = (cv_part_chunk){next++, (step & 1) != 0};
    }
    return CV_OK;
}

static cv_status read_token(cv_reader *r, cv_part_token *out, cv_error *err)
{
    cv_expect(r, token_magic, sizeof token_magic, "the magic");
    const uint8_t *id = cv_read_bytes(r, CV_JOB_ID, "the job");
    if (id) memcpy(out->job, id, CV_JOB_ID);
    read_name(r, out);
    out->frame_size = cv_read_u64(r, "the part's size");
    const uint8_t *root = cv_read_bytes(r, CV_PART_ROOT, "the root");
    if (root) memcpy(out->root, root, CV_PART_ROOT);
    read_box(r, out);
    CV_TRY(read_chunks(r, out, err));
    size_t end = r->at;
    uint32_t crc = cv_read_u32(r, "the checksum");
    if (r->status == CV_OK && crc != cv_crc32c(0, r->bytes, end))
        cv_reader_fail(r, CATERVA_ECORRUPT, end, "its bytes have been changed");
    if (r->status == CV_OK && (out->n_chunks > 0) != (out->name[0] != 0))
        cv_reader_fail(r, CATERVA_ECORRUPT, end, "%lld chunks of the part \"%s\"",
                       (long long)out->n_chunks, out->name);
    return cv_reader_finish(r, err);
}

cv_status cv_part_token_parse(const void *bytes, size_t size, cv_part_token *out,
                              cv_error *err)
{
    *out = (cv_part_token){.n_chunks = 0};
    if (size < sizeof token_magic || memcmp(bytes, token_magic, sizeof token_magic) != 0)
        return cv_fail(
            err, CATERVA_ECORRUPT, 0,
            "these %zu bytes are not a part's token: they do not begin with its magic", size);
    cv_reader r = cv_reader_open(bytes, size, -1, "the token");
    cv_status status = read_token(&r, out, err);
    if (status != CV_OK) cv_part_token_free(out);
    return status;
}

void cv_part_token_free(cv_part_token *token)
{
    cv_free(token->chunks);
    token->chunks = NULL;
    token->n_chunks = 0;
}
