/* Checks of calls that the library must refuse, and the small array that these tests use. */
#ifndef SUPPORT_REFUSE_H
#define SUPPORT_REFUSE_H

#include "caterva.h"
#include "check.h"

/* Statuses accepted for a refusal, as bits. */
#define EINVAL_BIT (1u << -CATERVA_EINVAL)
#define EUNSUPPORTED_BIT (1u << -CATERVA_EUNSUPPORTED)
#define ECORRUPT_BIT (1u << -CATERVA_ECORRUPT)
#define ENOTFOUND_BIT (1u << -CATERVA_ENOTFOUND)
#define EIO_BIT (1u << -CATERVA_EIO)
#define ESHORT_BIT (1u << -CATERVA_ESHORT)
#define EREADONLY_BIT (1u << -CATERVA_EREADONLY)
#define ERANGE_BIT (1u << -CATERVA_ERANGE)
#define EDTYPE_BIT (1u << -CATERVA_EDTYPE)
#define ECAST_BIT (1u << -CATERVA_ECAST)
#define ESHAPE_BIT (1u << -CATERVA_ESHAPE)
#define EROLLBACK_BIT (1u << -CATERVA_EROLLBACK)
#define ESTALE_BIT (1u << -CATERVA_ESTALE)
#define EPIPELINE_BIT (1u << -CATERVA_EPIPELINE)
#define EBUSY_BIT (1u << -CATERVA_EBUSY)
#define EEXIST_BIT (1u << -CATERVA_EEXIST)

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Fails unless `status` is one of the `allowed` bits, and `err` (if any) has it and a message. */
void check_refusal(unsigned allowed, caterva_status status, const caterva_error *err,
                   int line, const char *call);

/* Checks that `call` is refused. It passes `err`: once with an error struct, once with NULL. */
#define REFUSE(allowed, call)                                                                \
    do {                                                                                     \
        caterva_error detail_ = {.code = CATERVA_OK};                                        \
        caterva_error *err = &detail_;                                                       \
        check_refusal(allowed, call, err, __LINE__, #call);                                  \
        err = NULL;                                                                          \
        check_refusal(allowed, call, err, __LINE__, #call);                                  \
    } while (0)

/* Number of refusals checked so far. */
int refusals(void);

/* A 6 x 7 array of <i4, 2 x 3 chunks, containing squares. */
extern const int64_t small_shape[16];
extern int32_t small_values[42];
caterva_create_options small_options(void);
caterva_array *make_small_array(const char *url);
void check_small_array(caterva_array *array);

#endif
