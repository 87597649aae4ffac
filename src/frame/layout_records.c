/* Room: frame. Records of layouts, read. A record counts when its block table has the name that
 * the seal knows, and its head the sum that the table has: so a damaged one, or one of another
 * chunk, is none. Who asks for them, and when, is not known here. */
#include "frame/layout_records.h"

#include "base/heap.h"
#include "format/chunk_header.h"
#include "format/seal.h"
#include "frame/index_read.h"

static int64_t count_names(const cv_index *index, int64_t page, int64_t n)
{
    int64_t named = 0;
    for (int64_t i = 0; i < n; i++) named += cv_page_name(index->pages[page], i) != 0;
    return named;
}

static int64_t entries_of(const cv_index *index, int64_t page)
{
    int64_t left = index->n - page * CV_INDEX_PAGE;
    return left < CV_INDEX_PAGE ? left : CV_INDEX_PAGE;
}

static cv_status count_all(cv_snapshot *snapshot, const cv_index *index,
                           const cv_layout_area *area, cv_layout_records **out, cv_error *err)
{
    int64_t n = index->n_pages, sum = 0;
    size_t size = sizeof(cv_layout_records) + (size_t)(n + 1) * sizeof(int64_t);
    cv_layout_records *r = cv_malloc(size);
    if (!r) return cv_fail_memory(err, size, "a list of layouts");
    *r = (cv_layout_records){*area, snapshot, index};
    for (int64_t p = 0; p < n; p++) {
        r->before[p] = sum;
        sum += count_names(index, p, entries_of(index, p));
    }
    r->before[n] = sum;
    if (sum == area->n)
        *out = r;
    else
        cv_free(r);
    return CV_OK;
}

cv_status cv_layout_records_new(cv_snapshot *snapshot, cv_store *store,
                                cv_layout_records **out, cv_error *err)
{
    const cv_index *index;
    cv_layout_area area;
    *out = NULL;
    CV_TRY(cv_snapshot_index(snapshot, store, &index, err));
    uint64_t end = cv_layout_area_end(snapshot);
    if (!index->pages || end < CV_LAYOUTS_FOOTER) return CV_OK;
    if (!cv_store_view(store, CV_FRAME_OBJECT, end - CV_LAYOUTS_FOOTER, CV_LAYOUTS_FOOTER))
        return CV_OK;
    CV_TRY(cv_layout_area_find(snapshot, store, &area, err));
    return area.size > 0 ? count_all(snapshot, index, &area, out, err) : CV_OK;
}

bool cv_layout_records_find(const cv_layout_records *r, int64_t chunk, int64_t *record)
{
    int64_t page = chunk / CV_INDEX_PAGE, at = chunk % CV_INDEX_PAGE;
    if (cv_index_name(r->index, chunk) == 0) return false;
    bool all_have = r->before[page + 1] - r->before[page] == entries_of(r->index, page);
    *record = r->before[page] + (all_have ? at : count_names(r->index, page, at));
    return true;
}

cv_layout *cv_layout_of_record(const cv_layout_records *r, cv_store *store,
                               const cv_chunk_ref *ref, const uint8_t *bytes)
{
    const cv_snapshot *s = r->snapshot;
    cv_record_parts parts;
    cv_layout *layout = NULL;
    int64_t n_blocks = s->grid.n_blocks;
    if (!cv_record_find_parts(bytes, r->area.record_size, n_blocks, &parts)) return NULL;
    const cv_chunk_head head = {.bytes = bytes, .size = parts.head_size, .limit = ref->limit};
    if (cv_layout_parse(store, s, ref, &head, &layout, NULL) != CV_OK) return NULL;
    if (layout->table_size == parts.table_size &&
        cv_layout_check(store, layout, ref, &head, bytes + parts.head_size, NULL) == CV_OK)
        return layout;
    cv_layout_release(layout);
    return NULL;
}
