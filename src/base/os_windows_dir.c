/* Room: base. Open directories on Windows. The counterpart of os_dir.c.
 *
 * Names reach the kernel as paths without a length limit, or relative to the handle of a
 * directory. All files are opened so that others may read, write, rename and delete them. */
#include "base/os_dir.h"

#include "base/heap.h"
#include "base/os.h"
#include "base/os_windows.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_OF_HERE = -1 };
const cv_dir cv_dir_here = {NUMBER_OF_HERE};

void cv_dir_close(cv_dir *dir)
{
    cv_file file = cv_dir_as_file(*dir);
    cv_file_close(&file);
    *dir = (cv_dir){0};
}

/* ---- Names ---- */

static bool is_slash(wchar_t c) { return c == L'/' || c == L'\\'; }

static size_t component_size(const wchar_t *at)
{
    size_t size = 0;
    while (at[size] && !is_slash(at[size])) size++;
    return size;
}

static wchar_t upper(wchar_t c) { return c >= L'a' && c <= L'z' ? (wchar_t)(c - 32) : c; }

/* CON, NUL and the like, also with an extension. */
static bool is_device(const wchar_t *name, size_t size)
{
    static const char *const devices[] = {"CON", "PRN", "AUX", "NUL", "COM?", "LPT?"};
    size_t stem = 0;
    while (stem < size && name[stem] != L'.') stem++;
    while (stem > 0 && name[stem - 1] == L' ') stem--;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        size_t at = 0;
        const char *device = devices[i];
        while (at < stem && device[at] &&
               (device[at] == '?' ? name[at] >= L'0' && name[at] <= L'9'
                                  : upper(name[at]) == (wchar_t)device[at]))
            at++;
        if (at == stem && !device[at]) return true;
    }
    return false;
}

static bool is_dots(const wchar_t *name, size_t size)
{
    return (size == 1 && name[0] == L'.') ||
           (size == 2 && name[0] == L'.' && name[1] == L'.');
}

static bool is_allowed(const wchar_t *name, size_t size)
{
    if (is_dots(name, size)) return true;
    for (size_t i = 0; i < size; i++)
        if (name[i] < 32 || wcschr(L"<>:\"|?*", name[i])) return false;
    return size == 0 ||
           (name[size - 1] != L'.' && name[size - 1] != L' ' && !is_device(name, size));
}

static bool has_drive(const wchar_t *path)
{
    return upper(path[0]) >= L'A' && upper(path[0]) <= L'Z' && path[1] == L':';
}

/* Whether the path begins with two slashes and a question mark: used as it is. */
static bool is_verbatim(const wchar_t *path)
{
    return is_slash(path[0]) && is_slash(path[1]) && path[2] == L'?' && is_slash(path[3]);
}

static bool all_allowed(const wchar_t *path)
{
    if (is_verbatim(path)) path += 4;
    if (has_drive(path)) path += 2;
    while (*path) {
        size_t size = component_size(path);
        if (!is_allowed(path, size)) return false;
        path += size;
        while (is_slash(*path)) path++;
    }
    return true;
}

/* ---- Paths for the kernel ----
 *
 * The kernel's names begin with \??\, and end without a backslash, except for the root of a drive.
 * It knows no slashes, "." and "..". */

#define KERNEL L"\\??\\"
enum { PREFIX = 4 };

static wchar_t *join(const wchar_t *a, const wchar_t *b, const wchar_t *c)
{
    size_t x = wcslen(a), y = wcslen(b), z = wcslen(c);
    wchar_t *joined = cv_windows_allocate((x + y + z + 1) * sizeof *joined);
    if (!joined) return NULL;
    memcpy(joined, a, x * sizeof *a);
    memcpy(joined + x, b, y * sizeof *b);
    memcpy(joined + x + y, c, (z + 1) * sizeof *c);
    return joined;
}

/* Returns the absolute path with backslashes and without dots, as Win32 has it. "C:" is the root of
 * the drive. */
static wchar_t *full_path(const wchar_t *path)
{
    wchar_t root[] = L"?:\\";
    if (has_drive(path) && !path[2]) {
        root[0] = path[0];
        path = root;
    }
    DWORD size = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *full = size > 0 ? cv_windows_allocate(size * sizeof *full) : NULL;
    if (full) GetFullPathNameW(path, size, full, NULL);
    return full;
}

