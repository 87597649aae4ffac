/* What a frame holds: an n-d array, plain items, or one of the objects that
 * python-blosc2 keeps in frames, which are no items. */
#ifndef CV_FRAME_KINDS_H
#define CV_FRAME_KINDS_H

#include "format/array_meta.h"
#include "format/frame_header.h"

/* What python-blosc2 calls an object of this kind, in one word: "array", "schunk" for plain
 * items, "lazyexpr", "batcharray", ... Names in attributes are not looked at. *readable: it is
 * an array or can be read as one, as far as the header tells. */
enum { CV_KIND_NAME = 32 };
void cv_kind_name(const cv_frame_header *header, char name[CV_KIND_NAME], bool *readable);

/* CATERVA_EUNSUPPORTED for a frame that metalayers mark as some other object, which is
 * named; `is_array`: it has the array's metalayer, too. */
cv_status cv_kind_check(const cv_frame_header *header, bool is_array, cv_error *err);

/* The same for the names of attributes, of a frame without the array's metalayer. */
cv_status cv_kind_check_attributes(const cv_metalayer *attributes, int n, cv_error *err);

/* A frame of chunks of one size, cut from items of one size, is a 1-d array of them.
 * Each chunk is one block here: real ones differ from chunk to chunk, and the last
 * chunk may be shorter. CATERVA_EUNSUPPORTED, with the reason, for other frames. */
cv_status cv_kind_plain(const cv_frame_header *header, cv_array_meta *out, cv_error *err);

#endif
