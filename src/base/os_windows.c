/* Room: base. The machine, its clocks, this process, text and errors on Windows. The counterpart of
 * os.c and os_process.c. */
#include "base/os.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os_process.h"
#include "base/os_windows.h"

#include <bcrypt.h>
#include <stdio.h>

/* ---- Processors --------------------------------------------------------- */

int cv_os_cores(void)
{
    DWORD_PTR process = 0, system = 0;
    int n = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system))
        n = __builtin_popcountll(process);
    return n < 1 ? 1 : n;
}

static size_t cache_size(BYTE level)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *list;
    DWORD size = 0;
    size_t found = 0;
    (void)GetLogicalProcessorInformation(NULL, &size);
    list = cv_malloc(size > 0 ? size : 1);
    if (list && size > 0 && GetLogicalProcessorInformation(list, &size))
        for (size_t i = 0; i < size / sizeof *list && !found; i++)
            if (list[i].Relationship == RelationCache && list[i].Cache.Level == level)
                found = list[i].Cache.Size;
    cv_free(list);
    return found;
}

size_t cv_os_l2_cache(void) { return cache_size(2); }
size_t cv_os_l3_cache(void) { return cache_size(3); }

/* ---- Clocks -------------------------------------------------------------- */

enum { NS_PER_TICK = 100 }; /* of the system's times */

uint64_t cv_os_clock_ns(void)
{
    enum { GIGA = 1000000000 };
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    uint64_t ticks = (uint64_t)now.QuadPart, hertz = (uint64_t)frequency.QuadPart;
    return ticks / hertz * GIGA + ticks % hertz * GIGA / hertz;
}

uint64_t cv_os_time_ns(void)
{
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    return cv_windows_time_ns((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime);
}

uint64_t cv_windows_time_ns(uint64_t ticks)
{
    static const uint64_t until_1970 = UINT64_C(116444736000000000);
    return ticks < until_1970 ? 0 : (ticks - until_1970) * NS_PER_TICK;
}

/* Sleep rounds up to a tick of the system's clock, 16 ms. */
void cv_os_sleep_ns(uint64_t ns)
{
    enum { HIGH_RESOLUTION = 2, NS_PER_MS = 1000000 }; /* since Windows 10, 1803 */
    LARGE_INTEGER due = {.QuadPart = -(LONGLONG)(ns / NS_PER_TICK)};
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (timer && SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE))
        WaitForSingleObject(timer, INFINITE);
    else
        Sleep((DWORD)((ns + NS_PER_MS - 1) / NS_PER_MS));
    if (timer) CloseHandle(timer);
}

/* ---- This process ------------------------------------------------------- */

uint32_t cv_os_process(void) { return GetCurrentProcessId(); }

void cv_os_host(char *out, size_t size)
{
    wchar_t name[256];
    DWORD length = sizeof name / sizeof *name;
    char *text = NULL;
    if (GetComputerNameExW(ComputerNameDnsHostname, name, &length))
        text = cv_windows_narrow(name);
    (void)snprintf(out, size, "%s", text ? text : "");
    cv_free(text);
}

void cv_os_random(void *out, size_t size)
{
    uint8_t *bytes = out;
    uint64_t seed = cv_os_clock_ns() ^ cv_mix(cv_os_time_ns()) ^
                    cv_mix(GetCurrentProcessId()) ^ (uintptr_t)&seed;
    memset(bytes, 0, size);
    (void)BCryptGenRandom(NULL, bytes, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
    for (size_t i = 0; i < size; i++) {
        seed = cv_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        bytes[i] ^= (uint8_t)seed;
    }
}

bool cv_windows_is_wine(void)
{
    HMODULE kernel = GetModuleHandleW(L"ntdll.dll");
    return kernel && GetProcAddress(kernel, "wine_get_version");
}

void cv_os_advise_large_pages(void *memory, size_t size) { (void)memory, (void)size; }

const void *cv_os_find(const void *bytes, size_t size, const void *wanted, size_t wanted_size)
{
    const char *at = bytes, *first = wanted;
    if (wanted_size == 0) return bytes;
    while (size >= wanted_size) {
        const char *hit = memchr(at, *first, size - wanted_size + 1);
        if (!hit || memcmp(hit, wanted, wanted_size) == 0) return hit;
        size -= (size_t)(hit + 1 - at);
        at = hit + 1;
    }
    return NULL;
}

/* ---- Variables and libraries ---- */

char *cv_os_variable(const char *name)
{
    int error;
    wchar_t *wide = cv_windows_wide(name, &error);
    DWORD size = wide ? GetEnvironmentVariableW(wide, NULL, 0) : 0;
    wchar_t *value = size > 1 ? cv_windows_allocate(size * sizeof *value) : NULL;
    char *text = NULL;
    if (value && GetEnvironmentVariableW(wide, value, size) + 1 == size)
        text = cv_windows_narrow(value);
    cv_windows_release(value);
    cv_windows_release(wide);
    return text;
}

bool cv_library_load(const char *const *names, cv_library *out)
{
    int error;
    out->system = NULL;
    for (; *names && !out->system; names++) {
        wchar_t *wide = cv_windows_wide(*names, &error);
        if (wide) out->system = (void *)LoadLibraryW(wide);
        cv_windows_release(wide);
    }
    return out->system != NULL;
}

bool cv_library_find(cv_library library, const char *name, void *function)
{
    FARPROC address = GetProcAddress((HMODULE)library.system, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* ---- Text ---- */

void *cv_windows_allocate(size_t size)
{
    return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size);
}

void cv_windows_release(void *memory) { (void)HeapFree(GetProcessHeap(), 0, memory); }

wchar_t *cv_windows_wide(const char *text, int *error)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    *error = n > 0 ? ENOMEM : EILSEQ;
    wchar_t *wide = n > 0 ? cv_windows_allocate((size_t)n * sizeof *wide) : NULL;
    if (!wide) return NULL;
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
    *error = 0;
    return wide;
}

char *cv_windows_narrow(const wchar_t *text)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = n > 0 ? cv_malloc((size_t)n) : NULL;
    if (narrow) WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, n, NULL, NULL);
    return narrow;
}