static wchar_t *kernel_path(const wchar_t *path)
{
    if (is_verbatim(path)) {
        wchar_t *copy = join(KERNEL, path + PREFIX, L"");
        for (wchar_t *at = copy; at && *at; at++)
            if (*at == L'/') *at = L'\\';
        return copy;
    }
    wchar_t *full = full_path(path);
    if (!full) return NULL;
    bool is_share = full[0] == L'\\' && full[1] == L'\\';
    wchar_t *kernel = join(KERNEL, is_share ? L"UNC\\" : L"", is_share ? full + 2 : full);
    cv_windows_release(full);
    return kernel;
}

wchar_t *cv_windows_path_of(HANDLE handle)
{
    DWORD size = GetFinalPathNameByHandleW(handle, NULL, 0, 0);
    wchar_t *path = size > 0 ? cv_windows_allocate((size + 1) * sizeof *path) : NULL;
    if (path && GetFinalPathNameByHandleW(handle, path, size + 1, 0) <= size) return path;
    cv_windows_release(path);
    return NULL;
}

static void cut_slashes(cv_windows_name *name, bool is_absolute)
{
    wchar_t *text = name->text;
    size_t n = wcslen(text);
    while (n > 0 && text[n - 1] == L'\\' &&
           !(is_absolute && n == PREFIX + 3 && text[PREFIX + 1] == L':')) {
        text[--n] = L'\0';
        name->is_directory = true;
    }
    name->length = n;
}

/* Removes "." and repeated slashes. Returns false if there is "..". */
static bool tidy(wchar_t *name)
{
    wchar_t *to = name;
    for (const wchar_t *at = name; *at;) {
        size_t size = component_size(at);
        if (size == 2 && is_dots(at, size)) return false;
        if (size != 1 || !is_dots(at, size)) {
            memmove(to, at, size * sizeof *at);
            to += size;
            if (at[size]) *to++ = L'\\';
        }
        at += size;
        while (is_slash(*at)) at++;
    }
    *to = L'\0';
    return true;
}

/* Names with ".." are found by the directory's path. */
static int name_by_path(HANDLE dir, const wchar_t *wide, cv_windows_name *out)
{
    wchar_t *above = cv_windows_path_of(dir);
    if (!above) return cv_windows_errno(GetLastError());
    bool is_share = wcsncmp(above, L"\\\\?\\UNC\\", 8) == 0;
    wchar_t *path = join(is_share ? L"\\" : L"", above + (is_share ? 7 : PREFIX), L"\\");
    wchar_t *joined = path ? join(path, wide, L"") : NULL;
    out->text = joined ? kernel_path(joined) : NULL;
    cv_windows_release(joined);
    cv_windows_release(path);
    cv_windows_release(above);
    if (!out->text) return ENOMEM;
    cut_slashes(out, true);
    return 0;
}

static int name_in(HANDLE dir, wchar_t *wide, cv_windows_name *out)
{
    wchar_t *copy = join(wide, L"", L"");
    if (!copy) return ENOMEM;
    if (!tidy(copy)) {
        cv_windows_release(copy);
        return name_by_path(dir, wide, out);
    }
    out->text = copy;
    out->root = dir;
    cut_slashes(out, false);
    return 0;
}

static bool is_absolute(const wchar_t *path) { return is_slash(path[0]) || has_drive(path); }

int cv_windows_name_of(cv_dir dir, const char *name, cv_windows_name *out)
{
    enum { MOST = 32000 };
    int error;
    *out = (cv_windows_name){0};
    const cv_windows_opening *opening = cv_windows_opening_of(dir.number);
    if (!opening && !cv_dir_is_here(dir)) return EBADF;
    if (!*name) return ENOENT;
    if (opening && strpbrk(name, "\\:")) return EINVAL; /* may come from a foreign file */
    wchar_t *wide = cv_windows_wide(name, &error);
    if (!wide) return error;
    if (!all_allowed(wide)) {
        error = EINVAL;
    } else if (!opening || is_absolute(wide)) {
        out->text = kernel_path(wide);
        if (!out->text)
            error = ENOMEM;
        else
            cut_slashes(out, true);
    } else {
        error = name_in(opening->handle, wide, out);
    }
    cv_windows_release(wide);
    if (!error && out->length > MOST) {
        cv_windows_release(out->text);
        error = ENAMETOOLONG;
    }
    return error;
}

