/* The functions of the module. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "extension.h"

module_state *module_state_of(PyObject *module);

/* Returns 0 in the main interpreter, the only one that the library's threads can enter. In others
 * returns -1 with an exception, whose message is that a subinterpreter cannot do `what`. */
int interpreter_check(const char *what);

extern PyMethodDef module_functions[]; /* functions.c: the functions of all files */

/* ---- open.c ------------------------------------------------------------------- */

/* (type, url, options, progress, remote=None) */
PyObject *function_open(PyObject *module, PyObject *args);
/* (type, url, options, progress) */
PyObject *function_create(PyObject *module, PyObject *args);
/* (type, bytes, copy, options, progress) */
PyObject *function_open_frame(PyObject *module, PyObject *args);
/* (type, source, url, create options, copy options, progress) */
PyObject *function_copy(PyObject *module, PyObject *args);

/* ---- remote.c, source.c --------------------------------------------------------- */

/* (caterva.Remote, options, lines of headers, function or None, function or None) */
PyObject *function_remote(PyObject *module, PyObject *args);
/* (type, source, name, options, progress) */
PyObject *function_open_source(PyObject *module, PyObject *args);

/* ---- paths.c ------------------------------------------------------------------- */

/* (url, durability, progress) */
PyObject *function_compact(PyObject *module, PyObject *args);
PyObject *function_seal(PyObject *module, PyObject *args);
PyObject *function_delete(PyObject *module, PyObject *args);

/* arguments and result: see paths.c */
PyObject *function_repair(PyObject *module, PyObject *args);

/* ---- publish.c ----------------------------------------------------------------- */

/* (path, URL, options, progress, remote) to (bytes, parts, parts kept, requests, retried,
 * verified, was there) */
PyObject *function_publish(PyObject *module, PyObject *args);

/* ---- words.c ------------------------------------------------------------------- */

PyObject *function_codec_name(PyObject *module, PyObject *args);
PyObject *function_codec_number(PyObject *module, PyObject *args);
PyObject *function_filter_name(PyObject *module, PyObject *args);
PyObject *function_filter_number(PyObject *module, PyObject *args);
PyObject *function_choose_partition(PyObject *module, PyObject *args);
PyObject *function_convert(PyObject *module, PyObject *args);
PyObject *function_cache_limit(PyObject *module, PyObject *args);
PyObject *function_cache_counts(PyObject *module, PyObject *args);

PyObject *cache_counts_dict(const caterva_cache_info *n);

/* ---- view.c ------------------------------------------------------------ */

PyObject *function_join(PyObject *module, PyObject *args); /* (type, views, axis, stacked) */

/* ---- job.c ------------------------------------------------------------- */

PyObject *function_part_open(PyObject *module, PyObject *args);
/* (path, job, progress=None) */
PyObject *function_job_delete(PyObject *module, PyObject *args);
/* (path, progress=None) */
PyObject *function_jobs_list(PyObject *module, PyObject *args);

/* ---- tree.c ------------------------------------------------------------ */

/* (path, writing, durability, remote=None, progress=None) */
PyObject *function_tree_open(PyObject *module, PyObject *args);
/* (path, durability, progress=None) */
PyObject *function_tree_create(PyObject *module, PyObject *args);

/* ---- tree_repair.c ------------------------------------------------------ */

/* (path, output or None, overwrite, guess, threads, durability, progress) */
PyObject *function_tree_repair(PyObject *module, PyObject *args);

#endif
