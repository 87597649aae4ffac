/* Helper of the compatibility tests: each line on stdin is an operation on an array; the
 * response is one line of JSON. One process serves many lines, so that a large matrix runs
 * fast, also under sanitizers.
 *
 * A line is tab-separated key=value words, one of them `op`:
 *   op=read    url [offset] [frame: the file's bytes as a frame, 1 borrowed,
 *              2 copied] [threads] [boxes] out: the whole array, then each box
 *   op=create  url or frame_out; shape, chunks, blocks, dtype, item_size, codec,
 *              codec_meta, level, use_dict, filters, filters_meta, kind, layout,
 *              fill, fill_value, meta; then as write, if there is `file`
 *   op=copy    url, to; zarr, overwrite; also the words of create, for what differs
 *   op=write   url, file: the bytes of all boxes, concatenated, [boxes: default
 *              the whole array], [commit_each]
 * Lists are a,b,c; a box is 0:5,2:3 ("." with 0 dimensions), boxes are separated by
 * `;`, bytes are hexadecimal. */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/answer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/job.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static caterva_status copy_box_out(caterva_array *a, const bounds *b, FILE *out,
                                   caterva_error *err)
{
    void *bytes = check_alloc(b->size);
    caterva_status status = caterva_read(a, b->start, b->stop, bytes, b->size, err);
    if (status == CATERVA_OK)
        CHECK(fwrite(bytes, 1, b->size, out) == b->size, "cannot write the answer");
    free(bytes);
    return status;
}

static caterva_status copy_boxes_out(caterva_array *a, const job *j, caterva_error *err)
{
    const caterva_info *info = info_of(a);
    const char *boxes = find_word(j, "boxes");
    bounds b = whole_array(info);
    FILE *out = fopen(need_word(j, "out"), "wb");
    CHECK(out != NULL, "cannot open %s", need_word(j, "out"));
    caterva_status status = copy_box_out(a, &b, out, err);
    while (status == CATERVA_OK && next_box(&boxes, info, &b))
        status = copy_box_out(a, &b, out, err);
    fclose(out);
    return status;
}

static caterva_status answer_about(caterva_array *a, const job *j, FILE *to,
                                   caterva_error *err)
{
    put_info(to, info_of(a));
    caterva_status status = copy_boxes_out(a, j, err);
    if (status == CATERVA_OK) status = put_attributes(to, a, err);
    if (status == CATERVA_OK) put_metalayers(to, a);
    if (status == CATERVA_OK) status = put_damage(to, a, err);
    return status;
}

static caterva_status run_read(const job *j, FILE *to, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a = NULL;
    caterva_status status;
    uint8_t *bytes = NULL;
    size_t size = 0;
    int frame = (int)find_number(j, "frame");
    options.offset = (uint64_t)find_number(j, "offset");
    options.threads = (int)find_number(j, "threads");
    if (frame > 0) {
        bytes = scratch_load(need_word(j, "url"), &size);
        CHECK(bytes != NULL, "no file %s", need_word(j, "url"));
        status = caterva_frame_open(bytes, size, frame == 2, &options, &a, err);
    } else {
        status = caterva_open(need_word(j, "url"), &options, &a, err);
    }
    if (status == CATERVA_OK) status = answer_about(a, j, to, err);
    caterva_discard(a);
    free(bytes);
    return status;
}

static caterva_status write_boxes(caterva_array *a, const job *j, caterva_error *err)
{
    const caterva_info *info = info_of(a);
    const char *boxes = find_word(j, "boxes");
    bounds b = whole_array(info);
    size_t size = 0;
    size_t at = 0;
    caterva_status status = CATERVA_OK;
    uint8_t *bytes = scratch_load(need_word(j, "file"), &size);
    CHECK(bytes != NULL, "no file %s", need_word(j, "file"));
    int more = boxes == NULL || next_box(&boxes, info, &b);
    while (more && status == CATERVA_OK) {
        CHECK(b.size <= size - at, "%s is too short", need_word(j, "file"));
        status = caterva_write(a, b.start, b.stop, bytes + at, b.size, err);
        if (status == CATERVA_OK && find_number(j, "commit_each"))
            status = caterva_commit(a, err);
        info = info_of(a);
        at += b.size;
        more = next_box(&boxes, info, &b);
    }
    free(bytes);
    return status;
}

static caterva_status save_frame(caterva_array *a, const char *path, caterva_error *err)
{
    void *frame = NULL;
    size_t size = 0;
    caterva_status status = caterva_frame_copy(a, &frame, &size, err);
    if (status == CATERVA_OK) scratch_save(path, frame, size);
    caterva_free(frame);
    return status;
}

/* Writes the job's data and closes; keeps the status of the first failure. */
static caterva_status write_and_close(caterva_array *a, const job *j, caterva_error *err)
{
    caterva_status status = CATERVA_OK;
    if (find_word(j, "file") != NULL) status = write_boxes(a, j, err);
    if (status == CATERVA_OK && find_word(j, "frame_out") != NULL)
        status = save_frame(a, find_word(j, "frame_out"), err);
    if (status != CATERVA_OK) {
        caterva_discard(a);
        return status;
    }
    return caterva_close(a, err);
}

static caterva_status run_create(const job *j, caterva_error *err)
{
    static spec s; /* large */
    caterva_create_options options = parse_options(j, &s);
    caterva_array *a = NULL;
    const char *url = find_word(j, "url");
    caterva_status status = caterva_create(url != NULL ? url : "mem:", &options, &a, err);
    return status == CATERVA_OK ? write_and_close(a, j, err) : status;
}

static caterva_status run_copy(const job *j, caterva_error *err)
{
    static spec s; /* large */
    caterva_create_options create = parse_options(j, &s);
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_array *a = NULL;
    options.create = &create;
    options.zarr = (int)find_number(j, "zarr");
    create.overwrite = (int)find_number(j, "overwrite");
    create.durability = CATERVA_DURABILITY_NONE;
    caterva_status status = caterva_open(need_word(j, "url"), NULL, &a, err);
    if (status == CATERVA_OK)
        status = caterva_copy(a, need_word(j, "to"), &options, NULL, err);
    caterva_discard(a);
    return status;
}

static caterva_status run_write(const job *j, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a = NULL;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    caterva_status status = caterva_open(need_word(j, "url"), &options, &a, err);
    return status == CATERVA_OK ? write_and_close(a, j, err) : status;
}

static void run_job(const job *j)
{
    char *text = NULL;
    size_t size = 0;
    caterva_error err = {.message = ""};
    caterva_status status;
    FILE *to = open_memstream(&text, &size);
    CHECK(to != NULL, "no memory stream");
    const char *op = need_word(j, "op");
    if (strcmp(op, "read") == 0)
        status = run_read(j, to, &err);
    else if (strcmp(op, "create") == 0)
        status = run_create(j, &err);
    else if (strcmp(op, "copy") == 0)
        status = run_copy(j, &err);
    else
        status = run_write(j, &err);
    fclose(to);
    printf("{\"status\":\"%s\"", caterva_status_name(status));
    put_key_text(stdout, "message", err.message);
    printf("%s}\n", status == CATERVA_OK ? text : "");
    fflush(stdout);
    free(text);
}

int main(void)
{
    serve_jobs(run_job);
    return 0;
}
