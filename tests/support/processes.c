/* Test support: other processes of this program. */
#include "processes.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef _WIN32
#include <process.h>
#include <windows.h>

enum { KILLED = 0xdead };

process process_start(const char *argv[])
{
    argv[0] = "test";
    return (process){_spawnv(_P_NOWAIT, _pgmptr, argv)};
}

void process_kill(process p) { TerminateProcess((HANDLE)p.id, KILLED); }

int process_wait(process p)
{
    DWORD code = KILLED;
    WaitForSingleObject((HANDLE)p.id, INFINITE);
    GetExitCodeProcess((HANDLE)p.id, &code);
    CloseHandle((HANDLE)p.id);
    return code == KILLED ? -1 : (int)code;
}

static void *map(int fd, size_t size)
{
    HANDLE mapping = CreateFileMappingA((HANDLE)_get_osfhandle(fd), NULL, PAGE_READWRITE, 0,
                                        (DWORD)size, NULL);
    return mapping ? MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, size) : NULL;
}
#else
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

extern char **environ;

process process_start(const char *argv[])
{
    pid_t pid;
    char path[4096] = {0};
    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0, "no /proc");
    argv[0] = path;
    CHECK(posix_spawn(&pid, path, NULL, NULL, (char **)(uintptr_t)argv, environ) == 0,
          "no process");
    return (process){pid};
}

void process_kill(process p) { (void)kill((pid_t)p.id, SIGKILL); }

int process_wait(process p)
{
    int status;
    CHECK(waitpid((pid_t)p.id, &status, 0) == (pid_t)p.id, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *map(int fd, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
#endif

void *process_share(const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "cannot make %s", path);
    void *memory = map(fd, size);
    CHECK(memory, "cannot map %s", path);
    close(fd);
    return memory;
}
