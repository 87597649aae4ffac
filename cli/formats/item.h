/* One item of an array: as text, as a number, and from text. */
#ifndef CLI_ITEM_H
#define CLI_ITEM_H

#include "cli.h"

#include <stdio.h>

typedef struct item_style {
    int precision; /* significant digits of floats; -1: as many as needed */
    bool csv;      /* text is quoted only where CSV needs it */
} item_style;

/* Prints the item at `bytes`. Fields stand in ( ), sub-arrays in [ ]; what has
 * no better form is hexadecimal. */
void item_print(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                const item_style *style);

/* The item as a real number (complex: its absolute value). False for kinds that
 * are no numbers. */
bool item_is_number(const caterva_dtype *dtype);
double item_number(const caterva_dtype *dtype, const uint8_t *bytes);

/* Reads `text` as one item into `bytes`, item_size of them; false if the dtype cannot hold it. */
bool item_read(const caterva_dtype *dtype, const char *text, uint8_t *bytes);

/* The same, but CLI_USAGE with a sentence that begins with `where`. */
cli_exit item_parse(const char *where, const caterva_dtype *dtype, const char *text,
                    uint8_t *bytes);

/* Bytes <-> integers and floats in the dtype's byte order. */
uint64_t item_load_uint(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
void item_store_uint(const caterva_dtype *dtype, uint64_t value, uint8_t *bytes,
                     int64_t size);
int64_t item_load_int(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
double item_load_real(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
void item_store_real(const caterva_dtype *dtype, double value, uint8_t *bytes, int64_t size);

/* Prints the datetime64 or timedelta64 `value` counted in `unit`. */
void item_print_time(FILE *stream, char kind, const char *unit, int64_t value);

/* "uint8", "float64, big-endian", "S8", "datetime64[ns]": how info calls it.
 * `described` is what the text falls back to. */
#define ITEM_NAME_SIZE 64
void item_type_name(const caterva_dtype *dtype, const char *described,
                    char name[ITEM_NAME_SIZE]);

#endif
