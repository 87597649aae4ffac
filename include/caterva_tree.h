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
 * (`.b2z`) whose members are stored as they are and read in place. It can also be a file of
 * an EmbedStore (`.b2e`), to be read. An array of a tree has a key, "/group/name".
 *
 * Wherever this library takes the URL of an array that exists, "weather.b2z::/group/name"
 * and "weather.b2d::/group/name" name one in a tree: opening one so needs nothing of what
 * follows. A file whose own name has "::" in it is still found by that name.
 *
 * Work in a `.b2d` and publish it as a `.b2z`: an archive never changes in place, its arrays
 * are open for reading only. So are arrays that lie inside embed.b2e, where python-blosc2
 * keeps small ones, and the columns of its tables.
 *
 * The library checks what an archive says before it reads anything by it: members must lie
 * apart from each other, names must not lead out of the tree (CATERVA_ECORRUPT). It lists
 * members that are deflated or encrypted, and refuses them by name (CATERVA_EUNSUPPORTED).
 */
typedef struct caterva_tree caterva_tree;

typedef enum caterva_tree_kind {
    CATERVA_TREE_ARRAY = 0, /* caterva_tree_open_array opens it                       */
    CATERVA_TREE_GROUP,     /* has members, or attributes                             */
    CATERVA_TREE_OTHER      /* kind_name says what: it is listed, and cannot be opened */
} caterva_tree_kind;

/* The library makes these. */
typedef struct caterva_tree_entry {
    size_t struct_size;
    const char *key;       /* "/group/name"; groups stand before what is in them         */
    caterva_tree_kind kind;
    const char *kind_name; /* "array", "schunk" (a frame of plain items: a 1-d array),
                              "group", or python-blosc2's word for another object:
                              "ctable", "lazyexpr", "batcharray", "remote", ...; "file" for
                              what is no frame, "deflated" and "encrypted" for members that
                              cannot be read in place, "damaged" for what should be a frame
                              and was read, but is not one, "unreadable" for what has the
                              name of a frame and is a link that leads nowhere, or no file */
    int read_only;         /* 1: it can never be opened for writing where it is          */
    int embedded;          /* 1: it lies inside embed.b2e                                */
    int64_t stored_bytes;  /* of the file, member or frame; 0 for groups                 */
    const char *path;      /* of the file or member in the tree; NULL: it has none       */
} caterva_tree_entry;

typedef struct caterva_tree_list {
    size_t struct_size;
    size_t n;
    const caterva_tree_entry *const *entries; /* n of them, sorted by key */
} caterva_tree_list;

