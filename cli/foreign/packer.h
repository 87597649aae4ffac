/* Output of packed bytes. Boxes arrive in any order, but a packer takes bytes in the order of the
 * file: items wait in a spool, a temporary file without a name. */
#ifndef CLI_PACKER_H
#define CLI_PACKER_H

#include "foreign/packed.h"
#include "terminal/output.h"

#include <zlib.h>

typedef struct spool {
    int fd; /* -1: not open */
} spool;

/* Opens a spool in the folder of `beside`, or in /tmp for standard output. */
cli_exit spool_open(spool *s, const char *beside);
void spool_close(spool *s);

/* Writes bytes at a position; an items_put for a spool. */
cli_exit spool_put(void *s, const void *bytes, size_t size, int64_t position);

/* Appends bytes to `out`, as they are or packed. */
typedef struct packer {
    output *out;
    packing how;
    z_stream z;
    uint8_t *buffer;
    uint32_t crc;   /* of the bytes before packing */
    int64_t packed; /* bytes written */
} packer;

cli_exit packer_begin(packer *p, output *out, packing how);
cli_exit packer_write(packer *p, const void *bytes, size_t size);
/* Writes bytes of a spool; those after its end are zeros. */
cli_exit packer_write_spool(packer *p, const spool *s, int64_t position, int64_t size);
/* Writes what remains, unless `code` is a failure, and returns it or `code`. Call it always. */
cli_exit packer_end(packer *p, cli_exit code);

#endif
