/* Conversion of one item: to text, to a number, and from text. */
#ifndef CLI_ITEM_H
#define CLI_ITEM_H

#include "cli.h"

#include <stdio.h>

typedef struct item_style {
    int precision; /* significant digits of floats; -1: as many as needed */
    bool csv;      /* quotes text only where CSV requires it */
} item_style;

/* Prints the item at `bytes`: fields in ( ), sub-arrays in [ ], unknown kinds as hexadecimal. */
void item_print(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                const item_style *style);

/* If item_is_number returns true, item_number returns the item as a real number. For a complex
 * number this is the absolute value. */
bool item_is_number(const caterva_dtype *dtype);
double item_number(const caterva_dtype *dtype, const uint8_t *bytes);

/* Parses `text` as one item into `bytes`, which has dtype->item_size bytes. Returns false if the
 * dtype cannot hold the value. */
bool item_read(const caterva_dtype *dtype, const char *text, uint8_t *bytes);

/* Like item_read, but reports a failure with CLI_USAGE and a message that begins with `where`. */
cli_exit item_parse(const char *where, const caterva_dtype *dtype, const char *text,
                    uint8_t *bytes);

/* Convert integers and floats from and to bytes in the dtype's byte order. */
uint64_t item_load_uint(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
void item_store_uint(const caterva_dtype *dtype, uint64_t value, uint8_t *bytes,
                     int64_t size);
int64_t item_load_int(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
double item_load_real(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size);
void item_store_real(const caterva_dtype *dtype, double value, uint8_t *bytes, int64_t size);

/* Prints the datetime64 or timedelta64 `value` in units of `unit`. */
void item_print_time(FILE *stream, char kind, const char *unit, int64_t value);

/* Makes the name that info prints: "uint8", "float64, big-endian", "S8", "datetime64[ns]". For a
 * dtype without such a name, copies `described`. */
#define ITEM_NAME_SIZE 64
void item_type_name(const caterva_dtype *dtype, const char *described,
                    char name[ITEM_NAME_SIZE]);

#endif
