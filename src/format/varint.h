/* Numbers of as many bytes as they take: seven bits in each, the low ones first, and the
 * eighth says that more follow. Read by the sticky reader of msgpack.h. */
#ifndef CV_FORMAT_VARINT_H
#define CV_FORMAT_VARINT_H

#include "format/msgpack.h"

void cv_write_varint(cv_writer *writer, uint64_t value);

/* CATERVA_ECORRUPT, by the reader, for more than `most`. */
uint64_t cv_read_varint(cv_reader *reader, uint64_t most, const char *field);

#endif
