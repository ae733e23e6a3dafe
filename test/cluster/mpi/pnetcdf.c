/* pnetcdf.c - PnetCDF on one file, each rank on a node of its own: what a rank has written another one reads.
 *
 *   mpirun ... pnetcdf FILE [PART]
 *
 * Rank 0 says which parts were done; who finds something wrong says so, and all end with 1 then.
 */
#include "parts.h"
#include <pnetcdf.h>

#define ROWS 24
#define COLS 4800
#define RECORDS 6

static void must(int err, const char *what)
{
    if (err != NC_NOERR)
        stop_at(what, ncmpi_strerror(err));
}

/* ---- files ---- */

static int file, y, x, when;

static void create(void)
{
    must(ncmpi_create(MPI_COMM_WORLD, NAME, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    must(ncmpi_def_dim(file, "y", ROWS, &y), "y");
    must(ncmpi_def_dim(file, "x", COLS, &x), "x");
    must(ncmpi_def_dim(file, "when", NC_UNLIMITED, &when), "when");
}

static int variable(const char *name, int first)
{
    int var, dims[2] = {first, x};
    must(ncmpi_def_var(file, name, NC_INT, 2, dims, &var), name);
    return var;
}

static void defined(void)
{
    must(ncmpi_enddef(file), "enddef");
}

/* All ranks have written, and all see it. */
static void synced(void)
{
    must(ncmpi_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void opened_again(int mode)
{
    must(ncmpi_close(file), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    must(ncmpi_open(MPI_COMM_WORLD, NAME, mode, MPI_INFO_NULL, &file), "open");
}

/* ---- parts of variables ---- */

static void put_all(int var, struct part p, int seed)
{
    int *buf = values_of(&p, seed);
    must(ncmpi_put_vars_int_all(file, var, p.start, p.count, p.stride, buf), "put_vars_int_all");
    free(buf);
}

static void put_alone(int var, struct part p, int seed)
{
    int *buf = values_of(&p, seed);
    must(ncmpi_put_vars_int(file, var, p.start, p.count, p.stride, buf), "put_vars_int");
    free(buf);
}

static void is(int var, struct part p, int seed, const char *what)
{
    int *buf = calloc((size_t)(p.count[0] * p.count[1]), sizeof(int));
    must(ncmpi_get_vars_int_all(file, var, p.start, p.count, p.stride, buf), "get_vars_int_all");
    check_values(&p, buf, seed, what);
    free(buf);
}

static int next(void)
{
    return (rank + 1) % ranks;
}

/* ---- written by all ranks together, and by each alone ---- */

static void blocking(void)
{
    create();
    int rows = variable("rows", y), tiles = variable("tiles", y), columns = variable("columns", y), alone = variable("alone", y);
    defined();
    put_all(rows, rows_of(rank, ROWS, COLS), 1);
    put_all(tiles, tile_of(rank, ROWS, COLS), 2);
    put_all(columns, columns_of(rank, ROWS, COLS), 3);
    must(ncmpi_begin_indep_data(file), "begin_indep_data");
    put_alone(alone, rows_of(rank, ROWS, COLS), 4);
    must(ncmpi_end_indep_data(file), "end_indep_data");
    synced();
    is(rows, rows_of(next(), ROWS, COLS), 1, "another rank's rows");
    is(tiles, tile_of(next(), ROWS, COLS), 2, "another rank's tile");
    is(columns, columns_of(next(), ROWS, COLS), 3, "another rank's columns");
    is(alone, rows_of(next(), ROWS, COLS), 4, "what another rank wrote alone");
    put_all(rows, tile_of(next(), ROWS, COLS), 5); /* over what others wrote */
    opened_again(NC_NOWRITE);
    is(rows, all_of(ROWS, COLS), 5, "written over");
    is(tiles, all_of(ROWS, COLS), 2, "tiles");
    is(columns, all_of(ROWS, COLS), 3, "columns");
    is(alone, all_of(ROWS, COLS), 4, "written alone");
    must(ncmpi_close(file), "close");
}

/* ---- requests that are carried out together ---- */

static void nonblocking(void)
{
    enum { VARS = 4 };
    static const char *const names[VARS] = {"one", "two", "three", "four"};
    int var[VARS], request[VARS], status[VARS], *buf[VARS];
    struct part p[VARS] = {rows_of(rank, ROWS, COLS), tile_of(rank, ROWS, COLS), columns_of(rank, ROWS, COLS), rows_of(rank, ROWS, COLS)};
    create();
    for (int i = 0; i < VARS; i++)
        var[i] = variable(names[i], y);
    defined();
    must(ncmpi_buffer_attach(file, ROWS * COLS * (MPI_Offset)sizeof(int)), "buffer_attach");
    for (int i = 0; i < VARS; i++) {
        buf[i] = values_of(&p[i], 10 + i);
        if (i < VARS - 1)
            must(ncmpi_iput_vars_int(file, var[i], p[i].start, p[i].count, p[i].stride, buf[i], &request[i]), "iput_vars_int");
        else
            must(ncmpi_bput_vars_int(file, var[i], p[i].start, p[i].count, p[i].stride, buf[i], &request[i]), "bput_vars_int");
    }
    must(ncmpi_wait_all(file, VARS, request, status), "wait_all");
    must(ncmpi_buffer_detach(file), "buffer_detach");
    for (int i = 0; i < VARS; i++) {
        must(status[i], names[i]);
        free(buf[i]);
    }
    synced();
    for (int i = 0; i < VARS; i++) {
        buf[i] = calloc(ROWS * COLS, sizeof(int));
        must(ncmpi_iget_var_int(file, var[i], buf[i], &request[i]), "iget_var_int");
    }
    must(ncmpi_wait_all(file, VARS, request, status), "wait_all");
    for (int i = 0; i < VARS; i++) {
        struct part all = all_of(ROWS, COLS);
        check_values(&all, buf[i], 10 + i, names[i]);
        free(buf[i]);
    }
    must(ncmpi_close(file), "close");
}

/* ---- records: of two variables, so they lie in turns, and the file grows with each ---- */

static void has_records(MPI_Offset want, const char *what)
{
    MPI_Offset got = -1;
    must(ncmpi_inq_dimlen(file, when, &got), "inq_dimlen");
    check(got == want, what, got, want);
}

static struct part record_of(int number)
{
    return (struct part){{number, 0}, {1, COLS}, {1, 1}};
}

static struct part tile_of_record(int number, int r)
{
    struct part p = tile_of(r, 1, COLS);
    p.start[0] = number;
    return p;
}

static void records(void)
{
    create();
    int a = variable("a", when), b = variable("b", when);
    defined();
    for (int n = 0; n < RECORDS; n++) {
        put_all(a, tile_of_record(n, rank), 20);
        put_all(b, tile_of_record(n, rank), 21);
        synced();
        has_records(n + 1, "records, while they are written");
        is(b, tile_of_record(n, next()), 21, "another rank's part of a record");
    }
    must(ncmpi_begin_indep_data(file), "begin_indep_data");
    put_alone(a, record_of(RECORDS + rank), 20);
    put_alone(b, record_of(RECORDS + rank), 21);
    must(ncmpi_end_indep_data(file), "end_indep_data");
    synced();
    has_records(RECORDS + ranks, "records, after some were written alone");
    is(a, record_of(RECORDS + next()), 20, "another rank's record");
    opened_again(NC_NOWRITE);
    has_records(RECORDS + ranks, "records, opened again");
    is(a, all_of(RECORDS + ranks, COLS), 20, "a");
    is(b, all_of(RECORDS + ranks, COLS), 21, "b");
    must(ncmpi_close(file), "close");
}

/* ---- a header that grows: what was written is moved to make room ---- */

static void many_attributes(int from)
{
    char name[32], text[1000];
    memset(text, 'a' + from, sizeof(text));
    for (int i = 0; i < 90; i++) {
        snprintf(name, sizeof(name), "attribute-%d-%d", from, i);
        must(ncmpi_put_att_text(file, NC_GLOBAL, name, sizeof(text), text), "put_att_text");
    }
}

static void header(void)
{
    create();
    int fixed = variable("fixed", y), record = variable("record", when);
    defined();
    put_all(fixed, rows_of(rank, ROWS, COLS), 30);
    put_all(record, rows_of(rank, ROWS, COLS), 31);
    must(ncmpi_redef(file), "redef");
    many_attributes(0);
    int later = variable("later", y), more = variable("more", when);
    defined();
    is(fixed, rows_of(next(), ROWS, COLS), 30, "moved");
    is(record, rows_of(next(), ROWS, COLS), 31, "records moved");
    put_all(later, columns_of(rank, ROWS, COLS), 32);
    put_all(more, tile_of(rank, ROWS, COLS), 33);
    opened_again(NC_WRITE);
    must(ncmpi_redef(file), "redef");
    many_attributes(1);
    must(ncmpi__enddef(file, 100000, 512, 0, 4), "_enddef");
    is(fixed, all_of(ROWS, COLS), 30, "moved twice");
    put_all(fixed, tile_of(rank, ROWS, COLS), 34);
    opened_again(NC_NOWRITE);
    is(fixed, all_of(ROWS, COLS), 34, "fixed");
    is(record, all_of(ROWS, COLS), 31, "record");
    is(later, all_of(ROWS, COLS), 32, "later");
    is(more, all_of(ROWS, COLS), 33, "more");
    must(ncmpi_close(file), "close");
}

/* ---- what nobody has written is filled ---- */

static void is_filled(int var, struct part p, const char *what)
{
    int *buf = calloc((size_t)(p.count[0] * p.count[1]), sizeof(int));
    must(ncmpi_get_vars_int_all(file, var, p.start, p.count, p.stride, buf), "get_vars_int_all");
    for (MPI_Offset i = 0; i < p.count[0] * p.count[1]; i++)
        if (buf[i] != NC_FILL_INT) {
            check(0, what, buf[i], NC_FILL_INT);
            break;
        }
    free(buf);
}

static void filled(void)
{
    struct part odd = {{1, 0}, {ROWS / 2, COLS}, {2, 1}}, even = {{0, 0}, {ROWS / 2, COLS}, {2, 1}};
    struct part mine = tile_of(rank, ROWS / 2, COLS);
    mine.stride[0] = 2; /* of each second row */
    create();
    must(ncmpi_set_fill(file, NC_FILL, NULL), "set_fill");
    int fixed = variable("fixed", y), record = variable("record", when);
    defined();
    put_all(fixed, mine, 40);
    for (int n = 0; n < 3; n++)
        must(ncmpi_fill_var_rec(file, record, n), "fill_var_rec");
    put_all(record, tile_of_record(1, rank), 41);
    synced();
    is(fixed, even, 40, "rows that were written");
    is_filled(fixed, odd, "rows that were not written");
    is(record, record_of(1), 41, "a record that was written");
    is_filled(record, record_of(0), "a record that was not written");
    is_filled(record, record_of(2), "the last record, not written");
    must(ncmpi_close(file), "close");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    PART("blocking", blocking())
    PART("nonblocking", nonblocking())
    PART("records", records())
    PART("header", header())
    PART("filled", filled())
    return end();
}
