/* reaction.c - a simulation of two substances that react and diffuse on a grid (the pattern of RDBench): each rank has a
 * tile of the grid, and all write theirs after every few steps, to a new file each time or to one that grows.
 *
 *   mpirun ... reaction FILE [PART]
 *
 * Rank 0 says which parts were done; who finds another checksum than that of what was computed says so, and all end with 1 then.
 */
#include "parts.h"
#include <stdint.h>

#define GRID 480
#define OUTPUTS 5
#define STEPS 4 /* from one output to the next */
#define FIELDS 2

static MPI_Comm grid;
static int tiles[2], tile[2], rows, cols; /* of the grid; where this rank's is; its size */
static double *now[FIELDS], *then[FIELDS]; /* with a border of one on each side */
static MPI_Datatype inner, column;

static void ok(int err, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    if (err == MPI_SUCCESS)
        return;
    MPI_Error_string(err, text, &len);
    stop_at(what, text);
}

/* ---- the simulation ---- */

static double *cell(double *field, int row, int col)
{
    return &field[row * (cols + 2) + col];
}

static int in_the_middle(int at)
{
    return at > GRID * 2 / 5 && at < GRID * 3 / 5;
}

static void start(void)
{
    for (int row = 0; row < rows + 2; row++)
        for (int col = 0; col < cols + 2; col++) {
            int middle = in_the_middle(tile[0] * rows + row) && in_the_middle(tile[1] * cols + col);
            *cell(now[0], row, col) = middle ? 0.5 : 1;
            *cell(now[1], row, col) = middle ? 0.25 : 0;
        }
}

/* The borders of the neighbours' tiles. */
static void exchange(double *f)
{
    int up, down, left, right;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Sendrecv(cell(f, 1, 1), cols, MPI_DOUBLE, up, 0, cell(f, rows + 1, 1), cols, MPI_DOUBLE, down, 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(cell(f, rows, 1), cols, MPI_DOUBLE, down, 1, cell(f, 0, 1), cols, MPI_DOUBLE, up, 1, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(cell(f, 1, 1), 1, column, left, 2, cell(f, 1, cols + 1), 1, column, right, 2, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(cell(f, 1, cols), 1, column, right, 3, cell(f, 1, 0), 1, column, left, 3, grid, MPI_STATUS_IGNORE);
}

static double spread(double *f, int row, int col)
{
    return *cell(f, row - 1, col) + *cell(f, row + 1, col) + *cell(f, row, col - 1) + *cell(f, row, col + 1) - 4 * *cell(f, row, col);
}

static void step(void)
{
    for (int i = 0; i < FIELDS; i++)
        exchange(now[i]);
    for (int row = 1; row <= rows; row++)
        for (int col = 1; col <= cols; col++) {
            double u = *cell(now[0], row, col), v = *cell(now[1], row, col), uvv = u * v * v;
            *cell(then[0], row, col) = u + 0.16 * spread(now[0], row, col) - uvv + 0.035 * (1 - u);
            *cell(then[1], row, col) = v + 0.08 * spread(now[1], row, col) + uvv - 0.1 * v;
        }
    for (int i = 0; i < FIELDS; i++) {
        double *was = now[i];
        now[i] = then[i];
        then[i] = was;
    }
}

/* ---- checksums: a sum over places and values, so that of all tiles is that of the grid ---- */

static uint64_t term(double v, uint64_t place)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    bits = (bits ^ place * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    return bits ^ bits >> 29;
}

static uint64_t sum_of_tile(double *f, int number)
{
    uint64_t sum = 0;
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++)
            sum += term(*cell(f, row + 1, col + 1),
                        ((uint64_t)number * GRID + (uint64_t)(tile[0] * rows + row)) * GRID + (uint64_t)(tile[1] * cols + col));
    return sum;
}

static uint64_t sum_of_grid(const double *f, int number)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < (uint64_t)GRID * GRID; i++)
        sum += term(f[i], (uint64_t)number * GRID * GRID + i);
    return sum;
}

/* ---- output ---- */

enum how { TOGETHER, TOGETHER_AT, ALONE };

