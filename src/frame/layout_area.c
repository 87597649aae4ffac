/* Room: frame. Finds the layouts of all chunks, and says whether they are this state's. What
 * reads them, and what writes them, is not known here. */
#include "frame/layout_area.h"

#include "format/frame_header.h"
#include "format/seal.h"
#include "frame/sealed.h"

uint64_t cv_layout_area_end(const cv_snapshot *s)
{
    uint64_t copy = cv_header_copy_size(s->header.header_size);
    return s->index_pos > copy ? s->index_pos - copy : 0;
}

/* Of this state's list of names, and of its partition. */
static bool is_ours(const cv_snapshot *s, const cv_seal_head *head,
                    const cv_layouts_footer *footer)
{
    uint32_t names = 0;
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++)
        names = cv_layouts_names(names, head->pages[p]);
    return names == footer->names && footer->n <= s->grid.n_chunks &&
           footer->record_size == cv_layouts_record_size(s->grid.n_blocks);
}

cv_status cv_layout_area_find(cv_snapshot *s, cv_store *store, cv_layout_area *out,
                              cv_error *err)
{
    uint8_t bytes[CV_LAYOUTS_FOOTER];
    cv_layouts_footer footer;
    const cv_seal_head *head;
    uint64_t end = cv_layout_area_end(s), begin = s->header.header_size;
    *out = (cv_layout_area){.size = 0};
    if (s->header.sparse || end < begin + sizeof bytes) return CV_OK;
    CV_TRY(
        cv_store_read(store, CV_FRAME_OBJECT, end - sizeof bytes, bytes, sizeof bytes, err));
    if (!cv_layouts_footer_read(bytes, &footer)) return CV_OK;
    CV_TRY(cv_sealed_head(s, store, &head, err));
    if (!head || !is_ours(s, head, &footer)) return CV_OK;
    uint64_t size = cv_layouts_size(&footer);
    if (size > end - begin) return CV_OK;
    *out = (cv_layout_area){.pos = end - size,
                            .size = size,
                            .first = end - size + CV_LAYOUTS_MARK,
                            .n = footer.n,
                            .record_size = footer.record_size};
    return CV_OK;
}
