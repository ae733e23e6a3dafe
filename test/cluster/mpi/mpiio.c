/* mpiio.c - MPI-IO on one file, each rank on a node of its own; every byte and size is looked at.
 *
 *   mpirun ... mpiio FILE
 *
 * Rank 0 says what was wrong, if anything, and all end with 1 then.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE 65536
#define PIECES 24

static int rank, ranks, wrong;

static unsigned char byte_of(MPI_Offset at, int seed)
{
    unsigned long long x = (unsigned long long)at * 0x9e3779b97f4a7c15ull + (unsigned)seed * 77u;
    return (unsigned char)(x >> 56 ^ x >> 31);
}

static void fill(unsigned char *buf, size_t n, MPI_Offset at, int seed)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_of(at + (MPI_Offset)i, seed);
}

static void check(int ok, const char *what, long long got, long long want)
{
    if (ok)
        return;
    fprintf(stderr, "mpiio: rank %d: %s: %lld, not %lld\n", rank, what, got, want);
    wrong = 1;
}

static void ok(int err, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    if (err == MPI_SUCCESS)
        return;
    MPI_Error_string(err, text, &len);
    fprintf(stderr, "mpiio: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(const char *name, int mode)
{
    MPI_File f;
    ok(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f), "open");
    return f;
}

static MPI_File emptied(const char *name)
{
    MPI_File f = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    ok(MPI_File_set_size(f, 0), "set_size");
    return f;
}

static void size_is(MPI_File f, MPI_Offset want, const char *what)
{
    MPI_Offset got = -1;
    ok(MPI_File_get_size(f, &got), "get_size");
    check(got == want, what, got, want);
}

static void write_piece(MPI_File f, MPI_Offset number, int seed)
{
    unsigned char *buf = malloc(PIECE);
    fill(buf, PIECE, number * PIECE, seed);
    ok(MPI_File_write_at(f, number * PIECE, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
    free(buf);
}

/* All of it, by each rank. */
static void bytes_are(MPI_File f, MPI_Offset from, MPI_Offset to, int seed, const char *what)
{
    unsigned char *got = malloc(PIECE), *want = malloc(PIECE);
    for (MPI_Offset at = from; at < to; at += PIECE) {
        int n = (int)(to - at < PIECE ? to - at : PIECE), read = 0;
        MPI_Status s;
        ok(MPI_File_read_at(f, at, got, n, MPI_BYTE, &s), "read_at");
        MPI_Get_count(&s, MPI_BYTE, &read);
        fill(want, (size_t)n, at, seed);
        check(read == n && !memcmp(got, want, (size_t)n), what, at, read);
    }
    free(got);
    free(want);
}

static void barrier(MPI_File f)
{
    ok(MPI_File_sync(f), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_sync(f), "sync");
}

/* ---- independent writes, strided and segmented ---- */

static void independent(const char *name)
{
    MPI_File f = emptied(name);
    for (int n = 0; n < PIECES; n++)
        write_piece(f, (MPI_Offset)n * ranks + rank, 1);
    barrier(f);
    size_is(f, (MPI_Offset)PIECES * ranks * PIECE, "size after strided writes");
    bytes_are(f, 0, (MPI_Offset)PIECES * ranks * PIECE, 1, "strided");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int n = 0; n < PIECES; n++)
        write_piece(f, (MPI_Offset)rank * PIECES + n, 2);
    barrier(f);
    bytes_are(f, 0, (MPI_Offset)PIECES * ranks * PIECE, 2, "segmented, written over");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_set_size(f, 5 * PIECE + 3), "set_size");
    size_is(f, 5 * PIECE + 3, "size after set_size");
    bytes_are(f, 0, 5 * PIECE + 3, 2, "what is left");
    ok(MPI_File_close(&f), "close");
}

/* ---- sizes ---- */

/* Where MPI-IO looks for the end of a file, rank 1 comes late, and rank 0 waits until the others have looked: as it may be
 * on a busy machine. MPI-IO's calls of lseek() come here when the program is linked with -rdynamic. */
static int rank_1_is_late;

off_t lseek(int fd, off_t offset, int whence)
{
    int late = rank_1_is_late && whence == SEEK_END;
    if (late && rank == 1)
        usleep(200000);
    off_t at = (off_t)syscall(SYS_lseek, fd, offset, whence);
    if (late && rank == 0)
        usleep(100000);
    return at;
}

