/* Room: format. A job's bytes <-> struct. */
#include "format/job_record.h"

#include "base/arith.h"
#include "base/crc.h"
#include "format/msgpack.h"

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

static void read_host(cv_reader *r, char host[CV_JOB_HOST])
{
    uint8_t size = cv_read_fixstr(r, "the host");
    const uint8_t *text = cv_read_bytes(r, size, "the host");
    if (text) memcpy(host, text, size);
}

static void read_shape(cv_reader *r, cv_job_record *out)
{
    out->ndim = cv_read_byte(r, "the number of axes");
    if (out->ndim > CV_MAX_DIMS)
        cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 1, "%d axes, %d at most", out->ndim,
                       CV_MAX_DIMS);
    for (int d = 0; d < out->ndim && r->status == CV_OK; d++) {
        out->shape[d] = cv_read_i64(r, "the shape");
        if (out->shape[d] < 0)
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at - 8, "shape[%d] is %lld", d,
                           (long long)out->shape[d]);
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
    read_host(&r, out->host);
    read_shape(&r, out);
    out->header_size = cv_read_bin32(&r, "the header");
    out->header = cv_read_bytes(&r, out->header_size, "the header");
    size_t end = r.at;
    uint32_t crc = cv_read_u32(&r, "the checksum");
    if (r.status == CV_OK && crc != cv_crc32c(0, bytes, end))
        cv_reader_fail(&r, CATERVA_ECORRUPT, end,
                       "its bytes are not those that were handed out");
    return cv_reader_finish(&r, err);
}