/* Options of caterva_tree_open. NULL in their place means the defaults. */
typedef struct caterva_tree_options {
    size_t struct_size;
    caterva_mode mode;             /* CATERVA_MODE_WRITE: directories only               */
    caterva_durability durability; /* of names that are made, removed and moved, and of
                                      caterva_tree_commit; that of an array's own commits is
                                      in its options                                     */
    const caterva_remote_options *remote; /* of a URL, copied: for the tree and all arrays that
                                       are opened from it, which must be closed before what
                                       its `context` leads to goes. NULL: all as by default */
    /* Hears of the opening and of long calls through the handle, in files mostly, and stops
     * them; see above. Arrays that are opened from the tree have their own. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_options;
#define CATERVA_TREE_INIT CATERVA_INIT_(caterva_tree_options)

/* Opens the tree at `path`, a directory or file. Of an archive this reads the directory, as
 * long as it is, and embed.b2e, but nothing of the arrays. Returns CATERVA_ENOTFOUND when
 * nothing is there, CATERVA_EUNSUPPORTED when it is no tree, CATERVA_ECORRUPT when an
 * archive was cut or says what cannot be, or embed.b2e is damaged; with
 * CATERVA_MODE_WRITE also CATERVA_EREADONLY for what is no directory, and CATERVA_EBUSY
 * while another handle has the tree open for writing. Release *out with caterva_tree_close.
 * A tree that is open for writing is the process's that opened it: in a child of fork all
 * that changes, commits, rolls back or packs it returns CATERVA_EBUSY. Opening for writing
 * removes what a caterva_tree_delete has left that was stopped or killed; where that is stopped
 * (CATERVA_ESTOPPED), the next one goes on.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open(const char *path,
                                             const caterva_tree_options *options,
                                             caterva_tree **out, caterva_error *err);

/* Commits attributes of groups that are pending, and releases the handle, also when that
 * fails; arrays and lists that came from it stay valid, and what is pending in an array is
 * the array's. After a caterva_tree_commit that failed and was neither repeated nor rolled
 * back it drops the attributes, and returns the status of that commit. NULL is fine. In a child of fork it
 * commits nothing (CATERVA_EBUSY where something was pending), and leaves the tree's lock to
 * the parent.
 * Thread: alone. */
CATERVA_API caterva_status caterva_tree_close(caterva_tree *tree, caterva_error *err);

/* Identifies what an archive or a file with all leaves holds, as state_id of caterva_info does
 * for an array: an archive by names, places, sizes and checksums of its members, a file by its
 * inode, time and size. A directory has no state of its own, but its arrays have: all zeros.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_state_id(caterva_tree *tree,
                                                 uint8_t out[CATERVA_STATE_ID],
                                                 caterva_error *err);

/* Lists what is in `group` and below it ("/group"; NULL or "/": everything). *out never
 * changes; of a directory each call looks anew. Reads the first bytes of every file or
 * member, which tell its kind.
 *
 * "damaged" is only what was read and is wrong: truncated, or with bytes that are not a
 * frame's. Behind a URL such bytes are fetched a second time, past all caches, first. A file
 * or member that cannot be read is an error of the call, and there is no list: CATERVA_EIO
 * when the system or the server refuses or fails (no permission, no descriptor, a bad sector,
 * a timeout, a connection that breaks, status 401, 403, 404, 5xx, another version on the
 * server), CATERVA_ESTOPPED, CATERVA_ENOMEM. Files that a writer of a directory deletes
 * meanwhile are left out. Returns CATERVA_ENOTFOUND when there is no such group.
 * Release *out with caterva_tree_list_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_get_list(caterva_tree *tree, const char *group,
                                                 const caterva_tree_list **out,
                                                 caterva_error *err);
CATERVA_API void caterva_tree_list_release(const caterva_tree_list *list); /* NULL is fine */

/* Opens the array of that key; `options` as in caterva_open, but that a tree behind a URL has
 * its own `remote`. The array outlives the tree's handle. Of an archive this reads the file that the tree was opened from, also when
 * another one has its name by now. Returns CATERVA_ENOTFOUND when there is no such key,
 * CATERVA_EUNSUPPORTED when it is no array, CATERVA_EREADONLY for CATERVA_MODE_WRITE where
 * it can only be read. Release *out with caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open_array(caterva_tree *tree, const char *key,
                                                   const caterva_open_options *options,
                                                   caterva_array **out, caterva_error *err);

/* Makes an empty tree at `path`, a directory, and opens it for writing; `mode` of the
 * options does not count. It appears whole, under its name. CATERVA_EEXIST when anything is
 * there. Release *out with caterva_tree_close.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_create(const char *path,
                                               const caterva_tree_options *options,
                                               caterva_tree **out, caterva_error *err);

/* Makes a new array of that key, as caterva_create makes a file: it is there from its first
 * commit on. The groups of the key are made. CATERVA_EEXIST: the key is a group's, or
 * something's already unless `options` say overwrite; or a part of it is an array's. Arrays
 * and attributes that are pending through this handle are in the way, too. CATERVA_EINVAL: a
 * name in it begins with a dot, which hides it, or is one of python-blosc2's own, or a group
 * has the name of a folder of jobs, "x.b2nd.parts"; or the layout is that of a directory.
 * caterva_create with "weather.b2d::/group/name" does the same, and makes the tree where
 * there is nothing of that name. Release *out with caterva_close or caterva_discard.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_array(caterva_tree *tree, const char *key,
                                                     const caterva_create_options *options,
                                                     caterva_array **out, caterva_error *err);

/* Makes an empty group, and those it lies in. CATERVA_EEXIST: the key is taken.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_group(caterva_tree *tree, const char *key,
                                                     caterva_error *err);

/* Removes the array or other leaf of that key, or a group with all that is in it, which
 * goes from view at once. CATERVA_EEXIST: files of others are in the group, and nothing is
 * removed. CATERVA_EREADONLY: it lies inside embed.b2e, or is one of python-blosc2's objects.
 * CATERVA_EBUSY, when nothing else is in the way: an array of it is open for writing, or has
 * an open job, whether anybody works on it or not: merge it, or end it by
 * caterva_job_delete.
 *
 * Stopped by the handle's on_progress (CATERVA_ESTOPPED), it leaves one of two states:
 *
 *   nothing is removed, as long as files are looked at and asked for writers and jobs
 *   the group is gone, with its attributes that were pending, once its files go: the sentence
 *   says so. No list and no archive has any part of it, and its key is free. What is left of
 *   its files lies in a hidden directory of the tree, ".group.deleted-" and six characters,
 *   which the next caterva_tree_delete, of any key, or caterva_tree_open for writing removes
 *
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_delete(caterva_tree *tree, const char *key,
                                               caterva_error *err);

/* Gives the array, leaf or group another key, in one step; the groups of the new one are
 * made. The statuses of caterva_tree_delete and caterva_tree_create_array, and
 * CATERVA_EBUSY for an array that has an open job, whether anybody works on it or not, and for
 * a group that holds one: merge or end it first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_move(caterva_tree *tree, const char *from,
                                             const char *to, caterva_error *err);

/* ---- Commits of trees ----------------------------------------------------- */

/* Commits, as one, all that is pending in the tree: in the arrays that are open for writing
 * through this handle (caterva_tree_open_array, caterva_tree_create_array; new ones among
 * them), and attributes of groups. Whatever happens to the process, the file system or the
 * power, all of it is there afterwards or nothing, for readers of this library.
 *
 * Each array first writes everything but its header. Then a file `.caterva-commit` appears
 * in the tree, which holds the new headers: that is the commit. The headers are written,
 * new files get their names, and the file goes. Where a writer was killed before that, it
 * still stands: who opens the tree for reading, or an array as "weather.b2d::/group/name",
 * reads what it says, and who opens them for writing finishes the commit first. Programs
 * that do not know it, python-blosc2 among them, find each array whole, but some as before.
 *
 * Who opens several arrays while somebody commits may get some as before and others as
 * after it; once an array is seen as after, all that are opened later are.
 *
 * Syncs as the strictest of the tree's durability and that of the arrays says;
 * CATERVA_DURABILITY_ORDERED counts as CATERVA_DURABILITY_FULL.
 *
 * On failure nothing was committed, and what is pending stays so: call it again, or
 * caterva_tree_rollback. CATERVA_ESTOPPED is such a failure; once the file has appeared, a stop
 * comes too late. CATERVA_EBUSY is such a failure, when somebody writes to a file that
 * a new array would replace. There are two exceptions, which the sentence tells of: an array
 * whose sync failed must be opened again; and after a failure that comes behind the commit
 * itself (CATERVA_EIO) the commit stands, and is finished when you close all handles and open
 * the tree for writing.
 * CATERVA_EREADONLY when the tree is open for reading. CATERVA_EBUSY in a function that a
 * verify of one of the arrays calls.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_commit(caterva_tree *tree, caterva_error *err);

/* Drops all that caterva_tree_commit would commit, as caterva_rollback does in one array. A
 * new array is empty then, and still to be committed or discarded.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_rollback(caterva_tree *tree, caterva_error *err);

/* ---- Attributes of groups ------------------------------------------------- */

/* A group's attributes are those of a file `__vlmeta__.b2f` in it, as python-blosc2 has them;
 * "/" has some, too. Values and names are as those of arrays (caterva_attr_set). They can be
 * read of every tree and changed in a directory that is open for writing. What is changed is
 * pending until caterva_tree_commit or caterva_tree_close; through this handle it is seen at
 * once. */

/* Lists the names: *names has *n of them, in the order in which they are stored. One block of
 * memory: release *names with caterva_free. Returns CATERVA_ENOTFOUND when there is no such
 * group; one without attributes has none.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_list(caterva_tree *tree, const char *group,
                                                  const char ***names, size_t *n,
                                                  caterva_error *err);

/* As caterva_attr_get; CATERVA_ENOTFOUND also when there is no such group.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_get(caterva_tree *tree, const char *group,
                                                 const char *name, void **value, size_t *size,
                                                 caterva_error *err);

/* As caterva_attr_set. The group is made with its first attribute, at the commit, where
 * there is none; CATERVA_EINVAL when it cannot have the name. CATERVA_EREADONLY when the tree is
 * open for reading, and for groups that are python-blosc2's objects; CATERVA_EEXIST when the key
 * is an array's.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_set(caterva_tree *tree, const char *group,
                                                 const char *name, const void *value,
                                                 size_t size, caterva_error *err);

/* As caterva_attr_delete; the group stays.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_delete(caterva_tree *tree, const char *group,
                                                    const char *name, caterva_error *err);

/* ---- Verify of trees ------------------------------------------------------ */

/* The library makes these: what was found in one member of a tree. */
typedef struct caterva_tree_member {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_entry; "/" is embed.b2e and what stands for
                              the tree itself; "/g/__vlmeta__": attributes of "/g"         */
    const char *kind_name; /* as there; "attributes", "tree"                             */
    int64_t damages;       /* places that on_damage was called for                       */
    int sealed;            /* 1: checksums of this library vouch for what it holds        */
    const caterva_verify_result *result; /* of an array; all zeros of other members      */
    int ndim;              /* of an array that opens: of the damages' `index`             */
    int skipped;           /* 1: its bytes were not looked at: it is deflated or encrypted, or
                              a reference to another place                                */
} caterva_tree_member;

typedef struct caterva_tree_verify_options {
    size_t struct_size;
    int quick;   /* 1: structure and chunk headers only: no decoding, and the checksums of
                    an archive's members are not computed                                 */
    int threads; /* at most so many for each array; 0: all cores                          */
    /* Called for each damaged place, before on_member of its member. */
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called for each member when it is done; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_member *member);
    /* Called now and then with stored bytes done; return non-zero to stop. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_verify_options;
#define CATERVA_TREE_VERIFY_INIT CATERVA_INIT_(caterva_tree_verify_options)

typedef struct caterva_tree_verify_result {
    size_t struct_size;
    int64_t members;         /* checked                                                  */
    int64_t damaged_members;
    int64_t damages;
    int64_t unsealed_members; /* only what does not decode was noticed in them            */
    int64_t skipped_members;  /* whose bytes were not looked at; not among the damaged    */
} caterva_tree_verify_result;
#define CATERVA_TREE_VERIFY_RESULT_INIT CATERVA_INIT_(caterva_tree_verify_result)

