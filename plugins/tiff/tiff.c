/* Plug-in: TIFF and BigTIFF, by libtiff 4.5. Pages that have the same shape, type and layout are one
 * array, /data, or one of the arrays /page<N>, where N is its first page. Its axes are those of
 * the pages, then y, x and sample; in planes apart, sample, y and x. The axis `page` has the
 * axes that tifffile's, ImageJ's or OME's description gives it. Strips and tiles are the chunks.
 * Attributes, of the first page:
 *
 *   description           the tag ImageDescription
 *   tiff                  other tags, by libtiff's names, or by their numbers
 *   palette               uint16, three rows of red, green and blue
 *   spacing, axis_units   from the resolution, if its unit is known
 *
 * Writes tiles that deflate packs; BigTIFF for .btf and .tf8, and where an array has more than 1 GiB. */
#include "plugin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define SINGLE_ALLOCATION ((tmsize_t)1 << 30)

static int keep_message(TIFF *tif, void *own, const char *module, const char *fmt,
                        va_list args)
{
    tiff_message *m = own;
    (void)tif, (void)module;
    if (*m->text) return 1;
    m->cause = errno;
    vsnprintf(m->text, sizeof m->text, fmt, args);
    return 1;
}

static int ignore_message(TIFF *tif, void *own, const char *module, const char *fmt,
                          va_list args)
{
    (void)tif, (void)own, (void)module, (void)fmt, (void)args;
    return 1;
}

TIFFOpenOptions *tiff_options(tiff_message *m)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) {
        cli_fail(CLI_IO, "out of memory");
        return NULL;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, SINGLE_ALLOCATION);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, m);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, NULL);
    return options;
}

CLI_API extern const foreign_format caterva_format;
const foreign_format caterva_format = {FOREIGN_INTERFACE, "tiff", tiff_open, tiff_create};
