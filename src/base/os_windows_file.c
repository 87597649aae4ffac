/* Room: base. Open files on Windows. The counterpart of os_file.c.
 *
 * Files are opened for asynchronous access, because the system lets the calls of a synchronous
 * handle wait for each other. Each call waits for its own transfer. */
#include "base/os_file.h"

#include "base/os.h"
#include "base/os_windows.h"

#include <stdatomic.h>

/* ---- Identity ---- */

static int last_error(void) { return cv_windows_errno(GetLastError()); }

/* The index of FileIdInfo has 128 bits, of which NTFS uses 64. File systems without it have the
 * older index. wine looks for the volume by the name that the file
 * had when it was opened, and finds none if it was renamed. */
static int get_identity(HANDLE handle, cv_file_info *out)
{
    FILE_ID_INFO id;
    BY_HANDLE_FILE_INFORMATION old;
    if (GetFileInformationByHandleEx(handle, FileIdInfo, &id, sizeof id)) {
        uint64_t halves[2];
        memcpy(halves, &id.FileId, sizeof halves);
        out->device = cv_windows_is_wine() ? 1 : id.VolumeSerialNumber;
        out->inode = halves[0] ^ halves[1] * UINT64_C(0x9e3779b97f4a7c15);
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &old)) return last_error();
    out->device = old.dwVolumeSerialNumber;
    out->inode = (uint64_t)old.nFileIndexHigh << 32 | old.nFileIndexLow;
    return 0;
}

/* ---- The table ----
 *
 * Blocks of slots, which never move: a look-up takes no lock. */

enum { BLOCK_SLOTS = 1024, MOST_BLOCKS = 1024 }; /* the first one is not allocated */

typedef struct slot {
    cv_windows_opening *opening; /* NULL: free */
    int next_free;               /* number of the next free slot; 0: none */
} slot;

static slot first_block[BLOCK_SLOTS];
static struct {
    cv_mutex lock;
    _Atomic(slot *) blocks[MOST_BLOCKS];
    int n_slots, first_free;
} table = {.lock = CV_MUTEX_INIT};

static slot *slot_of(int number)
{
    int i = number - 1;
    if (i < 0 || i >= BLOCK_SLOTS * MOST_BLOCKS) return NULL;
    slot *block = atomic_load_explicit(&table.blocks[i / BLOCK_SLOTS], memory_order_acquire);
    return block ? block + i % BLOCK_SLOTS : NULL;
}

cv_windows_opening *cv_windows_opening_of(int number)
{
    const slot *found = slot_of(number);
    return found ? found->opening : NULL;
}

/* Call with the lock. Returns a free number, or 0. */
static int take_number(void)
{
    int number = table.first_free;
    if (number > 0) {
        table.first_free = slot_of(number)->next_free;
        return number;
    }
    if (table.n_slots == BLOCK_SLOTS * MOST_BLOCKS) return 0;
    if (table.n_slots % BLOCK_SLOTS == 0) {
        slot *block = table.n_slots == 0 ? first_block
                                         : cv_windows_allocate(BLOCK_SLOTS * sizeof *block);
        if (!block) return 0;
        atomic_store_explicit(&table.blocks[table.n_slots / BLOCK_SLOTS], block,
                              memory_order_release);
    }
    return ++table.n_slots;
}

static int give_number(cv_windows_opening *opening)
{
    cv_mutex_lock(&table.lock);
    int number = take_number();
    if (number > 0) {
        slot_of(number)->opening = opening;
        opening->references++;
    }
    cv_mutex_unlock(&table.lock);
    return number;
}

static void destroy(cv_windows_opening *opening)
{
    if (opening->lock_file) CloseHandle(opening->lock_file);
    if (opening->handle) CloseHandle(opening->handle);
    cv_windows_release(opening->held.list);
    cv_mutex_destroy(&opening->lock);
    cv_windows_release(opening);
}

