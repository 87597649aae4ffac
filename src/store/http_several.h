/* Whether a server sends several parts of an object at once. Of one that says nothing of itself
 * nobody takes that for granted: one request finds out, and who would ask for many parts waits
 * until it is answered. One whose name says so is believed until it refuses. */
#ifndef CV_STORE_HTTP_SEVERAL_H
#define CV_STORE_HTTP_SEVERAL_H

#include "base/os_file.h"
#include "base/thread.h"

typedef enum cv_several_state {
    CV_SEVERAL_UNKNOWN,
    CV_SEVERAL_EXPECTED, /* its name says so: asked, and not waited for */
    CV_SEVERAL_ASKED,    /* somebody is finding out */
    CV_SEVERAL_KNOWN,
    CV_SEVERAL_REFUSED
} cv_several_state;

/* Who waits for the answer. `go` is called once, by who has it, and asks again. */
typedef struct cv_several_waiter {
    struct cv_several_waiter *next;
    void (*go)(struct cv_several_waiter *waiter);
    uint64_t turn;  /* how many answers there had been when it asked */
    bool is_asking; /* it is the one who finds out */
} cv_several_waiter;

typedef struct cv_several {
    cv_mutex lock; /* over all of it */
    cv_several_state state;
    cv_several_waiter *first, *last;
    uint64_t turn;
    size_t most;        /* parts of an answer, as its name says; SIZE_MAX: nothing */
    cv_os_moment asked; /* a child of fork hears nothing of what its parent asked */
} cv_several;

void cv_several_init(cv_several *several, bool is_refused);
void cv_several_destroy(cv_several *several);

/* What is known. CV_SEVERAL_UNKNOWN: the caller is the one who finds out, and says what came
 * of it, whatever it is. With that and with CV_SEVERAL_ASKED `waiter` waits. */
cv_several_state cv_several_ask(cv_several *several, cv_several_waiter *waiter);

/* The same, of a caller that does nothing about it. */
cv_several_state cv_several_look(cv_several *several);

/* The server's name says that it sends so many parts at once. What is known of it says more. */
void cv_several_expect(cv_several *several, size_t most);
size_t cv_several_most(cv_several *several);

/* It sent several. That it refused others stays. */
void cv_several_confirm(cv_several *several);

/* Somebody found out; CV_SEVERAL_UNKNOWN: nothing came of it, the next one may try. Those who
 * wait go on, in their order. */
void cv_several_learn(cv_several *several, cv_several_state state);

/* Stops waiting; false: it does not wait, or goes on just now. */
bool cv_several_leave(cv_several *several, cv_several_waiter *waiter);

#endif
