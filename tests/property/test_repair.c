/* Good files of several commits, damaged in every way, and repaired: what the repair reports
 * as kept is what was committed, the rest it reports as lost, and C-Blosc2 reads its result
 * the same. In files without checksums, flipped bytes that still decode cannot be detected:
 * only there wrong items are accepted.
 *
 * usage: test_repair [FLIPS [SEED]] */
#include "base/arith.h"
#include "support/check.h"
#include "support/newest_copy.h"
#include "support/repaired.h"
#include "support/unseal.h"

#include <blosc2.h>
#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRUNCATIONS = 150, DEFAULT_FLIPS = 250, PIECE = 16 };

static uint8_t *copy_of(const sample *s)
{
    uint8_t *bytes = check_alloc(s->size);
    memcpy(bytes, s->bytes, s->size);
    return bytes;
}

static size_t header_size(const sample *s)
{
    return (size_t)s->bytes[14] | (size_t)s->bytes[13] << 8;
}

/* Pieces of the header zeroed, all of it, and all but its beginning. */
static void headers_come_back(const sample *s)
{
    char what[96];
    size_t n = header_size(s);
    for (size_t from = 0; from < n; from += PIECE) {
        for (int rest = 0; rest < 2; rest++) {
            uint8_t *bytes = copy_of(s);
            size_t size = rest ? n - from : from + PIECE > n ? n - from : PIECE;
            memset(bytes + from, 0, size);
            bool same = memcmp(bytes, s->bytes, s->size) == 0;
            snprintf(what, sizeof what, "%s, %zu header bytes at %zu zeroed",
                     writer_names[s->writer], size, from);
            verdict v = judge_repair(s, bytes, s->size, -1, 0, what);
            if (s->writer != BLOSC2)
                CHECK(v.status == CATERVA_OK && v.result.complete &&
                          v.result.in_place == !same,
                      "%s: not restored", what);
            free(bytes);
        }
    }
}

/* The end of a longer frame follows, of an older commit whose copy and seal were overwritten:
 * this is not a later commit. */
static void rests_of_older_commits_stay(void)
{
    const uint64_t with_rest = 0x660ddd640b4cc; /* a seed that gives such a file */
    rng r = rng_from_seed(with_rest);
    sample s = sample_make(&r, ONE_HANDLE);
    CHECK(cv_load_be64(s.bytes + 16) < s.size, "no rest behind the frame");
    headers_come_back(&s);
    sample_free(&s);
}

/* A header that is partly the previous one and partly the next one. */
static void torn_headers_come_back(rng *r, sample *s)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_error err;
    caterva_array *array;
    char what[96];
    uint8_t *before = s->bytes;
    size_t n = header_size(s);
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    scratch_save(s->path, s->bytes, s->size);
    CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
    sample_change(r, s, array);
    caterva_discard(array);
    s->bytes = scratch_load(s->path, &s->size);
    for (size_t cut = 0; cut <= n; cut += PIECE) {
        for (int kind = 0; kind < 4; kind++) {
            bool new_first = kind % 2, sealed = kind < 2; /* else the copies alone decide */
            uint8_t *bytes = copy_of(s);
            if (!sealed) unseal(bytes, (size_t)cv_load_be64(bytes + 16));
            if (new_first)
                memcpy(bytes + cut, before + cut, n - cut);
            else
                memcpy(bytes, before, cut);
            snprintf(what, sizeof what, "%s, torn at %zu, new %s%s", writer_names[s->writer],
                     cut, new_first ? "first" : "last", sealed ? "" : ", unsealed");
            bool is_old = memcmp(bytes, before, n) == 0;
            if (is_old) s->n_states--; /* a commit that did not happen */
            verdict v = judge_repair(s, bytes, s->size, -1, 0, what);
            if (is_old) s->n_states++;
            bool good = is_old || memcmp(bytes, s->bytes, n) == 0;
            CHECK(v.status == CATERVA_OK && v.result.complete && v.result.in_place == !good,
                  "%s: not restored", what);
            free(bytes);
        }
    }
    free(before);
}

/* The chunk that may hold anything that decodes after byte `at` was changed in a file without
 * checksums; -1: none; -2: any chunk, since a changed header or index can misdirect it. */
static int64_t hit_by(const sample *s, size_t at)
{
    if (s->writer == SPARSE) return -2;
    if (at < header_size(s)) return s->writer == BLOSC2 ? -2 : -1;
    int64_t end = 0;
    for (int64_t i = 0; i < s->n_chunks; i++) {
        const extent *e = &s->chunks[i];
        if ((int64_t)at >= e->pos && (int64_t)at < e->pos + e->size) return i;
        if (e->pos + e->size > end) end = e->pos + e->size;
    }
    return (int64_t)at >= end ? -2 : -1;
}