/* ---- Opening ------------------------------------------------------------ */

enum { SHARE = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

static UNICODE_STRING kernel_text(const cv_windows_name *name)
{
    USHORT size = (USHORT)(name->length * sizeof *name->text);
    return (UNICODE_STRING){.Length = size, .MaximumLength = size, .Buffer = name->text};
}

/* Others, such as virus scanners, may have opened the file for a moment without sharing it. */
static bool wait_for_others(NTSTATUS status, int *waits)
{
    enum { WAITS = 50, WAIT_MS = 10 };
    static const NTSTATUS sharing_violation = (NTSTATUS)0xc0000043;
    if (status != sharing_violation || *waits == WAITS) return false;
    ++*waits;
    Sleep(WAIT_MS);
    return true;
}

/* Held while wine replaces a file, whose name is missing meanwhile. NULL elsewhere. */
static HANDLE replacement;

static void make_replacement(void)
{
    if (cv_windows_is_wine()) replacement = CreateMutexW(NULL, FALSE, L"caterva-replacement");
}

static bool hold_replacement(void)
{
    static cv_once once = CV_ONCE_INIT;
    cv_once_run(&once, make_replacement);
    return replacement && WaitForSingleObject(replacement, INFINITE) != WAIT_FAILED;
}

/* The caller looks again while no file is replaced, and then releases `replacement`. */
static bool wait_for_replacement(NTSTATUS status, bool *holds)
{
    static const NTSTATUS no_name = (NTSTATUS)0xc0000034, no_file = (NTSTATUS)0xc000000f;
    return (status == no_name || status == no_file) && !*holds &&
           (*holds = hold_replacement());
}

/* The system has one status for a name above the path that is missing and for one of a file. */
static bool is_below_file(NTSTATUS status, OBJECT_ATTRIBUTES *object)
{
    static const NTSTATUS no_path = (NTSTATUS)0xc000003a;
    UNICODE_STRING *path = object->ObjectName;
    IO_STATUS_BLOCK io;
    HANDLE file;
    while (status == no_path) {
        size_t n = path->Length / sizeof *path->Buffer;
        while (n > 0 && path->Buffer[--n] != L'\\') continue;
        if (n == 0) return false;
        path->Length = (USHORT)(n * sizeof *path->Buffer);
        status = NtCreateFile(&file, FILE_READ_ATTRIBUTES | SYNCHRONIZE, object, &io, NULL, 0,
                              SHARE, FILE_OPEN, FILE_NON_DIRECTORY_FILE, NULL, 0);
        if (status < 0) continue;
        CloseHandle(file);
        return true;
    }
    return false;
}

int cv_windows_open(cv_dir dir, const char *name, cv_windows_how how, HANDLE *out)
{
    CV_WINDOWS_USE;
    cv_windows_name kernel;
    IO_STATUS_BLOCK io;
    NTSTATUS status;
    int waits = 0;
    bool holds = false;
    *out = NULL;
    int error = cv_windows_name_of(dir, name, &kernel);
    if (error == EINVAL && how.disposition != FILE_CREATE && how.disposition != FILE_OPEN_IF)
        error = ENOENT;
    if (error) return error;
    UNICODE_STRING text = kernel_text(&kernel);
    OBJECT_ATTRIBUTES object;
    InitializeObjectAttributes(&object, &text, OBJ_CASE_INSENSITIVE, kernel.root, NULL);
    if (kernel.is_directory && !(how.options & FILE_NON_DIRECTORY_FILE))
        how.options |= FILE_DIRECTORY_FILE;
    do {
        status = NtCreateFile(out, how.access | SYNCHRONIZE | FILE_READ_ATTRIBUTES, &object,
                              &io, NULL, FILE_ATTRIBUTE_NORMAL, SHARE, how.disposition,
                              how.options, NULL, 0);
    } while (wait_for_others(status, &waits) || wait_for_replacement(status, &holds));
    if (holds) ReleaseMutex(replacement);
    error = is_below_file(status, &object) ? ENOTDIR : cv_windows_errno_of_status(status);
    cv_windows_release(kernel.text);
    if (status < 0) *out = NULL;
    return error;
}

static cv_windows_how how_of(unsigned how)
{
    cv_windows_how h = {.disposition = FILE_OPEN};
    if (how & CV_OPEN_READ) h.access |= FILE_GENERIC_READ;
    if (how & CV_OPEN_WRITE) h.access |= FILE_GENERIC_WRITE;
    if (how & CV_OPEN_EMPTY) h.disposition = FILE_OVERWRITE;
    if (how & CV_OPEN_CREATE)
        h.disposition = how & CV_OPEN_NEW     ? FILE_CREATE
                        : how & CV_OPEN_EMPTY ? FILE_OVERWRITE_IF
                                              : FILE_OPEN_IF;
    if (how & (CV_OPEN_WRITE | CV_OPEN_CREATE)) h.options |= FILE_NON_DIRECTORY_FILE;
    return h;
}

/* A link is found by opening it itself. */
static int refuse_link(cv_dir dir, const char *name)
{
    cv_file_info info;
    int error = cv_dir_get_link_info(dir, name, &info);
    return !error && info.kind == CV_KIND_LINK ? ELOOP : 0;
}

int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out)
{
    HANDLE handle;
    cv_file_info info;
    (void)mode;
    *out = (cv_file){0};
    int error = how & CV_OPEN_NO_LINK ? refuse_link(dir, name) : 0;
    if (!error) error = cv_windows_open(dir, name, how_of(how), &handle);
    if (error) return error;
    bool is_directory =
        cv_windows_get_info(handle, false, &info) == 0 && info.kind == CV_KIND_DIRECTORY;
    return cv_windows_add(handle, is_directory, how, &out->number);
}