int cv_windows_add(HANDLE handle, bool is_directory, unsigned how, int *number)
{
    cv_windows_opening *opening = cv_windows_allocate(sizeof *opening);
    *number = 0;
    if (!opening) {
        CloseHandle(handle);
        return ENOMEM;
    }
    cv_mutex_init(&opening->lock);
    opening->handle = handle;
    opening->is_directory = is_directory;
    opening->reads = how & CV_OPEN_READ;
    opening->writes = how & CV_OPEN_WRITE;
    cv_file_info info = {0};
    (void)get_identity(handle, &info);
    opening->device = info.device;
    opening->inode = info.inode;
    *number = give_number(opening);
    if (*number > 0) return 0;
    destroy(opening);
    return EMFILE;
}

/* ---- Moving directories ---- */

static SRWLOCK moving = SRWLOCK_INIT;
static _Thread_local int entered;

void cv_windows_enter(void)
{
    if (entered++ == 0) AcquireSRWLockShared(&moving);
}

void cv_windows_leave(void)
{
    if (--entered == 0) ReleaseSRWLockShared(&moving);
}

struct cv_windows_parked {
    cv_windows_opening *opening;
    cv_windows_parked *next;
    wchar_t below[]; /* its path from the directory on: empty, or with a backslash first */
};

/* Paths while handles are closed, when no memory may be missing. Guarded by `moving`. */
enum { MOST_PATH = 32768 };
static wchar_t own_path[MOST_PATH], new_path[MOST_PATH];

static bool get_path(HANDLE handle, wchar_t path[MOST_PATH])
{
    DWORD n = GetFinalPathNameByHandleW(handle, path, MOST_PATH, 0);
    return n > 0 && n < MOST_PATH;
}

static int park_one(cv_windows_opening *opening, const wchar_t *below,
                    cv_windows_parked **list)
{
    size_t size = (wcslen(below) + 1) * sizeof *below;
    cv_windows_parked *parked = cv_windows_allocate(sizeof *parked + size);
    if (!parked) return ENOMEM;
    memcpy(parked->below, below, size);
    parked->opening = opening;
    parked->next = *list;
    *list = parked;
    CloseHandle(opening->handle);
    if (opening->lock_file) CloseHandle(opening->lock_file);
    opening->handle = opening->lock_file = NULL;
    return 0;
}

static void end_moving(void)
{
    entered = 0;
    ReleaseSRWLockExclusive(&moving);
}

/* Returns the part of the opening's path below `path`; NULL if it is elsewhere. */
static const wchar_t *below_path(const cv_windows_opening *opening, const wchar_t *path)
{
    size_t size = wcslen(path);
    if (!get_path(opening->handle, own_path) || wcsncmp(own_path, path, size) != 0) return NULL;
    return !own_path[size] || own_path[size] == L'\\' ? own_path + size : NULL;
}

static bool is_of_file(const cv_windows_opening *opening, const cv_file_info *file)
{
    return opening->inode == file->inode && opening->device == file->device;
}

int cv_windows_park(const wchar_t *path, const cv_file_info *file, cv_windows_parked **out)
{
    int error = 0;
    *out = NULL;
    AcquireSRWLockExclusive(&moving);
    entered = 1;
    cv_mutex_lock(&table.lock);
    for (int number = 1; number <= table.n_slots && !error; number++) {
        cv_windows_opening *opening = slot_of(number)->opening;
        if (!opening || !opening->handle || (file && !is_of_file(opening, file))) continue;
        const wchar_t *below = file ? L"" : below_path(opening, path);
        if (below) error = park_one(opening, below, out);
    }
    cv_mutex_unlock(&table.lock);
    return error;
}