/* Verifies all that is in `group` and below it (NULL or "/": everything, embed.b2e and a
 * commit that is not finished among it): arrays as caterva_verify does, of other frames that
 * their structure holds and their attributes decode, of an archive's members that the header
 * before each says what the archive's directory does, but for what differs in sound archives
 * of other programs (times, known versions), and that their checksums are right (of an
 * archive behind a URL: those that arrays have themselves). The bytes of members that are
 * deflated or encrypted are not looked at: `skipped` says so. An array that cannot be opened is damage with the chunk -1, whose code
 * is that of the open: CATERVA_EUNSUPPORTED when its header says what this library does not
 * know, as one of a newer version does, or a flipped bit. Frames that are no arrays, and whose
 * structure this library does not know, are no damage. Reports damage through the functions in
 * `options` and `result`: the status is CATERVA_OK when the check ran to its end. A member that
 * cannot be read is not damage, and ends the check with the error (CATERVA_EIO). References to
 * other places and what python-blosc2 makes of its own objects are not looked at.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_verify(caterva_tree *tree, const char *group,
                                               const caterva_tree_verify_options *options,
                                               caterva_tree_verify_result *result,
                                               caterva_error *err);

/* ---- Repair of trees ------------------------------------------------------ */

/* Says what became of a member of a tree. */
typedef enum caterva_outcome {
    CATERVA_OUTCOME_SOUND = 0, /* it needs no repair                                     */
    CATERVA_OUTCOME_WHOLE,     /* it was damaged, and nothing of it is lost              */
    CATERVA_OUTCOME_PARTLY,    /* some of it is lost: `reason`, or the array's result    */
    CATERVA_OUTCOME_LOST       /* nothing can be made of it: `reason`                    */
} caterva_outcome;

