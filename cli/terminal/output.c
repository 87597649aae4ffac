/* Room: cli/terminal. Output files are written under a temporary name, synced and renamed, so that
 * an interrupted run leaves no incomplete file. Devices and pipes are written directly and never
 * replaced. Independent of formats. */
#include "terminal/output.h"

#include "terminal/progress.h"
#include "terminal/stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1 << 16)

static cli_exit exists(const char *path)
{
    return cli_fail(CLI_IO, "%s exists already; -f replaces it", path);
}

static void release(output *out)
{
    if (out->temporary) cli_forget_file(out->temporary);
    free(out->path);
    free(out->target);
    free(out->temporary);
    free(out->buffer);
    *out = (output){.fd = -1};
}

static cli_exit open_directly(output *out, const char *path)
{
    out->fd = path ? open(path, O_WRONLY | O_CLOEXEC) : dup(STDOUT_FILENO);
    if (out->fd < 0) return cli_fail_sys("cannot write to %s", out->path);
    return CLI_OK;
}

/* Sets `text` to a temporary name ".NAME.tmp-XXXXXX", which is probably free. `text` must have room
 * for 32 bytes more than the target. The file is in the target's directory, so that the rename
 * stays on one file system and is atomic. The library names its temporary files in the same way. */
static void choose_temporary(char *text, size_t size, const char *target)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    const char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    seed = (seed ^ (uint64_t)getpid() << 32) * UINT64_C(0x9e3779b97f4a7c15);
    char suffix[7] = {0};
    for (int i = 0; i < 6; i++, seed /= 36) suffix[i] = letters[(seed >> 24) % 36];
    snprintf(text, size, "%.*s.%.200s.tmp-%s", (int)(name - target), target, name, suffix);
}

char *output_temporary(const char *path, const char *extension)
{
    size_t size = strlen(path) + strlen(extension) + 32;
    char *text = cli_alloc(size);
    char *target = cli_copy_text(path);
    if (text && target) {
        for (size_t n = strlen(target); n > 1 && target[n - 1] == '/';) target[--n] = '\0';
        choose_temporary(text, size, target);
        strcat(text, extension);
    }
    free(target);
    return text;
}