static MPI_Datatype tile_of_grid(void)
{
    int sizes[2] = {GRID, GRID}, sub[2] = {rows, cols}, starts[2] = {tile[0] * rows, tile[1] * cols};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Writes the fields as number FIRST and those after it of the file. */
static void write_fields(MPI_File f, int first, enum how how)
{
    MPI_Datatype type = tile_of_grid();
    MPI_Offset size = (MPI_Offset)GRID * GRID * (MPI_Offset)sizeof(double);
    if (how == TOGETHER_AT)
        ok(MPI_File_set_view(f, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL), "set_view");
    for (int i = 0; i < FIELDS; i++) {
        if (how != TOGETHER_AT)
            ok(MPI_File_set_view(f, (first + i) * size, MPI_DOUBLE, type, "native", MPI_INFO_NULL), "set_view");
        if (how == TOGETHER)
            ok(MPI_File_write_all(f, now[i], 1, inner, MPI_STATUS_IGNORE), "write_all");
        else if (how == ALONE)
            ok(MPI_File_write(f, now[i], 1, inner, MPI_STATUS_IGNORE), "write");
        else
            ok(MPI_File_write_at_all(f, (MPI_Offset)(first + i) * rows * cols, now[i], 1, inner, MPI_STATUS_IGNORE), "write_at_all");
    }
    MPI_Type_free(&type);
}

/* Each rank reads all that all wrote; SUMS has a number for each field. */
static void check_fields(MPI_File f, int first, int fields, const uint64_t *sums, const char *what)
{
    double *buf = calloc((size_t)GRID * GRID, sizeof(double));
    MPI_Offset size = (MPI_Offset)GRID * GRID * (MPI_Offset)sizeof(double), end = 0;
    ok(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    ok(MPI_File_get_size(f, &end), "get_size");
    check(end == (first + fields) * size, what, end, (first + fields) * size);
    for (int i = first; i < first + fields; i++) {
        ok(MPI_File_read_at(f, i * size, buf, GRID * GRID, MPI_DOUBLE, MPI_STATUS_IGNORE), "read_at");
        uint64_t sum = sum_of_grid(buf, i);
        check(sum == sums[i], what, (long long)sum, (long long)sums[i]);
    }
    free(buf);
}

static MPI_File opened(const char *name, int mode)
{
    MPI_File f;
    ok(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f), "open");
    return f;
}

static void compute(int first, uint64_t *sums)
{
    for (int n = 0; n < STEPS; n++)
        step();
    for (int i = 0; i < FIELDS; i++) {
        uint64_t mine = sum_of_tile(now[i], first + i);
        MPI_Allreduce(&mine, &sums[first + i], 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void a_file_each_time(void)
{
    uint64_t sums[FIELDS];
    char name[sizeof(NAME) + 16];
    start();
    for (int n = 0; n < OUTPUTS; n++) {
        snprintf(name, sizeof(name), "%s.%d", NAME, n);
        compute(0, sums);
        MPI_File f = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        write_fields(f, 0, TOGETHER);
        ok(MPI_File_close(&f), "close");
        f = opened(name, MPI_MODE_RDONLY);
        check_fields(f, 0, FIELDS, sums, name);
        ok(MPI_File_close(&f), "close");
    }
}

static void one_file_that_grows(enum how how)
{
    uint64_t sums[OUTPUTS * FIELDS];
    start();
    MPI_File f = opened(NAME, MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int n = 0; n < OUTPUTS; n++) {
        compute(n * FIELDS, sums);
        write_fields(f, n * FIELDS, how);
        MPI_Barrier(MPI_COMM_WORLD);
        check_fields(f, n * FIELDS, FIELDS, sums, "while it grows");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ok(MPI_File_close(&f), "close");
    f = opened(NAME, MPI_MODE_RDONLY);
    check_fields(f, 0, OUTPUTS * FIELDS, sums, "opened again");
    ok(MPI_File_close(&f), "close");
}

static void make_grid(void)
{
    int periods[2] = {1, 1};
    MPI_Dims_create(ranks, 2, tiles);
    MPI_Cart_create(MPI_COMM_WORLD, 2, tiles, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, tile);
    rows = GRID / tiles[0];
    cols = GRID / tiles[1];
    int sizes[2] = {rows + 2, cols + 2}, sub[2] = {rows, cols}, starts[2] = {1, 1};
    MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);
    MPI_Type_vector(rows, 1, cols + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < FIELDS; i++) {
        now[i] = calloc((size_t)((rows + 2) * (cols + 2)), sizeof(double));
        then[i] = calloc((size_t)((rows + 2) * (cols + 2)), sizeof(double));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    make_grid();
    PART("each", a_file_each_time())
    PART("grows", one_file_that_grows(TOGETHER_AT))
    PART("alone", one_file_that_grows(ALONE))
    return end();
}
