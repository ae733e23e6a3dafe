/* test_inodes.c - a cache's disk without inodes is one without room: files leave the cache for others, and what
 * must be made at a start can be made.
 */
#include "store_help.h"
#include "suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "placement/store/kernel_io.h"
#include "placement/store/slab.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"

#define CHUNK (64 * KIB)
#define SIZE  (3 * CHUNK)
#define LIMIT (32 * MIB)
#define MANY  1000000 /* inodes */

/* ---- a disk with few inodes: the C library's calls, which the store makes ---- */

static int inodes = MANY;  /* that are free */
static unsigned long total; /* as statvfs tells: 0: it does not count them */

static int made(int fd, bool is_new)
{
    if (fd >= 0)
        inodes -= is_new;
    return fd;
}

static bool is_there(int dirfd, const char *name)
{
    struct stat st;
    return !fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
}

int openat(int dirfd, const char *name, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    bool is_new = flags & O_CREAT && !is_there(dirfd, name);
    if (is_new && inodes <= 0) {
        errno = ENOSPC;
        return -1;
    }
    return made((int)syscall(SYS_openat, dirfd, name, flags, mode), is_new);
}

int mkdirat(int dirfd, const char *name, mode_t mode)
{
    if (!is_there(dirfd, name) && inodes <= 0) {
        errno = ENOSPC;
        return -1;
    }
    int err = (int)syscall(SYS_mkdirat, dirfd, name, mode);
    made(err, true);
    return err;
}

int unlinkat(int dirfd, const char *name, int flags)
{
    int err = (int)syscall(SYS_unlinkat, dirfd, name, flags);
    inodes += !err;
    return err;
}

int fstatvfs(int fd, struct statvfs *out)
{
    struct statfs fs;
    if (fstatfs(fd, &fs))
        return -1;
    *out = (struct statvfs){.f_frsize = (unsigned long)fs.f_bsize,
                            .f_blocks = (fsblkcnt_t)fs.f_blocks,
                            .f_bavail = (fsblkcnt_t)fs.f_bavail,
                            .f_files = total,
                            .f_favail = (fsfilcnt_t)inodes};
    return 0;
}

/* ---- files ---- */

static uint8_t *data; /* SIZE */

static void setup(void)
{
    inodes = MANY;
    total = 0;
    dir_setup();
    open_store(LIMIT, CHUNK);
    data = malloc(SIZE);
    put_pattern(data, SIZE, 0, 4);
}

static void teardown(void)
{
    store_close(false);
    inodes = MANY;
    free(data);
    dir_teardown();
}

static const struct version old = {SIZE, 5000000001, 5000000002};

/* A clean file, which has no user. */
static void cached(uint64_t n)
{
    struct file *f = get_file(n, "cached");
    ck_assert_int_eq(store_set_version(f, &old, NULL), 0);
    for (unsigned i = 0; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, &old, data, true), 0);
    file_put(f);
}

static bool has_data_file(uint64_t n)
{
    char path[300];
    struct fid fid = fid_n(n);
    snprintf(path, sizeof(path), "%s/data/%02x/%016llx%016llx", cache_dir, (unsigned)(fid.lo & 0xff),
             (unsigned long long)fid.hi, (unsigned long long)fid.lo);
    return !access(path, F_OK);
}

static int write_to(struct file *f, enum space_limit limit)
{
    uint64_t fill;
    return store_write(f, data, SIZE, 0, limit, &fill);
}

/* ---- while it runs ---- */

START_TEST(a_clean_file_leaves_for_a_new_one)
{
    cached(1);
    cached(2);
    struct file *f = new_file(3, "new");
    inodes = 0;
    ck_assert_int_eq(write_to(f, SPACE_CACHE), 0); /* a directory takes one, too; and is given back */
    ck_assert(!has_data_file(1) && has_data_file(2) && has_data_file(3));
    ck_assert_ptr_null(file_find(fid_n(1)));
    read_is(f, data, SIZE, 0);
    file_put(f);
}
END_TEST

/* It is there again when it is read. */
START_TEST(an_open_file_leaves_too)
{
    cached(1);
    struct file *f = new_file(0x101, "new"), *open = file_find(fid_n(1)); /* in one directory */
    read_is(open, data, SIZE, 0);
    inodes = 0;
    ck_assert_int_eq(write_to(f, SPACE_CACHE), 0);
    ck_assert(!has_data_file(1) && has_data_file(0x101));
    ck_assert_uint_eq(here(open, 0, SIZE), 0);
    inodes = 1;
    ck_assert_int_eq(fill_chunk(open, 1, &old, data, true), 0);
    read_is(open, data + CHUNK, CHUNK, CHUNK);
    ck_assert(has_data_file(1));
    file_put(open);
    file_put(f);
}
END_TEST

START_TEST(what_is_dirty_stays_and_the_write_changes_nothing)
{
    struct file *dirty = new_file(1, "dirty"), *f = new_file(0x101, "new");
    ck_assert_int_eq(write_to(dirty, SPACE_CACHE), 0);
    inodes = 0;
    ck_assert_int_eq(write_to(f, SPACE_CACHE), -ENOSPC);
    ck_assert_int_eq(write_to(f, SPACE_NOW), -ENOSPC);
    ck_assert_int_eq(write_to(f, SPACE_DISK), -ENOSPC);
    ck_assert_msg(!info_of(f).dirty, "a write that was refused has to be flushed");
    read_is(dirty, data, SIZE, 0);
    inodes = 1; /* for one write, where others have taken all else */
    total = MANY;
    ck_assert_int_eq(write_to(f, SPACE_CACHE), -ENOSPC);
    ck_assert_int_eq(write_to(f, SPACE_DISK), 0);
    file_put(dirty);
    file_put(f);
}
END_TEST