static int open_directory(cv_dir dir, const char *name, ACCESS_MASK access, cv_dir *out)
{
    HANDLE handle;
    cv_windows_how how = {.access = access,
                          .disposition = FILE_OPEN,
                          .options = FILE_DIRECTORY_FILE | FILE_SYNCHRONOUS_IO_NONALERT};
    *out = (cv_dir){0};
    int error = cv_windows_open(dir, name, how, &handle);
    return error ? error : cv_windows_add(handle, true, CV_OPEN_READ, &out->number);
}

int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out)
{
    int error = how & CV_OPEN_NO_LINK ? refuse_link(dir, name) : 0;
    return error ? error : open_directory(dir, name, FILE_GENERIC_READ | FILE_TRAVERSE, out);
}

int cv_dir_open_names(const char *path, cv_dir *out)
{
    return open_directory(cv_dir_here, path, FILE_TRAVERSE, out);
}

/* ---- Information -------------------------------------------------------- */

static int get_info(cv_dir dir, const char *name, ULONG options, cv_file_info *out)
{
    HANDLE handle;
    cv_windows_how how = {.disposition = FILE_OPEN, .options = options};
    int error = cv_windows_open(dir, name, how, &handle);
    if (error) return error;
    error = cv_windows_get_info(handle, options & FILE_OPEN_REPARSE_POINT, out);
    CloseHandle(handle);
    return error;
}

int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return get_info(dir, name, 0, out);
}

int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return get_info(dir, name, FILE_OPEN_REPARSE_POINT, out);
}

bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode)
{
    cv_file_info info;
    return cv_dir_get_info(dir, name, &info) == 0 && info.device == device &&
           info.inode == inode;
}

/* Searches each name, which ignores case, and compares the name that is found. */
bool cv_dir_is_spelled(cv_dir dir, const char *path)
{
    CV_WINDOWS_USE;
    int error;
    bool same = true;
    WIN32_FIND_DATAW found;
    const cv_windows_opening *opening = cv_windows_opening_of(dir.number);
    wchar_t *above = opening ? cv_windows_path_of(opening->handle) : NULL;
    wchar_t *wide = cv_windows_wide(path, &error);
    wchar_t *whole = above && wide ? join(above, L"\\", wide) : NULL;
    size_t size;
    for (wchar_t *at = whole ? whole + wcslen(above) + 1 : NULL; same && at && *at;
         at += size) {
        size = component_size(at);
        const wchar_t end = at[size];
        at[size] = L'\0';
        HANDLE search = FindFirstFileW(whole, &found);
        if (search == INVALID_HANDLE_VALUE) break;
        FindClose(search);
        same = wcscmp(found.cFileName, at) == 0;
        at[size] = end ? L'\\' : L'\0';
        size += end != L'\0';
    }
    cv_windows_release(whole);
    cv_windows_release(wide);
    cv_windows_release(above);
    return same;
}

