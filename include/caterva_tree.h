/* Caterva: trees of arrays.
 *
 * Several arrays in groups, in a directory (`.b2d`) or a zip archive (`.b2z`). Conventions
 * and thread classes are those of caterva.h. */
#ifndef CATERVA_TREE_H
#define CATERVA_TREE_H

#include <caterva.h>
#include <caterva_upkeep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Trees of arrays ------------------------------------------------------ */

/* A tree keeps several arrays in one place, in groups, exactly as python-blosc2's TreeStore
 * and DictStore do: a directory (`.b2d`) with a file for each array, or one zip archive
 * (`.b2z`) whose members are stored uncompressed and read in place. A file of an EmbedStore
 * (`.b2e`) can be read. An array of a tree has a key, "/group/name".
 *
 * Where this library takes the URL of an existing array, "weather.b2z::/group/name" and
 * "weather.b2d::/group/name" name an array of a tree; the functions below are not needed for
 * that. A file whose own name contains "::" is still found by that name.
 *
 * Work in a `.b2d` and distribute it as a `.b2z`: an archive never changes in place, and its
 * arrays are read-only. So are arrays inside embed.b2e, where python-blosc2 keeps small ones,
 * and the columns of its tables.
 *
 * The library checks an archive's directory before it reads any member: members must not
 * overlap, and names must not lead out of the tree (CATERVA_ECORRUPT). Members that are
 * deflated or encrypted are listed but not opened (CATERVA_EUNSUPPORTED). */
typedef struct caterva_tree caterva_tree;

typedef enum caterva_tree_kind {
    CATERVA_TREE_ARRAY = 0, /* caterva_tree_open_array opens it            */
    CATERVA_TREE_GROUP,     /* has members or attributes                   */
    CATERVA_TREE_OTHER      /* see kind_name; listed, but cannot be opened */
} caterva_tree_kind;

/* Allocated by the library. */
typedef struct caterva_tree_entry {
    size_t struct_size;
    const char *key;       /* "/group/name"; a group precedes its members         */
    caterva_tree_kind kind;
    const char *kind_name; /* "array", "schunk" (a frame of plain items: a 1-d array),
                              "group"; python-blosc2's name of another object: "ctable",
                              "lazyexpr", "batcharray", "remote", ...; "file": no frame;
                              "deflated", "encrypted": a member that cannot be read in
                              place; "damaged": has the name of a frame, but its bytes are
                              not a valid one; "unreadable": has the name of a frame, but
                              is a dangling link or not a file                    */
    int read_only;         /* 1: it can never be opened for writing in this tree  */
    int embedded;          /* 1: it is inside embed.b2e                           */
    int64_t stored_bytes;  /* of the file, member or frame; 0 for groups          */
    const char *path;      /* of the file or member in the tree, or NULL          */
} caterva_tree_entry;

typedef struct caterva_tree_list {
    size_t struct_size;
    size_t n;
    const caterva_tree_entry *const *entries; /* n of them, sorted by key */
} caterva_tree_list;

/* Options of caterva_tree_open. NULL means the defaults. */
typedef struct caterva_tree_options {
    size_t struct_size;
    caterva_mode mode;             /* CATERVA_MODE_WRITE: directories only */
    caterva_durability durability; /* of creating, deleting and moving, and of
                                      caterva_tree_commit; caterva_commit of an array uses
                                      the array's own durability           */
    const caterva_remote_options *remote; /* for a URL; copied. Used by the tree and the arrays
                                       opened from it: the `context` must stay valid until
                                       all are closed. NULL: the defaults  */
    /* For opening and all calls through the handle. A commit counts 4 KiB for each array,
     * 8 KiB for each group with pending attributes, and the bytes of items that it encodes. */
    caterva_progress progress;
} caterva_tree_options;
#define CATERVA_TREE_INIT CATERVA_INIT_(caterva_tree_options)

