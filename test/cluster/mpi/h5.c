/* h5.c - parallel HDF5 on one file, each rank on a node of its own: a contiguous and a chunked dataset, written
 * collectively and independently, read by all ranks through the same open, and after it was opened again.
 *
 *   mpirun ... h5 FILE
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 96
#define COLS 5000

static int rank, ranks, wrong;

static long value(hsize_t row, hsize_t col, int seed)
{
    return (long)(row * 1000003 + col * 7 + (hsize_t)seed);
}

static void must(long result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "h5: rank %d: %s failed\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rows rank, rank + ranks, ...: strided. */
static hid_t rows_of(hid_t space)
{
    hsize_t start[2] = {(hsize_t)rank, 0}, stride[2] = {(hsize_t)ranks, 1};
    hsize_t count[2] = {ROWS / (hsize_t)ranks, 1}, block[2] = {1, COLS};
    must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block), "select");
    hsize_t mine[2] = {ROWS / (hsize_t)ranks, COLS};
    return H5Screate_simple(2, mine, NULL);
}

static hid_t transfer(int collective)
{
    hid_t p = H5Pcreate(H5P_DATASET_XFER);
    must(H5Pset_dxpl_mpio(p, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT), "transfer");
    return p;
}

static hid_t create(hid_t file, const char *name, int chunked)
{
    hsize_t dims[2] = {ROWS, COLS}, chunk[2] = {7, 1024};
    hid_t space = H5Screate_simple(2, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked)
        must(H5Pset_chunk(how, 2, chunk), "chunk");
    hid_t set = H5Dcreate(file, name, H5T_NATIVE_LONG, space, H5P_DEFAULT, how, H5P_DEFAULT);
    must(set, "create");
    H5Sclose(space);
    H5Pclose(how);
    return set;
}

static void write_rows(hid_t set, int collective, int seed)
{
    long *buf = malloc(sizeof(long) * ROWS * COLS), *at = buf;
    for (hsize_t row = (hsize_t)rank; row < ROWS; row += (hsize_t)ranks)
        for (hsize_t col = 0; col < COLS; col++)
            *at++ = value(row, col, seed);
    hid_t space = H5Dget_space(set), mine = rows_of(space), how = transfer(collective);
    must(H5Dwrite(set, H5T_NATIVE_LONG, mine, space, how, buf), "write");
    H5Sclose(space);
    H5Sclose(mine);
    H5Pclose(how);
    free(buf);
}

static void check(hid_t set, int seed, const char *what)
{
    long *buf = malloc(sizeof(long) * ROWS * COLS);
    must(H5Dread(set, H5T_NATIVE_LONG, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf), "read");
    for (hsize_t i = 0; i < ROWS * COLS && !wrong; i++)
        if (buf[i] != value(i / COLS, i % COLS, seed)) {
            fprintf(stderr, "h5: rank %d: %s: row %llu, column %llu: %ld\n", rank, what, (unsigned long long)(i / COLS),
                    (unsigned long long)(i % COLS), buf[i]);
            wrong = 1;
        }
    free(buf);
}

static hid_t access_list(void)
{
    hid_t p = H5Pcreate(H5P_FILE_ACCESS);
    must(H5Pset_fapl_mpio(p, MPI_COMM_WORLD, MPI_INFO_NULL), "access");
    return p;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"contiguous", "chunked", "independent"};
    hid_t set[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hid_t how = access_list(), file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, how);
    must(file, "making the file");
    for (int i = 0; i < 3; i++)
        set[i] = create(file, names[i], i == 1);
    for (int i = 0; i < 3; i++)
        write_rows(set[i], i != 2, i);
    must(H5Fflush(file, H5F_SCOPE_GLOBAL), "flush");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++)
        check(set[i], i, names[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        write_rows(set[i], i != 2, i + 10);
        must(H5Dclose(set[i]), "close");
    }
    must(H5Fclose(file), "close of the file");
    MPI_Barrier(MPI_COMM_WORLD);
    file = H5Fopen(argv[1], H5F_ACC_RDONLY, how);
    must(file, "open");
    for (int i = 0; i < 3; i++) {
        set[i] = H5Dopen(file, names[i], H5P_DEFAULT);
        check(set[i], i + 10, names[i]);
        H5Dclose(set[i]);
    }
    H5Fclose(file);
    H5Pclose(how);
    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!rank)
        printf("h5\n");
    MPI_Finalize();
    return any;
}
