/* The two spellings of a structured dtype: the list of fields that .npy headers
 * hold, with unnamed fields as padding, and the dictionary with offsets that
 * str(dtype) gives for fields with gaps and that B2ND files hold. */
#ifndef CLI_DESCR_H
#define CLI_DESCR_H

#include "cli.h"

/* CLI_USAGE with a sentence when the library cannot parse `text`; `where` is
 * what the sentence calls its origin. Release *out with caterva_dtype_free. */
cli_exit descr_parse(const char *where, const char *text, caterva_dtype **out);

/* A Python literal for 'descr': "'<f4'" or a list. Release *out with free. */
cli_exit descr_for_npy(const char *dtype, char **out);

/* What an array file says for a description by the user or a .npy header: scalars
 * in full ("u1" is "|u1"), a dictionary when there is padding, else the same.
 * Release *out with free. */
cli_exit descr_for_array(const char *descr, char **out);

#endif
