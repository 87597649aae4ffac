/* What the files of the plug-in tiff share. */
#ifndef PLUGIN_TIFF_H
#define PLUGIN_TIFF_H

#include "foreign/foreign.h"

#include <tiffio.h>

/* The byte order of the machine, in which libtiff gives numbers. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER "<"
#else
#define ORDER ">"
#endif

/* The first message of libtiff since the text was cleared. */
typedef struct tiff_message {
    char text[256];
    int cause; /* errno then: libtiff leaves that of its last call of the system */
} tiff_message;

/* Makes options with which libtiff reports to `m` and prints nothing; NULL after a reported lack of
 * memory. Release them with TIFFOpenOptionsFree. */
TIFFOpenOptions *tiff_options(tiff_message *m);

/* What pages of one array have in common. */
typedef struct tiff_layout {
    uint32_t width, height, chunk_width, chunk_height; /* chunks are strips or tiles */
    uint16_t bits, samples, format, photometric, compression;
    bool planes; /* samples are in planes apart */
    bool is_tiled;
} tiff_layout;

/* Samples of one pixel that are stored together. */
static inline uint64_t samples_of(const tiff_layout *l) { return l->planes ? 1 : l->samples; }

/* Sets the attribute `tiff` to the tags of the current page. */
cli_exit tiff_tags_to_map(foreign_file *file, TIFF *tif, foreign_node *node);

/* Sets tags of the current page from the attribute `tiff`, but for those that describe the layout. */
cli_exit tiff_tags_from_map(foreign_writer *writer, TIFF *tif, const foreign_node *node);

/* Sets a tag to a text, which need not end with a zero. */
bool tiff_set_text(TIFF *tif, uint32_t tag, const char *bytes, size_t size);

/* Reads the sizes of tifffile's description, {"shape": [2, 3], ...}, and sets *text to what follows them.
 * Returns how many there are; 0 for another description. */
#define TIFF_SHAPE "{\"shape\": ["
enum { TIFF_MAX_SIZES = CATERVA_MAX_DIMS + 1 };
int tiff_scan_shape(const char **text, int64_t sizes[TIFF_MAX_SIZES]);

cli_exit tiff_open(foreign_file *file);
cli_exit tiff_create(foreign_writer *writer, bool force);

#endif
