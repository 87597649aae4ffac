/* Room: frame. Writes a chunk out of pieces, part by part. What the pieces mean
 * is not known here.
 *
 *     pieces   | head | stored run ........ | new | stored run .... |
 *     parts    |       0       |       1        |       2       | 3 |
 *
 * A part is read, put together and written while it is in the cache; a buffer
 * for the whole chunk would send each byte to memory and back. */
#include "frame/pieces.h"

#include <string.h>

enum { PART_BYTES = 256 * 1024, PAGE_BYTES = 4096 };

static size_t count(const cv_buffer *list) { return list->size / sizeof(cv_piece); }

static bool continues(const cv_piece *last, const cv_piece *next)
{
    if (last->bytes) return next->bytes == last->bytes + last->size;
    return !next->bytes && next->object == last->object &&
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

/* Parts end with a page of the store, so that no page is written twice: the
 * first one is shorter by what stands before the job in its page. */
static uint64_t part_start(const cv_pieces_job *job, int64_t part)
{
    uint64_t start = (uint64_t)part * PART_BYTES;
    uint64_t before = job->pos % PAGE_BYTES;
    return start < before ? 0 : start - before;
}

int64_t cv_pieces_n_parts(const cv_pieces_job *job)
{
    return (int64_t)((job->pos % PAGE_BYTES + job->size + PART_BYTES - 1) / PART_BYTES);
}

static cv_status take(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                      uint8_t *dst, size_t size, cv_error *err)
{
    if (!piece->bytes)
        return cv_store_read(job->store, piece->object, piece->pos + skip, dst, size, err);
    memcpy(dst, piece->bytes + skip, size);
    return CV_OK;
}

/* Puts bytes [start, end) of the job into `stage`, which has room. */
static cv_status collect(const cv_pieces_job *job, uint64_t start, uint64_t end,
                         uint8_t *stage, cv_error *err)
{
    const cv_piece *piece = (const cv_piece *)(const void *)job->list->data;
    uint64_t piece_start = 0;
    for (uint64_t at = start; at < end; piece++) {
        uint64_t piece_end = piece_start + piece->size;
        if (piece_end > at) {
            size_t size = (size_t)((piece_end < end ? piece_end : end) - at);
            CV_TRY(take(job, piece, at - piece_start, stage + (at - start), size, err));
            at += size;
        }
        piece_start = piece_end;
    }
    return CV_OK;
}

cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err)
{
    uint64_t start = part_start(job, part);
    uint64_t end = part_start(job, part + 1);
    if (end > job->size) end = job->size;
    CV_TRY(cv_buffer_reserve(stage, (size_t)(end - start), err));
    CV_TRY(collect(job, start, end, stage->data, err));
    return cv_store_write(job->store, job->object, job->pos + start, stage->data,
                          (size_t)(end - start), err);
}