/* Opens the tree at `path`, a directory or file. For an archive this reads its directory and
 * embed.b2e, but nothing of the arrays. Returns CATERVA_ENOTFOUND if nothing exists there,
 * CATERVA_EUNSUPPORTED if it is not a tree, CATERVA_ECORRUPT if an archive is truncated or
 * inconsistent, or embed.b2e is damaged; with CATERVA_MODE_WRITE also CATERVA_EREADONLY for
 * anything but a directory, and CATERVA_EBUSY while another handle has the tree open for
 * writing. Release *out with caterva_tree_close.
 *
 * A tree open for writing belongs to the process that opened it: in a child of fork, calls that
 * change, commit, roll back or pack it return CATERVA_EBUSY. Opening for writing deletes files
 * that a stopped or killed caterva_tree_delete has left; if this is stopped (CATERVA_ESTOPPED),
 * the next opening continues.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open(const char *path,
                                             const caterva_tree_options *options,
                                             caterva_tree **out, caterva_error *err);

/* Commits pending attributes of groups, and releases the handle, also if the commit fails.
 * Arrays and lists from this handle stay valid; pending changes of an array belong to the
 * array. If the last caterva_tree_commit failed and was not rolled back, drops the attributes
 * and returns the status of that commit. In a child of fork, commits nothing (CATERVA_EBUSY if
 * something was pending), and leaves the tree's lock to the parent. NULL is fine.
 * Thread: alone. */
CATERVA_API caterva_status caterva_tree_close(caterva_tree *tree, caterva_error *err);

/* Identifies the contents of a tree, as state_id of caterva_info does for an array: an archive
 * by names, positions, sizes and checksums of its members, a `.b2e` file by its inode, time
 * and size. For a directory, which has no state of its own (its arrays have), the id is all
 * zeros.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_state_id(caterva_tree *tree,
                                                 uint8_t out[CATERVA_STATE_ID],
                                                 caterva_error *err);

/* Lists the members of `group`, at all levels ("/group"; NULL or "/": the whole tree). *out
 * never changes; for a directory each call reads the current state. Reads the first bytes of
 * every file or member to find its kind.
 *
 * A member is "damaged" only if its bytes were read and are wrong: truncated, or not those of
 * a frame. Behind a URL such bytes are first fetched again without any cache. A file or
 * member that cannot be read is an error of the call, without a list: CATERVA_EIO if the
 * system or the server refuses or fails (no permission, no descriptor, a bad sector, a
 * timeout, a broken connection, status 401, 403, 404, 5xx, another version on the server),
 * CATERVA_ESTOPPED, CATERVA_ENOMEM. Files that a writer of a directory deletes meanwhile are
 * left out. Returns CATERVA_ENOTFOUND if the group does not exist. Release *out with
 * caterva_tree_list_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_get_list(caterva_tree *tree, const char *group,
                                                 const caterva_tree_list **out,
                                                 caterva_error *err);
CATERVA_API void caterva_tree_list_release(const caterva_tree_list *list); /* NULL is fine */

