/* Test support: the documented effect of filters. */
#include "filter_model.h"

#include "caterva.h"

#include <stdbool.h>
#include <string.h>

enum { CELL = 4 };

const int all_filters[N_FILTERS] = {CATERVA_FILTER_SHUFFLE,   CATERVA_FILTER_BITSHUFFLE,
                                    CATERVA_FILTER_DELTA,     CATERVA_FILTER_TRUNC_PREC,
                                    CATERVA_FILTER_NDCELL,    CATERVA_FILTER_NDMEAN,
                                    CATERVA_FILTER_BYTEDELTA, CATERVA_FILTER_INT_TRUNC};

int64_t count_pipelines(int length)
{
    int64_t n = 1;
    while (length-- > 0) n *= N_FILTERS;
    return n;
}

void number_pipeline(int64_t k, int length, int *filters)
{
    for (int i = length - 1; i >= 0; i--) {
        filters[i] = all_filters[k % N_FILTERS];
        k /= N_FILTERS;
    }
}

static int cleared_bits(int32_t item_size) { return item_size == 1 ? 3 : 8; }

int filter_number_for(int filter, int32_t item_size)
{
    switch (filter) {
    case CATERVA_FILTER_TRUNC_PREC:
    case CATERVA_FILTER_INT_TRUNC: return -cleared_bits(item_size);
    case CATERVA_FILTER_NDCELL:
    case CATERVA_FILTER_NDMEAN: return CELL;
    default: return 0;
    }
}

static void clear_low_bits(int32_t item_size, int n_items, uint8_t *block)
{
    uint64_t item;
    if (item_size > (int32_t)sizeof item) return;
    for (int i = 0; i < n_items; i++, block += item_size) {
        uint8_t *low = (uint8_t *)&item;
        item = 1;
        if (low[0] == 0) low += (int32_t)sizeof item - item_size; /* big-endian */
        item = 0;
        memcpy(low, block, (size_t)item_size);
        item &= ~((UINT64_C(1) << cleared_bits(item_size)) - 1);
        memcpy(block, low, (size_t)item_size);
    }
}

#define AVERAGE(type)                                                                        \
    do {                                                                                     \
        type sum = 0, item;                                                                  \
        for (int k = 0; k < CELL * CELL; k++) {                                              \
            memcpy(&item, block + at[k], sizeof item);                                       \
            sum += item;                                                                     \
        }                                                                                    \
        sum /= CELL * CELL;                                                                  \
        for (int k = 0; k < CELL * CELL; k++) memcpy(block + at[k], &sum, sizeof sum);       \
    } while (0)

static void average_cells(int32_t item_size, int edge, uint8_t *block)
{
    for (int cell = 0; cell < edge / CELL * (edge / CELL); cell++) {
        int row = cell / (edge / CELL) * CELL, column = cell % (edge / CELL) * CELL;
        size_t at[CELL * CELL];
        for (int k = 0; k < CELL * CELL; k++)
            at[k] = (size_t)((row + k / CELL) * edge + column + k % CELL) * (size_t)item_size;
        if (item_size == sizeof(float))
            AVERAGE(float);
        else
            AVERAGE(double);
    }
}

void apply_filters(const int *filters, int n, int32_t item_size, int edge, uint8_t *block)
{
    for (int i = 0; i < n; i++) {
        bool drops =
            filters[i] == CATERVA_FILTER_TRUNC_PREC || filters[i] == CATERVA_FILTER_INT_TRUNC;
        if (drops) clear_low_bits(item_size, edge * edge, block);
        if (filters[i] == CATERVA_FILTER_NDMEAN) average_cells(item_size, edge, block);
    }
}
