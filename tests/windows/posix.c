/* Test support on Windows: the functions of posix.h. */
#include <windows.h>

#include <ftw.h>
#include <process.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MOST = 4096 };

/* ---- Paths ---- */

char *mkdtemp(char *path)
{
    static unsigned count;
    char *end = path + strlen(path) - 6;
    for (int i = 0; i < 1000; i++) {
        unsigned number = GetTickCount() * 31 + (unsigned)_getpid() * 977 + count++;
        snprintf(end, 7, "%06x", number & 0xffffff);
        if (_mkdir(path) == 0) return path;
    }
    return NULL;
}

static int visit_below(const char *path,
                       int (*visit)(const char *, const struct stat *, int, struct FTW *),
                       struct FTW *ftw)
{
    struct stat st = {0};
    char inner[MOST];
    DIR *dir = opendir(path);
    if (!dir) return visit(path, &st, FTW_F, ftw);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        (void)visit_below(inner, visit, ftw);
    }
    closedir(dir);
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
int posix_unlink(const char *path)
{
    static volatile LONG count;
    char folder[MAX_PATH + 1], gone[MOST];
    GetTempPathA(sizeof folder, folder);
    snprintf(gone, sizeof gone, "%sgone-%d-%ld", folder, _getpid(),
             InterlockedIncrement(&count));
    const char *now = MoveFileExA(path, gone, 0) ? gone : path;
    if (DeleteFileA(now)) return 0;
    errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
    return -1;
}

int tests_remove(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return _rmdir(path);
    return posix_unlink(path);
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
