/* Helper of the tests of URLs: reads an array behind a URL. Each line on standard input is a
 * command, its response is a line on standard output:
 *
 *   open URL [connections=N] [retries=N] [stall=MS] [connect=MS] [over=PERCENT] [unchecked]
 *        [token=TEXT]     TEXT is sent as a header
 *        [cache=FOLDER] [bound=BYTES] [ca=FILE]
 *        [dawdle=MS]      the first read pauses in the middle for this time
 *   leaf KEY URL ...     the same for an array in a tree, through the tree's handle
 *   read                 all items: "ok HASH", or "error CODE message"
 *   point I J ...        one item: "ok HEX"
 *   box START STOP ...   a box: "ok" and its time; "hash" prints "ok HASH"
 *   publish STALL_MS FILE URL   with a short stall timeout: "ok"
 *   stop MS URL          opens and reads all, stops after MS: "stopped" and the ms it took
 *   dawdle MS URL ...    opens and reads all, with a pause in the middle
 *   starve N URL ...     opens and reads all while the library's N-th allocation (from 0) fails:
 *                        "starved ok HASH" or "starved error ..."; "fed ..." if there were fewer
 *   peak                 most bytes used by the library since the last query, minus those in use
 *   around               all items around damaged chunks: "ok HASH CHUNKS"
 *   verify               "ok DAMAGES"
 *   tree URL ...         opens a tree
 *   list                 its members: "ok KEY:KIND:BYTES ..."
 *   in KEY               opens this array of it: "ok"
 *   check                verifies it: "ok MEMBERS DAMAGED"
 *   names                attributes of its root: "ok NAME ..."
 *   refresh, close
 *   transfers            "requests bytes round_trips joined retried cached" */
#include "caterva.h"
#include "caterva_remote.h"
#include "caterva_store.h"
#include "caterva_tree.h"
#include "caterva_upkeep.h"
#include "support/every_step.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static caterva_array *array;
static caterva_error err;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void say_error(void)
{
    printf("error %s %s\n", caterva_status_name(err.code), err.message);
}

static int number(char *word, const char *name, int *out)
{
    size_t size = strlen(name);
    if (strncmp(word, name, size) != 0) return 0;
    *out = atoi(word + size);
    return 1;
}

static int dawdle_ms;

static int dawdle(void *context, int64_t done, int64_t total)
{
    (void)context;
    (void)total;
    if (done > 0 && dawdle_ms > 0) {
        usleep((useconds_t)dawdle_ms * 1000);
        dawdle_ms = 0;
    }
    return 0;
}

static caterva_tree *kept; /* by "tree" */

/* The array of `key` in the tree; of the array's own options, those of the connection are
 * ignored. "" keeps the tree. */
static caterva_status open_leaf(const char *url, const char *key,
                                const caterva_remote_options *remote)
{
    caterva_tree *tree;
    caterva_tree_options options = CATERVA_TREE_INIT;
    options.remote = remote;
    caterva_status status = caterva_tree_open(url, &options, &tree, &err);
    if (status != CATERVA_OK) return status;
    if (!*key) {
        kept = tree;
        return CATERVA_OK;
    }
    status = caterva_tree_open_array(tree, key, NULL, &array, &err);
    caterva_tree_close(tree, NULL);
    return status;
}

static caterva_status open_url(char *words, const char *key,
                               int (*on_progress)(void *, int64_t, int64_t))
{
    caterva_remote_options remote = CATERVA_REMOTE_INIT;
    caterva_open_options options = CATERVA_OPEN_INIT;
    char *url = strtok(words, " "), *word, token[256];
    const char *headers[] = {token};
    int addressing = 0;
    options.remote = &remote;
    options.progress = every_step(on_progress, NULL);
    remote.headers = headers;
    while ((word = strtok(NULL, " "))) {
        int known = number(word, "connections=", &remote.connections) ||
                    number(word, "retries=", &remote.retries) ||
                    number(word, "stall=", &remote.stall_timeout_ms) ||
                    number(word, "connect=", &remote.connect_timeout_ms) ||
                    number(word, "over=", &remote.over_read_percent) ||
                    number(word, "addressing=", &addressing);
        if (strncmp(word, "offset=", 7) == 0)
            options.offset = strtoull(word + 7, NULL, 10), known = 1;
        if (strncmp(word, "cache=", 6) == 0) remote.cache_folder = word + 6, known = 1;
        if (strncmp(word, "ca=", 3) == 0) remote.ca_file = word + 3, known = 1;
        if (strncmp(word, "bound=", 6) == 0)
            remote.cache_bytes = strtoll(word + 6, NULL, 10), known = 1;
        if (number(word, "dawdle=", &dawdle_ms))
            options.progress = every_step(dawdle, NULL), known = 1;
        if (strcmp(word, "unchecked") == 0) options.unchecked = known = 1;
        if (strcmp(word, "nocache") == 0) options.cache_bytes = -(known = 1);
        if (strncmp(word, "token=", 6) == 0) {
            snprintf(token, sizeof token, "X-Token: %s", word + 6);
            remote.n_headers = known = 1;
        }
        if (!known) exit(2);
    }
    remote.addressing = (caterva_addressing)addressing;
    return key ? open_leaf(url, key, &remote) : caterva_open(url, &options, &array, &err);
}

