/* Room: array. Verify: options checked, the engine called. Nothing is locked while the
 * caller's functions run, so they may use the array; that its committed state stays what
 * it is meanwhile is the gate's business, which a commit closes behind the last one. */
#include "engine/jobs/verify.h"

#include "array/array.h"

/* ---- The gate ----------------------------------------------------------- */

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

static void enter_gate(cv_gate *gate, cv_passing *self)
{
    self->calls = false;
    cv_mutex_lock(&gate->lock);
    self->next = gate->passing;
    gate->passing = self;
    cv_mutex_unlock(&gate->lock);
}

static void leave_gate(cv_gate *gate, const cv_passing *self)
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
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the array is being verified: what it calls cannot commit");
}

void cv_gate_open(cv_gate *gate) { cv_mutex_unlock(&gate->lock); }

/* ---- Verify ------------------------------------------------------------- */

/* A call of verify, between the engine and the caller's functions. */
typedef struct verification {
    caterva_verify_options options; /* the caller's */
    cv_gate *gate;
    cv_passing self;
} verification;

static void note_call(verification *v, bool calls)
{
    cv_mutex_lock(&v->gate->lock);
    v->self.thread = cv_thread_self();
    v->self.calls = calls;
    cv_mutex_unlock(&v->gate->lock);
}

static void on_damage(void *context, const caterva_damage *damage)
{
    verification *v = context;
    note_call(v, true);
    v->options.on_damage(v->options.context, damage);
    note_call(v, false);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    verification *v = context;
    note_call(v, true);
    int stop = v->options.on_progress(v->options.context, done, total);
    note_call(v, false);
    return stop;
}

/* The committed state is read beside writers: what they write goes elsewhere. */
static cv_status verify(caterva_array *array, const caterva_verify_options *options,
                        caterva_verify_result *result, cv_error *err)
{
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    source.snapshot = array->snapshot; /* what is pending is no stored state */
    cv_snapshot_retain(source.snapshot);
    cv_array_unlock(array);
    if (array->watch) cv_watch_begin(array->watch);
    cv_status status = cv_verify(&source, options, NULL, result, err);
    if (array->watch) cv_watch_end(array->watch, status == CV_OK);
    cv_snapshot_release(source.snapshot);
    return status;
}

caterva_status caterva_verify(caterva_array *array, const caterva_verify_options *options,
                              caterva_verify_result *result, caterva_error *err)
{
    static const caterva_verify_options defaults = CATERVA_VERIFY_INIT;
    CV_TRY(cv_array_check(array, err));
    if (!result) return cv_fail(err, CATERVA_EINVAL, -1, "result is NULL");
    verification v = {.gate = &array->gate};
    CV_TRY(cv_options_copy(&v.options, sizeof v.options, options ? options : &defaults,
                           "verify options", err));
    caterva_verify_options calling = v.options;
    if (v.options.on_damage) calling.on_damage = on_damage;
    if (v.options.on_progress) calling.on_progress = on_progress;
    calling.context = &v;
    enter_gate(v.gate, &v.self);
    cv_status status = verify(array, &calling, result, err);
    leave_gate(v.gate, &v.self);
    return status;
}