void cv_os_use_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\') *path = '/';
}

/* Returns the path in UTF-8 with slashes. */
static char *to_slashes(const wchar_t *path)
{
    char *text = path ? cv_windows_narrow(path) : NULL;
    if (text) cv_os_use_slashes(text);
    return text;
}

bool cv_os_can_name(const char *path)
{
    int error;
    if (strpbrk(path, "\\:")) return false;
    wchar_t *wide = cv_windows_wide(path, &error);
    bool allowed = wide ? all_allowed(wide) : error != EILSEQ; /* others are reported later */
    cv_windows_release(wide);
    return allowed;
}

bool cv_os_is_absolute(const char *path)
{
    bool has_letter =
        (path[0] >= 'A' && path[0] <= 'Z') || (path[0] >= 'a' && path[0] <= 'z');
    return path[0] == '/' || path[0] == '\\' || (has_letter && path[1] == ':');
}

static char *absolute(const char *path)
{
    int error;
    wchar_t *wide = cv_windows_wide(path, &error);
    wchar_t *full = wide && !is_verbatim(wide) ? full_path(wide) : NULL;
    char *text = to_slashes(full ? full : wide);
    cv_windows_release(full);
    cv_windows_release(wide);
    return text || error != EILSEQ ? text : cv_strdup(path);
}

/* No name has a colon: what begins with two is the key of a leaf, which stays as it is. */
char *cv_os_absolute(const char *path)
{
    const char *key = strstr(path, "::");
    if (!key) return absolute(path);
    char *tree = cv_strndup(path, (size_t)(key - path));
    char *whole = tree ? absolute(tree) : NULL;
    size_t size = whole ? strlen(whole) + strlen(key) + 1 : 0;
    char *joined = whole ? cv_malloc(size) : NULL;
    if (joined) (void)snprintf(joined, size, "%s%s", whole, key);
    cv_free(whole);
    cv_free(tree);
    return joined;
}

char *cv_os_real_path(const char *path)
{
    HANDLE handle;
    cv_windows_how how = {.disposition = FILE_OPEN};
    if (cv_windows_open(cv_dir_here, path, how, &handle)) return NULL;
    wchar_t *found = cv_windows_path_of(handle);
    CloseHandle(handle);
    char *text = NULL;
    if (found && wcsncmp(found, L"\\\\?\\UNC\\", 8) == 0) {
        found[6] = L'\\'; /* \\?\UNC\server: two backslashes and the server */
        text = to_slashes(found + 6);
    } else if (found) {
        text = to_slashes(found + PREFIX);
    }
    cv_windows_release(found);
    return text;
}

/* ---- Changing ----------------------------------------------------------- */

/* NTFS keeps its names consistent by a journal. A flush of the directory also writes the journal,
 * where the system allows it. */
int cv_dir_sync(cv_dir dir)
{
    cv_file file = cv_dir_as_file(dir);
    if (!cv_windows_opening_of(dir.number)) return EBADF;
    int error = cv_file_sync(file);
    return error == ENOSPC || error == EIO ? error : 0;
}

int cv_dir_sync_all(cv_dir dir)
{
    (void)dir;
    return ENOTSUP;
}

static int set_information(HANDLE handle, int kind, void *bytes, size_t size)
{
    IO_STATUS_BLOCK io;
    return cv_windows_errno_of_status(
        NtSetInformationFile(handle, &io, bytes, (ULONG)size, (FILE_INFORMATION_CLASS)kind));
}

static bool is_unknown_kind(int error) { return error == EINVAL || error == ENOTSUP; }

static int step_aside(cv_dir dir, const char *name, HANDLE handle);

/* Removes the name at once, also if others have the file open. File systems without this call
 * remove it when all have closed it: until then the file has another name. */
