/* Room: cli/commands. `caterva info`: reads the header, and one header per chunk to count stored
 * chunks and dead bytes. Decodes no item. Damage found after the header is reported last, after
 * everything that can be read. */
#include "commands/foreign_report.h"
#include "commands/info_json.h"
#include "commands/info_line.h"
#include "commands/info_report.h"
#include "commands/info_tree.h"
#include "formats/item.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/foreign_source.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_jobs.h>
#include <caterva_remote.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const chunk_kinds[] = {"stored", "zeros", "nan", "value", "uninit"};

/* ---- Values, shortened to one line ------------------------------------------------------ */

#define SHORT_VALUE 60

static void print_short(const char *text, size_t size)
{
    bool cut = size > SHORT_VALUE;
    if (cut) size = SHORT_VALUE - 4; /* leaves room for " ..." */
    while (cut && size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
        size--; /* cuts before a UTF-8 sequence */
    printf("%.*s%s", (int)size, text, cut ? " ..." : "");
}

static cli_exit print_attribute(const report *r, const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return cli_fail_sys("no memory for an attribute");
    json j = {.stream = stream};
    cli_exit code = report_attribute_json(r, name, &j);
    fclose(stream);
    if (code == CLI_OK) {
        printf("    ");
        print_short(text, size);
        putchar('\n');
    }
    free(text);
    return code;
}

/* ---- Text ---------------------------------------------------------------- */

static int digits_of(int64_t value) { return snprintf(NULL, 0, "%lld", (long long)value); }

/* Prints "181 x 217 x 181", each number as wide as the widest in its column. */
static void print_extents(const char *label, const int64_t *extents, const int *widths,
                          int ndim)
{
    printf("  %-8s ", label);
    for (int d = 0; d < ndim; d++)
        printf("%s%*lld", d ? " x " : "", widths[d], (long long)extents[d]);
    printf("%s", ndim ? "" : "()");
}

/* Prints "2 x 2 x 1 = 4 chunks", or "2 chunks" for one axis. */
static void print_product(const int64_t *counts, int ndim, int64_t product, const char *noun)
{
    for (int d = 0; d < ndim && ndim > 1; d++)
        printf("%lld%s", (long long)counts[d], d + 1 < ndim ? " x " : " = ");
    printf("%lld %s", (long long)product, noun);
}

static void print_partition(const report *r)
{
    const caterva_info *info = r->info;
    int64_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    int widths[CATERVA_MAX_DIMS];
    char bytes[NUMBER_TEXT_SIZE], type[ITEM_NAME_SIZE];
    for (int d = 0; d < info->ndim; d++) {
        chunk[d] = info->chunk_shape[d];
        block[d] = info->block_shape[d];
        int shape_width = digits_of(info->shape[d]), chunk_width = digits_of(chunk[d]);
        widths[d] = shape_width > chunk_width ? shape_width : chunk_width;
    }
    item_type_name(r->dtype, info->dtype, type);

    print_extents("shape", info->shape, widths, info->ndim);
    printf("     %s     %s     ratio %.2f\n", cli_show(type).text,
           number_bytes(info->data_bytes, bytes),
           report_ratio(info->data_bytes, info->frame_bytes));
    print_extents("chunks", chunk, widths, info->ndim);
    printf("     ");
    print_product(info->chunk_counts, info->ndim, info->n_chunks,
                  info->n_chunks == 1 ? "chunk" : "chunks");
    if (r->measured)
        printf("  (%lld stored, %lld special)", (long long)r->space.stored_chunks,
               (long long)r->space.special_chunks);
    putchar('\n');
    print_extents("blocks", block, widths, info->ndim);
    printf("     ");
    print_product(info->block_counts, info->ndim, info->n_blocks, "per chunk");
    printf(", %s each\n", number_bytes(info->block_bytes, bytes));
}

static void print_dims(const report *r)
{
    const char **names = dims_of(r->array);
    if (!names) return;
    printf("  %-8s ", "dims");
    for (int d = 0; d < r->info->ndim; d++)
        printf("%s%s", d ? ", " : "", names[d] ? cli_show(names[d]).text : "-");
    printf("%s\n", r->info->ndim ? "" : "()");
    caterva_free(names);
}

static cli_exit print_fill(const report *r)
{
    char *text;
    size_t size;
    if (!r->dtype) return CLI_OK;
    CLI_TRY(report_fill_text(r, &text, &size));
    printf("     fill ");
    print_short(text, size);
    free(text);
    return CLI_OK;
}

static cli_exit print_codec(const report *r)
{
    const caterva_info *info = r->info;
    char number[16], bytes[NUMBER_TEXT_SIZE];
    printf("  %-8s %s %d", "codec",
           report_name(caterva_codec_name(info->codec), info->codec, number),
           report_level(info));
    if (info->codec_meta) printf(":%d", report_codec_meta(info));
    if (info->use_dict) printf(" with dictionary");
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        int filter = info->filters[i];
        if (filter == CATERVA_FILTER_NONE) continue;
        printf(", %s", report_name(caterva_filter_name(filter), filter, number));
        if (info->filters_meta[i]) printf(":%d", info->filters_meta[i]);
    }
    CLI_TRY(print_fill(r));
    if (r->measured) printf("     dead %s", number_bytes(r->space.dead_bytes, bytes));
    putchar('\n');
    return CLI_OK;
}

