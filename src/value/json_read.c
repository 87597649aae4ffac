/* Room: value. JSON -> MessagePack as python-blosc2 keeps it in an attribute. No recursion:
 * what stands around a value is on a stack of its own. */
#include "value/json_read.h"

#include "base/arith.h"
#include "value/decimal.h"
#include "value/json_typed.h"
#include "value/json_write.h"

#include <string.h>

typedef enum level_kind {
    LEVEL_LIST,
    LEVEL_WRAPPED, /* the list of a tuple or set, and the object around it */
    LEVEL_MAP,
    LEVEL_PAIRS /* the list of a "$map"; its pairs are no levels */
} level_kind;

typedef enum pair_state { PAIR_NONE, PAIR_KEY, PAIR_VALUE } pair_state;

typedef struct level {
    level_kind kind;
    pair_state pair; /* of pairs: what comes next or is there now */
} level;

typedef struct reader {
    cv_json_scan s;
    cv_packer p;
    level stack[CV_VALUE_DEPTH];
    int depth;
} reader;

/* ---- Scalars ------------------------------------------------------------ */

static void take_number(reader *r)
{
    bool whole, negative;
    uint64_t value;
    double real;
    size_t size = cv_json_number(&r->s, &whole);
    if (size == 0) {
        cv_json_fail(&r->s, "a value");
    } else if (whole) {
        if (!cv_decimal_whole(r->s.at, size, &negative, &value))
            cv_json_fail(&r->s, "an integer of at most 64 bits");
        else if (negative)
            cv_pack_int(&r->p, (int64_t)(0 - value));
        else
            cv_pack_uint(&r->p, value);
    } else if (!cv_decimal_real(r->s.at, size, &real)) {
        cv_json_fail(&r->s, "a number within the range of float64");
    } else {
        cv_pack_real(&r->p, real);
    }
    if (!cv_json_failed(&r->s)) r->s.at += size;
}

static void take_scalar(reader *r)
{
    cv_json_scan *s = &r->s;
    if (cv_json_accept_word(s, "null")) {
        cv_pack_nil(&r->p);
    } else if (cv_json_accept_word(s, "false")) {
        cv_pack_bool(&r->p, false);
    } else if (cv_json_accept_word(s, "true")) {
        cv_pack_bool(&r->p, true);
    } else if (s->at < s->end && *s->at == '"') {
        cv_json_take_text(s, "a text");
        cv_pack_text(&r->p, s->text.data, s->text.size);
    } else {
        take_number(r);
    }
}

/* ---- What JSON lacks ----------------------------------------------------- */

static void take_binary(reader *r)
{
    cv_buffer bytes = {0};
    cv_json_take_base64(&r->s, &bytes);
    cv_pack_binary(&r->p, bytes.data, bytes.size);
    cv_buffer_free(&bytes);
}

static void take_ext(reader *r)
{
    cv_buffer bytes = {0};
    bool whole, negative = false;
    uint64_t type = 0;
    size_t size = cv_json_number(&r->s, &whole);
    if (size == 0 || !whole || !cv_decimal_whole(r->s.at, size, &negative, &type) ||
        type > (negative ? 128 : 127))
        cv_json_fail(&r->s, "an extension's number, -128 to 127");
    else
        r->s.at += size;
    cv_json_expect(&r->s, ',', "','");
    cv_json_expect_key(&r->s, "data", "\"data\"");
    cv_json_take_base64(&r->s, &bytes);
    cv_pack_ext(&r->p, negative ? -(int)type : (int)type, bytes.data, bytes.size);
    cv_buffer_free(&bytes);
}

static void take_complex(reader *r)
{
    static const caterva_dtype type = {.kind = 'c', .byte_order = '>', .item_size = 16};
    cv_buffer bytes = {0};
    cv_json_take_item(&r->s, &type, &bytes);
    cv_pack_ext(&r->p, CV_EXT_COMPLEX, bytes.data, bytes.size);
    cv_buffer_free(&bytes);
}

/* ---- What has parts ----------------------------------------------------- */

static void push(reader *r, level_kind kind, cv_pack_kind pack)
{
    if (r->depth == CV_VALUE_DEPTH) {
        cv_json_fail(&r->s, "less depth");
        return;
    }
    cv_pack_begin(&r->p, pack);
    r->stack[r->depth++] = (level){.kind = kind};
}