static void open_again(cv_windows_opening *opening, size_t size, const wchar_t *below)
{
    enum { SHARE = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };
    size_t more = wcslen(below) + 1;
    if (size + more > MOST_PATH) return;
    memcpy(new_path + size, below, more * sizeof *below);
    DWORD access = (opening->reads ? FILE_GENERIC_READ : 0) |
                   (opening->writes ? FILE_GENERIC_WRITE : 0) | FILE_READ_ATTRIBUTES;
    DWORD flags = opening->is_directory ? FILE_FLAG_BACKUP_SEMANTICS : FILE_FLAG_OVERLAPPED;
    HANDLE handle = CreateFileW(new_path, access, SHARE, NULL, OPEN_EXISTING, flags, NULL);
    opening->handle = handle == INVALID_HANDLE_VALUE ? NULL : handle;
}

static void lock_again(cv_windows_opening *opening);

void cv_windows_unpark(cv_windows_parked *parked, HANDLE moved, const wchar_t *path)
{
    size_t size = wcslen(path);
    if (get_path(moved, new_path))
        size = wcslen(new_path);
    else if (size < MOST_PATH)
        memcpy(new_path, path, (size + 1) * sizeof *path);
    while (parked) {
        cv_windows_parked *one = parked;
        parked = one->next;
        open_again(one->opening, size, one->below);
        lock_again(one->opening);
        cv_windows_release(one);
    }
    end_moving();
}

void cv_windows_drop(cv_windows_parked *parked)
{
    while (parked) {
        cv_windows_parked *one = parked;
        parked = one->next;
        one->opening->held.n = 0;
        one->opening->is_locked = false;
        cv_windows_release(one);
    }
    end_moving();
}

/* ---- Closing ---- */

void cv_file_close(cv_file *file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file->number);
    if (opening) {
        cv_mutex_lock(&table.lock);
        *slot_of(file->number) = (slot){.next_free = table.first_free};
        table.first_free = file->number;
        bool is_last = --opening->references == 0;
        cv_mutex_unlock(&table.lock);
        if (is_last) destroy(opening);
    }
    *file = (cv_file){0};
}

int cv_file_again(cv_file file, cv_file *out)
{
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    *out = (cv_file){opening ? give_number(opening) : 0};
    return !opening ? EBADF : out->number == 0 ? EMFILE : 0;
}

/* ---- Information -------------------------------------------------------- */

/* Other reparse points than links and mounts are files that some filter stores elsewhere. */
static bool is_link_itself(HANDLE handle, DWORD attributes)
{
    static const DWORD is_surrogate = 0x20000000;
    FILE_ATTRIBUTE_TAG_INFO tag;
    if (!(attributes & FILE_ATTRIBUTE_REPARSE_POINT)) return false;
    return GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
           (tag.ReparseTag & is_surrogate);
}

/* All but the identity. */
static int get_state(HANDLE handle, bool is_link, cv_file_info *out)
{
    FILE_BASIC_INFO basic;
    FILE_STANDARD_INFO standard;
    *out = (cv_file_info){.kind = CV_KIND_OTHER};
    if (GetFileType(handle) != FILE_TYPE_DISK) return 0;
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) ||
        !GetFileInformationByHandleEx(handle, FileStandardInfo, &standard, sizeof standard))
        return last_error();
    out->kind = standard.Directory ? CV_KIND_DIRECTORY : CV_KIND_FILE;
    if (is_link && is_link_itself(handle, basic.FileAttributes)) out->kind = CV_KIND_LINK;
    out->size = (uint64_t)standard.EndOfFile.QuadPart;
    out->n_names = standard.DeletePending ? 0 : standard.NumberOfLinks;
    out->changed_ns = cv_windows_time_ns((uint64_t)basic.LastWriteTime.QuadPart);
    return 0;
}

int cv_windows_get_info(HANDLE handle, bool is_link, cv_file_info *out)
{
    int error = get_state(handle, is_link, out);
    return error || out->kind == CV_KIND_OTHER ? error : get_identity(handle, out);
}

