/* Room: frame. Writes a chunk out of pieces, part by part. What the pieces mean
 * is not known here.
 *
 *     pieces   | head | stored run ........ | new | stored run .... |
 *     parts    |       0       |       1        |       2       | 3 |
 *
 * A part is read, put together and written while it is in the cache; a buffer
 * for the whole chunk would send each byte to memory and back. Where the store
 * copies by itself, long stored runs do not pass through here at all. */
#include "frame/pieces.h"

#include <string.h>

enum { PART_BYTES = 256 * 1024, PAGE_BYTES = 4096 };

/* Of a store that copies by itself, for which large is quick. */
enum { LARGE_PART_BYTES = 8192 * 1024, LEAST_COPY = 32 * 1024 };

static size_t count(const cv_buffer *list) { return list->size / sizeof(cv_piece); }

static bool continues(const cv_piece *last, const cv_piece *next)
{
    if (last->bytes) return next->bytes == last->bytes + last->size;
    return !next->bytes && next->store == last->store && next->object == last->object &&
           next->pos == last->pos + last->size;
}

cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err)
{
    if (piece.size == 0) return CV_OK;
    if (list->size > 0) {
        cv_piece *last = (cv_piece *)(void *)list->data + count(list) - 1;
        if (continues(last, &piece)) {
            last->size += piece.size;
            return CV_OK;
        }
    }
    return cv_buffer_append(list, &piece, sizeof piece, err);
}

static bool store_copies(const cv_pieces_job *job)
{
    return job->store->ops->copy && job->object == CV_FRAME_OBJECT;
}

static uint64_t part_bytes(const cv_pieces_job *job)
{
    return store_copies(job) ? LARGE_PART_BYTES : PART_BYTES;
}

/* Parts end with a page of the store, so that no page is written twice: the
 * first one is shorter by what stands before the job in its page. */
static uint64_t part_start(const cv_pieces_job *job, int64_t part)
{
    uint64_t start = (uint64_t)part * part_bytes(job);
    uint64_t before = job->pos % PAGE_BYTES;
    return start < before ? 0 : start - before;
}

int64_t cv_pieces_n_parts(const cv_pieces_job *job)
{
    uint64_t bytes = part_bytes(job);
    return (int64_t)((job->pos % PAGE_BYTES + job->size + bytes - 1) / bytes);
}

static cv_status take(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                      uint8_t *dst, size_t size, cv_error *err)
{
    cv_store *store = piece->store ? piece->store : job->store;
    if (!piece->bytes)
        return cv_store_read(store, piece->object, piece->pos + skip, dst, size, err);
    memcpy(dst, piece->bytes + skip, size);
    return CV_OK;
}

/* What is collected for the next write: stage->size bytes, to stand at `pos`. */
static cv_status write_stage(const cv_pieces_job *job, cv_buffer *stage, uint64_t pos,
                             cv_error *err)
{
    size_t size = stage->size;
    stage->size = 0;
    if (size == 0) return CV_OK;
    return cv_store_write(job->store, job->object, pos - size, stage->data, size, err);
}

/* Writes bytes [skip, skip + size) of a piece, which stand at `pos`: now, or with
 * what is collected. */
static cv_status add(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                     size_t size, uint64_t pos, cv_buffer *stage, cv_error *err)
{
    if (!piece->bytes && !piece->store && store_copies(job) && size >= LEAST_COPY) {
        CV_TRY(write_stage(job, stage, pos, err));
        return job->store->ops->copy(job->store, piece->pos + skip, pos, size, err);
    }
    for (size_t done = 0; done < size;) {
        size_t step = size - done < PART_BYTES ? size - done : PART_BYTES;
        if (stage->size + step > PART_BYTES) CV_TRY(write_stage(job, stage, pos + done, err));
        CV_TRY(cv_buffer_reserve(stage, stage->size + step, err));
        CV_TRY(take(job, piece, skip + done, stage->data + stage->size, step, err));
        stage->size += step;
        done += step;
    }
    return CV_OK;
}

cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err)
{
    uint64_t at = part_start(job, part), end = part_start(job, part + 1), piece_start = 0;
    if (end > job->size) end = job->size;
    stage->size = 0;
    const cv_piece *piece = (const cv_piece *)(const void *)job->list->data;
    for (; at < end; piece++) {
        uint64_t piece_end = piece_start + piece->size;
        if (piece_end > at) {
            size_t size = (size_t)((piece_end < end ? piece_end : end) - at);
            CV_TRY(add(job, piece, at - piece_start, size, job->pos + at, stage, err));
            at += size;
        }
        piece_start = piece_end;
    }
    return write_stage(job, stage, job->pos + end, err);
}