START_TEST(a_file_that_the_kernel_serves_stays)
{
    int fd;
    unsigned life;
    cached(1);
    struct file *f = new_file(0x101, "new"), *served = file_find(fid_n(1));
    ck_assert_int_eq(kernel_io_open(served, false, &fd, &life), 0);
    inodes = 0;
    ck_assert_int_eq(write_to(f, SPACE_CACHE), -ENOSPC);
    ck_assert(has_data_file(1));
    kernel_io_close(served, life, false);
    close(fd);
    ck_assert_int_eq(write_to(f, SPACE_CACHE), 0);
    file_put(served);
    file_put(f);
}
END_TEST

/* Readers keep the older version's data file: the newer one gets its own. */
START_TEST(a_new_version_of_a_file_in_use_gets_a_data_file)
{
    int fd;
    unsigned life;
    struct version new = version_n(SIZE, 9);
    cached(1);
    cached(2);
    struct file *served = file_find(fid_n(1));
    ck_assert_int_eq(kernel_io_open(served, false, &fd, &life), 0);
    inodes = 0;
    ck_assert_int_eq(store_set_version(served, &new, NULL), 0);
    ck_assert(!has_data_file(2));
    struct file_info info = info_of(served);
    ck_assert(version_eq(&info.base, &new));
    kernel_io_close(served, life, false);
    close(fd);
    file_put(served);
}
END_TEST

START_TEST(some_inodes_stay_free)
{
    inodes = 400;
    total = MANY;
    for (uint64_t n = 1; n <= 300; n++)
        cached(n);
    ck_assert_int_ge(inodes, 256);
    ck_assert(has_data_file(300) && !has_data_file(1));
}
END_TEST

/* ---- a start ---- */

static void start_again(void)
{
    uint64_t incarnation = store_incarnation(), id = store_node_id();
    store_close(false);
    inodes = 0;
    open_store(LIMIT, CHUNK);
    ck_assert_uint_eq(store_incarnation() >> 32, (incarnation >> 32) + 1); /* the rest is random */
    ck_assert_uint_eq(store_node_id(), id);
}

START_TEST(it_starts_again)
{
    struct file *f = new_file(1, "dirty");
    ck_assert_int_eq(write_to(f, SPACE_CACHE), 0);
    file_put(f);
    for (unsigned n = 0; n < 3; n++)
        start_again();
    f = file_find(fid_n(1));
    read_is(f, data, SIZE, 0);
    ck_assert(info_of(f).dirty);
    file_put(f);
    ck_assert(!store_free_inode());
}
END_TEST

/* Who needs a file there asks for an inode. */
START_TEST(a_start_can_have_an_inode)
{
    cached(1);
    start_again();
    ck_assert(store_free_inode());
    ck_assert_int_ge(inodes, 1);
    ck_assert(!has_data_file(1));
}
END_TEST

static void boot(void)
{
    static const char *const names[] = {"files.000", "chunks.000"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, names[i]);
        int fd = open(path, O_RDWR);
        ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
        close(fd);
    }
}

/* What is set aside is in new files. */
START_TEST(after_a_power_loss_what_is_clean_makes_room_for_what_is_in_doubt)
{
    struct seen s = {0};
    struct file *f = new_file(1, "dirty");
    ck_assert_int_eq(write_to(f, SPACE_CACHE), 0);
    file_put(f);
    cached(2);
    cached(3);
    store_close(false);
    boot();
    inodes = 0;
    open_store(LIMIT, CHUNK);
    ck_assert_int_eq(store_each_suspect(see, &s), 0);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_str_eq(s.path, "dirty");
}
END_TEST

START_TEST(a_directory_that_cannot_be_made_says_what_to_do)
{
    char err[512];
    struct store_config c = {.dir = cache_dir, .size = LIMIT, .chunk_size = CHUNK};
    store_close(false);
    remove_tree(cache_dir);
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    inodes = 0;
    ck_assert_int_eq(store_open(&c, err, sizeof(err)), -ENOSPC);
    ck_assert_msg(strstr(err, "df -i"), "%s", err);
    inodes = MANY;
    open_store(LIMIT, CHUNK);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("inodes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_clean_file_leaves_for_a_new_one);
    tcase_add_test(t, an_open_file_leaves_too);
    tcase_add_test(t, what_is_dirty_stays_and_the_write_changes_nothing);
    tcase_add_test(t, a_file_that_the_kernel_serves_stays);
    tcase_add_test(t, a_new_version_of_a_file_in_use_gets_a_data_file);
    tcase_add_test(t, some_inodes_stay_free);
    tcase_add_test(t, it_starts_again);
    tcase_add_test(t, a_start_can_have_an_inode);
    tcase_add_test(t, after_a_power_loss_what_is_clean_makes_room_for_what_is_in_doubt);
    tcase_add_test(t, a_directory_that_cannot_be_made_says_what_to_do);
    return run_case("inodes", t);
}
