/* Room: store. What is refused is read twice. */
#include "store/doubt.h"

bool cv_is_doubtful(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

/* Once more, when the store says that it may help. */
static cv_status read_again(const cv_doubted *d, cv_error *error)
{
    cv_error other = {0};
    const cv_store_ops *ops = d->store->ops;
    cv_status answer = ops->doubt(d->store, d->begins, &other), status = answer;
    if (answer == CV_OK) {
        cv_error again = {0};
        status = d->read(d->context, &again);
        *error = again;
        if (status == CV_OK || cv_is_doubtful(status))
            answer = ops->settle(d->store, status == CV_OK, &other);
    }
    if (answer == CV_OK) return status;
    *error = other;
    return answer;
}

cv_status cv_store_doubting(const cv_doubted *d, cv_error *err)
{
    cv_error error = {0};
    cv_status status = d->read(d->context, &error);
    if (cv_is_doubtful(status) && d->store && d->store->ops->doubt)
        status = read_again(d, &error);
    if (status != CV_OK && err) *err = error;
    return status;
}