static void ends_are_cut(const sample *s)
{
    char what[96];
    size_t step = s->size / TRUNCATIONS + 1;
    for (size_t size = s->size - 1; size > 0 && size < s->size;
         size = s->size - size < 64 ? size - 1
                : size > step       ? size - step
                                    : 0) {
        for (int zeroed = 0; zeroed < 2; zeroed++) {
            uint8_t *bytes = copy_of(s);
            memset(bytes + size, 0, s->size - size);
            snprintf(what, sizeof what, "%s, %s at %zu", writer_names[s->writer],
                     zeroed ? "zeroed" : "cut", size);
            int guess = s->writer == BLOSC2 || s->writer == SPARSE;
            int64_t hit = zeroed && s->writer == BLOSC2 ? hit_by(s, size)
                                                        : -1; /* it may still decode */
            verdict v = judge_repair(s, bytes, zeroed ? s->size : size, hit, guess, what);
            bool index_is_whole = size + 24 >= s->size;
            CHECK(!index_is_whole || v.status == CATERVA_OK, "%s: nothing was found", what);
            free(bytes);
        }
    }
}

static void bytes_are_flipped(rng *r, const sample *s, int flips)
{
    char what[96];
    for (int i = 0; i < flips; i++) {
        uint8_t *bytes = copy_of(s);
        bool at_end = rng_one_in(r, 3), in_header = rng_one_in(r, 4);
        size_t span = at_end || in_header ? 300 : s->size;
        size_t at = (size_t)rng_between(r, 0, (int64_t)(span < s->size ? span : s->size) - 1);
        if (at_end && !in_header) at = s->size - 1 - at;
        bytes[at] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        snprintf(what, sizeof what, "%s, byte %zu of %zu flipped", writer_names[s->writer],
                 at, s->size);
        /* Another shape that nothing contradicts: C-Blosc2's headers have no copy. */
        bool free_header = s->writer == BLOSC2 && at < header_size(s);
        int64_t hit = s->writer == BLOSC2 ? hit_by(s, at) : -1;
        if (!free_header) judge_repair(s, bytes, s->size, hit, 0, what);
        free(bytes);
    }
}

/* The position of the index that the header gives. */
static size_t index_position(const sample *s)
{
    enum { CBYTES_AT = 39 }; /* big-endian, see docs/format.md */
    size_t cbytes = 0;
    for (int i = 0; i < 8; i++) cbytes = cbytes << 8 | s->bytes[CBYTES_AT + i];
    return header_size(s) + (s->writer == SPARSE ? 0 : cbytes);
}

/* The seal names the chunks, and they are found at their positions. */
static void indexes_are_lost(const sample *s)
{
    for (size_t size = 1; size <= 32; size += 31) {
        uint8_t *bytes = copy_of(s);
        memset(bytes + index_position(s), 0xff, size);
        verdict v = judge_repair(s, bytes, s->size, -1, 0, "the index is overwritten");
        CHECK(v.status == CATERVA_OK && v.result.complete && v.result.written,
              "%s, index lost: %lld chunks lost", writer_names[s->writer],
              (long long)v.result.lost_chunks);
        free(bytes);
    }
}

/* The header and its copy at once. Copies of older headers exist: their state is not the last
 * commit, and not complete. */
static void copies_are_lost(rng *r, const sample *s, int rounds)
{
    char what[96];
    cv_header_copy copy = {.size = 0};
    CHECK(newest_copy(s->bytes, s->size, 0, &copy), "no copy");
    for (int i = 0; i < rounds; i++) {
        uint8_t *bytes = copy_of(s);
        size_t header = (size_t)rng_between(r, 0, (int64_t)header_size(s) - 1);
        size_t at = (size_t)(copy.pos + (uint64_t)rng_between(r, 0, (int64_t)copy.size - 1));
        bytes[header] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        bytes[at] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        if (rng_one_in(r, 4)) memset(bytes, 0, header_size(s));
        if (rng_one_in(r, 4)) memset(bytes + copy.pos, 0, (size_t)copy.size);
        snprintf(what, sizeof what, "%s, header at %zu, copy at %zu", writer_names[s->writer],
                 header, at);
        verdict v = judge_repair(s, bytes, s->size, -1, 0, what);
        CHECK(v.status != CATERVA_OK || v.result.found != CATERVA_FOUND_COPY, "%s: its copy",
              what);
        free(bytes);
    }
}

