/* The two spellings of a structured dtype: the list of fields of .npy headers, with unnamed fields
 * as padding; and the dictionary with offsets of str(dtype) for fields with gaps, which B2ND files
 * also use. */
#ifndef CLI_DESCR_H
#define CLI_DESCR_H

#include "cli.h"

/* Parses a dtype. If that fails, reports it with `code`: CLI_USAGE for an argument, CLI_CORRUPT for
 * a file. `where` names its origin in the message. Release *out with caterva_dtype_free. */
cli_exit descr_parse(cli_exit code, const char *where, const char *text, caterva_dtype **out);

/* Makes a Python literal for 'descr': "'<f4'" or a list. Release *out with free. */
cli_exit descr_for_npy(const char *dtype, char **out);

/* Makes the description that array files use from one by the user or an .npy header: scalars in
 * full ("u1" is "|u1"), a dictionary if there is padding, else unchanged. `code` and `where` as
 * above. Release *out with free. */
cli_exit descr_for_array(cli_exit code, const char *where, const char *descr, char **out);

/* Makes the description of a type without a sub-array for array files. Release *out with free. */
cli_exit descr_of(const caterva_dtype *type, char **out);

#endif
