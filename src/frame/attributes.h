/* All attributes of a frame, wherever they stand. Two places:
 *
 *     trailer    "units"  -> chunk     a key of its own: a name of 31 bytes, 16 in all,
 *                "dims"   -> chunk     the library's own among them
 *                "attrs"  -> chunk     a map of all others:
 *                              {"straight_vertical_longitude_from_pole": -45.0, ...}
 *
 * An `attrs` that is no map of names, nor JSON text of one, is an attribute like others. */
#ifndef CV_FRAME_ATTRIBUTES_H
#define CV_FRAME_ATTRIBUTES_H

#include "base/heap.h"
#include "base/watch.h"
#include "format/frame_header.h"

/* The value of an attribute, decompressed into `out`; `watch`, or NULL, hears of its bytes. */
cv_status cv_frame_attribute(const cv_metalayer *attribute, cv_buffer *out, cv_watch *watch,
                             cv_error *err);

/* The value's size, as its header says; a part of it, which must lie inside; and whether
 * all of it decodes. They allocate a block, or refuse large ones (CATERVA_EUNSUPPORTED). */
cv_status cv_frame_attribute_size(const cv_metalayer *attribute, int64_t *size,
                                  cv_error *err);
cv_status cv_frame_attribute_check(const cv_metalayer *attribute, cv_error *err);

/* ---- All attributes ---- */

/* The longest name that is written. */
enum { CV_MAX_ATTRIBUTE_NAME = 65535 };

typedef enum cv_attribute_form {
    CV_ATTRIBUTE_CHUNK,  /* encoded: a key of its own   */
    CV_ATTRIBUTE_PACKED, /* a MessagePack value: in the map */
    CV_ATTRIBUTE_RAW     /* bytes to be stored: nowhere yet */
} cv_attribute_form;

typedef struct cv_attribute {
    const char *name; /* NUL-terminated */
    cv_attribute_form form;
    const uint8_t *data;
    size_t size;
} cv_attribute;

/* The library's own is not among them. Immutable. */
typedef struct cv_attributes {
    cv_attribute *list; /* keys of their own, then the map's, each in file order */
    int n;
    int *by_name;         /* places in the list, ordered by name */
    cv_buffer names, map; /* what the list points at */
    cv_status map_status; /* why the map could not be read; then it is one of the list */
    cv_error map_error;
} cv_attributes;

/* Reads both places; borrows from the trailer. Fails without memory only. */
cv_status cv_attributes_load(const cv_trailer *trailer, cv_attributes **out, cv_error *err);
void cv_attributes_free(cv_attributes *all); /* NULL is fine */

/* CATERVA_ENOTFOUND without one of that name; the map's error when it might be in there. */
cv_status cv_attributes_find(const cv_attributes *all, const char *name,
                             const cv_attribute **out, cv_error *err);

/* The list with one attribute replaced in place or appended; `added` NULL removes it
 * (CATERVA_ENOTFOUND without one). `all` NULL: none. Free *list with cv_free; it borrows
 * from both. */
cv_status cv_attributes_replace(const cv_attributes *all, const char *name,
                                const cv_attribute *added, cv_attribute **list, int *n,
                                cv_error *err);

/* Whether an attribute may be set by this name. CATERVA_EINVAL. */
cv_status cv_attributes_check_name(const char *name, cv_error *err);

/* Its value, appended; how long that is; bytes [start, start + size) of it. */
cv_status cv_attribute_value(const cv_attribute *a, cv_buffer *out, cv_watch *watch,
                             cv_error *err);
cv_status cv_attribute_size(const cv_attribute *a, int64_t *size, cv_error *err);
cv_status cv_attribute_read(const cv_attribute *a, int64_t start, void *dst, int64_t size,
                            cv_error *err);

/* ---- Where attributes are to stand ---- */

typedef struct cv_placed {
    cv_metalayer *layers; /* for the trailer, in its order */
    int n;
    cv_buffer *encoded; /* one for each layer; empty where its bytes stood already */
    cv_watch *watch; /* set before: hears of the bytes of values that are encoded; or NULL */
} cv_placed;

/* Places `n` attributes in order, and the library's own before number `own_at` (NULL: none).
 * Own keys are kept while possible. CATERVA_EINVAL when bytes for the map are no MessagePack
 * value, or it grows too large. Borrows the data; release with cv_placed_free. */
cv_status cv_attributes_place(const cv_attribute *list, int n, const cv_metalayer *own,
                              int own_at, cv_placed *out, cv_error *err);
void cv_placed_free(cv_placed *placed);

#endif