static uint64_t hash_of(const unsigned char *bytes, size_t size)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static caterva_status read_all(uint64_t *hash)
{
    const caterva_info *info;
    int64_t start[CATERVA_MAX_DIMS] = {0};
    caterva_status status = caterva_info_get(array, &info, &err);
    if (status != CATERVA_OK) return status;
    size_t size = (size_t)info->data_bytes;
    unsigned char *items = calloc(size + 1, 1);
    status = caterva_read(array, start, info->shape, items, size, &err);
    if (status == CATERVA_OK) *hash = hash_of(items, size);
    free(items);
    caterva_info_release(info);
    return status;
}

static void count_damage(void *context, const caterva_damage *damage)
{
    (void)damage;
    ++*(int *)context;
}

static void read_around(void)
{
    int n = 0;
    const caterva_info *info;
    caterva_selection all = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    caterva_skip_options o = CATERVA_SKIP_INIT;
    o.on_damage = count_damage;
    o.context = &n;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) {
        say_error();
        return;
    }
    buffer.size = (size_t)info->data_bytes;
    buffer.data = calloc(buffer.size + 1, 1);
    if (caterva_read_skipping(array, &all, &buffer, &o, &err) == CATERVA_OK)
        printf("ok %016llx %d\n", (unsigned long long)hash_of(buffer.data, buffer.size), n);
    else
        say_error();
    free(buffer.data);
    caterva_info_release(info);
}

static void verify(void)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    if (caterva_verify(array, NULL, &result, &err) == CATERVA_OK)
        printf("ok %lld\n", (long long)result.damages);
    else
        say_error();
}

/* ---- Trees --------------------------------------------------------------------------- */

static void open_tree(char *words)
{
    caterva_tree_close(kept, NULL);
    kept = NULL;
    if (open_url(words, "", NULL) == CATERVA_OK)
        printf("ok\n");
    else
        say_error();
}

static void list(void)
{
    const caterva_tree_list *all;
    if (caterva_tree_get_list(kept, NULL, &all, &err) != CATERVA_OK) {
        say_error();
        return;
    }
    printf("ok");
    for (size_t i = 0; i < all->n; i++)
        printf(" %s:%s:%lld", all->entries[i]->key, all->entries[i]->kind_name,
               (long long)all->entries[i]->stored_bytes);
    printf("\n");
    caterva_tree_list_release(all);
}

static void open_in(const char *key)
{
    caterva_discard(array);
    array = NULL;
    if (caterva_tree_open_array(kept, key, NULL, &array, &err) == CATERVA_OK)
        printf("ok\n");
    else
        say_error();
}

static void check(void)
{
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    if (caterva_tree_verify(kept, NULL, NULL, &result, &err) == CATERVA_OK)
        printf("ok %lld %lld\n", (long long)result.members,
               (long long)result.damaged_members);
    else
        say_error();
}

static void list_names(void)
{
    size_t n;
    const char **names;
    if (caterva_tree_attr_list(kept, "/", &names, &n, &err) != CATERVA_OK) {
        say_error();
        return;
    }
    printf("ok");
    for (size_t i = 0; i < n; i++) printf(" %s", names[i]);
    printf("\n");
    caterva_free(names);
}

static void point(char *words)
{
    const caterva_info *info;
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS] = {0};
    unsigned char item[4096];
    int d = 0;
    for (char *w = strtok(words, " "); w && d < CATERVA_MAX_DIMS; w = strtok(NULL, " "), d++)
        stop[d] = (start[d] = atoll(w)) + 1;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) {
        say_error();
        return;
    }
    if (caterva_read(array, start, stop, item, sizeof item, &err) == CATERVA_OK) {
        printf("ok ");
        for (int i = 0; i < info->item_size; i++) printf("%02x", item[i]);
        printf("\n");
    } else {
        say_error();
    }
    caterva_info_release(info);
}