/* Behind the word and its colon. True when a list was opened. */
static bool take_word(reader *r, cv_json_word word)
{
    switch (word) {
    case CV_WORD_BINARY: take_binary(r); break;
    case CV_WORD_COMPLEX: take_complex(r); break;
    case CV_WORD_ARRAY: cv_json_take_array(&r->s, &r->p); break;
    case CV_WORD_EXT: take_ext(r); break;
    default:
        cv_json_expect(&r->s, '[', "'['");
        if (word == CV_WORD_MAP)
            push(r, LEVEL_PAIRS, CV_PACK_MAP);
        else
            push(r, LEVEL_WRAPPED, word == CV_WORD_SET ? CV_PACK_SET : CV_PACK_LIST);
        if (word == CV_WORD_TUPLE && !cv_json_failed(&r->s))
            cv_pack_text(&r->p, CV_TUPLE_MARK, strlen(CV_TUPLE_MARK));
        return true;
    }
    cv_json_expect(&r->s, '}', "'}'");
    return false;
}

/* Behind '{': one of the words, or an object whose keys are taken one by one. */
static bool open_object(reader *r)
{
    const char *begins = r->s.at;
    if (cv_json_accept(&r->s, '"')) {
        r->s.at--;
        cv_json_take_text(&r->s, "a key in double quotes");
        if (cv_json_failed(&r->s)) return true;
        cv_json_word word = cv_json_word_find(r->s.text.data, r->s.text.size);
        if (word != CV_N_WORDS && cv_json_accept(&r->s, ':')) return take_word(r, word);
        r->s.at = begins;
    }
    push(r, LEVEL_MAP, CV_PACK_MAP);
    return true;
}

/* True when a list or map was opened: its values come next. */
static bool open_value(reader *r)
{
    if (cv_json_accept(&r->s, '{')) return open_object(r);
    if (!cv_json_accept(&r->s, '[')) {
        take_scalar(r);
        return false;
    }
    push(r, LEVEL_LIST, CV_PACK_LIST);
    return true;
}

static bool close_level(reader *r)
{
    level *l = &r->stack[r->depth - 1];
    if (cv_json_failed(&r->s)) return false;
    if (!cv_json_accept(&r->s, l->kind == LEVEL_MAP ? '}' : ']')) return false;
    if (l->kind == LEVEL_WRAPPED || l->kind == LEVEL_PAIRS) cv_json_expect(&r->s, '}', "'}'");
    cv_pack_end(&r->p);
    r->depth--;
    return true;
}

/* What stands in front of a value. */
static void begin_value(reader *r)
{
    level *l = r->depth > 0 ? &r->stack[r->depth - 1] : NULL;
    if (!l || cv_json_failed(&r->s)) return;
    if (l->kind == LEVEL_MAP) {
        cv_json_take_text(&r->s, "a key in double quotes");
        cv_pack_text(&r->p, r->s.text.data, r->s.text.size);
        cv_json_expect(&r->s, ':', "':'");
    } else if (l->kind == LEVEL_PAIRS && l->pair == PAIR_NONE) {
        cv_json_expect(&r->s, '[', "[key, value]");
        l->pair = PAIR_KEY;
    }
}

/* Behind a value, and behind all that ends with it. False when it was the last. */
static bool end_value(reader *r)
{
    while (r->depth > 0 && !cv_json_failed(&r->s)) {
        level *l = &r->stack[r->depth - 1];
        if (l->pair == PAIR_KEY) {
            cv_json_expect(&r->s, ',', "','");
            l->pair = PAIR_VALUE;
            return true;
        }
        if (l->pair == PAIR_VALUE) cv_json_expect(&r->s, ']', "']'");
        l->pair = PAIR_NONE;
        if (cv_json_failed(&r->s) || cv_json_accept(&r->s, ',')) return true;
        if (!close_level(r))
            cv_json_fail(&r->s, l->kind == LEVEL_MAP ? "',' or '}'" : "',' or ']'");
    }
    return false;
}

static bool is_key(const reader *r)
{
    return r->depth > 0 && r->stack[r->depth - 1].pair == PAIR_KEY;
}