/* Opens the array with that key. `options` are as in caterva_open, but options->remote is
 * ignored: the array uses the tree's. The array may outlive the tree's handle. For an
 * archive this reads the file that the tree was opened from, even if it has been replaced.
 * Returns CATERVA_ENOTFOUND if the key does not exist, CATERVA_EUNSUPPORTED if it is not an
 * array, CATERVA_EREADONLY for CATERVA_MODE_WRITE if it is read-only. Release *out with
 * caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open_array(caterva_tree *tree, const char *key,
                                                   const caterva_open_options *options,
                                                   caterva_array **out, caterva_error *err);

/* Makes an empty tree at `path`, a directory, and opens it for writing; `mode` of the options
 * is ignored. The directory appears whole. Returns CATERVA_EEXIST if anything exists there.
 * Release *out with caterva_tree_close.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_create(const char *path,
                                               const caterva_tree_options *options,
                                               caterva_tree **out, caterva_error *err);

/* Makes a new array with that key, as caterva_create makes a file: it exists from its first
 * commit on. Makes the groups of the key. caterva_create with "weather.b2d::/group/name" does
 * the same, and makes the tree if nothing of that name exists. Release *out with
 * caterva_close or caterva_discard.
 *
 * - CATERVA_EEXIST: the key is a group, or exists and `options` do not set overwrite; or a
 *   part of the key is an array; or a key differs only in case, and the file system ignores
 *   case. Pending arrays and attributes of this handle count as existing.
 * - CATERVA_EBUSY: the array that would be overwritten is open for writing, also if it is a
 *   new one that is not committed yet.
 * - CATERVA_EINVAL: a name in the key begins with a dot, which hides it, or is one of
 *   python-blosc2's own; a group has the name of a folder of jobs, "x.b2nd.parts"; or the
 *   layout is that of a directory.
 *
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_array(caterva_tree *tree, const char *key,
                                                     const caterva_create_options *options,
                                                     caterva_array **out, caterva_error *err);

/* Makes an empty group, and its parent groups. Returns CATERVA_EEXIST if the key exists.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_group(caterva_tree *tree, const char *key,
                                                     caterva_error *err);

/* Deletes the array or other leaf with that key, or a group with all its members. A group
 * disappears as a whole, in one step.
 *
 * - CATERVA_EEXIST: the group contains files that are not the tree's; nothing is deleted.
 * - CATERVA_EREADONLY: the key is inside embed.b2e, or is one of python-blosc2's objects.
 * - CATERVA_EBUSY, only if neither of the above applies: an array is open for writing, also a
 *   new one that is not committed yet; or an array has an open job, active or not: merge the
 *   job, or end it with caterva_job_delete.
 *
 * If the handle's progress stops the call (CATERVA_ESTOPPED) while it looks for foreign files,
 * writers and jobs, nothing is deleted. If it stops the call later, while files are deleted,
 * the group no longer exists, and its pending attributes are gone; the message states this. No
 * list and no archive contains any part of it, and its key is free. The remaining files are in
 * a hidden directory of the tree, ".group.deleted-" and six characters, which the next
 * caterva_tree_delete of any key, or caterva_tree_open for writing, deletes.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_delete(caterva_tree *tree, const char *key,
                                               caterva_error *err);

/* Gives the array, leaf or group another key, in one step; makes the groups of the new key.
 * Returns the statuses of caterva_tree_delete and caterva_tree_create_array, and CATERVA_EBUSY
 * for an array with an open job, active or not, and for a group that contains such an array:
 * merge or end the job first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_move(caterva_tree *tree, const char *from,
                                             const char *to, caterva_error *err);

/* ---- Commits of trees ----------------------------------------------------- */

/* Commits all pending changes of the tree as one: those of the arrays open for writing through
 * this handle (caterva_tree_open_array, caterva_tree_create_array), including new arrays, and
 * the attributes of groups. Whatever happens to the process, the file system or the power,
 * readers of this library find all changes or none.
 *
 * Each array first writes everything but its header. Then a file `.caterva-commit` with the new
 * headers appears in the tree: this is the commit. The headers are written, new files are
 * renamed into place, and the file is deleted. If a writer is killed before it deletes the
 * file, the file remains: opening the tree for reading, or an array as
 * "weather.b2d::/group/name", applies it in memory; opening them for writing completes the
 * commit first. Programs that do not know the file, such as python-blosc2, find each array
 * whole, but some in the previous state.
 *
 * A reader that opens several arrays during a commit may get some in the previous and others in
 * the new state; once it sees an array in the new state, all arrays opened later are in the new
 * state.
 *
 * Syncs with the strictest durability of the tree and the arrays; CATERVA_DURABILITY_ORDERED
 * counts as CATERVA_DURABILITY_FULL.
 *
 * After a failure nothing is committed and all changes stay pending: call it again, or
 * caterva_tree_rollback. This includes CATERVA_ESTOPPED (a stop after the file has appeared is
 * too late) and CATERVA_EBUSY, if a file that a new array would replace is open for writing.
 * There are two exceptions, which the message states: an array whose sync failed must be opened
 * again; and after a failure that follows the commit itself (CATERVA_EIO), the commit is valid,
 * and is completed when all handles are closed and the tree is opened for writing. Returns
 * CATERVA_EREADONLY if the tree is open for reading, and CATERVA_EBUSY in a callback of a
 * verify of one of the arrays. A thread that closes or discards one of the arrays meanwhile
 * waits until the commit, or a caterva_tree_rollback, has ended.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_commit(caterva_tree *tree, caterva_error *err);

/* Rolls back all that caterva_tree_commit would commit, as caterva_rollback does for one array.
 * A new array is then empty, and must still be committed or discarded.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_rollback(caterva_tree *tree, caterva_error *err);

/* ---- Attributes of groups ------------------------------------------------- */