static bool has_filter(const caterva_info *info, int filter)
{
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (info->filters[i] == filter) return true;
    return false;
}

static void print_remarks(const report *r)
{
    const caterva_info *info = r->info;
    if (info->dtype_disagrees)
        printf("  remark   the stored dtype %s does not match the item size of %d bytes; "
               "items are read as bytes\n",
               cli_show(info->dtype_stored).text, info->item_size);
    if (has_filter(info, CATERVA_FILTER_DELTA))
        printf("  remark   filter delta: C-Blosc2 reads whole chunks correctly, but parts "
               "of them wrongly\n");
    if (info->header_bytes > 512)
        printf("  remark   the header has %lld bytes, more than a 512-byte sector; a power "
               "failure may tear it\n",
               (long long)info->header_bytes);
    if (r->measured && r->space.dead_bytes > info->frame_bytes / 2)
        printf("  remark   more than half of the file is dead space\n");
    if (r->measured && info->sealed && r->space.unverified_chunks > 0)
        printf("  remark   %lld chunks have no checksums yet\n",
               (long long)r->space.unverified_chunks);
}

static void print_transfers(const report *r)
{
    caterva_transfers t = CATERVA_TRANSFERS_INIT;
    char bytes[NUMBER_TEXT_SIZE];
    if (caterva_transfers_get(r->array, &t, NULL) != CATERVA_OK) return;
    printf("  fetched  %s in %lld %s\n", number_bytes(t.bytes, bytes), (long long)t.requests,
           t.requests == 1 ? "request" : "requests");
}

/* Prints the names of all metalayers. Prints nothing if "b2nd" or "caterva" is the only one. */
static void print_metalayers(const report *r)
{
    const char *name;
    if (r->info->n_metalayers < 2) return;
    printf("  %-8s", "metalayers");
    for (int i = 0; (name = metalayer_of(r->array, i)); i++) {
        putchar(' ');
        json_quote(stdout, name, strlen(name));
    }
    putchar('\n');
}

static cli_exit print_metadata(const report *r)
{
    const char *name;
    print_metalayers(r);
    if (r->info->n_attributes > 0) printf("  attributes\n");
    for (int i = 0; (name = attribute_of(r->array, i)); i++)
        CLI_TRY(print_attribute(r, name));
    return CLI_OK;
}

static cli_exit print_text(const report *r)
{
    const caterva_info *info = r->info;
    char bytes[NUMBER_TEXT_SIZE];
    printf("%s   %s in a %s frame, %s, %s\n", cli_show_place(r->path).text,
           report_kind(info->metalayer).text,
           info->layout == CATERVA_LAYOUT_SPARSE ? "sparse" : "contiguous",
           number_bytes(info->frame_bytes, bytes), info->sealed ? "sealed" : "unsealed");
    print_partition(r);
    print_dims(r);
    CLI_TRY(print_codec(r));
    print_remarks(r);
    print_transfers(r);
    return print_metadata(r);
}

/* ---- Chunks -------------------------------------------------------------- */

static void put_chunk(json *j, const caterva_chunk_info *chunk, int ndim)
{
    json_begin_object(j, NULL);
    json_put_int(j, "chunk", chunk->chunk);
    json_put_ints(j, "index", chunk->index, ndim);
    json_put_text(j, "kind", chunk_kinds[chunk->kind]);
    json_put_int(j, "position", chunk->position);
    json_put_int(j, "stored_bytes", chunk->stored_bytes);
    json_put_bool(j, "memcpyed", chunk->memcpyed);
    json_end_object(j);
}

static void print_chunk(const caterva_chunk_info *chunk, const caterva_info *info)
{
    printf("  chunk %lld (", (long long)chunk->chunk);
    for (int d = 0; d < info->ndim; d++)
        printf("%s%lld", d ? "," : "", (long long)chunk->index[d]);
    printf(")  %s", chunk_kinds[chunk->kind]);
    if (chunk->stored_bytes > 0)
        printf("  at %lld, %lld bytes, ratio %.2f%s", (long long)chunk->position,
               (long long)chunk->stored_bytes,
               report_ratio(info->chunk_bytes, chunk->stored_bytes),
               chunk->memcpyed ? ", not compressed" : "");
    putchar('\n');
}

