/* The two texts that can describe a structured dtype: a list of fields, in which unnamed fields are
 * padding (.npy headers), and a dictionary with offsets. str(dtype) and B2ND files use the
 * dictionary if there are gaps between fields, otherwise the list. */
#ifndef CLI_DESCR_H
#define CLI_DESCR_H

#include "cli.h"

/* Parses a dtype. Reports a failure with `code`: CLI_USAGE for an argument, CLI_CORRUPT for a file.
 * In the message, `where` names the origin of the dtype. Release *out with caterva_dtype_free. */
cli_exit descr_parse(cli_exit code, const char *where, const char *text, caterva_dtype **out);

/* Makes the literal of 'descr' in .npy headers: "'<f4'" or a list. Release *out with free. */
cli_exit descr_for_npy(const char *dtype, char **out);

/* Converts a dtype from the user or an .npy header to the text that array files use: scalars in
 * full ("u1" becomes "|u1"), a dictionary if there is padding, otherwise unchanged. `code` and
 * `where` are those of descr_parse. Release *out with free. */
CLI_API cli_exit descr_for_array(cli_exit code, const char *where, const char *descr, char **out);

/* Makes the text of array files for a type that is not a sub-array. Release *out with free. */
CLI_API cli_exit descr_of(const caterva_dtype *type, char **out);

#endif