int cv_file_get_info(cv_file file, cv_file_info *out)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    int error = get_state(opening->handle, false, out);
    out->device = opening->device;
    out->inode = opening->inode;
    return error;
}

int cv_file_size(cv_file file, uint64_t *size)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    LARGE_INTEGER found;
    if (!opening) return EBADF;
    if (!GetFileSizeEx(opening->handle, &found)) return last_error();
    *size = (uint64_t)found.QuadPart;
    return 0;
}

/* ---- Bytes ---- */

static const size_t max_transfer = (size_t)1 << 30;
static const uint64_t max_pos = INT64_MAX;

/* Each thread has an event for the transfer that it waits for, closed when the thread ends. */
static cv_once event_once = CV_ONCE_INIT;
static DWORD event_slot;

static void WINAPI close_event(void *event)
{
    if (event) CloseHandle(event);
}

static void make_event_slot(void) { event_slot = FlsAlloc(close_event); }

static HANDLE event_of_thread(void)
{
    cv_once_run(&event_once, make_event_slot);
    HANDLE event = FlsGetValue(event_slot);
    if (event) return event;
    event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (event) FlsSetValue(event_slot, event);
    return event;
}

static OVERLAPPED transfer_at(uint64_t pos)
{
    return (OVERLAPPED){
        .Offset = (DWORD)pos, .OffsetHigh = (DWORD)(pos >> 32), .hEvent = event_of_thread()};
}

/* Waits for a transfer that `started` did not complete. Returns an error of Win32. */
static DWORD wait_for(HANDLE handle, OVERLAPPED *transfer, BOOL started, DWORD *n)
{
    DWORD error = started ? ERROR_SUCCESS : GetLastError();
    if (error != ERROR_SUCCESS && error != ERROR_IO_PENDING) return error;
    return GetOverlappedResult(handle, transfer, n, TRUE) ? ERROR_SUCCESS : GetLastError();
}

static DWORD transfer_size(size_t left)
{
    return (DWORD)(left < max_transfer ? left : max_transfer);
}

int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done)
{
    CV_WINDOWS_USE;
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    *done = 0;
    if (!opening) return EBADF;
    if (opening->is_directory) return EISDIR;
    if (!opening->reads) return EBADF;
    while (*done < size && pos + *done <= max_pos) {
        DWORD n = 0;
        OVERLAPPED transfer = transfer_at(pos + *done);
        BOOL started = ReadFile(opening->handle, (char *)dst + *done,
                                transfer_size(size - *done), NULL, &transfer);
        DWORD error = wait_for(opening->handle, &transfer, started, &n);
        if (error == ERROR_HANDLE_EOF) break;
        if (error) return cv_windows_errno(error);
        if (n == 0) break;
        *done += n;
    }
    return 0;
}

cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos)
{
    (void)file, (void)dst, (void)size, (void)pos;
    return CV_AT_ONCE_UNKNOWN;
}

void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size)
{
    (void)file, (void)pos, (void)size;
}