static int remove_by_handle(cv_dir dir, const char *name, HANDLE handle)
{
    enum { DISPOSITION = 13, DISPOSITION_EX = 64 };
    enum { DELETE_IT = 1, POSIX_SEMANTICS = 2, IGNORE_READONLY = 16 };
    ULONG flags = DELETE_IT | POSIX_SEMANTICS | IGNORE_READONLY;
    BOOLEAN deletes = TRUE;
    int error = set_information(handle, DISPOSITION_EX, &flags, sizeof flags);
    if (!is_unknown_kind(error)) return error;
    error = set_information(handle, DISPOSITION, &deletes, sizeof deletes);
    if (error) return error;
    deletes = FALSE;
    (void)set_information(handle, DISPOSITION, &deletes, sizeof deletes);
    (void)step_aside(dir, name, handle);
    deletes = TRUE;
    return set_information(handle, DISPOSITION, &deletes, sizeof deletes);
}

static int open_to_change(cv_dir dir, const char *name, ULONG options, HANDLE *out)
{
    cv_windows_how how = {.access = DELETE,
                          .disposition = FILE_OPEN,
                          .options = FILE_OPEN_REPARSE_POINT | FILE_SYNCHRONOUS_IO_NONALERT |
                                     options};
    return cv_windows_open(dir, name, how, out);
}

static int remove_name(cv_dir dir, const char *name, ULONG options)
{
    CV_WINDOWS_USE;
    HANDLE handle;
    int error = open_to_change(dir, name, options, &handle);
    if (error) return error;
    error = remove_by_handle(dir, name, handle);
    CloseHandle(handle);
    return error;
}

int cv_dir_remove(cv_dir dir, const char *name)
{
    return remove_name(dir, name, FILE_NON_DIRECTORY_FILE);
}

/* The file for the directory's locks is no reason to keep it. */
int cv_dir_remove_directory(cv_dir dir, const char *name)
{
    cv_dir inner;
    int error = remove_name(dir, name, FILE_DIRECTORY_FILE);
    if (error != ENOTEMPTY || cv_dir_open(dir, name, CV_OPEN_NO_LINK, &inner)) return error;
    int removed = cv_dir_remove(inner, ".caterva.lock");
    cv_dir_close(&inner);
    return removed ? error : remove_name(dir, name, FILE_DIRECTORY_FILE);
}

/* ---- Renaming ---- */

/* FILE_RENAME_INFORMATION and FILE_LINK_INFORMATION. */
typedef struct new_name {
    ULONG flags;
    HANDLE root;
    ULONG size; /* bytes of the text */
    wchar_t text[];
} new_name;

enum { RENAME = 10, LINK = 11, RENAME_EX = 65, REPLACES = 1, RENAME_POSIX = 2 };

static int set_name(HANDLE handle, int kind, ULONG flags, const cv_windows_name *to)
{
    size_t text_size = to->length * sizeof *to->text, size = sizeof(new_name) + text_size;
    new_name *name = cv_windows_allocate(size + sizeof(wchar_t));
    if (!name) return ENOMEM;
    name->flags = flags;
    name->root = to->root;
    name->size = (ULONG)text_size;
    memcpy(name->text, to->text, text_size);
    int error = set_information(handle, kind, name, size);
    cv_windows_release(name);
    return error;
}

enum { TARGET_IS_OPEN = EDEADLK }; /* the older call replaces no open file */

static int rename_by_handle(HANDLE handle, bool replaces, const cv_windows_name *to)
{
    int error = set_name(handle, RENAME_EX, replaces ? REPLACES | RENAME_POSIX : 0, to);
    if (!is_unknown_kind(error)) return error;
    error = set_name(handle, RENAME, replaces ? REPLACES : 0, to);
    return error == EACCES && replaces ? TARGET_IS_OPEN : error;
}

/* Gives a file that is to be removed a temporary name beside its name, or in the folder for temporary
 * files. */
static int move_aside(cv_dir dir, const char *name, HANDLE handle, bool is_far)
{
    enum { MOST = 32768 };
    wchar_t folder[MAX_PATH + 1];
    cv_windows_name to;
    const char *last = strrchr(name, '/');
    size_t size = last ? (size_t)(last + 1 - name) : 0;
    if (size > MOST) return ENAMETOOLONG;
    if (is_far && GetTempPathW(MAX_PATH + 1, folder) == 0) return ENOENT;
    char *path = cv_windows_allocate(MOST + CV_OS_TEMP_NAME);
    if (!path) return ENOMEM;
    const char *own = name + size;
    if (is_far)
        size =
            (size_t)WideCharToMultiByte(CP_UTF8, 0, folder, -1, path, MOST, NULL, NULL) - 1;
    else
        memcpy(path, name, size);
    cv_os_temp_name(own, "deleted", path + size);
    int error = cv_windows_name_of(is_far ? cv_dir_here : dir, path, &to);
    cv_windows_release(path);
    if (error) return error;
    error = rename_by_handle(handle, false, &to);
    cv_windows_release(to.text);
    return error;
}

