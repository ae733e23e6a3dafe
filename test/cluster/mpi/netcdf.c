/* netcdf.c - NetCDF-4 (in parallel HDF5) on one file, each rank on a node of its own: what a rank has written another one reads.
 *
 *   mpirun ... netcdf FILE [PART]
 *
 * Rank 0 says which parts were done; who finds something wrong says so, and all end with 1 then.
 */
#include "parts.h"
#include <netcdf.h>
#include <netcdf_par.h>

#define ROWS 24
#define COLS 4800
#define RECORDS 6

static void must(int err, const char *what)
{
    if (err != NC_NOERR)
        stop_at(what, nc_strerror(err));
}

/* ---- files ---- */

static int file, y, x, when;

static void create(void)
{
    must(nc_create_par(NAME, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "create");
    must(nc_def_dim(file, "y", ROWS, &y), "y");
    must(nc_def_dim(file, "x", COLS, &x), "x");
    must(nc_def_dim(file, "when", NC_UNLIMITED, &when), "when");
}

static int variable(const char *name, int first)
{
    int var, dims[2] = {first, x};
    must(nc_def_var(file, name, NC_INT, 2, dims, &var), name);
    return var;
}

/* Chunks whose borders are no rank's. */
static void in_chunks(int var)
{
    size_t chunk[2] = {7, 1100};
    must(nc_def_var_chunking(file, var, NC_CHUNKED, chunk), "def_var_chunking");
}

static void access_is(int var, int how)
{
    must(nc_var_par_access(file, var, how), "var_par_access");
}

static void synced(void)
{
    must(nc_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void opened_again(int mode)
{
    must(nc_close(file), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    must(nc_open_par(NAME, mode, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "open_par");
}

static int found(const char *name)
{
    int var;
    must(nc_inq_varid(file, name, &var), name);
    return var;
}

/* ---- parts of variables ---- */

struct piece {
    size_t start[2], count[2];
    ptrdiff_t stride[2];
};

static struct piece as_piece(struct part p)
{
    return (struct piece){{(size_t)p.start[0], (size_t)p.start[1]},
                          {(size_t)p.count[0], (size_t)p.count[1]},
                          {(ptrdiff_t)p.stride[0], (ptrdiff_t)p.stride[1]}};
}

static void put(int var, struct part p, int seed)
{
    struct piece at = as_piece(p);
    int *buf = values_of(&p, seed);
    must(nc_put_vars_int(file, var, at.start, at.count, at.stride, buf), "put_vars_int");
    free(buf);
}

static void is(int var, struct part p, int seed, const char *what)
{
    struct piece at = as_piece(p);
    int *buf = calloc((size_t)(p.count[0] * p.count[1]), sizeof(int));
    must(nc_get_vars_int(file, var, at.start, at.count, at.stride, buf), "get_vars_int");
    check_values(&p, buf, seed, what);
    free(buf);
}

static int next(void)
{
    return (rank + 1) % ranks;
}

/* ---- variables of a fixed size, by all ranks together and by each alone ---- */

static void fixed(void)
{
    create();
    int rows = variable("rows", y), tiles = variable("tiles", y), alone = variable("alone", y), chunks = variable("chunks", y);
    in_chunks(chunks);
    must(nc_enddef(file), "enddef");
    access_is(rows, NC_COLLECTIVE);
    access_is(tiles, NC_COLLECTIVE);
    access_is(chunks, NC_COLLECTIVE);
    access_is(alone, NC_INDEPENDENT);
    put(rows, rows_of(rank, ROWS, COLS), 1);
    put(tiles, tile_of(rank, ROWS, COLS), 2);
    put(alone, rows_of(rank, ROWS, COLS), 3);
    put(chunks, columns_of(rank, ROWS, COLS), 4);
    synced();
    is(rows, rows_of(next(), ROWS, COLS), 1, "another rank's rows");
    is(tiles, tile_of(next(), ROWS, COLS), 2, "another rank's tile");
    is(alone, rows_of(next(), ROWS, COLS), 3, "what another rank wrote alone");
    is(chunks, columns_of(next(), ROWS, COLS), 4, "another rank's columns");
    access_is(chunks, NC_INDEPENDENT);
    put(chunks, rows_of(next(), ROWS, COLS), 5); /* over what others wrote */
    opened_again(NC_NOWRITE);
    is(rows, all_of(ROWS, COLS), 1, "rows");
    is(tiles, all_of(ROWS, COLS), 2, "tiles");
    is(alone, all_of(ROWS, COLS), 3, "written alone");
    is(chunks, all_of(ROWS, COLS), 5, "written over");
    must(nc_close(file), "close");
}

/* ---- an unlimited dimension: the file grows with each record, and again when it is opened again ---- */

static void has_records(size_t want, const char *what)
{
    size_t got = 0;
    must(nc_inq_dimlen(file, when, &got), "inq_dimlen");
    check(got == want, what, (long long)got, (long long)want);
}

static struct part tile_of_record(int number, int r)
{
    struct part p = tile_of(r, 1, COLS);
    p.start[0] = number;
    return p;
}

static void some_records(int from, int a, int b)
{
    access_is(a, NC_COLLECTIVE); /* HDF5 makes a variable longer only so */
    access_is(b, NC_COLLECTIVE);
    for (int n = from; n < from + RECORDS; n++) {
        put(a, tile_of_record(n, rank), 20);
        put(b, tile_of_record(n, rank), 21);
        synced();
        has_records((size_t)n + 1, "records, while they are written");
        is(b, tile_of_record(n, next()), 21, "another rank's part of a record");
    }
}

static void records(void)
{
    create();
    int a = variable("a", when), b = variable("b", when);
    must(nc_enddef(file), "enddef");
    some_records(0, a, b);
    opened_again(NC_WRITE);
    a = found("a");
    b = found("b");
    is(a, all_of(RECORDS, COLS), 20, "a, opened again");
    some_records(RECORDS, a, b);
    opened_again(NC_NOWRITE);
    has_records(2 * RECORDS, "records, opened again");
    is(a, all_of(2 * RECORDS, COLS), 20, "a");
    is(b, all_of(2 * RECORDS, COLS), 21, "b");
    must(nc_close(file), "close");
}

/* ---- compressed chunks: their places in the file change as they are written ---- */

static void compressed(void)
{
    create();
    int rows = variable("rows", y), record = variable("record", when);
    in_chunks(rows);
    must(nc_def_var_deflate(file, rows, 1, 1, 4), "def_var_deflate");
    must(nc_def_var_deflate(file, record, 0, 1, 1), "def_var_deflate");
    must(nc_enddef(file), "enddef");
    access_is(rows, NC_COLLECTIVE);
    access_is(record, NC_COLLECTIVE);
    put(rows, rows_of(rank, ROWS, COLS), 30);
    for (int n = 0; n < RECORDS; n++)
        put(record, tile_of_record(n, rank), 31);
    synced();
    is(rows, rows_of(next(), ROWS, COLS), 30, "another rank's rows");
    put(rows, tile_of(next(), ROWS, COLS), 32);
    opened_again(NC_NOWRITE);
    is(rows, all_of(ROWS, COLS), 32, "rows");
    is(record, all_of(RECORDS, COLS), 31, "records");
    must(nc_close(file), "close");
}

/* ---- variables that come later, and what nobody has written ---- */

static void later(void)
{
    struct part odd = {{1, 0}, {ROWS / 2, COLS}, {2, 1}}, mine = tile_of(rank, ROWS / 2, COLS);
    struct piece at = as_piece(odd);
    int first, second, *buf = calloc(ROWS * COLS, sizeof(int));
    mine.stride[0] = 2; /* of each second row */
    create();
    first = variable("first", y);
    put(first, rows_of(rank, ROWS, COLS), 40);
    must(nc_redef(file), "redef");
    second = variable("second", y);
    must(nc_put_att_text(file, second, "units", 6, "metres"), "put_att_text");
    must(nc_enddef(file), "enddef");
    put(second, mine, 41);
    opened_again(NC_NOWRITE);
    is(found("first"), all_of(ROWS, COLS), 40, "first");
    second = found("second");
    must(nc_get_vars_int(file, second, at.start, at.count, at.stride, buf), "get_vars_int");
    for (int i = 0; i < ROWS / 2 * COLS && !wrong; i++)
        check(buf[i] == NC_FILL_INT, "rows that were not written", buf[i], NC_FILL_INT);
    free(buf);
    must(nc_close(file), "close");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    PART("fixed", fixed())
    PART("records", records())
    PART("compressed", compressed())
    PART("later", later())
    return end();
}
