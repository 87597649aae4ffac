/* Requests on their way: one thread for the whole process that talks to all servers, through
 * libcurl. What is asked for, and what of the answer is believed, is for the users of a
 * request to say, by functions that this thread calls; they wait for nobody. */
#ifndef CV_STORE_HTTP_WIRE_H
#define CV_STORE_HTTP_WIRE_H

#include "store/http_request.h"

/* Hands it over; `gone` will be called. CATERVA_EUNSUPPORTED without libcurl, CATERVA_ENOMEM
 * without a thread: then it is not. */
cv_status cv_wire_submit(cv_wire *wire, cv_error *err);

/* Ends it soon, from outside: before its user frees it. Harmless when it is gone. */
void cv_wire_cancel(cv_wire *wire);

/* For `gone`, where there is no other reason: there was no memory for an attempt, or it was
 * cancelled. */
cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err);

/* Around a function of the program's, which the wire's thread calls while it is in no call of
 * libcurl's: a fork does not wait for the function, which may wait for who forks. */
void cv_wire_give_turn(void);
void cv_wire_take_turn(void);

/* Requests that paused are asked again soon, all of them. Any thread, the wire's, too. */
void cv_wire_resume(void);

#endif
