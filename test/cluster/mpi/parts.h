/* parts.h - what the programs with two-dimensional data share: which part of it is a rank's, what stands in it, and what
 * was found wrong. A program includes it once; main is
 *
 *   begin(&argc, &argv);
 *   PART("name", call)     call makes the file NAME; without a second argument of the program, each part is done
 *   return end();
 */
#ifndef PARTS_H
#define PARTS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;
static char NAME[4096];

static void stop_at(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s: %s\n", rank, NAME, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rows and columns: where it begins, how many there are of each, and how far from one to the next. */
struct part {
    MPI_Offset start[2], count[2], stride[2];
};

__attribute__((unused)) static struct part all_of(int rows, int cols)
{
    return (struct part){{0, 0}, {rows, cols}, {1, 1}};
}

/* Rows R, R + ranks, ... */
__attribute__((unused)) static struct part rows_of(int r, int rows, int cols)
{
    return (struct part){{r, 0}, {rows / ranks, cols}, {ranks, 1}};
}

/* Columns R, R + ranks, ...: the smallest pieces that there are. */
__attribute__((unused)) static struct part columns_of(int r, int rows, int cols)
{
    return (struct part){{0, r}, {rows, cols / ranks}, {1, ranks}};
}

/* The columns one after the other that are R's. */
__attribute__((unused)) static struct part tile_of(int r, int rows, int cols)
{
    return (struct part){{0, (MPI_Offset)r * (cols / ranks)}, {rows, cols / ranks}, {1, 1}};
}

__attribute__((unused)) static int value(MPI_Offset row, MPI_Offset col, int seed)
{
    return (int)(row * 1000003 + col * 7 + seed * 131);
}

/* The caller's, with what is to stand in that part. */
__attribute__((unused)) static int *values_of(const struct part *p, int seed)
{
    int *buf = malloc(sizeof(int) * (size_t)(p->count[0] * p->count[1])), *at = buf;
    for (MPI_Offset row = 0; row < p->count[0]; row++)
        for (MPI_Offset col = 0; col < p->count[1]; col++)
            *at++ = value(p->start[0] + row * p->stride[0], p->start[1] + col * p->stride[1], seed);
    return buf;
}

static void check(int ok, const char *what, long long got, long long want)
{
    if (ok)
        return;
    fprintf(stderr, "rank %d: %s: %s: %lld, not %lld\n", rank, NAME, what, got, want);
    wrong = 1;
}

/* Is this what stands in the part? */
__attribute__((unused)) static void check_values(const struct part *p, const int *got, int seed, const char *what)
{
    int *want = values_of(p, seed);
    MPI_Offset i = 0, n = p->count[0] * p->count[1];
    while (i < n && got[i] == want[i])
        i++;
    if (i < n) {
        fprintf(stderr, "rank %d: number %lld of the part\n", rank, (long long)i);
        check(0, what, got[i], want[i]);
    }
    free(want);
}

static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* The program's exit code: 1 if a rank found something wrong. */
static int end(void)
{
    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}

#define PART(what, call)                                                                                               \
    if (argc < 3 || !strcmp(argv[2], what)) {                                                                          \
        snprintf(NAME, sizeof(NAME), "%s." what, argv[1]);                                                             \
        call;                                                                                                          \
        if (!rank)                                                                                                     \
            printf("%s\n", what);                                                                                      \
        fflush(stdout);                                                                                                \
    }

#endif
