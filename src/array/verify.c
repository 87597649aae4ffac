/* Room: array. Verify: options checked, the engine called. */
#include "engine/verify.h"

#include "array/array.h"

caterva_status caterva_verify(caterva_array *array, const caterva_verify_options *options,
                              caterva_verify_result *result, caterva_error *err)
{
    static const caterva_verify_options defaults = CATERVA_VERIFY_INIT;
    CV_TRY(cv_array_check(array, err));
    if (!result) return cv_fail(err, CATERVA_EINVAL, -1, "result is NULL");
    caterva_verify_options o;
    CV_TRY(
        cv_options_copy(&o, sizeof o, options ? options : &defaults, "verify options", err));
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    source.snapshot = array->snapshot; /* what is pending is no stored state */
    return cv_array_finish(array, cv_verify(&source, &o, NULL, result, err));
}