/* wine also keeps directories in which removed files are open: there the file moves away, if that
 * folder is on the same device. */
static int step_aside(cv_dir dir, const char *name, HANDLE handle)
{
    bool is_moved = cv_windows_is_wine() && move_aside(dir, name, handle, true) == 0;
    return is_moved ? 0 : move_aside(dir, name, handle, false);
}

/* wine replaces no open file by any call, so a test there removes it first. The name is missing for
 * a moment, which is why no other system does this. */
static int replace_in_wine(HANDLE handle, cv_dir dir, const char *to,
                           const cv_windows_name *name)
{
    bool holds = hold_replacement();
    int error = cv_dir_remove(dir, to);
    if (!error) error = rename_by_handle(handle, false, name);
    if (holds) ReleaseMutex(replacement);
    return error;
}

/* The system denies access if one name leads to a directory, and the other one does not. */
static int why_denied(HANDLE handle, cv_dir dir, const char *to)
{
    cv_file_info from, target;
    if (cv_windows_get_info(handle, true, &from) || cv_dir_get_link_info(dir, to, &target))
        return EACCES;
    if (target.kind == CV_KIND_DIRECTORY)
        return from.kind == CV_KIND_DIRECTORY ? ENOTEMPTY : EISDIR;
    return from.kind == CV_KIND_DIRECTORY ? ENOTDIR : EACCES;
}

static int rename_open(HANDLE handle, cv_dir dir, const char *to, bool replaces)
{
    CV_WINDOWS_USE;
    cv_windows_name name;
    int error = cv_windows_name_of(dir, to, &name);
    if (error) return error;
    error = rename_by_handle(handle, replaces, &name);
    bool is_denied = error == EACCES || error == EBUSY || error == TARGET_IS_OPEN;
    if (replaces && (is_denied || error == EEXIST)) {
        int why = why_denied(handle, dir, to);
        if (why != EACCES)
            error = why;
        else if (cv_windows_is_wine())
            error = replace_in_wine(handle, dir, to, &name);
    }
    cv_windows_release(name.text);
    return error;
}

static int rename_open_ones(HANDLE handle, cv_dir dir, const char *to, bool replaces)
{
    wchar_t *before = cv_windows_path_of(handle);
    if (!before) return ENOMEM;
    cv_windows_parked *parked;
    int error = cv_windows_park(before, NULL, &parked);
    if (!error) error = rename_open(handle, dir, to, replaces);
    cv_windows_unpark(parked, handle, before);
    cv_windows_release(before);
    return error;
}

/* The path and the identity of a file. */
static int find_file(cv_dir dir, const char *name, cv_file_info *info, wchar_t **path)
{
    HANDLE handle;
    int error =
        cv_windows_open(dir, name, (cv_windows_how){.disposition = FILE_OPEN}, &handle);
    if (error) return error;
    error = cv_windows_get_info(handle, false, info);
    *path = error ? NULL : cv_windows_path_of(handle);
    CloseHandle(handle);
    return error || *path ? error : ENOMEM;
}

/* File systems without POSIX renames replace no open file. What this process has open of the old
 * one is closed: the writer that replaces it needs it no more, and readers have ESTALE. */
static int replace_closed(HANDLE handle, cv_dir dir, const char *to)
{
    cv_file_info info;
    wchar_t *path;
    cv_windows_parked *parked;
    int error = find_file(dir, to, &info, &path);
    if (error) return error;
    error = cv_windows_park(path, &info, &parked);
    if (!error) error = rename_open(handle, dir, to, true);
    if (error)
        cv_windows_unpark(parked, NULL, path);
    else
        cv_windows_drop(parked);
    cv_windows_release(path);
    return error;
}