/* Creates the file and returns its descriptor. Returns -1 with errno if that fails. */
static int create_temporary(output *out, mode_t mode)
{
    enum { TRIES = 100 };
    size_t size = strlen(out->target) + 32;
    int fd = -1;
    out->temporary = cli_alloc(size);
    errno = ENOMEM;
    for (int i = 0; out->temporary && fd < 0 && i < TRIES; i++) {
        choose_temporary(out->temporary, size, out->target);
        fd = open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

/* Copies owner, group and permissions of a replaced file. If the group cannot be kept, the new
 * group gets no more permissions than other users. */
static void keep_access(int fd, const struct stat *old)
{
    unsigned mode = old->st_mode & 0777;
    bool kept =
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    unsigned all = mode & mode >> 3 & 07;
    if (!kept) mode = (mode & 0700) | all << 3 | all;
    fchmod(fd, (mode_t)mode);
}

/* Opens the temporary file. `old` is the file to be replaced, or NULL. The new file is private
 * until it gets the permissions of `old`. */
static cli_exit open_temporary(output *out, const struct stat *old)
{
    out->fd = create_temporary(out, old ? 0600 : 0666);
    if (out->fd < 0) {
        int error = errno;
        free(out->temporary);
        out->temporary = NULL;
        errno = error;
        return cli_fail_sys("cannot write %s", out->path);
    }
    cli_mind_file(out->temporary);
    if (old) keep_access(out->fd, old);
    out->seekable = true;
    return CLI_OK;
}

/* Takes the writer's lock of the target, which is held while *fd is open, so that an array open for
 * writing is not replaced. A file that does not exist or cannot be opened counts as unlocked. */
static cli_exit lock_target(const output *out, int *fd)
{
    *fd = open(out->target, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return CLI_OK;
    close(*fd);
    return cli_fail(CLI_IO, "%s is open for writing elsewhere", out->path);
}

static void unlock_target(int fd)
{
    if (fd >= 0) close(fd);
}

static cli_exit open_path(output *out, const char *path, bool force)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) return cli_fail(CLI_IO, "%s is a directory", path);
    if (there && !S_ISREG(st.st_mode)) return open_directly(out, path);
    if (there && !force) return exists(path);
    /* If the path is a symbolic link, replaces the file it points to, not the link. */
    out->target = there ? realpath(path, NULL) : cli_copy_text(path);
    out->force = force;
    if (!out->target) return cli_fail_sys("cannot write %s", path);
    if (there) {
        int lock;
        CLI_TRY(lock_target(out, &lock)); /* taken again before the rename */
        unlock_target(lock);
    }
    return open_temporary(out, there ? &st : NULL);
}

cli_exit output_open(output *out, const char *path, bool force)
{
    bool standard = !path || strcmp(path, "-") == 0;
    *out = (output){.fd = -1};
    out->path = cli_copy_text(standard ? "standard output" : path);
    out->buffer = cli_alloc(BUFFER_SIZE);
    cli_exit code = CLI_IO;
    if (out->path && out->buffer)
        code = standard ? open_directly(out, NULL) : open_path(out, path, force);
    if (code != CLI_OK) release(out);
    return code;
}

static cli_exit write_all(output *out, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        CLI_TRY(cli_wait(out->fd, true));
        ssize_t n = write(out->fd, bytes, stream_piece(size));
        if (n < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (n < 0) return cli_fail_sys("cannot write to %s", out->path);
        bytes += n;
        size -= (size_t)n;
    }
    return CLI_OK;
}

static cli_exit flush(output *out)
{
    size_t used = out->used;
    out->used = 0;
    return write_all(out, out->buffer, used);
}

cli_exit output_write(output *out, const void *bytes, size_t size)
{
    if (size > BUFFER_SIZE - out->used) CLI_TRY(flush(out));
    if (size >= BUFFER_SIZE) return write_all(out, bytes, size);
    memcpy(out->buffer + out->used, bytes, size);
    out->used += size;
    return CLI_OK;
}

cli_exit output_write_at(output *out, const void *bytes, size_t size, int64_t position)
{
    const uint8_t *at = bytes;
    CLI_TRY(flush(out));
    while (size > 0) {
        if (progress_tell(NULL, at - (const uint8_t *)bytes,
                          (at - (const uint8_t *)bytes) + (int64_t)size))
            return CLI_INTERRUPTED;
        ssize_t n = pwrite(out->fd, at, stream_piece(size), position);
        if (n < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (n < 0) return cli_fail_sys("cannot write to %s", out->path);
        at += n;
        position += n;
        size -= (size_t)n;
    }
    return CLI_OK;
}

/* Gives the temporary file its final name. Without -f, makes a link, which fails if a file of that
 * name has appeared meanwhile. With -f, or on a file system without links, renames the file. */
static cli_exit publish(output *out)
{
    if (fsync(out->fd) != 0) return cli_fail_sys("cannot write to %s", out->path);
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (!out->force) {
        if (link(out->temporary, out->target) == 0) {
            unlink(out->temporary);
            return CLI_OK;
        }
        if (errno == EEXIST) return exists(out->path);
    }
    int lock;
    CLI_TRY(lock_target(out, &lock));
    cli_exit code = CLI_OK;
    if (rename(out->temporary, out->target) != 0)
        code = cli_fail_sys("cannot write %s", out->path);
    unlock_target(lock);
    return code;
}

cli_exit output_finish(output *out)
{
    cli_exit code = flush(out);
    if (code == CLI_OK && out->temporary) code = publish(out);
    if (code != CLI_OK) {
        output_abandon(out);
        return code;
    }
    if (close(out->fd) != 0) code = cli_fail_sys("cannot write to %s", out->path);
    release(out);
    return code;
}

void output_abandon(output *out)
{
    if (out->fd < 0) return;
    close(out->fd);
    if (out->temporary) unlink(out->temporary);
    release(out);
}

static int delete_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void output_delete_folder(const char *path)
{
    (void)nftw(path, delete_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_temporary(const char *name)
{
    const char *end = strstr(name, ".tmp-");
    return name[0] == '.' && end && strlen(end) >= 11;
}

static int delete_temporary(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind;
    if (at->level > 0 && is_temporary(path + at->base)) output_delete_folder(path);
    return 0;
}

void output_delete_temporaries(const char *path)
{
    char full[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int before = (int)(name - path);
    size_t size = strlen(name);
    snprintf(full, sizeof full, "%.*s", before, before > 0 ? path : ".");
    DIR *opened = opendir(before > 0 ? full : ".");
    struct dirent *entry;
    while (opened && (entry = readdir(opened))) {
        const char *found = entry->d_name, *rest = found + strspn(found, ".");
        if (!is_temporary(found) || strncmp(rest, name, size) != 0 ||
            strncmp(rest + size, ".tmp-", 5) != 0)
            continue;
        snprintf(full, sizeof full, "%.*s%s", before, path, found);
        output_delete_folder(full);
    }
    if (opened) closedir(opened);
    (void)nftw(path, delete_temporary, 16, FTW_PHYS);
}

static int sync_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)at;
    if (kind != FTW_F && kind != FTW_DP) return 0;
    int fd = open(path, (kind == FTW_F ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    return synced || kind == FTW_DP ? 0 : -1; /* not all systems sync folders */
}

cli_exit output_sync_folder(const char *path)
{
    if (nftw(path, sync_one, 16, FTW_DEPTH | FTW_PHYS) == 0) return CLI_OK;
    return cli_fail_sys("cannot sync %s", path);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Calls stat for the directory that contains `path`. */
static bool stat_folder(const char *path, struct stat *st)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    if (size >= sizeof folder) return false;
    memcpy(folder, path, size);
    folder[size] = '\0';
    return stat(size ? folder : ".", st) == 0;
}

cli_exit output_check_input(const char *out, const char *in)
{
    struct stat from, to;
    bool standard = strcmp(in, "-") == 0;
    if (!out || strcmp(out, "-") == 0) return CLI_OK;
    if ((standard ? fstat(STDIN_FILENO, &from) : stat(in, &from)) != 0) return CLI_OK;
    bool file = S_ISREG(from.st_mode), folder = S_ISDIR(from.st_mode);
    bool same = (file || folder) && stat(out, &to) == 0 && same_file(&from, &to);
    if (!same && folder) same = stat_folder(out, &to) && same_file(&from, &to);
    if (!same) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s is the input, which the output would replace", out);
}

cli_exit output_check_array(const char *path, bool force)
{
    struct stat st;
    if (lstat(path, &st) != 0) return CLI_OK;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return cli_fail(CLI_IO, "%s is neither a file nor a directory", path);
    return force ? CLI_OK : exists(path);
}