/* The attributes of a group are those of its file `__vlmeta__.b2f`, as in python-blosc2; "/"
 * can have attributes, too. Values and names are as for arrays (caterva_attr_set). They can be
 * read in every tree, and changed in a directory that is open for writing. Changes are pending
 * until caterva_tree_commit or caterva_tree_close; this handle sees them at once. */

/* Lists the names in stored order: *names has *n entries, 0 if the group has no attributes.
 * *names is one allocation: release it with caterva_free. Returns CATERVA_ENOTFOUND if the
 * group does not exist.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_list(caterva_tree *tree, const char *group,
                                                  const char ***names, size_t *n,
                                                  caterva_error *err);

/* Works as caterva_attr_get; returns CATERVA_ENOTFOUND also if the group does not exist.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_get(caterva_tree *tree, const char *group,
                                                 const char *name, void **value, size_t *size,
                                                 caterva_error *err);

/* Works as caterva_attr_set. The commit makes the group if it does not exist. Returns
 * CATERVA_EINVAL if the group's name is not allowed, CATERVA_EREADONLY if the tree is open
 * for reading or the group is one of python-blosc2's objects, and CATERVA_EEXIST if the key
 * is an array.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_set(caterva_tree *tree, const char *group,
                                                 const char *name, const void *value,
                                                 size_t size, caterva_error *err);

/* Works as caterva_attr_delete; the group stays.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_delete(caterva_tree *tree, const char *group,
                                                    const char *name, caterva_error *err);

/* ---- Verify of trees ------------------------------------------------------ */

/* What caterva_tree_verify found in one member. Allocated by the library. */
typedef struct caterva_tree_member {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_entry; "/": embed.b2e and the tree itself;
                              "/g/__vlmeta__": attributes of "/g"                     */
    const char *kind_name; /* as in caterva_tree_entry; or "attributes", "tree"       */
    int64_t damages;       /* calls of on_damage                                      */
    int sealed;            /* 1: checksums of this library cover its contents         */
    const caterva_verify_result *result; /* of an array; all zeros of other members   */
    int ndim;              /* entries used in `index` of its damages; 0 unless it is an
                              array that can be opened                                */
    int skipped;           /* 1: its bytes were not checked: it is deflated, encrypted, or a
                              reference to another place                              */
} caterva_tree_member;

typedef struct caterva_tree_verify_options {
    size_t struct_size;
    int quick;   /* 1: structure and chunk headers only: no decoding, and the checksums of
                    an archive's members are not computed */
    int threads; /* maximum for each array; 0: all cores  */
    /* Called for each damaged place, before on_member of its member. */
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called after each member; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_member *member);
    void *context;             /* of all functions here */
    caterva_progress progress; /* counts stored bytes   */
    /* Called first, for each key that differs from `other` only in the case of ASCII letters. */
    void (*on_case_collision)(void *context, const char *key, const char *other);
} caterva_tree_verify_options;
#define CATERVA_TREE_VERIFY_INIT CATERVA_INIT_(caterva_tree_verify_options)

typedef struct caterva_tree_verify_result {
    size_t struct_size;
    int64_t members;         /* checked                                           */
    int64_t damaged_members;
    int64_t damages;
    int64_t unsealed_members; /* `sealed` 0: wrong bytes that decode are missed   */
    int64_t skipped_members;  /* not checked, and not counted as damaged          */
    int64_t case_collisions;  /* calls of on_case_collision; not damage           */
} caterva_tree_verify_result;
#define CATERVA_TREE_VERIFY_RESULT_INIT CATERVA_INIT_(caterva_tree_verify_result)

