/* swmr.c - HDF5's single writer with many readers: the writer appends, readers follow.
 *
 *   swmr write FILE TOLD SECONDS   appends elements for so long; after each flush it says in the plain local file TOLD
 *                                  how many there are
 *   swmr read FILE TOLD            until the writer has ended: what it had told when a look begins is there, and right
 *   swmr all FILE TOLD             one look at all of it
 *
 * Exit code 0; 1: something was wrong, which is on stderr.
 */
#include <fcntl.h>
#include <hdf5.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 1000  /* elements: no multiple of a page */
#define MOST  10000 /* appended at once */
#define FIRST 5     /* no element is zero */

/* In TOLD, which all map. */
struct told {
    _Atomic uint64_t count, ended;
};

static void wrong(const char *what, ...)
{
    va_list list;
    va_start(list, what);
    vfprintf(stderr, what, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

#define MUST(call) must((hid_t)(call), #call)
static hid_t must(hid_t got, const char *call)
{
    if (got < 0)
        wrong("%s failed", call);
    return got;
}

static uint64_t element(uint64_t i)
{
    return (i + FIRST) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct told *map_told(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, sizeof(struct told)))
        wrong("%s cannot be made", path);
    void *p = mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        wrong("%s cannot be mapped", path);
    return p;
}

static hid_t latest(void)
{
    hid_t list = MUST(H5Pcreate(H5P_FILE_ACCESS));
    MUST(H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    return list;
}

/* ---- writing ---- */

static void append(hid_t set, uint64_t from, uint64_t n)
{
    static uint64_t values[MOST];
    hsize_t start = from, count = n, size = from + n;
    for (uint64_t i = 0; i < n; i++)
        values[i] = element(from + i);
    MUST(H5Dset_extent(set, &size));
    hid_t in_file = MUST(H5Dget_space(set)), in_memory = MUST(H5Screate_simple(1, &count, NULL));
    MUST(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, NULL, &count, NULL));
    MUST(H5Dwrite(set, H5T_NATIVE_UINT64, in_memory, in_file, H5P_DEFAULT, values));
    H5Sclose(in_memory);
    H5Sclose(in_file);
    MUST(H5Dflush(set));
}

static int write_file(const char *path, struct told *told, unsigned seconds)
{
    hsize_t none = 0, most = H5S_UNLIMITED, chunk = CHUNK;
    hid_t file = MUST(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, latest()));
    hid_t list = MUST(H5Pcreate(H5P_DATASET_CREATE)), space = MUST(H5Screate_simple(1, &none, &most));
    MUST(H5Pset_chunk(list, 1, &chunk));
    hid_t set = MUST(H5Dcreate(file, "appended", H5T_NATIVE_UINT64, space, H5P_DEFAULT, list, H5P_DEFAULT));
    MUST(H5Fstart_swmr_write(file));
    puts("ready");
    fflush(stdout);
    uint64_t count = 0;
    for (time_t end = time(NULL) + seconds; time(NULL) < end;) {
        uint64_t n = 1 + (uint64_t)random() % (random() % 8 ? 200 : MOST);
        append(set, count, n);
        count += n;
        told->count = count;
        usleep(2000);
    }
    MUST(H5Dclose(set));
    MUST(H5Fclose(file));
    told->ended = 1;
    printf("%llu elements appended\n", (unsigned long long)count);
    return 0;
}

/* ---- reading ---- */

/* Elements from `from` to the end that the set has now; below `sure` they were told. */
static void look(hid_t set, uint64_t from, uint64_t sure)
{
    hsize_t size, count;
    hid_t in_file = MUST(H5Dget_space(set));
    MUST(H5Sget_simple_extent_dims(in_file, &size, NULL));
    if (size < sure)
        wrong("%llu elements were told, and %llu are there", (unsigned long long)sure, (unsigned long long)size);
    count = size - from;
    if (count) {
        hsize_t start = from;
        uint64_t *values = malloc(count * sizeof(uint64_t));
        hid_t in_memory = MUST(H5Screate_simple(1, &count, NULL));
        MUST(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, NULL, &count, NULL));
        MUST(H5Dread(set, H5T_NATIVE_UINT64, in_memory, in_file, H5P_DEFAULT, values));
        for (uint64_t i = 0; i < count; i++)
            if (values[i] != element(from + i) && (from + i < sure || values[i]))
                wrong("element %llu of %llu that were told is %s", (unsigned long long)(from + i), (unsigned long long)sure,
                      values[i] ? "another one" : "zero");
        free(values);
        H5Sclose(in_memory);
    }
    H5Sclose(in_file);
}

static int read_file(const char *path, struct told *told)
{
    hid_t file = MUST(H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, latest()));
    hid_t set = MUST(H5Dopen(file, "appended", H5P_DEFAULT));
    uint64_t looks = 0, before = 0;
    for (bool ended = false; !ended; looks++) {
        ended = told->ended;
        uint64_t sure = told->count;
        MUST(H5Drefresh(set));
        uint64_t older = random() % 16 ? 0 : (uint64_t)random() % (before + 1);
        look(set, before - older, sure); /* what is new; now and then older ones, too */
        before = sure;
        usleep(1000);
    }
    H5Dclose(set);
    H5Fclose(file);
    printf("%llu looks\n", (unsigned long long)looks);
    return 0;
}

static int read_all(const char *path, struct told *told)
{
    hid_t file = MUST(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = MUST(H5Dopen(file, "appended", H5P_DEFAULT));
    look(set, 0, told->count);
    H5Dclose(set);
    H5Fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "write"))
        return write_file(argv[2], map_told(argv[3]), (unsigned)atoi(argv[4]));
    if (argc == 4 && !strcmp(argv[1], "read"))
        return read_file(argv[2], map_told(argv[3]));
    if (argc == 4 && !strcmp(argv[1], "all"))
        return read_all(argv[2], map_told(argv[3]));
    wrong("usage: see the first lines of swmr.c");
}