/* The library makes these: what became of one member. */
typedef struct caterva_tree_repaired {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_member                                  */
    const char *kind_name; /* "array", "attributes", "tree", "frame", "file"             */
    caterva_outcome outcome; /* PARTLY, with a reason, of what says that it is a frame this
                              library does not know: it is kept, or copied, as it is      */
    const char *reason;    /* a sentence, or NULL                                        */
    const char *beside;    /* the file in the tree that holds what was saved of an array
                              that stays as it is: "g/x.b2nd.repaired"; NULL: none       */
    const caterva_repair_result *result; /* of an array; all zeros of other members      */
} caterva_tree_repaired;

typedef struct caterva_tree_repair_options {
    size_t struct_size;
    const char *output; /* a new tree: an archive when its name ends in ".b2z", else a
                           directory. NULL: the tree is repaired in place, which takes a
                           directory                                                     */
    int overwrite;      /* 1: replace an archive that is the output, and what earlier
                           repairs have left beside arrays                               */
    int guess;          /* as in caterva_repair_options, of each array                   */
    int threads;
    caterva_durability durability;
    /* As in caterva_repair_options, of the array of that key.                           */
    int (*on_found)(void *context, const char *key, const caterva_info *info, void *fill);
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called for each member when it is done; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_repaired *member);
    /* Called now and then with stored bytes done; return non-zero to stop. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_repair_options;
#define CATERVA_TREE_REPAIR_INIT CATERVA_INIT_(caterva_tree_repair_options)

typedef struct caterva_tree_repair_result {
    size_t struct_size;
    int complete;           /* 1: nothing is lost                                        */
    int settled;            /* 1: a commit that was not finished is now                  */
    int64_t members;        /* looked at                                                 */
    int64_t whole_members;  /* so many had each outcome; all others are sound            */
    int64_t partly_members;
    int64_t lost_members;
} caterva_tree_repair_result;
#define CATERVA_TREE_REPAIR_RESULT_INIT CATERVA_INIT_(caterva_tree_repair_result)