/* ---- Errors ---- */

int cv_windows_errno(DWORD error)
{
    switch (error) {
    case ERROR_SUCCESS: return 0;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_DELETE_PENDING:
    case ERROR_INVALID_NAME: return ENOENT;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_ACCESS_DENIED:
    case ERROR_PRIVILEGE_NOT_HELD: return EACCES;
    case ERROR_WRITE_PROTECT: return EROFS;
    case ERROR_SHARING_VIOLATION:
    case ERROR_BUSY:
    case ERROR_USER_MAPPED_FILE: return EBUSY;
    case ERROR_LOCK_VIOLATION: return EWOULDBLOCK;
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_COMMITMENT_LIMIT: return ENOMEM;
    case ERROR_INVALID_HANDLE: return ESTALE; /* of a file that was replaced */
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return EEXIST;
    case ERROR_DIR_NOT_EMPTY: return ENOTEMPTY;
    case ERROR_NOT_SAME_DEVICE: return EXDEV;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    case ERROR_FILE_TOO_LARGE: return EFBIG;
    case ERROR_TOO_MANY_LINKS: return EMLINK;
    case ERROR_FILENAME_EXCED_RANGE:
    case ERROR_BUFFER_OVERFLOW: return ENAMETOOLONG;
    case ERROR_CANT_RESOLVE_FILENAME: return ELOOP;
    case ERROR_INVALID_PARAMETER: return EINVAL;
    case ERROR_INVALID_FUNCTION:
    case ERROR_NOT_SUPPORTED:
    case ERROR_CALL_NOT_IMPLEMENTED: return ENOTSUP;
    default: return EIO;
    }
}

/* The statuses that Win32 does not tell apart are mapped here. */
int cv_windows_errno_of_status(NTSTATUS status)
{
    enum { IS_DIRECTORY = 0xba, NOT_DIRECTORY = 0x103, DELETE_PENDING = 0x56 };
    enum { COLLISION = 0x35, TOO_LONG = 0x106, NOT_EMPTY = 0x101, CLASS = 0x03 };
    static const uint32_t failed = 0xc0000000;
    if (status >= 0) return 0;
    switch ((uint32_t)status - failed) {
    case IS_DIRECTORY: return EISDIR;
    case NOT_DIRECTORY: return ENOTDIR;
    case DELETE_PENDING: return ENOENT;
    case COLLISION: return EEXIST;
    case TOO_LONG: return ENAMETOOLONG;
    case NOT_EMPTY: return ENOTEMPTY;
    case CLASS: return ENOTSUP;
    default: return cv_windows_errno(RtlNtStatusToDosError(status));
    }
}

/* The C library has no text for the numbers that it took over from POSIX. */
const char *cv_error_text(int sys_errno, char *text, size_t size)
{
    switch (sys_errno) {
    case EWOULDBLOCK: return "Resource temporarily unavailable";
    case ELOOP: return "Too many levels of symbolic links";
    case ENOTSUP: return "Operation not supported";
    case ESTALE: return "Stale file handle";
    default: break;
    }
    text[0] = '\0';
    return cv_error_text_filled(strerror_s(text, size, sys_errno), sys_errno, text, size);
}