/* Lists the chunks: as text if `j` is NULL, otherwise as JSON. */
static cli_exit list_chunks(const report *r, json *j)
{
    caterva_error err;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    if (j) json_begin_array(j, "chunks");
    for (int64_t i = 0; i < r->info->n_chunks; i++) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (caterva_chunk_describe(r->array, i, &chunk, &err) != CATERVA_OK)
            return cli_fail_array(r->path, &err);
        if (j)
            put_chunk(j, &chunk, r->info->ndim);
        else
            print_chunk(&chunk, r->info);
    }
    if (j) json_end_array(j);
    return CLI_OK;
}

/* ---- Jobs ----------------------------------------------------------------- */

/* Lists the jobs of the array, if any: as text if `j` is NULL, otherwise as JSON. */
static cli_exit list_jobs(const report *r, json *j)
{
    caterva_error err;
    const caterva_job_list *list;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    options.progress.report = progress_tell;
    caterva_status status = caterva_jobs_list(r->path, &options, &list, &err);
    if (status == CATERVA_EUNSUPPORTED)
        return CLI_OK; /* the library was built without jobs */
    if (status != CATERVA_OK) return cli_fail_array(r->path, &err);
    if (j && list->n > 0) json_begin_array(j, "jobs");
    for (size_t i = 0; i < list->n; i++) {
        const caterva_job_entry *job = list->entries[i];
        if (j)
            json_put_text(j, NULL, job->id);
        else
            printf("  job      %s, %lld %s%s\n", job->id, (long long)job->n_parts,
                   job->n_parts == 1 ? "part" : "parts",
                   job->has_ended
                       ? "; ended, but parts could not be deleted; see caterva jobs"
                   : job->is_live ? ""
                                  : "; no coordinator; see caterva jobs");
    }
    if (j && list->n > 0) json_end_array(j);
    caterva_job_list_release(list);
    return CLI_OK;
}

static cli_exit print_json(const report *r, bool chunks)
{
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    CLI_TRY(info_put_fields(&j, r));
    CLI_TRY(list_jobs(r, &j));
    if (chunks) CLI_TRY(list_chunks(r, &j));
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

static cli_exit print_report(const report *r, const cli_args *args)
{
    if (args->short_lines && !args->json) {
        info_line_print(r->path, r->info, r->dtype);
        return CLI_OK;
    }
    if (args->json) return print_json(r, args->list_chunks);
    CLI_TRY(print_text(r));
    CLI_TRY(list_jobs(r, NULL));
    return args->list_chunks ? list_chunks(r, NULL) : CLI_OK;
}

static cli_exit info(const cli_args *args, const char *path)
{
    report r = {.path = path, .space = CATERVA_SPACE_INIT};
    bool text = !args->json && !args->short_lines;
    cli_exit opened = cli_open_array(args, path, CATERVA_MODE_READ, &r.array);
    if (opened != CLI_OK && args->short_lines && !args->json)
        info_line_print(path, NULL, NULL);
    if (opened != CLI_OK) return opened;
    if (text && path != args->files[0]) putchar('\n');
    caterva_error err;
    r.info = info_of(r.array);
    cli_exit code = report_gather(&r);
    bool is_far = cli_is_url(path); /* measuring needs a request per chunk */
    r.measured = !is_far && caterva_measure(r.array, &r.space, &err) == CATERVA_OK;
    if (code == CLI_OK) code = print_report(&r, args);
    if (code == CLI_OK && !r.measured && !is_far) code = cli_fail_array(r.path, &err);
    caterva_dtype_free(r.dtype);
    free(r.fill);
    caterva_discard(r.array);
    return code;
}

static cli_exit info_any(const cli_args *args, const char *path)
{
    if (foreign_place_is(path)) return foreign_info_print(args, path);
    return tree_part_is(args, path) ? info_tree(args, path, info) : info(args, path);
}

static cli_exit run_info(const cli_args *args)
{
    if (args->short_lines && args->list_chunks)
        return cli_fail(CLI_USAGE, "--short and --chunks exclude each other");
    return cli_each_file(args, info_any);
}

const cli_command cli_command_info = {
    .name = "info",
    .synopsis = "FILE...",
    .summary = "describe an array: shape, dtype, partition, codec, ratio",
    .details =
        "Describes each FILE: shape, dtype, chunks and blocks, codec, fill, compression\n"
        "ratio, stored and special chunks, dead bytes, metalayers and attributes. If a FILE\n"
        "cannot be read, the others are described all the same, and the exit status is the\n"
        "worst. For a tree (.b2z, .b2d) or a group: its totals, dimensions and attributes;\n"
        "with --short, a line for each of its arrays. Files of other formats are described\n"
        "in the same way.",
    .options = CLI_OPT_JSON | CLI_OPT_SHORT | CLI_OPT_LIST_CHUNKS | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = CLI_ANY_NUMBER,
    .run = run_info,
};