/* A damaged chunk and a damaged seal: the table after the chunk still has its checksums. */
static void seals_are_lost(rng *r, const sample *s)
{
    static const char magic[] = "cvseal1\n";
    char what[96];
    size_t footer = s->size - sizeof magic;
    while (memcmp(s->bytes + footer, magic, sizeof magic - 1) != 0) footer--;
    for (int64_t i = 0; i < 4 * s->n_chunks; i++) {
        uint8_t *bytes = copy_of(s);
        const extent *chunk = &s->chunks[i % s->n_chunks];
        size_t at = (size_t)rng_between(r, chunk->pos, chunk->pos + chunk->size - 1);
        size_t in_seal = footer - (size_t)rng_int(r, 1, 40);
        bytes[at] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        bytes[in_seal] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        snprintf(what, sizeof what, "%s, chunk %lld at %zu, seal at %zu",
                 writer_names[s->writer], (long long)(i % s->n_chunks), at, in_seal);
        judge_repair(s, bytes, s->size, -1, 0, what);
        free(bytes);
    }
}

/* Any damage: it is only required to end. */
static void anything_happens(rng *r, const sample *s, int rounds)
{
    char repaired[SCRATCH_PATH], path[SCRATCH_PATH];
    snprintf(repaired, sizeof repaired, "%.490s.repaired", s->path);
    for (int i = 0; i < rounds; i++) {
        uint8_t *bytes = copy_of(s);
        size_t size =
            rng_one_in(r, 4) ? (size_t)rng_between(r, 1, (int64_t)s->size) : s->size;
        for (int n = rng_int(r, 1, 12); n > 0; n--) {
            size_t span = rng_one_in(r, 2) && size > 200 ? 200 : size;
            size_t at = (size_t)rng_between(r, 0, (int64_t)span - 1);
            if (rng_one_in(r, 3)) at = size - 1 - at;
            bytes[at] = (uint8_t)rng_next(r);
        }
        caterva_repair_options options = CATERVA_REPAIR_INIT;
        caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
        options.durability = CATERVA_DURABILITY_NONE;
        options.guess = 1;
        scratch_save(sample_frame_path(s, path), bytes, size);
        (void)caterva_repair(s->path, &options, &result, NULL);
        scratch_remove(repaired);
        free(bytes);
        repairs_judged.n++;
    }
}

/* A chunk file of a directory is truncated, emptied, or deleted. */
static void chunk_files_are_lost(rng *r)
{
    for (int i = 0; i < 12; i++) {
        sample s = sample_make(r, SPARSE);
        char path[SCRATCH_PATH];
        int64_t chunk = rng_between(r, 0, s.n_chunks - 1);
        snprintf(path, sizeof path, "%.480s/%08llX.chunk", s.path,
                 (unsigned long long)s.chunks[chunk].pos);
        size_t size;
        uint8_t *bytes = scratch_load(path, &size);
        CHECK(bytes && size > 32, "no chunk file %s", path);
        if (i % 3 == 0)
            scratch_remove(path);
        else
            scratch_save(path, bytes, i % 3 == 1 ? 0 : size / 2);
        free(bytes);
        verdict v = judge_repair(&s, NULL, 0, -1, 0, "a chunk file is lost");
        CHECK(v.status == CATERVA_OK && v.result.written && v.result.lost_chunks == 1,
              "%lld chunks lost", (long long)v.result.lost_chunks);
        sample_free(&s);
    }
}

static void run(rng *r, writer w, int flips)
{
    sample s = sample_make(r, w);
    verdict v = judge_repair(&s, s.bytes, s.size, -1, 0, "a sound file");
    CHECK(v.status == CATERVA_OK && v.result.complete && !v.result.written &&
              !v.result.in_place,
          "a sound file was repaired");
    headers_come_back(&s);
    ends_are_cut(&s);
    bytes_are_flipped(r, &s, flips);
    anything_happens(r, &s, flips);
    if (w != BLOSC2) indexes_are_lost(&s);
    if (w != BLOSC2) copies_are_lost(r, &s, flips);
    if (w == ONE_HANDLE || w == REOPENED) seals_are_lost(r, &s);
    if (w == ONE_HANDLE || w == REOPENED) torn_headers_come_back(r, &s);
    sample_free(&s);
}

int main(int argc, char **argv)
{
    int flips = (int)number_argument(argc, argv, 1, DEFAULT_FLIPS);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    blosc2_init();
    rests_of_older_commits_stay();
    for (int w = ONE_HANDLE; w <= BLOSC2; w++) run(&r, (writer)w, flips);
    chunk_files_are_lost(&r);
    const repair_counts *c = &repairs_judged;
    printf("%d repairs: %d in place, %d into a new array, %d hopeless; %d of older commits, "
           "%d in guessed order, %d mixed\n",
           c->n, c->in_place, c->written, c->hopeless, c->older, c->guessed, c->mixed);
    CHECK(c->in_place > 0 && c->written > 0 && c->older > 0 && c->guessed > 0,
          "a way untried");
    blosc2_destroy();
    return 0;
}
