/* Any bytes as a value of an attribute, and as the JSON of an attribute map: what is read as
 * JSON becomes one value. */
#include "fuzz.h"

#include "format/json.h"
#include "format/values.h"

#include <caterva_value.h>

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

static void read_json(const uint8_t *bytes, size_t size)
{
    cv_buffer value = {0};
    cv_status status = cv_json_to_msgpack((const char *)bytes, size, &value, NULL);
    FUZZ_NEED(status == CV_OK || value.size == 0, "bytes of text that is not JSON");
    FUZZ_NEED(status != CV_OK || cv_is_value(value.data, value.size), "JSON became no value");
    if (status == CV_OK) walk(&value);
    cv_buffer_free(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 1 << 16) return 0;
    cv_buffer value = {0};
    FUZZ_NEED(cv_buffer_append(&value, bytes, size, NULL) == CV_OK, "no memory");
    (void)cv_is_value(value.data, value.size);
    walk(&value);
    cv_buffer_free(&value);
    read_json(bytes, size);
    return 0;
}
