/* A folder of packs: files that hold bytes of things, each under the thing's key. Processes
 * share it without locks: a pack appears whole under its name, never changes, and may be gone
 * at any moment. What is damaged is found by its checksums and removed. Nothing here is an
 * error for anybody: what cannot be kept is not kept. Any thread. */
#ifndef CV_STORE_RANGE_FOLDER_H
#define CV_STORE_RANGE_FOLDER_H

#include "base/os_dir.h"
#include "base/thread.h"

enum { CV_PACK_KEY = 32, CV_PACK_NAME = 64, CV_PACK_MOST = 4 << 20 };

/* Bytes [pos, pos + size) of the thing. */
typedef struct cv_pack_extent {
    uint64_t pos;
    uint32_t size, sum; /* CRC32C of the bytes */
} cv_pack_extent;

typedef struct cv_range_folder {
    cv_dir dir;
    uint64_t bound; /* bytes that its packs may have */
    cv_mutex lock;  /* over: */
    uint64_t left;  /* bytes that may be written before it is looked through again */
} cv_range_folder;

/* Opens the folder, and makes it where its parent is there. False: there is none. */
bool cv_range_folder_open(const char *path, uint64_t bound, cv_range_folder *out);
void cv_range_folder_close(cv_range_folder *folder);

/* Writes a pack of extents, whose bytes follow each other in `bytes` and are at most
 * CV_PACK_MOST, and sets their sums. Makes room for it by removing the packs that were used
 * last the longest ago. */
bool cv_pack_write(cv_range_folder *folder, const uint8_t key[CV_PACK_KEY],
                   cv_pack_extent *extents, size_t n, const uint8_t *bytes,
                   char name[CV_PACK_NAME]);

/* Bytes of one extent that a pack may have in this folder; 0: none is kept. */
uint64_t cv_pack_room(const cv_range_folder *folder);

/* Bytes before those of its first extent. */
uint64_t cv_pack_head_size(size_t n);

/* Reads what a pack holds, owned (cv_free); false, and the pack is removed, where it is
 * damaged or another key's. */
bool cv_pack_read_head(cv_range_folder *folder, const char *name,
                       const uint8_t key[CV_PACK_KEY], cv_pack_extent **extents, size_t *n);

/* Reads one extent, which begins at byte `at` of the pack; false as above. */
bool cv_pack_read(cv_range_folder *folder, const char *name, uint64_t at,
                  const cv_pack_extent *extent, void *dst);

/* The pack was used just now. */
void cv_pack_touch(cv_range_folder *folder, const char *name);
void cv_pack_remove(cv_range_folder *folder, const char *name);

/* Whether the name is that of a pack of this key. */
bool cv_pack_is_of(const char *name, const uint8_t key[CV_PACK_KEY]);

#endif
