/* All attributes of a frame. They are stored in two places of the trailer:
 *
 *     trailer    "units"  -> chunk     a key of its own: for names of up to 31 bytes, 16 in all,
 *                "dims"   -> chunk     including the library's own
 *                "attrs"  -> chunk     a map of all others:
 *                              {"straight_vertical_longitude_from_pole": -45.0, ...}
 *
 * An `attrs` that is neither a map with names as keys nor JSON text of one is an ordinary
 * attribute. */
#ifndef CV_FRAME_ATTRIBUTES_H
#define CV_FRAME_ATTRIBUTES_H

#include "base/heap.h"
#include "base/watch.h"
#include "format/frame_header.h"

/* Decompresses the value of an attribute into `out`. `watch` (or NULL) counts its bytes. */
cv_status cv_frame_attribute(const cv_metalayer *attribute, cv_buffer *out, cv_watch *watch,
                             cv_error *err);

/* cv_frame_attribute_size gets the value's size from its header. cv_frame_attribute_check decodes
 * the whole value, using memory for one block; CATERVA_EUNSUPPORTED for large blocks. */
cv_status cv_frame_attribute_size(const cv_metalayer *attribute, int64_t *size,
                                  cv_error *err);
cv_status cv_frame_attribute_check(const cv_metalayer *attribute, cv_error *err);

/* ---- All attributes ---- */

/* The longest name that can be written. */
enum { CV_MAX_ATTRIBUTE_NAME = 65535 };

typedef enum cv_attribute_form {
    CV_ATTRIBUTE_CHUNK,  /* encoded: has its own key */
    CV_ATTRIBUTE_PACKED, /* a MessagePack value: in the map */
    CV_ATTRIBUTE_RAW     /* bytes to be stored: not placed yet */
} cv_attribute_form;

typedef struct cv_attribute {
    const char *name; /* NUL-terminated */
    cv_attribute_form form;
    const uint8_t *data;
    size_t size;
} cv_attribute;

/* All attributes except the library's own. Immutable. */
typedef struct cv_attributes {
    cv_attribute *list; /* own keys, then those of the map, each in file order */
    int n;
    int *by_name;         /* indices into the list, ordered by name */
    cv_buffer names, map; /* the list points into them */
    cv_status map_status; /* failure to read the map, which is then itself in the list */
    cv_error map_error;
} cv_attributes;

/* Reads both places. Borrows from the trailer. Fails only if out of memory. */
cv_status cv_attributes_load(const cv_trailer *trailer, cv_attributes **out, cv_error *err);
void cv_attributes_free(cv_attributes *all); /* NULL is fine */

/* CATERVA_ENOTFOUND if no attribute has the name. If the map could not be read and might contain
 * it: the map's error. */
cv_status cv_attributes_find(const cv_attributes *all, const char *name,
                             const cv_attribute **out, cv_error *err);

/* Copies the list with one attribute replaced in place or appended; `added` NULL removes it
 * (CATERVA_ENOTFOUND if it does not exist). `all` NULL: an empty list. Free *list with cv_free; it
 * borrows from both arguments. */
cv_status cv_attributes_replace(const cv_attributes *all, const char *name,
                                const cv_attribute *added, cv_attribute **list, int *n,
                                cv_error *err);

/* CATERVA_EINVAL if no attribute may have this name. */
cv_status cv_attributes_check_name(const char *name, cv_error *err);

/* Append the value to `out`; get its size; read bytes [start, start + size) of it. */
cv_status cv_attribute_value(const cv_attribute *a, cv_buffer *out, cv_watch *watch,
                             cv_error *err);
cv_status cv_attribute_size(const cv_attribute *a, int64_t *size, cv_error *err);
cv_status cv_attribute_read(const cv_attribute *a, int64_t start, void *dst, int64_t size,
                            cv_error *err);

/* ---- Placing attributes ---- */

typedef struct cv_placed {
    cv_metalayer *layers; /* for the trailer, in its order */
    int n;
    cv_buffer *encoded; /* one for each layer; empty if the layer was encoded already */
    cv_watch *watch;    /* set by the caller: counts bytes of encoded values; or NULL */
} cv_placed;

/* Distributes `n` attributes to the two places, in order, with the library's own (NULL: none)
 * before number `own_at`. Attributes keep their own keys if possible. CATERVA_EINVAL if bytes for
 * the map are not a MessagePack value, or the map becomes too large. Borrows the data; release with
 * cv_placed_free. */
cv_status cv_attributes_place(const cv_attribute *list, int n, const cv_metalayer *own,
                              int own_at, cv_placed *out, cv_error *err);
void cv_placed_free(cv_placed *placed);

#endif