/* Verifies `group` and its members at all levels (NULL or "/": the whole tree, with embed.b2e
 * and an unfinished commit):
 *
 * - arrays, as caterva_verify does
 * - the structure of other frames, and that their attributes decode
 * - in archives, that each local header matches the central directory, except for differences
 *   in sound archives of other programs (times, known versions), and each member's checksum
 *   (behind a URL: the checksums of the arrays themselves instead)
 *
 * Members that are deflated or encrypted are not checked: see `skipped`. An array that cannot
 * be opened is damage with chunk -1 and the code of caterva_open: CATERVA_EUNSUPPORTED if its
 * header has an unknown feature, from a newer version or a flipped bit. Frames that are not
 * arrays, with a structure unknown to this library, are not damage. References to other
 * places and the contents of python-blosc2's own objects are not checked.
 *
 * Keys that differ only in case are reported too, and are not damage. A directory cannot have
 * both where the file system ignores case, as on Windows and macOS.
 *
 * Damage is reported through the functions in `options` and `result`; the status is
 * CATERVA_OK if the check ran to its end. A member that cannot be read is not damage, and
 * ends the check with the error (CATERVA_EIO).
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_verify(caterva_tree *tree, const char *group,
                                               const caterva_tree_verify_options *options,
                                               caterva_tree_verify_result *result,
                                               caterva_error *err);

/* ---- Repair of trees ------------------------------------------------------ */

/* The result of a repair for one member of a tree. */
typedef enum caterva_outcome {
    CATERVA_OUTCOME_SOUND = 0, /* needs no repair                                   */
    CATERVA_OUTCOME_WHOLE,     /* was damaged, but nothing is lost                  */
    CATERVA_OUTCOME_PARTLY,    /* partly lost: see `reason`, or the array's result  */
    CATERVA_OUTCOME_LOST       /* nothing can be recovered: see `reason`            */
} caterva_outcome;

/* The result of caterva_tree_repair for one member. Allocated by the library. */
typedef struct caterva_tree_repaired {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_member                                     */
    const char *kind_name; /* "array", "attributes", "tree", "frame", "file"                */
    caterva_outcome outcome; /* PARTLY, with a reason, also for a frame with features that
                              this library does not know: the frame stays, or is copied,
                              unchanged                                                     */
    const char *reason;    /* a sentence, or NULL                                           */
    const char *beside;    /* file in the tree with the recovered contents of an array that
                              is left unchanged: "g/x.b2nd.repaired"; or NULL               */
    const caterva_repair_result *result; /* of an array; all zeros of other members         */
} caterva_tree_repaired;

typedef struct caterva_tree_repair_options {
    size_t struct_size;
    const char *output; /* a new tree: an archive if its name ends in ".b2z", else a
                           directory. NULL: repair in place, only for a directory */
    int overwrite;      /* 1: replace an archive at the output, and files that earlier
                           repairs left beside arrays                             */
    int guess;          /* as in caterva_repair_options, of each array            */
    int threads;
    caterva_durability durability;
    /* As in caterva_repair_options, for the array of that key. */
    int (*on_found)(void *context, const char *key, const caterva_info *info, void *fill);
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called after each member; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_repaired *member);
    void *context;             /* of the functions above */
    caterva_progress progress; /* counts stored bytes    */
} caterva_tree_repair_options;
#define CATERVA_TREE_REPAIR_INIT CATERVA_INIT_(caterva_tree_repair_options)

typedef struct caterva_tree_repair_result {
    size_t struct_size;
    int complete;           /* 1: nothing is lost                       */
    int settled;            /* 1: an unfinished commit was completed    */
    int64_t members;        /* checked; sound if not counted below      */
    int64_t whole_members;  /* with CATERVA_OUTCOME_WHOLE               */
    int64_t partly_members; /* with CATERVA_OUTCOME_PARTLY              */
    int64_t lost_members;   /* with CATERVA_OUTCOME_LOST                */
} caterva_tree_repair_result;
#define CATERVA_TREE_REPAIR_RESULT_INIT CATERVA_INIT_(caterva_tree_repair_result)

