/* The CRC of zip archives (the polynomial of Ethernet, 0xedb88320). What the library
 * checks its own frames by is base/crc32c.h. */
#ifndef CV_BASE_CRC32_H
#define CV_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Goes on with `crc`, which is 0 at the beginning. Any thread. */
uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size);

#endif
