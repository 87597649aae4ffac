/* Any text as a NumPy type description. */
#include "fuzz.h"

static void check(const caterva_dtype *type)
{
    FUZZ_NEED(type->item_size >= 0, "an item of %lld bytes", (long long)type->item_size);
    for (int i = 0; i < type->n_fields; i++) check(type->fields[i].dtype);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_alloc(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    caterva_dtype *type = NULL;
    caterva_error error = {0};
    if (caterva_dtype_parse(text, &type, &error) == CATERVA_OK)
        check(type);
    else
        FUZZ_NEED(error.message[0], "a refusal without a sentence");
    caterva_dtype_free(type);
    free(text);
    return 0;
}
