/* Bytes in a file, or in a part of one: stored, deflated, or a gzip file. They are read at any
 * position. Access points make that cheap where bytes are packed: states of the decoder, found
 * while it first passes them, at most 32 MiB of them. A read decodes from the last point before
 * its position, or goes on where the last read ended. */
#ifndef CLI_PACKED_H
#define CLI_PACKED_H

#include "cli.h"

typedef enum packing {
    PACKING_NONE,
    PACKING_DEFLATE, /* one stream without a header, as in zip archives */
    PACKING_GZIP     /* any number of gzip members */
} packing;

typedef struct packed packed;

/* Opens `stored` bytes of the file that begin at `start`; `stored` -1 means all that follow. `path`
 * is borrowed. Release *out with packed_close. */
cli_exit packed_open(const char *path, packing how, int64_t start, int64_t stored,
                     packed **out);
void packed_close(packed *p);

/* Whether the file begins like a gzip file. */
cli_exit packed_is_gzip(const char *path, bool *out);

/* Returns the bytes of the file, before they are unpacked. */
int64_t packed_stored(const packed *p);

/* Declares how many bytes there are, without what follows those that are needed. A read of the
 * last one then also verifies what comes after it: the checksum of gzip. Returns CLI_CORRUPT with
 * a message if the file is certainly too small: deflate packs at most 1032 bytes into one. */
cli_exit packed_expect(packed *p, int64_t size);

/* Declares the size, as packed_expect, and the CRC-32, as zip archives state them. Bytes that are
 * read in order are verified when the last one was read. */
cli_exit packed_expect_crc(packed *p, int64_t size, uint32_t crc);

/* Reads bytes. CLI_CORRUPT if they are damaged or end before. */
cli_exit packed_read(packed *p, void *dst, size_t size, int64_t position);

/* Reads up to `size` bytes; *got is smaller only at the end. */
cli_exit packed_read_some(packed *p, void *dst, size_t size, int64_t position, size_t *got);

#endif
