/* Room: frame. Which frames are arrays: those with the array's metalayer, unless
 * another one says that its items are not there (expressions, proxies), and plain
 * frames of fixed items. The rest is refused by the name of what it is. */
#include "frame/kinds.h"

#include <string.h>

typedef struct kind {
    const char *metalayer;
    const char *what;
} kind;

/* Beside b2nd: the chunks are empty, or not all there. */
static const kind stand_ins[] = {
    {"b2o", "an object without items of its own"},
    {"LazyArray", "a lazy expression"},
    {"proxy-source", "a proxy"},
};

/* Without b2nd. A list is kept in one of the two below it, a remote store in a tree. */
static const kind objects[] = {
    {"b2remote_store", "a remote store"},         {"b2tree", "a tree of arrays"},
    {"b2dict", "a dictionary of arrays"},         {"b2embed", "a store of arrays"},
    {"listarray", "an array of lists"},           {"batcharray", "an array of batches"},
    {"vlarray", "an array of items of any size"}, {"__pack_tensor__", "a packed tensor"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* What python-blosc2 calls it: the text behind "kind", which a `b2o` begins with. */
static int find_name(const cv_metalayer *layer, const char **out)
{
    static const char key[] = "\xa4kind";
    enum { KEY = sizeof key - 1, FIXSTR = 0xa0, LONGEST = 0x1f };
    for (uint32_t i = 0; i + KEY < layer->size; i++) {
        if (memcmp(layer->data + i, key, KEY) != 0) continue;
        uint8_t marker = layer->data[i + KEY];
        int size = marker & LONGEST;
        if ((marker & ~LONGEST) != FIXSTR || layer->size - i - KEY - 1 < (uint32_t)size)
            break;
        *out = (const char *)layer->data + i + KEY + 1;
        return size;
    }
    return 0;
}

static cv_status refuse(const kind *k, const cv_metalayer *layer, cv_error *err)
{
    const char *name = "";
    int size = find_name(layer, &name);
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s (python-blosc2's \"%s\"%s%.*s), not an n-d array", k->what,
                   k->metalayer, size > 0 ? ": " : "", size, name);
}

static cv_status check(const kind *kinds, size_t n_kinds, const cv_metalayer *layers, int n,
                       cv_error *err)
{
    for (size_t i = 0; i < n_kinds; i++) {
        const cv_metalayer *layer = cv_metalayers_find(layers, n, kinds[i].metalayer);
        if (layer) return refuse(&kinds[i], layer, err);
    }
    return CV_OK;
}

cv_status cv_kind_check(const cv_frame_header *header, bool is_array, cv_error *err)
{
    const cv_metalayer *layers = header->metalayers;
    int n = header->n_metalayers;
    CV_TRY(check(stand_ins, COUNT(stand_ins), layers, n, err));
    return is_array ? CV_OK : check(objects, COUNT(objects), layers, n, err);
}

cv_status cv_kind_check_attributes(const cv_metalayer *attributes, int n, cv_error *err)
{
    return check(objects, COUNT(objects), attributes, n, err);
}

static cv_status check_plain(const cv_frame_header *h, cv_error *err)
{
    if (h->vl_blocks)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of variable-length blocks, not an n-d array");
    if (h->nbytes > 0 && (h->variable_chunks || h->chunk_size == 0))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of variable-size chunks, not an n-d array");
    if (h->nbytes % h->type_size != 0 || h->chunk_size % h->type_size != 0)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of %lld bytes in chunks of %d, which are no whole "
                       "items of %d",
                       (long long)h->nbytes, h->chunk_size, h->type_size);
    if (h->chunk_size > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of chunks of %d bytes, %lld can be read",
                       h->chunk_size, (long long)CV_MAX_BLOCK_BYTES);
    return CV_OK;
}

static const cv_metalayer *find_kind(const kind *kinds, size_t n_kinds,
                                     const cv_frame_header *h)
{
    const cv_metalayer *found = NULL;
    for (size_t i = 0; i < n_kinds && !found; i++)
        found = cv_metalayers_find(h->metalayers, h->n_metalayers, kinds[i].metalayer);
    return found;
}

void cv_kind_name(const cv_frame_header *h, char name[CV_KIND_NAME], bool *readable)
{
    const char *word = NULL;
    int size = 0;
    bool is_array = cv_metalayers_find(h->metalayers, h->n_metalayers, "b2nd") ||
                    cv_metalayers_find(h->metalayers, h->n_metalayers, "caterva");
    const cv_metalayer *layer = find_kind(stand_ins, COUNT(stand_ins), h);
    if (!layer && !is_array) layer = find_kind(objects, COUNT(objects), h);
    if (layer) size = find_name(layer, &word);
    if (size == 0) word = layer ? layer->name : is_array ? "array" : "schunk";
    if (size == 0) size = (int)strlen(word);
    memcpy(name, word, (size_t)size); /* 31 bytes at most */
    name[size] = 0;
    *readable = !layer && (is_array || check_plain(h, NULL) == CV_OK);
}

cv_status cv_kind_plain(const cv_frame_header *h, cv_array_meta *out, cv_error *err)
{
    CV_TRY(check_plain(h, err));
    int32_t chunk = h->chunk_size / h->type_size;
    if (chunk == 0) chunk = 1; /* of a frame of no chunks */
    *out = (cv_array_meta){
        .plain = true,
        .ndim = 1,
        .shape = {h->nbytes / h->type_size},
        .chunk_shape = {chunk},
        .block_shape = {chunk},
    };
    return CV_OK;
}