/* Repairs the tree at `path`, a directory or an archive that is damaged or cannot be opened.
 *
 * - An unfinished commit is completed. A damaged journal is renamed to
 *   ".caterva-commit.damaged"; the arrays then keep their current state.
 * - In place, each array is repaired as by caterva_repair. A new file replaces the damaged
 *   array if nothing is lost; otherwise the damaged array stays, and the readable contents
 *   are put beside it: "x.b2nd.repaired".
 * - Into an `output`, sound members are copied unchanged, and the readable contents of each
 *   other array take its place. Damaged attributes of groups are left out. The output appears
 *   whole; the tree itself does not change, except for the unfinished commit.
 * - If the directory of an archive is cut off or damaged, members are found by their local
 *   headers. Unless these cover all bytes up to the directory, "/" is CATERVA_OUTCOME_PARTLY:
 *   there may have been other members.
 * - A member with different names in directory and local header gets the more plausible one,
 *   and is CATERVA_OUTCOME_PARTLY: `reason` gives both. No checksum covers the name.
 * - A missing embed.b2e is created. A damaged one is renamed to "embed.b2e.damaged" and
 *   replaced by an empty one: its contents are lost.
 *
 * Members of which nothing can be recovered are reported through on_member, and the repair
 * continues. A member that cannot be read ends the repair with the error (CATERVA_EIO): it
 * may be sound. Returns CATERVA_EUNSUPPORTED if `path` is not a tree, CATERVA_ECORRUPT if no
 * member is found, CATERVA_EINVAL for an archive without an output, CATERVA_EEXIST if
 * something exists at the output or was left beside an array, CATERVA_EBUSY while the tree is
 * open for writing. An interrupted repair can be repeated.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_repair(const char *path,
                                               const caterva_tree_repair_options *options,
                                               caterva_tree_repair_result *result,
                                               caterva_error *err);

typedef struct caterva_tree_pack_options {
    size_t struct_size;
    int overwrite; /* caterva_tree_pack: 1: replace an existing file   */
    caterva_durability durability; /* CATERVA_DURABILITY_NONE: no sync */
    caterva_progress progress; /* stored bytes; a stop changes nothing */
    int zarr; /* caterva_tree_pack: 1: write a hierarchy of Zarr v3 groups */
} caterva_tree_pack_options;
#define CATERVA_TREE_PACK_INIT CATERVA_INIT_(caterva_tree_pack_options)

/* Writes the tree, a directory or an archive, as an archive (.b2z) at `path`: all files that
 * are not hidden, uncompressed, embed.b2e last. The archive appears whole. With `overwrite` it
 * replaces an older archive, whose readers can continue. Needs memory for one buffer, and 100
 * bytes for each file. `options` NULL: the defaults. Returns CATERVA_EBUSY while the tree, an
 * array in it or the file at `path` is open for writing elsewhere, and CATERVA_ECORRUPT if a
 * member's checksum in the source is wrong.
 *
 * With `zarr` it writes a directory instead, for readers of Zarr v3: one for each group and array,
 * with attributes, names of dimensions and, at the root, the metadata of all members. Each array
 * becomes one of caterva_copy_options.zarr; caterva_tree_open opens the whole for reading,
 * caterva_open an array ("out.zarr/group/name"). With `overwrite` it replaces an older one that
 * contains nothing else. Fails as caterva_copy, and with CATERVA_EUNSUPPORTED for a member that is
 * no array or group. No other call may change the tree meanwhile.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_pack(caterva_tree *tree, const char *path,
                                             const caterva_tree_pack_options *options,
                                             caterva_error *err);

/* Writes the tree as a directory (.b2d) at `path`, which appears whole. Returns
 * CATERVA_EEXIST if anything exists there, whatever `overwrite` is, and CATERVA_EINVAL if an
 * archive has a group with the name of a folder of jobs, "x.b2nd.parts", which a directory
 * cannot contain. Otherwise works as caterva_tree_pack.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_unpack(caterva_tree *tree, const char *path,
                                               const caterva_tree_pack_options *options,
                                               caterva_error *err);

/* ---- Any tree as Zarr groups --------------------------------------------- */

/* Makes the metadata (zarr.json) of a group ("/group"; "/": the tree) for readers of Zarr v3:
 * its attributes and, as consolidated metadata, those of its members at all levels, arrays
 * as caterva_zarr_metadata presents them. Leaves out members that cannot be presented: those
 * that are no array or group, that are damaged, or whose dtype has no name in Zarr. Opens
 * each array. Sets *text to *size bytes of JSON and a NUL: release it with caterva_free.
 * Returns CATERVA_ENOTFOUND if the group does not exist.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_zarr_metadata(caterva_tree *tree, const char *group,
                                                      char **text, size_t *size,
                                                      caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_TREE_H */
