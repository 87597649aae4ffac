/* A map with its geo-reference in a metalayer of its own, `geo`.
 *
 * A fixed metalayer is stored in the file's header: it is read when the array is opened, and
 * its length never changes. This one holds a MessagePack list, as python-blosc2 expects:
 * west, north, width and height of a cell in degrees, and the EPSG code. */
#include <caterva.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct geo {
    double west, north, cell_width, cell_height;
    uint32_t epsg;
} geo;

enum { ROWS = 180, COLUMNS = 360, N_DOUBLES = 4, GEO_SIZE = 1 + N_DOUBLES * 9 + 5 };

static void put_big_endian(uint64_t value, int size, unsigned char *bytes)
{
    for (int i = size - 1; i >= 0; i--, value >>= 8) bytes[i] = (unsigned char)value;
}

static uint64_t get_big_endian(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | bytes[i];
    return value;
}

/* 0x95: a list of 5; 0xcb: a float64 follows; 0xce: a uint32 follows. */
static void encode(const geo *g, unsigned char bytes[GEO_SIZE])
{
    const double doubles[] = {g->west, g->north, g->cell_width, g->cell_height};
    bytes[0] = 0x95;
    for (int i = 0; i < N_DOUBLES; i++) {
        uint64_t bits;
        memcpy(&bits, &doubles[i], sizeof bits);
        bytes[1 + 9 * i] = 0xcb;
        put_big_endian(bits, 8, bytes + 2 + 9 * i);
    }
    bytes[1 + 9 * N_DOUBLES] = 0xce;
    put_big_endian(g->epsg, 4, bytes + 2 + 9 * N_DOUBLES);
}

/* Bytes that come from a file are checked before they are used. */
static int decode(const unsigned char *bytes, size_t size, geo *g)
{
    double doubles[N_DOUBLES];
    if (size != GEO_SIZE || bytes[0] != 0x95 || bytes[1 + 9 * N_DOUBLES] != 0xce) return 0;
    for (int i = 0; i < N_DOUBLES; i++) {
        uint64_t bits = get_big_endian(bytes + 2 + 9 * i, 8);
        if (bytes[1 + 9 * i] != 0xcb) return 0;
        memcpy(&doubles[i], &bits, sizeof bits);
    }
    uint32_t epsg = (uint32_t)get_big_endian(bytes + 2 + 9 * N_DOUBLES, 4);
    *g = (geo){doubles[0], doubles[1], doubles[2], doubles[3], epsg};
    return g->cell_width > 0 && g->cell_height > 0;
}

static caterva_status create(const char *path, caterva_error *err)
{
    static float map[ROWS][COLUMNS];
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) map[y][x] = (float)(y - 90) / 3 + (float)(x % 7);

    unsigned char content[GEO_SIZE];
    encode(&(geo){-180, 90, 1, 1, 4326}, content);
    const caterva_metalayer layer = {"geo", content, sizeof content};
    const int64_t shape[] = {ROWS, COLUMNS};
    caterva_array *array = NULL;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.dtype = "<f4";
    options.metalayers = &layer;
    options.n_metalayers = 1;
    options.overwrite = 1;
    caterva_status status =
        caterva_create_from_memory(path, &options, map, sizeof map, &array, err);
    return status == CATERVA_OK ? caterva_close(array, err) : status;
}

/* Prints the item at a longitude and a latitude. */
static caterva_status look_up(const char *path, double longitude, double latitude,
                              caterva_error *err)
{
    caterva_array *array = NULL;
    const caterva_info *info = NULL;
    geo g;
    caterva_status status = caterva_open(path, NULL, &array, err);
    if (status == CATERVA_OK) status = caterva_info_get(array, &info, err);
    const caterva_metalayer *layer = caterva_info_metalayer(info, "geo"); /* or NULL */
    if (status == CATERVA_OK && !(layer && decode(layer->content, layer->size, &g))) {
        status = CATERVA_ECORRUPT;
        snprintf(err->message, sizeof err->message, "metalayer geo is not of this program");
    }
    if (status == CATERVA_OK) {
        int64_t row = (int64_t)floor((g.north - latitude) / g.cell_height);
        int64_t column = (int64_t)floor((longitude - g.west) / g.cell_width);
        const int64_t start[] = {row, column}, stop[] = {row + 1, column + 1};
        float value;
        status = caterva_read(array, start, stop, &value, sizeof value, err);
        if (status == CATERVA_OK)
            printf("EPSG:%u, %.1f E %.1f N: row %lld, column %lld, value %.2f\n", g.epsg,
                   longitude, latitude, (long long)row, (long long)column, (double)value);
    }
    caterva_info_release(info);
    caterva_discard(array);
    return status;
}

int main(void)
{
    caterva_error err;
    caterva_status status = create("map.b2nd", &err);
    if (status == CATERVA_OK) status = look_up("map.b2nd", 13.4, 52.5, &err);
    if (status != CATERVA_OK) fprintf(stderr, "geo-map: %s\n", err.message);
    return status == CATERVA_OK ? 0 : 1;
}
