/* Room: array. Verify: options checked, the engine called. Nothing is locked while the
 * caller's functions run, so they may use the array; that its committed state stays what
 * it is meanwhile is the gate's business, which a commit closes behind the last one. */
#include "engine/jobs/verify.h"

#include "array/array.h"

/* A call of verify, between the engine and the caller's functions. */
typedef struct verification {
    caterva_verify_options options; /* the caller's */
    cv_gate *gate;
    cv_passing self;
} verification;

static void on_damage(void *context, const caterva_damage *damage)
{
    verification *v = context;
    cv_gate_note_call(v->gate, &v->self, true);
    v->options.on_damage(v->options.context, damage);
    cv_gate_note_call(v->gate, &v->self, false);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    verification *v = context;
    cv_gate_note_call(v->gate, &v->self, true);
    int stop = v->options.on_progress(v->options.context, done, total);
    cv_gate_note_call(v->gate, &v->self, false);
    return stop;
}

/* The committed state is read beside writers: what they write goes elsewhere. */
static cv_status verify(caterva_array *array, const caterva_verify_options *options,
                        caterva_verify_result *result, cv_error *err)
{
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    source.snapshot = array->snapshot;
    source.pending = NULL; /* which is no stored state, and may have fewer chunks */
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
    caterva_verify_result full = {.checked_chunks = 0};
    CV_TRY(cv_output_check(result, sizeof *result, "verify result", err));
    verification v = {.gate = &array->gate};
    CV_TRY(cv_options_copy(&v.options, sizeof v.options, options ? options : &defaults,
                           "verify options", err));
    caterva_verify_options calling = v.options;
    if (v.options.on_damage) calling.on_damage = on_damage;
    if (v.options.on_progress) calling.on_progress = on_progress;
    calling.context = &v;
    cv_gate_enter(v.gate, &v.self);
    cv_status status = verify(array, &calling, &full, err);
    cv_gate_leave(v.gate, &v.self);
    cv_output_fill(result, &full, sizeof full);
    return status;
}
