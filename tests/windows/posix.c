/* Test support on Windows: the functions of posix.h. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <ftw.h>
#include <process.h>
#include <stdbool.h>
#include <sys/mman.h>

/* Files are opened as bytes. */
unsigned int _CRT_fmode = _O_BINARY;

/* ---- Paths ---- */

enum { MOST = 4096 };

static const wchar_t *wide(const char *path, wchar_t *out)
{
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, out, MOST)) out[0] = L'\0';
    return out;
}

int posix_mkdir(const char *path)
{
    wchar_t text[MOST];
    return _wmkdir(wide(path, text));
}

int rename(const char *from, const char *to)
{
    wchar_t a[MOST], b[MOST];
    if (MoveFileExW(wide(from, a), wide(to, b), MOVEFILE_REPLACE_EXISTING)) return 0;
    errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
    return -1;
}

int link(const char *from, const char *to)
{
    wchar_t a[MOST], b[MOST];
    if (CreateHardLinkW(wide(to, b), wide(from, a), NULL)) return 0;
    errno = EACCES;
    return -1;
}

FILE *fopen(const char *path, const char *mode)
{
    wchar_t a[MOST], b[MOST];
    return _wfopen(wide(path, a), wide(mode, b));
}

char *mkdtemp(char *path)
{
    static unsigned count;
    char *end = path + strlen(path) - 6;
    for (int i = 0; i < 1000; i++) {
        unsigned number = GetTickCount() * 31 + (unsigned)_getpid() * 977 + count++;
        snprintf(end, 7, "%06x", number & 0xffffff);
        if (posix_mkdir(path) == 0) return path;
    }
    return NULL;
}

static int visit_below(const char *path,
                       int (*visit)(const char *, const struct stat *, int, struct FTW *),
                       struct FTW *ftw)
{
    wchar_t pattern[MOST];
    WIN32_FIND_DATAW found;
    struct stat st = {0};
    char inner[MOST];
    snprintf(inner, sizeof inner, "%s/*", path);
    HANDLE search = FindFirstFileW(wide(inner, pattern), &found);
    if (search == INVALID_HANDLE_VALUE) return visit(path, &st, FTW_F, ftw);
    do {
        char name[1024];
        WideCharToMultiByte(CP_UTF8, 0, found.cFileName, -1, name, sizeof name, NULL, NULL);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, name);
        if (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
            visit_below(inner, visit, ftw);
        else
            visit(inner, &st, FTW_F, ftw);
    } while (FindNextFileW(search, &found));
    FindClose(search);
    return visit(path, &st, FTW_D, ftw);
}

int nftw(const char *path, int (*visit)(const char *, const struct stat *, int, struct FTW *),
         int most, int flags)
{
    struct FTW ftw = {0};
    (void)most, (void)flags;
    return visit_below(path, visit, &ftw);
}

/* A file that is open elsewhere keeps its name until all have closed it: it gets another one. */
int unlink(const char *path)
{
    static volatile LONG count;
    wchar_t old[MOST], folder[MAX_PATH + 1], gone[MOST];
    GetTempPathW(MAX_PATH + 1, folder);
    _snwprintf(gone, MOST, L"%lsgone-%d-%ld", folder, _getpid(), InterlockedIncrement(&count));
    const wchar_t *now = MoveFileExW(wide(path, old), gone, 0) ? gone : old;
    if (DeleteFileW(now)) return 0;
    errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
    return -1;
}

int posix_stat(const char *path, struct stat *out)
{
    wchar_t text[MOST];
    BY_HANDLE_FILE_INFORMATION info;
    struct _stat64 st;
    if (_wstat64(wide(path, text), &st) != 0) return -1;
    *out = (struct stat){.st_dev = st.st_dev,
                         .st_mode = st.st_mode,
                         .st_nlink = 1,
                         .st_size = st.st_size,
                         .st_atime = st.st_atime,
                         .st_mtime = st.st_mtime,
                         .st_ctime = st.st_ctime};
    HANDLE handle = CreateFileW(text, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) return 0;
    if (GetFileInformationByHandle(handle, &info)) out->st_nlink = (short)info.nNumberOfLinks;
    CloseHandle(handle);
    return 0;
}

int remove(const char *path)
{
    wchar_t text[MOST];
    DWORD attributes = GetFileAttributesW(wide(path, text));
    bool is_directory =
        attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
    if (!is_directory) return unlink(path);
    if (RemoveDirectoryW(text)) return 0;
    errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
    return -1;
}

/* ---- Descriptors ---- */

ssize_t pread(int fd, void *bytes, size_t size, off_t pos)
{
    DWORD n = 0;
    OVERLAPPED at = {.Offset = (DWORD)pos, .OffsetHigh = (DWORD)((uint64_t)pos >> 32)};
    BOOL good = ReadFile((HANDLE)_get_osfhandle(fd), bytes, (DWORD)size, &n, &at);
    return good || GetLastError() == ERROR_HANDLE_EOF ? (ssize_t)n : -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t pos)
{
    DWORD n = 0;
    OVERLAPPED at = {.Offset = (DWORD)pos, .OffsetHigh = (DWORD)((uint64_t)pos >> 32)};
    return WriteFile((HANDLE)_get_osfhandle(fd), bytes, (DWORD)size, &n, &at) ? (ssize_t)n
                                                                              : -1;
}

int fsync(int fd)
{
    (void)_commit(fd); /* fails for a file that is open for reading */
    return 0;
}

int pipe(int ends[2]) { return _pipe(ends, 65536, _O_BINARY); }

/* ---- The process ---- */

int setenv(const char *name, const char *value, int replace)
{
    (void)replace;
    SetEnvironmentVariableA(name, value);
    return _putenv_s(name, value);
}

int unsetenv(const char *name)
{
    SetEnvironmentVariableA(name, NULL);
    return _putenv_s(name, "");
}

static volatile LONG alarms;

static DWORD WINAPI wait_for_alarm(void *context)
{
    LONG own = alarms;
    Sleep((DWORD)(uintptr_t)context * 1000);
    if (own == alarms) {
        fprintf(stderr, "the alarm went off\n");
        TerminateProcess(GetCurrentProcess(), 142);
    }
    return 0;
}

unsigned alarm(unsigned seconds)
{
    InterlockedIncrement(&alarms);
    if (seconds > 0)
        CloseHandle(
            CreateThread(NULL, 0, wait_for_alarm, (void *)(uintptr_t)seconds, 0, NULL));
    return 0;
}

void *posix_map(size_t size, int protection)
{
    void *memory = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT,
                                protection & PROT_WRITE ? PAGE_READWRITE : PAGE_NOACCESS);
    return memory ? memory : MAP_FAILED;
}

int posix_unmap(void *memory) { return VirtualFree(memory, 0, MEM_RELEASE) ? 0 : -1; }

int mprotect(void *memory, size_t size, int protection)
{
    DWORD old, wanted = protection & PROT_WRITE  ? PAGE_READWRITE
                        : protection & PROT_READ ? PAGE_READONLY
                                                 : PAGE_NOACCESS;
    return VirtualProtect(memory, size, wanted, &old) ? 0 : -1;
}

/* ---- What Windows lacks ---- */

_Noreturn void posix_lacks(const char *what)
{
    fprintf(stderr, "skipped: Windows has no %s\n", what);
    fflush(stderr);
    exit(77);
}
