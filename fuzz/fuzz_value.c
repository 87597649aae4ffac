/* Any bytes as a value of an attribute, and as JSON: what is printed can be read, what was
 * read is a value, and both ways end where they began. */
#include "fuzz.h"

#include "format/values.h"
#include "value/json_read.h"
#include "value/json_write.h"
#include <caterva_value.h>

static void write_json(const cv_buffer *value, cv_buffer *json)
{
    FUZZ_NEED(cv_json_write(value->data, value->size, NULL, json, NULL) == CV_OK, "no JSON");
}

static void read_json(const cv_buffer *json, cv_buffer *value)
{
    cv_error error = {0};
    cv_status status = cv_json_read((const char *)json->data, json->size, NULL, value, &error);
    FUZZ_NEED(status == CV_OK, "own JSON is refused: %s", error.message);
    FUZZ_NEED(cv_is_value(value->data, value->size), "JSON became no value");
}

/* From the second time on nothing changes any more: before, widths and names of dtypes
 * may, and bytes that are no UTF-8. */
static void go_round(const cv_buffer *value)
{
    cv_buffer json[3] = {{0}}, back[2] = {{0}};
    write_json(value, &json[0]);
    for (int i = 0; i < 2; i++) {
        read_json(&json[i], &back[i]);
        write_json(&back[i], &json[i + 1]);
    }
    FUZZ_NEED(json[1].size == json[2].size &&
                  memcmp(json[1].data, json[2].data, json[1].size) == 0,
              "the same value has two JSON texts");
    FUZZ_NEED(back[0].size == back[1].size &&
                  memcmp(back[0].data, back[1].data, back[0].size) == 0,
              "the same JSON is two values");
    for (int i = 0; i < 3; i++) cv_buffer_free(&json[i]);
    for (int i = 0; i < 2; i++) cv_buffer_free(&back[i]);
}

static void walk(const cv_buffer *value)
{
    size_t at = 0;
    caterva_error error;
    while (at < value->size) {
        caterva_value v = CATERVA_VALUE_INIT;
        size_t before = at;
        if (caterva_value_next(value->data, value->size, &at, &v, &error) != CATERVA_OK)
            break;
        FUZZ_NEED(at > before && at <= value->size, "byte %zu is followed by byte %zu",
                  before, at);
    }
}

static void read_text(const uint8_t *bytes, size_t size, const char *dtype)
{
    cv_buffer value = {0};
    cv_error error = {0};
    const char *text = (const char *)bytes;
    cv_status status = dtype ? cv_json_read_typed(text, size, dtype, NULL, &value, &error)
                             : cv_json_read(text, size, NULL, &value, &error);
    FUZZ_NEED(status == CV_OK || error.message[0], "a refusal without a sentence");
    if (status == CV_OK) go_round(&value);
    cv_buffer_free(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 1 << 16) return 0;
    cv_buffer value = {0};
    FUZZ_NEED(cv_buffer_append(&value, bytes, size, NULL) == CV_OK, "no memory");
    go_round(&value);
    walk(&value);
    cv_buffer_free(&value);
    read_text(bytes, size, NULL);
    read_text(bytes, size, "<i2");
    read_text(bytes, size, "U3");
    return 0;
}
