/* Zip archives for tests, in which every number can be wrong. */
#ifndef SUPPORT_ZIP_MADE_H
#define SUPPORT_ZIP_MADE_H

#include <stddef.h>
#include <stdint.h>

enum { ZIP_MADE_MEMBERS = 16 };

typedef struct zip_made_member {
    const char *name;
    const void *data;
    uint32_t size;
    uint32_t extra;     /* zero bytes after the local name */
    int flags, method;  /* 0: stored */
    const char *local;  /* other name in the local header; NULL: `name` */
    uint32_t at_of;     /* 1 + number of a member whose position the directory gives */
    uint64_t says_size; /* != 0: the size in the directory, in a zip64 field */
    uint64_t says_pos;  /* the same for the position */
} zip_made_member;

typedef struct zip_made {
    zip_made_member members[ZIP_MADE_MEMBERS];
    int n;
    uint64_t says_n; /* != 0: number of members in the end record, in a zip64 end */
    uint64_t says_directory_size, says_directory_pos; /* the same for the directory */
    int wide;                                         /* a zip64 end with correct numbers */
    const char *comment;                              /* at the end; or NULL */
    const char *before;                               /* bytes before the archive; or NULL */
} zip_made;

/* Makes the archive; release with free. */
uint8_t *zip_made_bytes(const zip_made *zip, size_t *size);

#endif