static void take_value(reader *r)
{
    bool more = true;
    while (more && !cv_json_failed(&r->s)) {
        begin_value(r);
        if (cv_json_failed(&r->s)) return;
        bool key = is_key(r);
        bool opened = open_value(r);
        if (opened && key) cv_json_fail(&r->s, "a key that is no list and no map");
        if (opened && !cv_json_failed(&r->s) && !close_level(r)) continue;
        more = end_value(r);
        cv_json_tell(&r->s);
    }
}

static cv_status finish(reader *r, cv_buffer *out, cv_error *err)
{
    cv_status status = cv_json_scan_finish(&r->s, err);
    if (status != CV_OK) {
        cv_pack_free(&r->p);
        return status;
    }
    CV_TRY(cv_pack_finish(&r->p, out, err));
    return cv_watch_step(r->s.watch, r->s.end - r->s.told, err);
}

cv_status cv_json_read(const char *text, size_t size, cv_watch *watch, cv_buffer *out,
                       cv_error *err)
{
    reader r = {.s = cv_json_scan_of(text, size, watch),
                .p = {.watch = watch, .only_asks = true}};
    take_value(&r);
    return finish(&r, out, err);
}

/* ---- Of one dtype -------------------------------------------------------- */

typedef struct nest {
    int ndim; /* of the array, known at its first item; -1 before */
    int depth;
    int64_t counts[CATERVA_MAX_DIMS]; /* items and lists so far in the open lists */
    bool known[CATERVA_MAX_DIMS];     /* the first list of this depth was closed */
} nest;

static void open_list(cv_json_scan *s, nest *n)
{
    if (n->depth == CATERVA_MAX_DIMS)
        cv_json_fail(s, "at most 16 lists in one another");
    else if (n->ndim >= 0 && n->depth == n->ndim)
        cv_json_fail(s, "an item, as before");
    else
        n->counts[n->depth++] = 0;
}

static void close_list(cv_json_scan *s, nest *n, cv_typed *typed)
{
    int d = --n->depth;
    if (n->ndim < 0) n->ndim = d + 1; /* a list without items */
    if (n->known[d] && typed->shape[d] != n->counts[d])
        cv_json_fail(s, "as many items as in the list before");
    typed->shape[d] = n->counts[d];
    n->known[d] = true;
    if (d > 0) n->counts[d - 1]++;
}

static void take_lone_item(cv_json_scan *s, nest *n, cv_typed *typed, cv_buffer *items)
{
    if (n->ndim < 0) n->ndim = n->depth;
    if (n->depth != n->ndim) cv_json_fail(s, "'[', as before");
    if (!cv_json_failed(s)) cv_json_take_item(s, &typed->type, items);
    if (n->depth > 0) n->counts[n->depth - 1]++;
}

/* Lists of lists of items, all of one shape. */
static void take_nested(cv_json_scan *s, cv_typed *typed, cv_buffer *items)
{
    nest n = {.ndim = -1};
    do {
        while (!cv_json_failed(s) && cv_json_accept(s, '[')) open_list(s, &n);
        bool empty = n.depth > 0 && n.counts[n.depth - 1] == 0 && cv_json_accept(s, ']');
        if (cv_json_failed(s)) return;
        if (empty)
            close_list(s, &n, typed);
        else
            take_lone_item(s, &n, typed, items);
        while (!cv_json_failed(s) && n.depth > 0 && cv_json_accept(s, ']'))
            close_list(s, &n, typed);
        if (n.depth > 0) cv_json_expect(s, ',', "',' or ']'");
        cv_json_tell(s);
    } while (!cv_json_failed(s) && n.depth > 0);
    typed->ndim = n.ndim;
}

cv_status cv_json_read_typed(const char *text, size_t size, const char *dtype,
                             cv_watch *watch, cv_buffer *out, cv_error *err)
{
    cv_typed typed = {.ndim = 0};
    CV_TRY(cv_typed_set_dtype(&typed, dtype, strlen(dtype), err));
    if (typed.type.item_size == 0 || typed.type.kind == 'c')
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "items of dtype %.60s cannot be given as numbers or texts", dtype);
    reader r = {.s = cv_json_scan_of(text, size, watch),
                .p = {.watch = watch, .only_asks = true}};
    cv_buffer items = {0};
    int64_t bytes;
    take_nested(&r.s, &typed, &items);
    typed.items = items.data;
    if (!cv_json_failed(&r.s) && cv_typed_count(&typed, &bytes)) cv_typed_pack(&typed, &r.p);
    cv_buffer_free(&items);
    return finish(&r, out, err);
}