/* By rank 0, with a handle of its own. All ranks together may hang with OMPIO, on any file system: each of them looks for the
 * size and decides by it which steps there are, while rank 0 makes the file larger already, for a time to more than was asked
 * for. A rank that looks late leaves steps out, and the others wait for it there. */
static void preallocate_alone(const char *name, MPI_Offset size)
{
    MPI_File f;
    if (rank)
        return;
    ok(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &f), "open by rank 0");
    ok(MPI_File_preallocate(f, size), "preallocate");
    ok(MPI_File_close(&f), "close by rank 0");
}

static void sizes(const char *name)
{
    MPI_File f = emptied(name);
    MPI_Barrier(MPI_COMM_WORLD);
    write_piece(f, rank, 3);
    barrier(f);
    size_is(f, (MPI_Offset)ranks * PIECE, "size after sync");
    MPI_Barrier(MPI_COMM_WORLD);
    preallocate_alone(name, (MPI_Offset)ranks * PIECE + 100000);
    MPI_Barrier(MPI_COMM_WORLD);
    size_is(f, (MPI_Offset)ranks * PIECE + 100000, "size after preallocate");
    MPI_Barrier(MPI_COMM_WORLD);
    ok(MPI_File_set_size(f, (MPI_Offset)ranks * PIECE + 200000), "set_size");
    size_is(f, (MPI_Offset)ranks * PIECE + 200000, "size after set_size to more");
    bytes_are(f, 0, (MPI_Offset)ranks * PIECE, 3, "after it became larger");
    ok(MPI_File_close(&f), "close");
}

/* ---- views: data sieving, and collective writes ---- */

static void views(const char *name, int collective)
{
    enum { BLOCK = 1000, BLOCKS = 200 };
    MPI_Datatype type;
    MPI_File f = emptied(name);
    unsigned char *buf = malloc(BLOCK * BLOCKS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    ok(MPI_File_set_view(f, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
    for (int n = 0; n < BLOCKS; n++)
        fill(buf + n * BLOCK, BLOCK, ((MPI_Offset)n * ranks + rank) * BLOCK, 4 + collective);
    if (collective)
        ok(MPI_File_write_all(f, buf, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE), "write_all");
    else
        ok(MPI_File_write(f, buf, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    barrier(f);
    ok(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    size_is(f, (MPI_Offset)BLOCK * BLOCKS * ranks, "size after a view's writes");
    bytes_are(f, 0, (MPI_Offset)BLOCK * BLOCKS * ranks, 4 + collective, collective ? "write_all" : "data sieving");
    MPI_Type_free(&type);
    ok(MPI_File_close(&f), "close");
    free(buf);
}

/* ---- shared pointers, in order ---- */

static void ordered(const char *name)
{
    MPI_File f = emptied(name);
    unsigned char *buf = malloc(PIECE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int n = 0; n < 4; n++) {
        fill(buf, PIECE, ((MPI_Offset)n * ranks + rank) * PIECE, 6);
        ok(MPI_File_write_ordered(f, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered");
    }
    barrier(f);
    bytes_are(f, 0, 4 * (MPI_Offset)ranks * PIECE, 6, "write_ordered");
    ok(MPI_File_close(&f), "close");
    free(buf);
}

/* ---- atomic mode: what one rank has written the next one reads, without a sync ---- */

static void atomic(const char *name)
{
    MPI_File f = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    unsigned char *buf = malloc(PIECE);
    ok(MPI_File_set_atomicity(f, 1), "set_atomicity");
    for (int turn = 0; turn < ranks; turn++) {
        fill(buf, PIECE, 0, 100 + turn);
        if (rank == turn)
            ok(MPI_File_write_at(f, 0, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
        MPI_Barrier(MPI_COMM_WORLD);
        bytes_are(f, 0, PIECE, 100 + turn, "atomic mode");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ok(MPI_File_close(&f), "close");
    free(buf);
}

int main(int argc, char **argv)
{
    char name[4096];
    const char *only = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#define PART(what, call)                                                                           \
    if (!*only || !strcmp(only, what)) {                                                           \
        snprintf(name, sizeof(name), "%s." what, argv[1]);                                         \
        call;                                                                                      \
        if (!rank)                                                                                 \
            printf("%s\n", what);                                                                  \
        fflush(stdout);                                                                            \
    }
    PART("independent", independent(name))
    PART("sizes", sizes(name))
    rank_1_is_late = 1;
    PART("late", sizes(name))
    rank_1_is_late = 0;
    PART("sieved", views(name, 0))
    PART("collective", views(name, 1))
    PART("ordered", ordered(name))
    PART("atomic", atomic(name))
    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