/* The system's call cuts the file if another thread has written behind the position. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size)
{
    (void)file, (void)pos, (void)size;
}

int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos)
{
    CV_WINDOWS_USE;
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening || !opening->writes) return EBADF;
    if (pos > max_pos || size > max_pos - pos) return EFBIG;
    for (size_t done = 0; done < size;) {
        DWORD n = 0;
        OVERLAPPED transfer = transfer_at(pos + done);
        BOOL started = WriteFile(opening->handle, (const char *)src + done,
                                 transfer_size(size - done), NULL, &transfer);
        DWORD error = wait_for(opening->handle, &transfer, started, &n);
        if (error) return cv_windows_errno(error);
        if (n == 0) return EIO;
        done += n;
    }
    return 0;
}

int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size)
{
    (void)file, (void)from, (void)to, (void)size;
    return ENOTSUP;
}

int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size)
{
    (void)file, (void)pos, (void)from, (void)there, (void)size;
    return ENOTSUP;
}

bool cv_file_may_clone(cv_file file, cv_file from)
{
    (void)file, (void)from;
    return false;
}

int cv_file_touch(cv_file file)
{
    CV_WINDOWS_USE;
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    FILETIME now;
    if (!opening) return EBADF;
    GetSystemTimePreciseAsFileTime(&now);
    return SetFileTime(opening->handle, NULL, NULL, &now) ? 0 : last_error();
}

/* A file that grows a lot becomes sparse, if the file system has sparse files. */
static void allow_gaps(HANDLE handle, uint64_t growth)
{
    enum { LEAST = 1 << 20, SET_SPARSE = 0x900c4 }; /* FSCTL_SET_SPARSE */
    DWORD n = 0;
    OVERLAPPED transfer = transfer_at(0);
    if (growth < LEAST) return;
    BOOL started = DeviceIoControl(handle, SET_SPARSE, NULL, 0, NULL, 0, NULL, &transfer);
    (void)wait_for(handle, &transfer, started, &n);
}

int cv_file_truncate(cv_file file, uint64_t size)
{
    CV_WINDOWS_USE;
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = (LONGLONG)size};
    uint64_t old = 0;
    if (!opening) return EBADF;
    if (!opening->writes) return EINVAL;
    if (size > max_pos) return EFBIG;
    if (cv_file_size(file, &old) == 0 && size > old) allow_gaps(opening->handle, size - old);
    bool is_set =
        SetFileInformationByHandle(opening->handle, FileEndOfFileInfo, &end, sizeof end);
    return is_set ? 0 : last_error();
}

/* Only a handle for writing can be flushed. */
int cv_file_sync(cv_file file)
{
    CV_WINDOWS_USE;
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    HANDLE handle = opening->handle;
    if (!opening->writes)
        handle = ReOpenFile(opening->handle, FILE_GENERIC_WRITE,
                            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                            opening->is_directory ? FILE_FLAG_BACKUP_SEMANTICS : 0);
    if (handle == INVALID_HANDLE_VALUE) return last_error();
    int error = FlushFileBuffers(handle) ? 0 : last_error();
    if (handle != opening->handle) CloseHandle(handle);
    return error;
}

/* ---- Locks ----
 *
 * Locks of bytes beyond any file's end, because they exclude reading and writing, too:
 *
 *     WRITES    the exclusive lock
 *     READS     held by every opening that shares
 *     UNKNOWN   held by an opening that has set no number yet
 *     NUMBERS   from here on: byte n for number n
 *     MARKS     in the same way
 *
 * The system locks no bytes of directories: their locks are those of a file in them, which has the
 * name of the lock file of an array. No call of the system asks for locks: a question tries to
 * take them. */
static const uint64_t lock_writes = (uint64_t)1 << 62;
static const uint64_t lock_reads = ((uint64_t)1 << 62) + 1;
static const uint64_t lock_unknown = ((uint64_t)1 << 62) + 2;
static const uint64_t lock_numbers = ((uint64_t)1 << 62) + 3;
static const uint64_t lock_marks = ((uint64_t)1 << 62) + ((uint64_t)1 << 61) + 4;
static const uint64_t most_numbers = (uint64_t)1 << 61;
static const uint64_t most_marks = ((uint64_t)1 << 61) - 8;

static uint64_t lock_of(uint64_t number) { return lock_numbers + number % most_numbers; }
static uint64_t lock_of_mark(uint64_t number) { return lock_marks + number % most_marks; }

/* ---- The bytes that an opening has locked ---- */

