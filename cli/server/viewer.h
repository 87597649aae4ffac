/* Files of the viewer, which the build makes of cli/server/viewer/; none without Node. */
#ifndef CLI_VIEWER_H
#define CLI_VIEWER_H

#include <stddef.h>

typedef struct viewer_asset {
    const char *name; /* "view.html" */
    const char *type; /* MIME */
    const unsigned char *bytes;
    size_t size;
} viewer_asset;

extern const viewer_asset viewer_assets[];
extern const size_t viewer_n_assets;

#endif
