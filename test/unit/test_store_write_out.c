/* test_store_write_out.c - the cache's disk at the end: the write-out begins early, and a look reads
 * what is there only. */
#include "store_help.h"
#include "suite.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "placement/store/store_open.h"
#include "transport/base.h"

#define SIZE (8 * MIB)

static void setup(void)
{
    dir_setup();
    open_store(16384 * MIB, 64 * KIB);
}

static void teardown(void)
{
    store_close(false);
    dir_teardown();
}

static int open_in_cache(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", cache_dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

/* Pages of it that only the page cache has as they are (cachestat, Linux 6.5); -errno. */
static int64_t unwritten_pages(int fd)
{
    struct {
        uint64_t off, len;
    } range = {0, 0};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } is;
    if (syscall(451, fd, &range, &is, 0))
        return -errno;
    return (int64_t)(is.dirty + is.writeback);
}

START_TEST(what_the_page_cache_has_reaches_the_disk_before_the_end)
{
    struct file *f = new_file(1, "x");
    uint8_t *data = malloc(SIZE);
    put_pattern(data, SIZE, 0, 1);
    write_ok(f, data, SIZE, 0);
    char name[64];
    snprintf(name, sizeof(name), "data/%02x/%016llx%016llx", (unsigned)(f->fid.lo & 0xff),
             (unsigned long long)f->fid.hi, (unsigned long long)f->fid.lo);
    int fd = open_in_cache(name);
    if (unwritten_pages(fd) <= 0) {
        printf("skipped: this kernel does not tell what is not on the disk, or there is none\n");
    } else {
        store_write_out_begin();
        store_write_out_begin();               /* once more, while it runs, changes nothing */
        uint64_t until = boot_ms() + 20000; /* the kernel itself takes 30 s and more */
        while (unwritten_pages(fd) > 0 && boot_ms() < until)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ck_assert_int_eq(unwritten_pages(fd), 0);
        store_write_out_begin(); /* and after it has ended */
    }
    close(fd);
    file_put(f);
    free(data);
}
END_TEST

/* Pages of it that are in memory. */
static size_t pages_in_memory(int fd, size_t *all)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    *all = (size_t)st.st_size / 4096;
    unsigned char *in = malloc(*all);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(mincore(map, (size_t)st.st_size, in), 0);
    size_t n = 0;
    for (size_t i = 0; i < *all; i++)
        n += in[i] & 1;
    munmap(map, (size_t)st.st_size);
    free(in);
    return n;
}

static void is_hardly_read(const char *name)
{
    size_t all;
    int fd = open_in_cache(name);
    size_t n = pages_in_memory(fd, &all);
    /* the kernel reads ahead, on some disks 16 MiB and a little */
    ck_assert_msg(n <= all / 2, "%s: %zu of %zu pages were read", name, n, all);
    close(fd);
}

/* Records are preallocated for the whole cache; who asks what is not on the PFS waits for it. */
START_TEST(records_that_were_never_written_are_not_read_for_the_list)
{
    static const uint8_t data[5000] = {1};
    struct file *f = new_file(1, "dir/x");
    write_ok(f, data, sizeof(data), 0);
    file_put(f);
    store_close(true);
    struct seen seen = {0};
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &seen), 0);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_str_eq(seen.path, "dir/x");
    ck_assert_uint_eq(seen.bytes, 8192);
    is_hardly_read("slabs/files.000");
    is_hardly_read("slabs/chunks.000");
    open_store(16384 * MIB, 64 * KIB);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("write out");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_the_page_cache_has_reaches_the_disk_before_the_end);
    tcase_add_test(t, records_that_were_never_written_are_not_read_for_the_list);
    return run_case("store_write_out", t);
}