/* Repairs the tree at `path`, a directory or an archive that is damaged or cannot be opened.
 *
 * - It finishes a commit that stands. A journal that is damaged is put aside, as
 *   ".caterva-commit.damaged": arrays are then as they stand.
 * - In place, it repairs each array as caterva_repair does, and puts one that needs a new
 *   file into its place when nothing of it is lost. Otherwise the damaged array stays, and
 *   what can be read is put beside it: "x.b2nd.repaired".
 * - Into an `output`, it copies sound members as they are and puts what can be read of each
 *   other array into its place. Attributes of groups that are damaged are left out. The
 *   output appears whole; the tree itself stays as it is, but for the commit.
 * - Members of an archive whose directory was cut off or is damaged are found by the headers
 *   that stand before them. Unless all bytes up to the directory belong to some, "/" is
 *   CATERVA_OUTCOME_PARTLY: there may have been others.
 * - A member whose name in the directory is not the one in its header gets the one that makes
 *   more sense, and is CATERVA_OUTCOME_PARTLY: `reason` names both. No checksum tells which it had.
 * - embed.b2e is made anew where there is none. A damaged one is put aside, as
 *   "embed.b2e.damaged", and replaced by an empty one: what lay inside it is lost.
 *
 * Members that nothing can be made of are named by on_member, and stop nothing. A member that
 * cannot be read ends the repair with the error (CATERVA_EIO): it may be sound. Returns
 * CATERVA_EUNSUPPORTED when `path` is no tree, CATERVA_ECORRUPT when no member is found,
 * CATERVA_EINVAL for an archive without an output, CATERVA_EEXIST when something is at the
 * output or is left beside an array, CATERVA_EBUSY while somebody is writing to the tree.
 * Interrupted, it can be done again.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_repair(const char *path,
                                               const caterva_tree_repair_options *options,
                                               caterva_tree_repair_result *result,
                                               caterva_error *err);

typedef struct caterva_tree_pack_options {
    size_t struct_size;
    int overwrite; /* caterva_tree_pack: 1: replace the file that is there           */
    caterva_durability durability; /* CATERVA_DURABILITY_NONE: nothing is synced         */
    /* Hears in bytes; non-zero stops: CATERVA_ESTOPPED, and nothing has changed.      */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_pack_options;
#define CATERVA_TREE_PACK_INIT CATERVA_INIT_(caterva_tree_pack_options)

/* Writes the tree, a directory or an archive, as an archive (.b2z) at `path`: all files that
 * are not hidden, stored as they are, embed.b2e last. The archive appears whole, in the
 * place of an older one with `overwrite`; who reads that goes on. Takes a buffer of memory
 * and 100 bytes for each file.
 * CATERVA_EBUSY while the tree, or an array in it, is open for writing elsewhere, and while
 * the file at `path` is. CATERVA_ECORRUPT: a member's checksum in the source is wrong.
 * `options` NULL: the defaults.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_pack(caterva_tree *tree, const char *path,
                                             const caterva_tree_pack_options *options,
                                             caterva_error *err);

/* Writes the tree as a directory (.b2d) at `path`, which appears whole; CATERVA_EEXIST when
 * anything is there, whatever `overwrite` says. CATERVA_EINVAL when an archive has a group with
 * the name of a folder of jobs, "x.b2nd.parts", which no directory can show. Otherwise as
 * caterva_tree_pack.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_unpack(caterva_tree *tree, const char *path,
                                               const caterva_tree_pack_options *options,
                                               caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_TREE_H */
