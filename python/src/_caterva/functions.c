/* The list of the module's functions. */
#include "functions.h"

PyMethodDef module_functions[] = {
    {"open", function_open, METH_VARARGS, NULL},
    {"create", function_create, METH_VARARGS, NULL},
    {"open_frame", function_open_frame, METH_VARARGS, NULL},
    {"copy", function_copy, METH_VARARGS, NULL},
    {"compact", function_compact, METH_VARARGS, NULL},
    {"seal", function_seal, METH_VARARGS, NULL},
    {"unlink", function_unlink, METH_VARARGS, NULL},
    {"repair", function_repair, METH_VARARGS, NULL},
    {"codec_name", function_codec_name, METH_VARARGS, NULL},
    {"codec_number", function_codec_number, METH_VARARGS, NULL},
    {"filter_name", function_filter_name, METH_VARARGS, NULL},
    {"filter_number", function_filter_number, METH_VARARGS, NULL},
    {"choose_partition", function_choose_partition, METH_VARARGS, NULL},
    {"convert", function_convert, METH_VARARGS, NULL},
    {"cache_limit", function_cache_limit, METH_VARARGS, NULL},
    {"cache_counts", function_cache_counts, METH_VARARGS, NULL},
    {"join", function_join, METH_VARARGS, NULL},
    {"part_open", function_part_open, METH_VARARGS, NULL},
    {"job_discard", function_job_discard, METH_VARARGS, NULL},
    {"jobs_list", function_jobs_list, METH_VARARGS, NULL},
    {"tree_open", function_tree_open, METH_VARARGS, NULL},
    {"tree_create", function_tree_create, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
