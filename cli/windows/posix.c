/* Room: cli/windows. The functions of posix.h, and the state of the streams when a program begins:
 * they carry bytes, and a console shows UTF-8 and follows escape sequences. */
#include "posix.h"

#include <stdarg.h>
#include <stdbool.h>

#include <dlfcn.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include <windows.h>

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

/* ---- Beginning and end ---- */

static UINT code_page; /* of the console when the program began */

static void restore_console(void) { SetConsoleOutputCP(code_page); }

__attribute__((constructor)) static void begin(void)
{
    enum { ESCAPES = 4 }; /* ENABLE_VIRTUAL_TERMINAL_PROCESSING */
    static const DWORD outputs[] = {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    DWORD mode;
    _fmode = _O_BINARY;
    for (int fd = 0; fd <= 2; fd++) (void)_setmode(fd, _O_BINARY);
    for (int i = 0; i < 2; i++) {
        HANDLE console = GetStdHandle(outputs[i]);
        if (GetConsoleMode(console, &mode)) SetConsoleMode(console, mode | ESCAPES);
    }
    code_page = GetConsoleOutputCP();
    if (code_page == 0 || code_page == CP_UTF8) return;
    SetConsoleOutputCP(CP_UTF8);
    atexit(restore_console);
}

/* ---- Errors ---- */

static int fail(DWORD error)
{
    switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_DELETE_PENDING: errno = ENOENT; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION: errno = EACCES; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_LOCK_VIOLATION: errno = EWOULDBLOCK; break;
    case ERROR_DISK_FULL: errno = ENOSPC; break;
    case ERROR_INVALID_HANDLE: errno = EBADF; break;
    case ERROR_NOT_ENOUGH_MEMORY: errno = ENOMEM; break;
    default: errno = EIO; break;
    }
    return -1;
}

static HANDLE handle_of(int fd) { return (HANDLE)_get_osfhandle(fd); }

/* ---- Information ---- */