static size_t place_of(const cv_windows_locks *held, uint64_t byte)
{
    size_t low = 0, high = held->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (held->list[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_held(const cv_windows_locks *held, uint64_t byte)
{
    size_t at = place_of(held, byte);
    return at < held->n && held->list[at] == byte;
}

static bool grow_held(cv_windows_locks *held)
{
    size_t room = held->room ? 2 * held->room : 16;
    uint64_t *list = cv_windows_allocate(room * sizeof *list);
    if (!list) return false;
    if (held->n > 0) memcpy(list, held->list, held->n * sizeof *list);
    cv_windows_release(held->list);
    held->list = list;
    held->room = room;
    return true;
}

static bool note_held(cv_windows_locks *held, uint64_t byte)
{
    size_t at = place_of(held, byte);
    if (held->n == held->room && !grow_held(held)) return false;
    uint64_t *list = held->list;
    memmove(list + at + 1, list + at, (held->n - at) * sizeof *list);
    list[at] = byte;
    held->n++;
    return true;
}

static void forget_held(cv_windows_locks *held, uint64_t byte)
{
    size_t at = place_of(held, byte);
    held->n--;
    memmove(held->list + at, held->list + at + 1, (held->n - at) * sizeof *held->list);
}

/* ---- Locking ---- */

static void unlock_bytes(HANDLE handle, uint64_t from, uint64_t n)
{
    OVERLAPPED at = transfer_at(from);
    (void)UnlockFileEx(handle, 0, (DWORD)n, (DWORD)(n >> 32), &at);
}

static int lock_bytes(HANDLE handle, DWORD flags, uint64_t from, uint64_t n)
{
    DWORD done = 0;
    OVERLAPPED at = transfer_at(from);
    BOOL started = LockFileEx(handle, flags, 0, (DWORD)n, (DWORD)(n >> 32), &at);
    DWORD error = wait_for(handle, &at, started, &done);
    return error == ERROR_IO_PENDING ? EWOULDBLOCK : cv_windows_errno(error);
}

/* Retries until the lock is free: is_locked holds it only for a moment. LockFileEx does not wait
 * here, because on overlapped handles wine then reports success without the lock. */
static int lock_shared(HANDLE handle, uint64_t byte)
{
    int error;
    while ((error = lock_bytes(handle, LOCKFILE_FAIL_IMMEDIATELY, byte, 1)) == EWOULDBLOCK)
        Sleep(1);
    return error;
}

#define LOCK_FILE ".caterva.lock"

/* Of the open directory, by its path. NULL if it cannot be opened. Call with `moving` alone. */
static HANDLE open_lock_file(HANDLE directory)
{
    enum { SHARE = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };
    static const wchar_t name[] = L"\\" LOCK_FILE;
    size_t n = get_path(directory, own_path) ? wcslen(own_path) : MOST_PATH;
    if (n + sizeof name / sizeof *name > MOST_PATH) return NULL;
    memcpy(own_path + n, name, sizeof name);
    HANDLE handle = CreateFileW(own_path, FILE_GENERIC_READ | FILE_GENERIC_WRITE, SHARE, NULL,
                                OPEN_ALWAYS, FILE_FLAG_OVERLAPPED, NULL);
    return handle == INVALID_HANDLE_VALUE ? NULL : handle;
}

/* The handle whose bytes are locked. `how` creates the lock file of a directory, or does not. */
static int lock_handle(cv_file file, cv_windows_opening *opening, unsigned how, HANDLE *out)
{
    *out = opening->is_directory ? opening->lock_file : opening->handle;
    if (*out) return 0;
    cv_windows_how open = {.access = FILE_GENERIC_READ |
                                     (how & CV_OPEN_CREATE ? FILE_GENERIC_WRITE : 0),
                           .disposition = how & CV_OPEN_CREATE ? FILE_OPEN_IF : FILE_OPEN,
                           .options = FILE_NON_DIRECTORY_FILE};
    int error = cv_windows_open(cv_dir_of_file(file), LOCK_FILE, open, out);
    if (!error) opening->lock_file = *out;
    return error;
}

/* Locks a byte unless it is locked. Call with the opening's lock. */
static int hold(cv_file file, cv_windows_opening *opening, uint64_t byte)
{
    HANDLE handle;
    int error = lock_handle(file, opening, CV_OPEN_CREATE, &handle);
    if (error || is_held(&opening->held, byte)) return error;
    error = lock_shared(handle, byte);
    if (error) return error;
    if (note_held(&opening->held, byte)) return 0;
    unlock_bytes(handle, byte, 1);
    return ENOMEM;
}

static void let_go(cv_windows_opening *opening, uint64_t byte)
{
    if (!is_held(&opening->held, byte)) return;
    unlock_bytes(opening->is_directory ? opening->lock_file : opening->handle, byte, 1);
    forget_held(&opening->held, byte);
}

/* Whether another opening has locked any of the `n` bytes. `unknown` if the question fails. The
 * opening's own locks there are released for a moment. Call with the lock. */
static bool is_locked(cv_file file, cv_windows_opening *opening, uint64_t from, uint64_t n,
                      bool unknown)
{
    HANDLE handle;
    int error = lock_handle(file, opening, 0, &handle);
    if (error) return error == ENOENT ? false : unknown;
    const cv_windows_locks *held = &opening->held;
    size_t first = place_of(held, from), end = place_of(held, from + n);
    for (size_t i = first; i < end; i++) unlock_bytes(handle, held->list[i], 1);
    error = lock_bytes(handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, from, n);
    if (!error) unlock_bytes(handle, from, n);
    for (size_t i = first; i < end; i++) (void)lock_shared(handle, held->list[i]);
    return error == EWOULDBLOCK || (error && unknown);
}

/* After its file was opened again. */
static void lock_again(cv_windows_opening *opening)
{
    HANDLE handle = opening->handle;
    if (!handle || (opening->held.n == 0 && !opening->is_locked)) return;
    if (opening->is_directory) handle = opening->lock_file = open_lock_file(handle);
    if (!handle) return;
    for (size_t i = 0; i < opening->held.n; i++)
        (void)lock_shared(handle, opening->held.list[i]);
    enum { FLAGS = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY };
    if (!opening->is_locked || lock_bytes(handle, FLAGS, lock_writes, 1) == 0) return;
    CloseHandle(opening->handle); /* another writer has the lock by now */
    opening->handle = NULL;
    opening->is_locked = false;
}

/* ---- The functions of the header ---- */

int cv_file_lock(cv_file file)
{
    CV_WINDOWS_USE;
    enum { FLAGS = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY };
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    HANDLE handle;
    if (!opening) return EBADF;
    cv_mutex_lock(&opening->lock);
    int error = opening->is_locked ? 0 : lock_handle(file, opening, CV_OPEN_CREATE, &handle);
    if (!error && !opening->is_locked) {
        error = lock_bytes(handle, FLAGS, lock_writes, 1);
        opening->is_locked = !error;
    }
    cv_mutex_unlock(&opening->lock);
    return error;
}

int cv_file_ask_lock(cv_file file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    HANDLE handle;
    if (!opening) return EBADF;
    cv_mutex_lock(&opening->lock);
    int error = lock_handle(file, opening, 0, &handle);
    if (!error && !opening->is_locked) {
        error = lock_bytes(handle, LOCKFILE_FAIL_IMMEDIATELY, lock_writes, 1);
        if (!error) unlock_bytes(handle, lock_writes, 1);
    }
    cv_mutex_unlock(&opening->lock);
    return error == ENOENT ? 0 : error;
}

/* A reader makes no lock file in a directory that is no array. */
static bool may_share(cv_file file)
{
    cv_file_info info;
    cv_dir dir = cv_dir_of_file(file);
    return cv_dir_get_info(dir, LOCK_FILE, &info) == 0 ||
           cv_dir_get_info(dir, "chunks.b2frame", &info) == 0;
}

int cv_file_share(cv_file file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    if (opening->is_directory && !may_share(file)) return ENOENT;
    cv_mutex_lock(&opening->lock);
    int error = hold(file, opening, lock_reads);
    if (!error) error = hold(file, opening, lock_unknown);
    cv_mutex_unlock(&opening->lock);
    return error;
}

int cv_file_share_number(cv_file file, uint64_t number)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    cv_mutex_lock(&opening->lock);
    int error = hold(file, opening, lock_of(number));
    if (!error) let_go(opening, lock_unknown);
    cv_mutex_unlock(&opening->lock);
    return error;
}

void cv_file_unshare(cv_file file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return;
    cv_mutex_lock(&opening->lock);
    while (opening->held.n > 0 && opening->held.list[0] < lock_marks)
        let_go(opening, opening->held.list[0]);
    cv_mutex_unlock(&opening->lock);
}

int cv_file_mark(cv_file file, uint64_t number)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    cv_mutex_lock(&opening->lock);
    int error = hold(file, opening, lock_of_mark(number));
    cv_mutex_unlock(&opening->lock);
    return error;
}

void cv_file_unmark(cv_file file, uint64_t number)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return;
    cv_mutex_lock(&opening->lock);
    let_go(opening, lock_of_mark(number));
    cv_mutex_unlock(&opening->lock);
}

