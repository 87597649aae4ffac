/* The two spellings of a structured dtype: the list of fields that .npy headers
 * hold, with unnamed fields as padding, and the dictionary with offsets that
 * str(dtype) gives for fields with gaps and that B2ND files hold. */
#ifndef CLI_DESCR_H
#define CLI_DESCR_H

#include "cli.h"

/* `code` with a sentence when the library cannot parse `text`: CLI_USAGE for an
 * argument's, CLI_CORRUPT for a file's. `where` is what the sentence calls its origin.
 * Release *out with caterva_dtype_free. */
cli_exit descr_parse(cli_exit code, const char *where, const char *text, caterva_dtype **out);

/* A Python literal for 'descr': "'<f4'" or a list. Release *out with free. */
cli_exit descr_for_npy(const char *dtype, char **out);

/* What an array file says for a description by the user or a .npy header: scalars
 * in full ("u1" is "|u1"), a dictionary when there is padding, else the same. `code` and
 * `where` as above. Release *out with free. */
cli_exit descr_for_array(cli_exit code, const char *where, const char *descr, char **out);

/* What an array file says for a parsed type without a sub-array. Release *out with free. */
cli_exit descr_of(const caterva_dtype *type, char **out);

#endif