/* "START STOP ...": prints the milliseconds it took, or the hash of the items. */
static void box(char *words, int tells_hash)
{
    const caterva_info *info;
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS] = {0};
    int d = 0;
    for (char *w = strtok(words, " "); w && d < 2 * CATERVA_MAX_DIMS;
         w = strtok(NULL, " "), d++)
        (d % 2 ? stop : start)[d / 2] = atoll(w);
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) {
        say_error();
        return;
    }
    size_t size = (size_t)info->item_size;
    for (d = 0; d < info->ndim; d++) size *= (size_t)(stop[d] - start[d]);
    caterva_info_release(info);
    void *items = malloc(size + 1);
    double began = now_ms();
    caterva_status status = caterva_read(array, start, stop, items, size, &err);
    if (status == CATERVA_OK && tells_hash)
        printf("ok %016llx\n", (unsigned long long)hash_of(items, size));
    else if (status == CATERVA_OK)
        printf("ok %.1f ms\n", now_ms() - began);
    else
        say_error();
    free(items);
}

/* ---- Stopping ---------------------------------------------------------------------- */

static double stop_at;

static int until_then(void *context, int64_t done, int64_t total)
{
    (void)context, (void)done, (void)total;
    return now_ms() >= stop_at;
}

static void stop_after(char *words)
{
    uint64_t hash;
    char *url;
    stop_at = now_ms() + strtod(words, &url);
    caterva_status status = open_url(url + 1, NULL, until_then);
    if (status == CATERVA_OK) status = read_all(&hash);
    double late = now_ms() - stop_at;
    if (status != CATERVA_ESTOPPED)
        printf("not stopped: %s %s\n", caterva_status_name(status), err.message);
    else
        printf("stopped %.1f\n", late);
    caterva_discard(array);
    array = NULL;
}

/* Reads everything, with a pause of that many milliseconds in the middle. */
static void read_with_dawdling(char *words)
{
    uint64_t hash;
    char *url;
    dawdle_ms = (int)strtol(words, &url, 10);
    caterva_discard(array);
    array = NULL;
    if (open_url(url + 1, NULL, dawdle) == CATERVA_OK && read_all(&hash) == CATERVA_OK)
        printf("ok %016llx\n", (unsigned long long)hash);
    else
        say_error();
}

/* ---- Memory --------------------------------------------------------------------------- */

/* Bytes that the library has in use, and the maximum since the last query. */
static atomic_llong in_use, most_in_use;

/* Allocations that succeed until one fails; below 0, none fails. */
static atomic_long until_starved = -1;

static void *count_and_allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    void *memory = NULL;
    if (atomic_load(&until_starved) >= 0 && atomic_fetch_sub(&until_starved, 1) == 0)
        return NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (posix_memalign(&memory, alignment, size) != 0) return NULL;
    long long now = atomic_fetch_add(&in_use, (long long)malloc_usable_size(memory)) +
                    (long long)malloc_usable_size(memory);
    long long most = atomic_load(&most_in_use);
    while (now > most && !atomic_compare_exchange_weak(&most_in_use, &most, now)) continue;
    return memory;
}

static void count_and_release(void *context, void *memory)
{
    (void)context;
    atomic_fetch_sub(&in_use, (long long)malloc_usable_size(memory));
    free(memory);
}

/* Prints how many bytes more were in use than now. */
static void peak(void)
{
    long long now = atomic_load(&in_use);
    printf("%lld\n", atomic_exchange(&most_in_use, now) - now);
}

static void starve(char *words)
{
    uint64_t hash = 0;
    char *url;
    caterva_discard(array);
    array = NULL;
    atomic_store(&until_starved, strtol(words, &url, 10));
    caterva_status status = open_url(url + 1, NULL, NULL);
    if (status == CATERVA_OK) status = read_all(&hash);
    caterva_discard(array);
    array = NULL;
    printf(atomic_exchange(&until_starved, -1) < 0 ? "starved " : "fed ");
    if (status == CATERVA_OK)
        printf("ok %016llx\n", (unsigned long long)hash);
    else
        say_error();
}

