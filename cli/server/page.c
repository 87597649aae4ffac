/* Room: cli/server. The list of arrays. Text of files is escaped for HTML and URLs. */
#include "server/page.h"

#include "formats/item.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "server/viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list in the making. */
typedef struct page {
    FILE *out;
    json *j; /* NULL: HTML */
    bool has_view;
    int64_t n_listed, n_more;
} page;

static void put_html(FILE *out, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: putc(*text, out); break;
        }
}

/* A path in a URL: all but letters, digits and "-._~/" becomes %XX. */
static void put_url(FILE *out, const char *path)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (; *path; path++)
        fprintf(out, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
}

/* ---- An array ---------------------------------------------------------------------------- */

typedef struct row {
    const char *name; /* "x.zarr", "t.zarr/g/y" */
    const char *raw;  /* or NULL */
    const caterva_info *info;
} row;

static void put_row_json(const page *p, const row *r)
{
    json *j = p->j;
    json_begin_object(j, NULL);
    json_put_text(j, "name", r->name);
    json_put_text(j, "file", r->raw);
    json_put_text(j, "dtype", r->info->dtype);
    json_put_ints(j, "shape", r->info->shape, r->info->ndim);
    json_begin_array(j, "chunks"); /* as Zarr */
    for (int d = 0; d < r->info->ndim; d++) json_put_int(j, NULL, r->info->block_shape[d]);
    json_end_array(j);
    json_put_int(j, "data_bytes", r->info->data_bytes);
    json_put_int(j, "stored_bytes", r->info->frame_bytes);
    json_end_object(j);
}

static void put_shape(FILE *out, const caterva_info *info)
{
    for (int d = 0; d < info->ndim; d++)
        fprintf(out, "%s%lld", d ? " × " : "", (long long)info->shape[d]);
    if (info->ndim == 0) fputs("()", out);
}

static void put_row_html(const page *p, const row *r)
{
    FILE *out = p->out;
    char type[ITEM_NAME_SIZE], data[NUMBER_TEXT_SIZE], stored[NUMBER_TEXT_SIZE];
    caterva_dtype *dtype = NULL;
    (void)caterva_dtype_parse(r->info->dtype, &dtype, NULL);
    item_type_name(dtype, r->info->dtype, type);
    caterva_dtype_free(dtype);
    fputs(p->has_view ? "<tr><td class=\"preview\"></td><td><a href=\"/view/"
                      : "<tr><td></td><td><a href=\"/",
          out);
    put_url(out, r->name);
    fputs(p->has_view ? "\">" : "/zarr.json\">", out);
    put_html(out, r->name);
    fputs("</a></td><td>", out);
    put_shape(out, r->info);
    fputs("</td><td>", out);
    put_html(out, type);
    fprintf(out, "</td><td>%s</td><td>%s</td><td>", number_bytes(r->info->data_bytes, data),
            number_bytes(r->info->frame_bytes, stored));
    if (r->raw) {
        fputs("<a href=\"/", out);
        put_url(out, r->raw);
        fputs("\">file</a>", out);
    }
    fputs("</td></tr>\n", out);
}

static void put_array(page *p, opened_list *list, const char *place, const char *name,
                      const char *raw)
{
    opened handle;
    caterva_error err;
    row r = {.name = name, .raw = raw};
    if (p->n_listed == PAGE_ARRAYS) {
        p->n_more++;
        return;
    }
    if (opened_take(list, place, false, &handle, &err) != CATERVA_OK) {
        opened_report(list, place, &err);
        return;
    }
    if (caterva_info_get(handle.array, &r.info, NULL) == CATERVA_OK) {
        if (p->j)
            put_row_json(p, &r);
        else
            put_row_html(p, &r);
        p->n_listed++;
        caterva_info_release(r.info);
    }
    opened_give(list, &handle);
}

/* ---- A tree ------------------------------------------------------------------------------ */