static int rename_to(cv_dir dir, const char *from, const char *to, bool replaces)
{
    HANDLE handle;
    cv_file_info info = {0};
    int error = open_to_change(dir, from, 0, &handle);
    if (error) return error;
    (void)cv_windows_get_info(handle, true, &info);
    /* wine takes the name that a file had when it was opened for its name */
    bool closes = info.kind == CV_KIND_DIRECTORY || cv_windows_is_wine();
    error = closes ? rename_open_ones(handle, dir, to, replaces)
                   : rename_open(handle, dir, to, replaces);
    if (error == TARGET_IS_OPEN && !closes) error = replace_closed(handle, dir, to);
    CloseHandle(handle);
    return error == TARGET_IS_OPEN ? EBUSY : error;
}

int cv_dir_rename(cv_dir dir, const char *from, const char *to)
{
    return rename_to(dir, from, to, true);
}

int cv_dir_rename_new(cv_dir dir, const char *from, const char *to)
{
    return rename_to(dir, from, to, false);
}

int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to)
{
    return rename_to(dir, from, to, false);
}

int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to)
{
    CV_WINDOWS_USE;
    HANDLE handle;
    cv_windows_name name;
    int error = cv_windows_name_of(other, to, &name);
    if (error) return error;
    error = open_to_change(dir, from, 0, &handle);
    if (!error) {
        error = set_name(handle, LINK, 0, &name);
        CloseHandle(handle);
    }
    cv_windows_release(name.text);
    return error;
}

int cv_dir_exchange(cv_dir dir, const char *a, const char *b)
{
    (void)dir, (void)a, (void)b;
    return ENOTSUP;
}

int cv_dir_make(cv_dir dir, const char *name, uint32_t mode)
{
    HANDLE handle;
    (void)mode;
    cv_windows_how how = {.access = FILE_TRAVERSE,
                          .disposition = FILE_CREATE,
                          .options = FILE_DIRECTORY_FILE | FILE_SYNCHRONOUS_IO_NONALERT};
    int error = cv_windows_open(dir, name, how, &handle);
    if (!error) CloseHandle(handle);
    return error;
}

/* ---- Listing ------------------------------------------------------------ */

typedef struct name_list {
    const FILE_ID_BOTH_DIR_INFO *next; /* NULL: read more */
    char name[1024];
    _Alignas(8) char bytes[64 * 1024];
} name_list;

int cv_listing_open(cv_dir dir, cv_listing *out)
{
    *out = (cv_listing){.system = cv_windows_allocate(sizeof(name_list)), .dir = dir};
    if (out->system) return 0;
    cv_dir_close(&out->dir);
    return ENOMEM;
}

/* Returns the next entry; NULL at the end or on an error. */
static const FILE_ID_BOTH_DIR_INFO *next_entry(HANDLE dir, name_list *names, int *error)
{
    *error = 0;
    if (!names->next) {
        if (!GetFileInformationByHandleEx(dir, FileIdBothDirectoryInfo, names->bytes,
                                          sizeof names->bytes)) {
            DWORD failed = GetLastError();
            *error = failed == ERROR_NO_MORE_FILES ? 0 : cv_windows_errno(failed);
            return NULL;
        }
        names->next = (const void *)names->bytes;
    }
    const FILE_ID_BOTH_DIR_INFO *entry = names->next;
    names->next = entry->NextEntryOffset
                      ? (const void *)((const char *)entry + entry->NextEntryOffset)
                      : NULL;
    return entry;
}

const char *cv_listing_next(cv_listing *listing, int *error)
{
    CV_WINDOWS_USE;
    name_list *names = listing->system;
    const cv_windows_opening *opening = cv_windows_opening_of(listing->dir.number);
    const FILE_ID_BOTH_DIR_INFO *entry;
    size_t size;
    do {
        entry = next_entry(opening->handle, names, error);
        if (!entry) return NULL;
        size = entry->FileNameLength / sizeof(wchar_t);
    } while (is_dots(entry->FileName, size));
    int n = WideCharToMultiByte(CP_UTF8, 0, entry->FileName, (int)size, names->name,
                                sizeof names->name - 1, NULL, NULL);
    names->name[n] = '\0';
    return names->name;
}

void cv_listing_close(cv_listing *listing)
{
    cv_windows_release(listing->system);
    cv_dir_close(&listing->dir);
    *listing = (cv_listing){0};
}
