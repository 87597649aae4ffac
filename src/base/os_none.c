/* Room: base. A system with memory, a clock and one thread, but without files, processes and
 * libraries, such as WebAssembly in a browser. Arrays are in memory and in stores of the program.
 * Implements os.h, os_file.h, os_dir.h, os_process.h and the larger functions of thread.h. */
#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "base/os_process.h"
#include "base/thread.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- The machine -------------------------------------------------------------------------- */

int cv_os_cores(void) { return 1; }
size_t cv_os_l2_cache(void) { return 0; }
size_t cv_os_l3_cache(void) { return 0; }

static uint64_t time_of(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_os_clock_ns(void) { return time_of(CLOCK_MONOTONIC); }
uint64_t cv_os_time_ns(void) { return time_of(CLOCK_REALTIME); }

void cv_os_sleep_ns(uint64_t ns)
{
    uint64_t start = cv_os_clock_ns();
    while (cv_os_clock_ns() - start < ns) {}
}

uint32_t cv_os_process(void) { return 1; }

void cv_os_host(char *out, size_t size)
{
    if (size > 0) out[0] = '\0';
}

void cv_os_random(void *out, size_t size)
{
    uint8_t *bytes = out;
    uint64_t seed = cv_os_clock_ns() ^ cv_mix(cv_os_time_ns()) ^ (uintptr_t)&seed;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = 0;
        if (getentropy(&byte, 1) != 0) byte = 0;
        seed = cv_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        bytes[i] = byte ^ (uint8_t)seed;
    }
}

void cv_os_advise_large_pages(void *memory, size_t size) { (void)memory, (void)size; }

const void *cv_os_find(const void *bytes, size_t size, const void *wanted, size_t wanted_size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i + wanted_size <= size; i++)
        if (memcmp(at + i, wanted, wanted_size) == 0) return at + i;
    return NULL;
}

/* ---- Processes and libraries -------------------------------------------------------------- */

#define NO(argument) ((void)(argument))

char *cv_os_variable(const char *name) { return NO(name), NULL; }
bool cv_library_load(const char *const *names, cv_library *out)
{
    *out = (cv_library){0};
    return NO(names), false;
}
bool cv_library_find(cv_library library, const char *name, void *function)
{
    return NO(library), NO(name), NO(function), false;
}

cv_os_moment cv_os_now(void) { return (cv_os_moment){0}; }
bool cv_os_is_other_process(cv_os_moment then) { return NO(then), false; }
bool cv_os_has_forked(cv_os_moment then) { return NO(then), false; }

/* ---- One thread --------------------------------------------------------------------------- */

void cv_cond_wait_for(cv_cond *cond, cv_mutex *mutex, uint64_t ns)
{
    NO(cond), NO(mutex), NO(ns);
}
bool cv_thread_start(void *(*body)(void *context), void *context)
{
    return NO(body), NO(context), false;
}
void cv_thread_end(void) { abort(); } /* no thread was started */
void cv_thread_block_signals(void) {}

static int n_awaited;

void cv_thread_be_awaited(int more) { n_awaited += more; }
bool cv_thread_is_awaited(void) { return n_awaited > 0; }

void cv_thread_on_fork(cv_fork_watcher kind, void (*before)(void), void (*in_parent)(void),
                       void (*in_child)(void))
{
    NO(kind), NO(before), NO(in_parent), NO(in_child);
}
void cv_thread_hold_on_fork(cv_mutex *mutex) { NO(mutex); }

/* ---- No files ----------------------------------------------------------------------------- */

void cv_file_close(cv_file *file) { *file = (cv_file){0}; }
int cv_file_again(cv_file file, cv_file *out) { return NO(file), NO(out), ENOTSUP; }
int cv_file_get_info(cv_file file, cv_file_info *out) { return NO(file), NO(out), ENOTSUP; }
int cv_file_size(cv_file file, uint64_t *size) { return NO(file), NO(size), ENOTSUP; }
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done)
{
    *done = 0;
    return NO(file), NO(dst), NO(size), NO(pos), ENOTSUP;
}
cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos)
{
    return NO(file), NO(dst), NO(size), NO(pos), CV_AT_ONCE_UNKNOWN;
}
void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size) { NO(file), NO(pos), NO(size); }
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size)
{
    NO(file), NO(pos), NO(size);
}
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos)
{
    return NO(file), NO(src), NO(size), NO(pos), ENOTSUP;
}
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size)
{
    return NO(file), NO(from), NO(to), NO(size), ENOTSUP;
}
int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size)
{
    return NO(file), NO(pos), NO(from), NO(there), NO(size), ENOTSUP;
}
bool cv_file_may_clone(cv_file file, cv_file from) { return NO(file), NO(from), false; }
int cv_file_touch(cv_file file) { return NO(file), ENOTSUP; }
int cv_file_truncate(cv_file file, uint64_t size) { return NO(file), NO(size), ENOTSUP; }
int cv_file_sync(cv_file file) { return NO(file), ENOTSUP; }