static void transfers(void)
{
    caterva_transfers t = CATERVA_TRANSFERS_INIT;
    if (caterva_transfers_get(array, &t, &err) != CATERVA_OK)
        say_error();
    else
        printf("%lld %lld %lld %lld %lld %lld\n", (long long)t.requests, (long long)t.bytes,
               (long long)t.round_trips, (long long)t.joined, (long long)t.retried,
               (long long)t.cached);
}

static void *read_in_thread(void *context)
{
    *(caterva_status *)context = read_all(&(uint64_t){0});
    return NULL;
}

/* Runs several at once, through one handle. */
static void threads(int n)
{
    pthread_t all[64];
    caterva_status statuses[64];
    int failed = 0;
    for (int i = 0; i < n && i < 64; i++)
        pthread_create(&all[i], NULL, read_in_thread, &statuses[i]);
    for (int i = 0; i < n && i < 64; i++) {
        pthread_join(all[i], NULL);
        failed += statuses[i] != CATERVA_OK;
    }
    printf("ok %d\n", failed);
}

static void publish(char *words)
{
    caterva_remote_options remote = CATERVA_REMOTE_INIT;
    caterva_publish_options options = CATERVA_PUBLISH_INIT;
    const char *stall = strtok(words, " "), *path = strtok(NULL, " "),
               *url = strtok(NULL, "");
    remote.stall_timeout_ms = atoi(stall);
    options.part_bytes = 5 << 20;
    options.remote = &remote;
    if (caterva_publish(path, url, &options, NULL, &err) == CATERVA_OK)
        printf("ok\n");
    else
        say_error();
}

int main(void)
{
    static char line[65536];
    caterva_allocator allocator = CATERVA_ALLOCATOR_INIT;
    setvbuf(stdout, NULL, _IOLBF, 0);
    allocator.allocate = count_and_allocate;
    allocator.release = count_and_release;
    if (caterva_set_allocator(&allocator, NULL) != CATERVA_OK) return 3;
    while (fgets(line, sizeof line, stdin)) {
        uint64_t hash = 0;
        line[strcspn(line, "\n")] = '\0';
        char *rest = line + strcspn(line, " ");
        if (*rest) *rest++ = '\0';
        if (strcmp(line, "open") == 0) {
            caterva_discard(array);
            array = NULL;
            if (open_url(rest, NULL, NULL) == CATERVA_OK)
                printf("ok\n");
            else
                say_error();
        } else if (strcmp(line, "leaf") == 0) {
            caterva_discard(array);
            array = NULL;
            char *url = rest + strcspn(rest, " ");
            if (*url) *url++ = '\0';
            if (open_url(url, rest, NULL) == CATERVA_OK)
                printf("ok\n");
            else
                say_error();
        } else if (strcmp(line, "read") == 0) {
            if (read_all(&hash) == CATERVA_OK)
                printf("ok %016llx\n", (unsigned long long)hash);
            else
                say_error();
        } else if (strcmp(line, "around") == 0) {
            read_around();
        } else if (strcmp(line, "verify") == 0) {
            verify();
        } else if (strcmp(line, "tree") == 0) {
            open_tree(rest);
        } else if (strcmp(line, "list") == 0) {
            list();
        } else if (strcmp(line, "in") == 0) {
            open_in(rest);
        } else if (strcmp(line, "check") == 0) {
            check();
        } else if (strcmp(line, "names") == 0) {
            list_names();
        } else if (strcmp(line, "refresh") == 0) {
            if (caterva_refresh(array, &err) == CATERVA_OK)
                printf("ok\n");
            else
                say_error();
        } else if (strcmp(line, "point") == 0) {
            point(rest);
        } else if (strcmp(line, "box") == 0 || strcmp(line, "hash") == 0) {
            box(rest, *line == 'h');
        } else if (strcmp(line, "stop") == 0) {
            stop_after(rest);
        } else if (strcmp(line, "dawdle") == 0) {
            read_with_dawdling(rest);
        } else if (strcmp(line, "starve") == 0) {
            starve(rest);
        } else if (strcmp(line, "peak") == 0) {
            peak();
        } else if (strcmp(line, "publish") == 0) {
            publish(rest);
        } else if (strcmp(line, "threads") == 0) {
            threads(atoi(rest));
        } else if (strcmp(line, "transfers") == 0) {
            transfers();
        } else {
            return 2;
        }
    }
    caterva_discard(array);
    caterva_tree_close(kept, NULL);
    return 0;
}