static struct timespec time_of(FILETIME time)
{
    static const int64_t until_1970 = 11644473600, ticks = 10000000, ns = 100;
    int64_t all = (int64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
    return (struct timespec){(time_t)(all / ticks - until_1970), (long)(all % ticks * ns)};
}

static int stat_handle(HANDLE handle, struct posix_stat *out)
{
    BY_HANDLE_FILE_INFORMATION info;
    FILE_ID_INFO id;
    *out = (struct posix_stat){.st_nlink = 1};
    switch (GetFileType(handle)) {
    case FILE_TYPE_DISK: break;
    case FILE_TYPE_PIPE: out->st_mode = S_IFIFO | 0666; return 0;
    case FILE_TYPE_CHAR: out->st_mode = S_IFCHR | 0666; return 0;
    default: return fail(ERROR_INVALID_HANDLE);
    }
    if (!GetFileInformationByHandle(handle, &info)) return fail(GetLastError());
    bool is_directory = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    bool is_fixed = info.dwFileAttributes & FILE_ATTRIBUTE_READONLY;
    out->st_mode = is_directory ? S_IFDIR | 0777 : is_fixed ? S_IFREG | 0444 : S_IFREG | 0666;
    out->st_nlink = info.nNumberOfLinks;
    out->st_size = (int64_t)((uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow);
    out->st_atim = time_of(info.ftLastAccessTime);
    out->st_mtim = out->st_ctim = time_of(info.ftLastWriteTime);
    out->st_dev = info.dwVolumeSerialNumber;
    out->st_ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    if (GetFileInformationByHandleEx(handle, FileIdInfo, &id, sizeof id))
        memcpy(&out->st_ino, &id.FileId, sizeof out->st_ino);
    return 0;
}

static int stat_path(const char *path, DWORD flags, struct posix_stat *out)
{
    HANDLE handle = CreateFileA(path, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
    if (handle == INVALID_HANDLE_VALUE) return fail(GetLastError());
    int code = stat_handle(handle, out);
    CloseHandle(handle);
    return code;
}

int posix_stat(const char *path, struct posix_stat *out) { return stat_path(path, 0, out); }

int posix_lstat(const char *path, struct posix_stat *out)
{
    WIN32_FIND_DATAA found;
    if (stat_path(path, FILE_FLAG_OPEN_REPARSE_POINT, out) != 0) return -1;
    HANDLE search = FindFirstFileA(path, &found);
    if (search == INVALID_HANDLE_VALUE) return 0;
    FindClose(search);
    if (found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
        IsReparseTagNameSurrogate(found.dwReserved0)) /* a symbolic link or a junction */
        out->st_mode = S_IFLNK | 0777;
    return 0;
}

int posix_fstat(int fd, struct posix_stat *out) { return stat_handle(handle_of(fd), out); }

ssize_t posix_readlink(const char *path, char *target, size_t size)
{
    DWORD length = GetModuleFileNameA(NULL, target, (DWORD)size);
    if (strcmp(path, "/proc/self/exe") != 0 || length == 0) return errno = EINVAL, -1;
    for (DWORD i = 0; i < length; i++)
        if (target[i] == '\\') target[i] = '/';
    return (ssize_t)length;
}

char *realpath(const char *path, char *none)
{
    HANDLE handle = CreateFileA(path, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) return (void)fail(GetLastError()), none;
    DWORD size = GetFinalPathNameByHandleA(handle, NULL, 0, 0);
    char *found = calloc(size + 1, 1);
    if (found) (void)GetFinalPathNameByHandleA(handle, found, size + 1, 0);
    CloseHandle(handle);
    if (!found) return none;
    if (strncmp(found, "\\\\?\\UNC\\", 8) == 0)
        memmove(found + 1, found + 7, strlen(found + 7) + 1);
    else if (strncmp(found, "\\\\?\\", 4) == 0)
        memmove(found, found + 4, strlen(found + 4) + 1);
    for (char *at = found; *at; at++)
        if (*at == '\\') *at = '/';
    return found;
}

char *posix_strrchr(const char *text, int c)
{
    char *found = NULL;
    for (; *text; text++)
        if (*text == c || (c == '/' && *text == '\\')) found = (char *)(uintptr_t)text;
    return found;
}

/* ---- Opening and naming ---- */

static DWORD disposition_of(int flags)
{
    if (flags & O_CREAT)
        return flags & O_EXCL ? CREATE_NEW : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
    return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

int posix_open(const char *path, int flags, ...)
{
    static const DWORD access[] = {GENERIC_READ, GENERIC_WRITE, GENERIC_READ | GENERIC_WRITE};
    SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, !(flags & O_CLOEXEC)};
    if (strcmp(path, "/dev/null") == 0) path = "NUL";
    HANDLE handle = CreateFileA(path, access[flags & 3], SHARE_ALL, &inherit,
                                disposition_of(flags), FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE) return fail(GetLastError());
    int fd = _open_osfhandle((intptr_t)handle, (flags & (O_APPEND | O_CLOEXEC)) | O_BINARY);
    if (fd < 0) CloseHandle(handle);
    return fd;
}

#undef mkstemp

/* "/tmp" is the user's folder of temporary files. */
int posix_mkstemp(char *path)
{
    char folder[MAX_PATH + 1], name[MAX_PATH + 1];
    if (strncmp(path, "/tmp/", 5) == 0) {
        if (!GetTempPathA(sizeof folder, folder) || !GetTempFileNameA(folder, "cat", 0, name))
            return fail(GetLastError());
        path = name;
    } else {
        int fd = mkstemp(path);
        if (fd < 0) return -1;
        close(fd);
    }
    HANDLE handle = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_DELETE, NULL,
                                CREATE_ALWAYS,
                                FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (handle == INVALID_HANDLE_VALUE) return fail(GetLastError());
    return _open_osfhandle((intptr_t)handle, O_BINARY);
}

int link(const char *from, const char *to)
{
    return CreateHardLinkA(to, from, NULL) ? 0 : fail(GetLastError());
}

/* Replaces a file that others have open, where the file system can do this (NTFS). */
static bool replace_open(const char *from, const char *to)
{
    enum { RENAME_EX = 22, REPLACES = 1, POSIX_SEMANTICS = 2 };
    struct {
        DWORD flags;
        HANDLE root;
        DWORD size;
        wchar_t text[32768];
    } *name = calloc(1, sizeof *name);
    HANDLE handle =
        CreateFileA(from, DELETE | SYNCHRONIZE, SHARE_ALL, NULL, OPEN_EXISTING,
                    FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    wchar_t relative[4096];
    bool good = name && handle != INVALID_HANDLE_VALUE &&
                MultiByteToWideChar(CP_UTF8, 0, to, -1, relative, 4096) > 0;
    if (good) {
        name->flags = REPLACES | POSIX_SEMANTICS;
        name->size = GetFullPathNameW(relative, 32768, name->text, NULL) * 2;
        good = SetFileInformationByHandle(handle, (FILE_INFO_BY_HANDLE_CLASS)RENAME_EX, name,
                                          sizeof *name);
    }
    if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
    free(name);
    return good;
}

/* Elsewhere the file gets another name before it is deleted; the name is missing for a moment. */
static bool replace_aside(const char *from, const char *to)
{
    char aside[4096];
    snprintf(aside, sizeof aside, "%s.old-%lu", to, GetCurrentProcessId());
    if (!MoveFileExA(to, aside, 0)) return false;
    if (!MoveFileExA(from, to, 0)) {
        DWORD error = GetLastError();
        (void)MoveFileExA(aside, to, 0);
        SetLastError(error);
        return false;
    }
    (void)DeleteFileA(aside);
    return true;
}

static bool is_directory(const char *path)
{
    DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
}

/* A directory replaces an empty one only. */
int posix_rename(const char *from, const char *to)
{
    if (replace_open(from, to) || MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING)) return 0;
    DWORD error = GetLastError();
    if (is_directory(to)) {
        bool both = is_directory(from);
        if (both && RemoveDirectoryA(to) && MoveFileExA(from, to, 0)) return 0;
        errno = both ? ENOTEMPTY : EISDIR;
        return -1;
    }
    if (error == ERROR_ACCESS_DENIED && replace_aside(from, to)) return 0;
    return fail(error);
}

int posix_remove(const char *path)
{
    return DeleteFileA(path) || RemoveDirectoryA(path) ? 0 : fail(GetLastError());
}

/* The byte that src/base/os_windows_file.c locks. */
int flock(int fd, int how)
{
    OVERLAPPED at = {.OffsetHigh = 1U << 30};
    DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | (how & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    return LockFileEx(handle_of(fd), flags, 0, 1, 0, &at) ? 0 : fail(GetLastError());
}

/* ---- Bytes ---- */

static const size_t most = (size_t)1 << 30;

ssize_t posix_read(int fd, void *bytes, size_t size)
{
    return _read(fd, bytes, (unsigned)(size < most ? size : most));
}

ssize_t posix_write(int fd, const void *bytes, size_t size)
{
    return _write(fd, bytes, (unsigned)(size < most ? size : most));
}

/* A transfer at a position moves the handle's own position. */
static ssize_t transfer(int fd, void *bytes, size_t size, off_t pos, bool writes)
{
    DWORD n = 0, wanted = (DWORD)(size < most ? size : most);
    OVERLAPPED at = {.Offset = (DWORD)pos, .OffsetHigh = (DWORD)((uint64_t)pos >> 32)};
    HANDLE handle = handle_of(fd);
    LARGE_INTEGER none = {.QuadPart = 0}, before;
    if (GetFileType(handle) != FILE_TYPE_DISK) {
        errno = ESPIPE;
        return -1;
    }
    bool known = SetFilePointerEx(handle, none, &before, FILE_CURRENT);
    bool good = writes ? WriteFile(handle, bytes, wanted, &n, &at)
                       : ReadFile(handle, bytes, wanted, &n, &at);
    DWORD error = GetLastError();
    if (known) SetFilePointerEx(handle, before, NULL, FILE_BEGIN);
    return good || (!writes && error == ERROR_HANDLE_EOF) ? (ssize_t)n : fail(error);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t pos)
{
    return transfer(fd, bytes, size, pos, false);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t pos)
{
    return transfer(fd, (void *)(uintptr_t)bytes, size, pos, true);
}

/* A file that is open for reading cannot be flushed, and need not. */
int fsync(int fd)
{
    if (FlushFileBuffers(handle_of(fd)) || GetLastError() == ERROR_ACCESS_DENIED) return 0;
    return fail(GetLastError());
}

/* ---- The machine ---- */

long sysconf(int what)
{
    return what == _SC_NPROCESSORS_ONLN ? (long)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)
                                        : -1;
}

/* ---- Libraries ---- */

static _Thread_local char load_error[32];

void *dlopen(const char *path, int how)
{
    (void)how;
    HMODULE library = LoadLibraryA(path);
    if (!library) (void)snprintf(load_error, sizeof load_error, "error %lu", GetLastError());
    return (void *)library;
}

const char *dlerror(void) { return load_error; }

void *dlsym(void *library, const char *name)
{
    void *address;
    FARPROC found = GetProcAddress((HMODULE)library, name);
    memcpy(&address, &found, sizeof address);
    return address;
}

/* ---- Streams ---- */

int fcntl(int fd, int what)
{
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    HANDLE handle = GetStdHandle(names[fd]);
    (void)what;
    if (handle && handle != INVALID_HANDLE_VALUE) return 0;
    errno = EBADF;
    return -1;
}

int posix_isatty(int fd)
{
    DWORD mode;
    return GetConsoleMode(handle_of(fd), &mode) != 0;
}

int ioctl(int fd, int what, struct winsize *out)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    (void)what;
    if (!GetConsoleScreenBufferInfo(handle_of(fd), &info)) return fail(GetLastError());
    out->ws_col = (unsigned short)(info.srWindow.Right - info.srWindow.Left + 1);
    out->ws_row = (unsigned short)(info.srWindow.Bottom - info.srWindow.Top + 1);
    return 0;
}

/* Whether a read would return at once. The system waits for no pipe. */
static bool is_readable(HANDLE handle)
{
    DWORD n = 0;
    switch (GetFileType(handle)) {
    case FILE_TYPE_PIPE: return !PeekNamedPipe(handle, NULL, 0, NULL, &n, NULL) || n > 0;
    case FILE_TYPE_CHAR: return WaitForSingleObject(handle, 0) != WAIT_TIMEOUT;
    default: return true;
    }
}

int poll(struct pollfd *one, unsigned n, int milliseconds)
{
    enum { PAUSE = 5 };
    HANDLE handle = handle_of(one->fd);
    (void)n;
    for (int waited = 0; !is_readable(handle); waited += PAUSE) {
        if (milliseconds >= 0 && waited >= milliseconds) return 0;
        Sleep(PAUSE);
    }
    return 1;
}

/* ---- Files in memory: temporary ones, whose text is read back ---- */

enum { MOST_MEMORIES = 16 };
static SRWLOCK memories_lock = SRWLOCK_INIT;
static struct memory {
    FILE *stream; /* NULL: free */
    char **text;
    size_t *size;
} memories[MOST_MEMORIES];

static struct memory *memory_of(const FILE *stream)
{
    struct memory *found = NULL;
    AcquireSRWLockExclusive(&memories_lock);
    for (int i = 0; i < MOST_MEMORIES && !found; i++)
        if (memories[i].stream == stream) found = memories + i;
    ReleaseSRWLockExclusive(&memories_lock);
    return found;
}

static FILE *open_temporary(void)
{
    char path[] = "/tmp/";
    int fd = posix_mkstemp(path);
    return fd < 0 ? NULL : _fdopen(fd, "w+b");
}

FILE *open_memstream(char **text, size_t *size)
{
    FILE *stream = open_temporary();
    struct memory *memory = stream ? memory_of(NULL) : NULL;
    if (memory) {
        *memory = (struct memory){stream, text, size};
        *text = NULL;
        *size = 0;
        return stream;
    }
    if (stream) (fclose)(stream);
    return NULL;
}

/* Sets the text to all before the position. */
static int read_back(const struct memory *memory)
{
    int64_t size = _ftelli64(memory->stream);
    char *text = size < 0 ? NULL : realloc(*memory->text, (size_t)size + 1);
    if (!text) return -1;
    *memory->text = text;
    *memory->size = (size_t)size;
    rewind(memory->stream);
    size_t n = fread(text, 1, (size_t)size, memory->stream);
    text[n] = '\0';
    return fseeko(memory->stream, size, SEEK_SET) == 0 && n == (size_t)size ? 0 : -1;
}

#undef fflush
#undef fclose

int posix_fflush(FILE *stream)
{
    const struct memory *memory = stream ? memory_of(stream) : NULL;
    int code = fflush(stream);
    return code == 0 && memory ? read_back(memory) : code;
}

int posix_fclose(FILE *stream)
{
    struct memory *memory = memory_of(stream);
    int code = posix_fflush(stream);
    if (memory) memory->stream = NULL;
    return fclose(stream) == 0 ? code : EOF;
}