static void put_member(page *p, opened_list *list, const shelf_item *item, const char *key)
{
    size_t size = strlen(item->path) + strlen(item->name) + strlen(key) + 8;
    char *texts = cli_alloc(2 * size);
    if (!texts) return;
    (void)snprintf(texts, size, "%s::%s", item->path, key);
    (void)snprintf(texts + size, size, "%s%s", item->name, key);
    put_array(p, list, texts, texts + size, NULL);
    free(texts);
}

static void put_tree(page *p, opened_list *list, const shelf_item *item)
{
    opened handle;
    caterva_error err;
    const caterva_tree_list *members;
    caterva_status status = opened_take(list, item->path, true, &handle, &err);
    if (status == CATERVA_OK) {
        status = caterva_tree_get_list(handle.tree, NULL, &members, &err);
        opened_give(list, &handle);
    }
    if (status != CATERVA_OK) {
        opened_report(list, item->path, &err);
        return;
    }
    for (size_t i = 0; i < members->n; i++)
        if (members->entries[i]->kind == CATERVA_TREE_ARRAY)
            put_member(p, list, item, members->entries[i]->key);
    caterva_tree_list_release(members);
}

/* ---- The whole --------------------------------------------------------------------------- */

static void put_items(page *p, const shelf *all, opened_list *list)
{
    for (size_t i = 0; i < all->n; i++) {
        const shelf_item *item = &all->items[i];
        if (item->is_tree)
            put_tree(p, list, item);
        else
            put_array(p, list, item->path, item->name, item->raw_name);
    }
}

static void put_html_page(page *p, const shelf *all, opened_list *list)
{
    FILE *out = p->out;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>Caterva</title>"
          "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;"
          "padding:0 1em}table{border-collapse:collapse;width:100%}"
          "th,td{text-align:left;padding:.2em 1em .2em 0;border-bottom:1px solid #ddd}"
          "td:nth-child(n+3){white-space:nowrap}.preview{width:98px}canvas{display:block;"
          "image-rendering:pixelated;max-width:96px;max-height:96px}@media(prefers-color-"
          "scheme:dark){"
          "body{background:#111;color:#ddd}a{color:#8bf}th,td{border-color:#333}}</style>"
          "</head><body><h1>Arrays</h1>\n<table><tr><th></th><th>name</th><th>shape</"
          "th><th>type</th>"
          "<th>size</th><th>stored</th><th></th></tr>\n",
          out);
    put_items(p, all, list);
    fputs("</table>\n", out);
    if (p->n_more > 0)
        fprintf(out, "<p>%lld more are not listed.</p>\n", (long long)p->n_more);
    if (all->is_cut) fprintf(out, "<p>Only %d files are served.</p>\n", SHELF_MOST);
    if (p->has_view)
        fputs("<script src=\"/viewer.js\"></script>\n", out);
    else
        fputs("<p>This program was built without Node, and without the viewer.</p>\n", out);
    fputs("<p>Each name is a Zarr v3 array or group, by HTTP; "
          "<a href=\"/index.json\">index.json</a> lists them.</p></body></html>\n",
          out);
}

static void put_json_page(page *p, const shelf *all, opened_list *list)
{
    json_begin_object(p->j, NULL);
    json_put_int(p->j, "schema", 1);
    json_begin_array(p->j, "arrays");
    put_items(p, all, list);
    json_end_array(p->j);
    json_put_int(p->j, "more", p->n_more);
    json_end_object(p->j);
    putc('\n', p->out);
}

char *page_list(const shelf *all, opened_list *handles, bool is_json, size_t *size)
{
    char *text = NULL;
    page p = {.out = open_memstream(&text, size), .has_view = viewer_n_assets > 0};
    if (!p.out) return NULL;
    json j = {.stream = p.out};
    if (is_json) p.j = &j;
    if (is_json)
        put_json_page(&p, all, handles);
    else
        put_html_page(&p, all, handles);
    if (fclose(p.out) == 0) return text;
    free(text);
    return NULL;
}
