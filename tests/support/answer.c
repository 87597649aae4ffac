/* Test support: writes descriptions of arrays as JSON, for helper programs. */
#include "answer.h"
#include "info.h"

#include <caterva_upkeep.h>
#include <stdint.h>

void put_text(FILE *to, const char *text)
{
    if (text == NULL) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

void put_key_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, ",\"%s\":", key);
    put_text(to, text);
}

static void put_list(FILE *to, const char *key, int n, const int64_t *wide,
                     const int32_t *narrow)
{
    fprintf(to, ",\"%s\":[", key);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%lld", i > 0 ? "," : "",
                (long long)(wide != NULL ? wide[i] : narrow[i]));
    fputc(']', to);
}

static void put_named_hex(FILE *to, int nth, const char *name, const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    fputs(nth > 0 ? "," : "", to);
    put_text(to, name);
    fputs(":\"", to);
    for (size_t i = 0; i < size; i++) fprintf(to, "%02x", byte[i]);
    fputc('"', to);
}

void put_info(FILE *to, const caterva_info *info)
{
    put_list(to, "shape", info->ndim, info->shape, NULL);
    put_list(to, "chunks", info->ndim, NULL, info->chunk_shape);
    put_list(to, "blocks", info->ndim, NULL, info->block_shape);
    /* numbers as in the frame: 0 is no filter, level 0 no compression */
    int filters[CATERVA_MAX_FILTERS];
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        filters[i] = info->filters[i] == CATERVA_FILTER_NONE ? 0 : info->filters[i];
    put_list(to, "filters", CATERVA_MAX_FILTERS, NULL, filters);
    put_list(to, "filters_meta", CATERVA_MAX_FILTERS, NULL, info->filters_meta);
    put_key_text(to, "dtype", info->dtype);
    put_key_text(to, "dtype_stored", info->dtype_stored);
    fprintf(to, ",\"disagrees\":%d,\"item_size\":%d,\"codec\":%d,\"codec_meta\":%d",
            info->dtype_disagrees, (int)info->item_size,
            info->codec == CATERVA_CODEC_BLOSCLZ ? 0 : info->codec, info->codec_meta);
    fprintf(to, ",\"level\":%d,\"use_dict\":%d,\"n_chunks\":%lld",
            info->level == CATERVA_NONE ? 0 : info->level, info->use_dict,
            (long long)info->n_chunks);
    put_key_text(to, "kind", info->metalayer == CATERVA_METALAYER_B2ND ? "b2nd" : "caterva");
    put_key_text(to, "layout",
                 info->layout == CATERVA_LAYOUT_SPARSE ? "sparse" : "contiguous");
}

caterva_status put_attributes(FILE *to, caterva_array *a, caterva_error *err)
{
    caterva_status status = CATERVA_OK;
    fputs(",\"attributes\":{", to);
    const caterva_info *info = info_of(a);
    for (int i = 0; i < info->n_attributes && status == CATERVA_OK; i++) {
        const char *name = info->attribute_names[i];
        void *value = NULL;
        size_t size = 0;
        status = caterva_attr_get(a, name, &value, &size, err);
        if (status == CATERVA_OK) put_named_hex(to, i, name, value, size);
        caterva_free(value);
    }
    fputc('}', to);
    return status;
}

void put_metalayers(FILE *to, caterva_array *a)
{
    const caterva_info *info = info_of(a);
    fputs(",\"metalayers\":{", to);
    for (int i = 0; i < info->n_metalayers; i++) {
        const caterva_metalayer *m = caterva_info_metalayer(info, info->metalayers[i].name);
        put_named_hex(to, i, m->name, m->content, m->size);
    }
    fputc('}', to);
}

caterva_status put_damage(FILE *to, caterva_array *a, caterva_error *err)
{
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_status status = caterva_verify(a, &options, &result, err);
    if (status == CATERVA_OK) fprintf(to, ",\"damages\":%lld", (long long)result.damages);
    return status;
}