bool cv_file_is_marked(cv_file file, uint64_t number)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return false;
    cv_mutex_lock(&opening->lock);
    bool found = is_locked(file, opening, lock_of_mark(number), 1, false);
    cv_mutex_unlock(&opening->lock);
    return found;
}

void cv_file_unlock(cv_file file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return;
    cv_mutex_lock(&opening->lock);
    if (opening->is_locked)
        unlock_bytes(opening->is_directory ? opening->lock_file : opening->handle,
                     lock_writes, 1);
    opening->is_locked = false;
    cv_mutex_unlock(&opening->lock);
    cv_file_unshare(file);
}

bool cv_file_is_shared(cv_file file)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return true;
    cv_mutex_lock(&opening->lock);
    bool found = is_locked(file, opening, lock_reads, 1, true);
    cv_mutex_unlock(&opening->lock);
    return found;
}

/* Looks at UNKNOWN and the numbers below in one call: an opening that changes its number holds both
 * for a moment. */
static bool is_shared_but(cv_file file, cv_windows_opening *opening, uint64_t number)
{
    uint64_t own = lock_of(number), end = lock_numbers + most_numbers;
    if (!is_locked(file, opening, lock_reads, 1, true)) return false;
    if (is_locked(file, opening, lock_unknown, own - lock_unknown, true)) return true;
    if (own + 1 < end && is_locked(file, opening, own + 1, end - own - 1, true)) return true;
    return !is_locked(file, opening, own, 1, true); /* an opening that sets no number */
}

bool cv_file_is_shared_but(cv_file file, uint64_t number)
{
    CV_WINDOWS_USE;
    cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return true;
    cv_mutex_lock(&opening->lock);
    bool found = is_shared_but(file, opening, number);
    cv_mutex_unlock(&opening->lock);
    return found;
}

/* ---- Forks: there are none ---- */

cv_os_moment cv_os_now(void) { return (cv_os_moment){0}; }

bool cv_os_is_other_process(cv_os_moment then)
{
    (void)then;
    return false;
}

bool cv_os_has_forked(cv_os_moment then)
{
    (void)then;
    return false;
}

/* ---- Access: files inherit it from their directory ---- */

int cv_file_get_access(cv_file file, cv_os_access *out)
{
    const cv_windows_opening *opening = cv_windows_opening_of(file.number);
    if (!opening) return EBADF;
    *out = (cv_os_access){.mode = opening->is_directory ? 0777 : 0666};
    return 0;
}

int cv_file_set_access(cv_file file, const cv_os_access *access)
{
    (void)access;
    return cv_windows_opening_of(file.number) ? 0 : EBADF;
}

int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from)
{
    (void)from;
    return cv_file_set_access(file, access);
}
