/* The records of a zip archive: bytes <-> structs, by the field lists in zip.c.
 *
 *   local header, name, extra | data | local header, ... | directory | end
 *
 * The directory has one record for each member; the end states where the directory is. Archives
 * with more than 65,534 members or 4 GiB have a second end with wider fields (zip64) before the
 * first one, and wider sizes in the extra fields of members. All numbers are little-endian. */
#ifndef CV_TREE_ZIP_H
#define CV_TREE_ZIP_H

#include "base/heap.h"

enum {
    CV_ZIP_LOCAL_SIZE = 30,  /* local header, before name and extra */
    CV_ZIP_RECORD_SIZE = 46, /* record of the directory, before name, extra and comment */
    CV_ZIP_END_SIZE = 22,
    CV_ZIP_END_ROOM = 20 + 56, /* the zip64 end and its locator */
    CV_ZIP_END_SEARCH = CV_ZIP_END_ROOM + CV_ZIP_END_SIZE + 65535 /* with a comment */
};

enum { CV_ZIP_STORED = 0, CV_ZIP_DEFLATED = 8 };

/* Bits of flags. STREAMED: sizes and checksum follow the data. REFUSED: all bits with which a
 * member is refused: encrypted, a patch, strongly encrypted, or with a masked header. */
enum { CV_ZIP_ENCRYPTED = 1, CV_ZIP_STREAMED = 8, CV_ZIP_UTF8 = 1 << 11 };
enum { CV_ZIP_REFUSED = CV_ZIP_ENCRYPTED | 1 << 5 | 1 << 6 | 1 << 13 };

/* Where the directory is, and what the end states about it. */
typedef struct cv_zip_end {
    uint64_t n_members;
    uint64_t directory_pos; /* bytes from the file's start */
    uint64_t directory_size;
    uint64_t shift; /* bytes before the archive; its own positions count from its start */
} cv_zip_end;

/* A member, as stated by the directory. */
typedef struct cv_zip_member {
    const uint8_t *name; /* borrowed, without a NUL */
    uint16_t name_size;
    uint16_t needs; /* version of the format, 45 for 4.5; at most 63 is known */
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed_size, size;
    uint64_t header_pos; /* of its local header, in the archive */
} cv_zip_member;

/* Parses the end of an archive. `tail`: the last `size` bytes of the file, CV_ZIP_END_SEARCH or
 * all. CATERVA_ECORRUPT: no valid end. CATERVA_EUNSUPPORTED: the file is the last of several parts;
 * *out then still has the position and size of a directory that lies in it. */
cv_status cv_zip_end_parse(const uint8_t *tail, size_t size, uint64_t file_size,
                           cv_zip_end *out, cv_error *err);

/* Sets *size to that of the record at `pos` in the file. `bytes`: the first CV_ZIP_RECORD_SIZE. */
cv_status cv_zip_record_peek(const uint8_t *bytes, uint64_t pos, size_t *size, cv_error *err);

/* Parses the whole record. */
cv_status cv_zip_record_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                              cv_zip_member *out, cv_error *err);

/* Checks that `size` bytes at `pos` begin with a local header with the name and method of `member`;
 * else CATERVA_ECORRUPT. *data_at: distance from header to data. */
cv_status cv_zip_local_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                             const cv_zip_member *member, uint64_t *data_at, cv_error *err);

/* As cv_zip_local_parse; also CATERVA_ECORRUPT if header and `member` differ in version, encoding
 * of the name, refused flags, sizes or checksum. Ignores sizes and checksums after the data. */
cv_status cv_zip_local_check(const uint8_t *bytes, size_t size, uint64_t pos,
                             const cv_zip_member *member, uint64_t *data_at, cv_error *err);

/* Reads a local header without a directory. False if none begins here, or name or extra fields
 * exceed `size`. Sizes that follow the data are 0. Does not set header_pos. */
bool cv_zip_local_read(const uint8_t *bytes, size_t size, cv_zip_member *out,
                       uint64_t *data_at);

/* Append a local header, a record, and the archive's end, each in zip64 form if needed. */
cv_status cv_zip_local_write(const cv_zip_member *member, cv_buffer *out, cv_error *err);
cv_status cv_zip_record_write(const cv_zip_member *member, cv_buffer *out, cv_error *err);
cv_status cv_zip_end_write(const cv_zip_end *end, cv_buffer *out, cv_error *err);

#endif
