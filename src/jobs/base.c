/* Room: jobs. The states of an array's chunks when a job began: one number each, in a 1-d
 * array in the job's folder. */
#include "jobs/base.h"

#include "base/arith.h"
#include "base/heap.h"

/* ---- The state of a chunk ---------------------------------------------------- */

/* Returns the name of the block table that a chunk of the fill gets when it is stored. */
static cv_status name_fill(cv_pending *pending, uint32_t *name, cv_error *err)
{
    cv_buffer chunk = {0};
    cv_status status =
        cv_encode_repeated(&pending->workers->spec, pending->fill, &chunk, err);
    if (status == CV_OK)
        status = cv_table_make(&cv_txn_snapshot(pending->txn)->grid, chunk.data, chunk.size,
                               &chunk, name, err);
    cv_buffer_free(&chunk);
    return status;
}

/* The state is the name of the chunk's block table, which identifies its contents or, without a
 * table, the chunk's position. While the fill is due, a chunk of it has the state of the chunk that
 * the first commit will store, so that this commit changes no state. */
cv_status cv_chunk_state(cv_pending *pending, int64_t chunk, uint64_t *out, cv_error *err)
{
    enum { UNNAMED = 15 };
    cv_chunk_ref ref;
    CV_TRY(cv_pending_where(pending, chunk, &ref, err));
    if (ref.kind == CV_REF_ITEM) {
        ref.kind = CV_REF_STORED;
        if (pending->fill_name == 0) CV_TRY(name_fill(pending, &pending->fill_name, err));
        ref.name = pending->fill_name;
    }
    *out = (uint64_t)ref.kind << 32;
    if (ref.kind != CV_REF_STORED) return CV_OK;
    *out |= ref.name;
    if (ref.name == 0)
        *out = (uint64_t)UNNAMED << 60 | ((uint64_t)ref.object + 1 + ref.pos) << 4 >> 4;
    return CV_OK;
}

enum { AT_ONCE = 65536 };

static cv_status list_states(caterva_array *array, caterva_array *list, uint64_t *states,
                             cv_error *err)
{
    int64_t n_chunks = cv_array_state(array)->grid.n_chunks;
    for (int64_t first = 0, stop; first < n_chunks; first = stop) {
        stop = cv_min_i64(n_chunks, first + AT_ONCE);
        for (int64_t i = first; i < stop; i++) {
            uint64_t state;
            CV_TRY(cv_chunk_state(array->pending, i, &state, err));
            cv_store_le64((uint8_t *)&states[i - first], state);
        }
        size_t size = (size_t)(stop - first) * sizeof states[0];
        CV_TRY(caterva_write(list, &first, &stop, states, size, err));
    }
    return CV_OK;
}

cv_status cv_job_base_write(caterva_array *array, const char *path, cv_error *err)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *list;
    int32_t chunk_shape = AT_ONCE;
    o.ndim = 1;
    o.shape = &cv_array_state(array)->grid.n_chunks;
    o.chunk_shape = &chunk_shape;
    o.dtype = "<u8";
    o.threads = array->threads;
    o.durability = array->frame->durability;
    o.cache_bytes = -1;
    uint64_t *states = cv_malloc(AT_ONCE * sizeof states[0]);
    if (!states) return cv_fail_memory(err, AT_ONCE * sizeof states[0], "a list of chunks");
    cv_status status = caterva_create(path, &o, &list, err);
    if (status == CV_OK) {
        status = list_states(array, list, states, err);
        if (status == CV_OK)
            status = caterva_close(list, err);
        else
            caterva_discard(list);
    }
    cv_free(states);
    return status;
}

cv_status cv_job_base_open(const char *path, int64_t n_chunks, cv_job_base *out,
                           cv_error *err)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.cache_bytes = -1;
    *out = (cv_job_base){.n_chunks = n_chunks};
    CV_TRY(caterva_open(path, &o, &out->array, err));
    const cv_grid *grid = &cv_array_state(out->array)->grid;
    cv_status status = CV_OK;
    out->states = cv_malloc(AT_ONCE * sizeof out->states[0]);
    if (!out->states)
        status = cv_fail_memory(err, AT_ONCE * sizeof out->states[0], "a list of chunks");
    else if (grid->ndim != 1 || grid->item_size != 8 || grid->shape[0] != n_chunks)
        status = cv_fail(err, CATERVA_ECORRUPT, -1, "%.100s does not list %lld chunks", path,
                         (long long)n_chunks);
    if (status != CV_OK) cv_job_base_close(out);
    return status;
}

void cv_job_base_close(cv_job_base *base)
{
    cv_array_free(base->array);
    cv_free(base->states);
    *base = (cv_job_base){.array = NULL};
}

static cv_status load(cv_job_base *b, int64_t chunk, cv_error *err)
{
    int64_t first = chunk - chunk % AT_ONCE;
    int64_t stop = cv_min_i64(first + AT_ONCE, b->n_chunks);
    b->n = 0;
    CV_TRY(
        caterva_read(b->array, &first, &stop, b->states, AT_ONCE * sizeof b->states[0], err));
    b->first = first;
    b->n = stop - first;
    return CV_OK;
}

cv_status cv_job_base_state(void *base, int64_t chunk, uint64_t *out, cv_error *err)
{
    cv_job_base *b = base;
    if (chunk < b->first || chunk >= b->first + b->n) CV_TRY(load(b, chunk, err));
    *out = cv_load_le64((const uint8_t *)&b->states[chunk - b->first]);
    return CV_OK;
}
