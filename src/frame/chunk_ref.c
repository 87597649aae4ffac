/* Room: frame. Entries of the index, judged when they are used: a place in the chunk area,
 * a chunk file, or a special kind. */
#include "frame/chunk_ref.h"

#include "base/heap.h"
#include "format/chunk_header.h"

/* A special chunk is a negative offset with its kind in the top byte. The bits
 * are tested in this order, as C-Blosc2 does. */
#define SPECIAL_ZEROS ((uint64_t)0x81 << 56)
#define SPECIAL_NAN ((uint64_t)0x82 << 56)
#define SPECIAL_UNINIT ((uint64_t)0x84 << 56)

int64_t cv_offset_of_kind(cv_ref_kind kind)
{
    switch (kind) {
    case CV_REF_NAN: return (int64_t)SPECIAL_NAN;
    case CV_REF_UNINIT: return (int64_t)SPECIAL_UNINIT;
    default: return (int64_t)SPECIAL_ZEROS;
    }
}

static cv_status make_special(const cv_snapshot *s, int64_t offset, cv_chunk_ref *out,
                              cv_error *err)
{
    uint64_t bits = (uint64_t)offset >> 56;
    if (bits & 0x01)
        out->kind = CV_REF_ZEROS;
    else if (bits & 0x04)
        out->kind = CV_REF_UNINIT;
    else if (bits & 0x02)
        out->kind = CV_REF_NAN;
    else
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld has the unknown special kind 0x%02llx",
                       (long long)out->chunk, (unsigned long long)bits);
    if (out->kind == CV_REF_NAN && s->grid.item_size != 4 && s->grid.item_size != 8)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld is all NaN, but items have %d bytes",
                       (long long)out->chunk, s->grid.item_size);
    return CV_OK;
}

cv_status cv_chunk_ref_make(const cv_snapshot *s, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err)
{
    *out = (cv_chunk_ref){.chunk = chunk, .kind = CV_REF_STORED, .object = CV_FRAME_OBJECT};
    if (cv_offset_is_special(offset)) return make_special(s, offset, out, err);

    if (s->header.sparse) {
        if (offset > UINT32_MAX)
            return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                           "chunk %lld is said to be chunk file %lld", (long long)chunk,
                           (long long)offset);
        out->object = offset;
        return CV_OK;
    }
    if (offset > s->header.cbytes - CV_CHUNK_HEADER_SIZE)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
            "chunk %lld is said to begin at offset %lld of a chunk area of %lld bytes",
            (long long)chunk, (long long)offset, (long long)s->header.cbytes);
    out->pos = s->header.header_size + (uint64_t)offset;
    out->limit = (uint64_t)(s->header.cbytes - offset);
    return CV_OK;
}

static void set_table(const cv_index *index, cv_chunk_ref *ref)
{
    ref->name = cv_index_name(index, ref->chunk);
    if (ref->name != 0) ref->table_pos = cv_index_table_pos(index, ref->chunk);
}

cv_status cv_chunk_ref_find(const cv_snapshot *s, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err)
{
    CV_TRY(cv_chunk_ref_make(s, chunk, cv_index_get(index, chunk), out, err));
    set_table(index, out);
    return CV_OK;
}

cv_status cv_snapshot_check_room(const cv_snapshot *s, cv_store *store, int64_t n_stored,
                                 cv_error *err)
{
    enum { FEW_FILES = 1 << 20 }; /* to look for without listing the directory */
    int64_t room = s->header.cbytes / CV_CHUNK_HEADER_SIZE;
    if (s->header.sparse && n_stored > FEW_FILES) {
        cv_object *files;
        size_t n_files = 0;
        CV_TRY(cv_store_list(store, &files, &n_files, err));
        cv_free(files);
        room = (int64_t)n_files;
    } else if (s->header.sparse) {
        return CV_OK;
    }
    if (n_stored <= room) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                   "the index names %lld stored chunks, there is room for %lld",
                   (long long)n_stored, (long long)room);
}
