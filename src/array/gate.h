/* Keeps commits out while somebody verifies the array, whose committed state must stay what
 * it is until then. */
#ifndef CV_ARRAY_GATE_H
#define CV_ARRAY_GATE_H

#include "base/status.h"
#include "base/thread.h"

/* One who verifies. */
typedef struct cv_passing {
    bool calls; /* a function of the caller's, on `thread` */
    cv_thread thread;
    struct cv_passing *next;
} cv_passing;

typedef struct cv_gate {
    cv_mutex lock;
    cv_cond changed;
    cv_passing *passing;
} cv_gate;

void cv_gate_init(cv_gate *gate);
void cv_gate_destroy(cv_gate *gate);

/* Waits until nobody verifies, and keeps all out who want to until the gate is open
 * again; before the array is locked. CATERVA_EBUSY in a function that verify calls. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err);
void cv_gate_open(cv_gate *gate);

/* Passes, and is gone again: for who verifies. */
void cv_gate_enter(cv_gate *gate, cv_passing *self);
void cv_gate_leave(cv_gate *gate, const cv_passing *self);

/* A function of the caller's begins (`calls`) or ends, on this thread. */
void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls);

#endif
