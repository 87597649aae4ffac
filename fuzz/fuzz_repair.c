/* Any bytes as a file to be repaired. What repair reports as written, or restored in place,
 * must open without damage; what it leaves alone must not have changed. */
#include "fuzz.h"

#include <caterva_upkeep.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 16 };

static char directory[] = "/dev/shm/caterva-fuzz-XXXXXX";
static char damaged[sizeof directory + 16], repaired[sizeof directory + 16];

static void clean(void)
{
    unlink(damaged);
    unlink(repaired);
    rmdir(directory);
}

static void prepare(void)
{
    if (damaged[0]) return;
    FUZZ_NEED(mkdtemp(directory), "no directory");
    snprintf(damaged, sizeof damaged, "%s/a", directory);
    snprintf(repaired, sizeof repaired, "%s/b", directory);
    atexit(clean);
}

static void save(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    FUZZ_NEED(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
              "%s cannot be written", path);
}

static void need_same(const char *path, const uint8_t *bytes, size_t size)
{
    static uint8_t now[MAX_SIZE + 1];
    FILE *file = fopen(path, "rb");
    FUZZ_NEED(file, "%s is gone", path);
    size_t n = fread(now, 1, sizeof now, file);
    fclose(file);
    FUZZ_NEED(n == size && memcmp(now, bytes, size) == 0, "%s was left alone, and changed",
              path);
}

static void need_sound(const char *path)
{
    caterva_array *array;
    caterva_error error;
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    FUZZ_NEED(caterva_open(path, NULL, &array, &error) == CATERVA_OK,
              "what was repaired does not open: %s", error.message);
    const caterva_info *info;
    FUZZ_NEED(caterva_info_get(array, &info, NULL) == CATERVA_OK, "no description");
    options.quick = info->n_chunks > 4096;
    caterva_info_release(info);
    FUZZ_NEED(caterva_verify(array, &options, &result, &error) == CATERVA_OK, "%s",
              error.message);
    FUZZ_NEED(result.damages == 0, "what was repaired holds %lld damages",
              (long long)result.damages);
    caterva_discard(array);
}

/* An array may claim any number of chunks: large ones are skipped. */
static int stop_at_large(void *context, const caterva_info *info, void *fill)
{
    (void)context, (void)fill;
    return info->n_chunks > 4096 || info->chunk_bytes > 1 << 20;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0 || size > MAX_SIZE) return 0;
    prepare();
    save(damaged, bytes + 1, size - 1);
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    options.output = bytes[0] & 1 ? repaired : NULL;
    options.guess = bytes[0] >> 1 & 1;
    options.overwrite = 1;
    options.threads = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    options.on_found = stop_at_large;
    caterva_status status = caterva_repair(damaged, &options, &result, NULL);
    if (status != CATERVA_OK || !result.in_place) need_same(damaged, bytes + 1, size - 1);
    if (status == CATERVA_OK && result.in_place) need_sound(damaged);
    if (status == CATERVA_OK && result.written && options.output) need_sound(repaired);
    unlink(repaired);
    if (status == CATERVA_OK && result.written && !options.output) {
        char beside[sizeof damaged + 16];
        snprintf(beside, sizeof beside, "%s.repaired", damaged);
        need_sound(beside);
        unlink(beside);
    }
    return 0;
}