int cv_file_lock(cv_file file) { return NO(file), ENOTSUP; }
int cv_file_ask_lock(cv_file file) { return NO(file), ENOTSUP; }
int cv_file_share(cv_file file) { return NO(file), ENOTSUP; }
int cv_file_share_number(cv_file file, uint64_t number)
{
    return NO(file), NO(number), ENOTSUP;
}
void cv_file_unshare(cv_file file) { NO(file); }
bool cv_file_is_shared(cv_file file) { return NO(file), true; }
bool cv_file_is_shared_but(cv_file file, uint64_t number)
{
    return NO(file), NO(number), true;
}
int cv_file_mark(cv_file file, uint64_t number) { return NO(file), NO(number), ENOTSUP; }
void cv_file_unmark(cv_file file, uint64_t number) { NO(file), NO(number); }
bool cv_file_is_marked(cv_file file, uint64_t number) { return NO(file), NO(number), false; }
void cv_file_unlock(cv_file file) { NO(file); }

int cv_file_get_access(cv_file file, cv_os_access *out) { return NO(file), NO(out), ENOTSUP; }
int cv_file_set_access(cv_file file, const cv_os_access *access)
{
    return NO(file), NO(access), ENOTSUP;
}
int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from)
{
    return NO(file), NO(access), NO(from), ENOTSUP;
}

/* ---- No directories ----------------------------------------------------------------------- */

const cv_dir cv_dir_here = {-1};

void cv_dir_close(cv_dir *dir) { *dir = (cv_dir){0}; }
int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out)
{
    *out = (cv_file){0};
    return NO(dir), NO(name), NO(how), NO(mode), ENOTSUP;
}
int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out)
{
    *out = (cv_dir){0};
    return NO(dir), NO(name), NO(how), ENOTSUP;
}
int cv_dir_open_names(const char *path, cv_dir *out)
{
    *out = (cv_dir){0};
    return NO(path), ENOTSUP;
}
int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return NO(dir), NO(name), NO(out), ENOTSUP;
}
int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return NO(dir), NO(name), NO(out), ENOTSUP;
}
bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode)
{
    return NO(dir), NO(name), NO(device), NO(inode), false;
}
bool cv_dir_is_spelled(cv_dir dir, const char *path) { return NO(dir), NO(path), true; }
bool cv_os_can_name(const char *path) { return NO(path), true; }
void cv_os_use_slashes(char *path) { NO(path); }
bool cv_os_is_absolute(const char *path) { return path[0] == '/'; }
char *cv_os_absolute(const char *path) { return cv_strdup(path); }
char *cv_os_real_path(const char *path) { return NO(path), NULL; }
int cv_dir_sync(cv_dir dir) { return NO(dir), 0; }
int cv_dir_sync_all(cv_dir dir) { return NO(dir), ENOTSUP; }
int cv_dir_remove(cv_dir dir, const char *name) { return NO(dir), NO(name), ENOTSUP; }
int cv_dir_remove_directory(cv_dir dir, const char *name)
{
    return NO(dir), NO(name), ENOTSUP;
}
int cv_listing_open(cv_dir dir, cv_listing *out)
{
    *out = (cv_listing){0};
    return NO(dir), ENOTSUP;
}
const char *cv_listing_next(cv_listing *listing, int *error)
{
    *error = ENOTSUP;
    return NO(listing), NULL;
}
void cv_listing_close(cv_listing *listing) { *listing = (cv_listing){0}; }
int cv_dir_rename(cv_dir dir, const char *from, const char *to)
{
    return NO(dir), NO(from), NO(to), ENOTSUP;
}
int cv_dir_rename_new(cv_dir dir, const char *from, const char *to)
{
    return NO(dir), NO(from), NO(to), ENOTSUP;
}
int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to)
{
    return NO(dir), NO(from), NO(to), ENOTSUP;
}
int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to)
{
    return NO(dir), NO(from), NO(other), NO(to), ENOTSUP;
}
int cv_dir_exchange(cv_dir dir, const char *a, const char *b)
{
    return NO(dir), NO(a), NO(b), ENOTSUP;
}
int cv_dir_make(cv_dir dir, const char *name, uint32_t mode)
{
    return NO(dir), NO(name), NO(mode), ENOTSUP;
}
