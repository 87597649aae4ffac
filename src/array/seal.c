/* Room: array. Sealing what other writers made. */
#include "array/array.h"

caterva_status caterva_seal(const char *url, caterva_durability durability,
                            caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_WRITE;
    options.durability = durability;
    caterva_array *array;
    CV_TRY(caterva_open(url, &options, &array, err));
    cv_status status = cv_txn_seal(array->pending->txn, err);
    cv_array_free(array);
    return status;
}
