/* Room: array. Those who verify stand in a list; a commit waits until it is empty. */
#include "array/gate.h"

void cv_gate_init(cv_gate *gate)
{
    gate->passing = NULL;
    cv_mutex_init(&gate->lock);
    cv_cond_init(&gate->changed);
}

void cv_gate_destroy(cv_gate *gate)
{
    cv_cond_destroy(&gate->changed);
    cv_mutex_destroy(&gate->lock);
}

void cv_gate_enter(cv_gate *gate, cv_passing *self)
{
    self->calls = false;
    cv_mutex_lock(&gate->lock);
    self->next = gate->passing;
    gate->passing = self;
    cv_mutex_unlock(&gate->lock);
}

void cv_gate_leave(cv_gate *gate, const cv_passing *self)
{
    cv_mutex_lock(&gate->lock);
    cv_passing **at = &gate->passing;
    while (*at != self) at = &(*at)->next;
    *at = self->next;
    cv_cond_wake_all(&gate->changed);
    cv_mutex_unlock(&gate->lock);
}

cv_status cv_gate_close(cv_gate *gate, cv_error *err)
{
    bool own = false;
    cv_mutex_lock(&gate->lock);
    while (gate->passing && !own) {
        for (const cv_passing *p = gate->passing; p && !own; p = p->next)
            own = p->calls && cv_thread_is_self(p->thread);
        if (!own) cv_cond_wait(&gate->changed, &gate->lock);
    }
    if (!own) return CV_OK;
    cv_mutex_unlock(&gate->lock);
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the array is being verified: what it calls cannot commit");
}

void cv_gate_open(cv_gate *gate) { cv_mutex_unlock(&gate->lock); }

void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls)
{
    cv_mutex_lock(&gate->lock);
    self->thread = cv_thread_self();
    self->calls = calls;
    cv_mutex_unlock(&gate->lock);
}
