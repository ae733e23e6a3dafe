/* test_datafile.c - descriptors of data files: who has which, while one takes another's place. */
#include "store_help.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "placement/store/datafile.h"
#include "placement/store/datafile_int.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/store_open.h"

#define ROUNDS 3000

static struct file *f;

static void setup(void)
{
    signal(SIGIO, SIG_IGN); /* as the daemon does: a lease is asked back */
    dir_setup();
    open_store(64 * MIB, 64 * KIB);
    f = get_file(1, "a");
    ck_assert_int_eq(datafile_resize(f, 4096), 0);
}

static void teardown(void)
{
    file_put(f);
    store_close(false);
    dir_teardown();
}

static _Atomic bool over;
static _Atomic unsigned opened, failed;

/* As a flush does, which holds no pages: it opens, reads, and lets go; and as a look whether anybody
 * can store does, which closes what is not in use. */
static void *use(void *arg)
{
    (void)arg;
    while (!over) {
        char byte;
        failed += datafile_pread(f, &byte, 1, 0) != 0;
        datafile_unwritten(f);
        opened++;
    }
    return NULL;
}

static ino_t inode_in_use(void)
{
    struct stat st;
    int fd;
    ck_assert_int_eq(datafile_get(f, false, &fd), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    datafile_put(f);
    return st.st_ino;
}

START_TEST(one_that_takes_anothers_place_is_the_one_in_use)
{
    pthread_t thread;
    struct stat st;
    over = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, use, NULL), 0);
    for (unsigned i = 0; i < ROUNDS || !opened; i++) {
        ck_assert_int_eq(datafile_replace(f, -1), 0);
        ck_assert_int_eq(datafile_stat(f, &st), 0);
        ck_assert_uint_eq(inode_in_use(), st.st_ino);
    }
    over = true;
    pthread_join(thread, NULL);
    ck_assert_uint_eq(failed, 0);
}
END_TEST

/* ---- how many are open ---- */

#define MAX_FILES 64
#define MAX_OPEN  8u /* an eighth of that limit */

static void few_setup(void)
{
    struct rlimit r;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = MAX_FILES;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    setup();
}

static struct file *nth_file(unsigned n)
{
    char name[16];
    snprintf(name, sizeof(name), "file%u", n);
    struct file *g = get_file(n + 2, name);
    ck_assert_int_eq(datafile_resize(g, 4096), 0);
    return g;
}

START_TEST(a_bounded_number_is_open_and_what_is_used_stays)
{
    struct file *files[4 * MAX_OPEN];
    struct store_hit hit;
    uint8_t byte = 1;
    int fd;
    write_ok(f, &byte, 1, 0);
    ck_assert_uint_eq(store_read_begin(f, 0, 1, &hit), 1);
    for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
        files[i] = nth_file(i);
        ck_assert_uint_le(datafiles.nopen, MAX_OPEN);
        ck_assert(datafile_use(files[0], &fd)); /* used again and again */
        datafile_put(files[0]);
    }
    ck_assert_uint_eq(datafiles.nopen, MAX_OPEN);
    ck_assert(!datafile_use(files[1], &fd));
    ck_assert_int_eq(hit.fd, f->data_fd);
    byte = 0;
    ck_assert_int_eq(store_read_copy(&hit, &byte), 0);
    ck_assert_uint_eq(byte, 1);
    store_read_end(&hit);
    for (unsigned i = 0; i < ARRAY_LEN(files); i++)
        file_put(files[i]);
}
END_TEST

static struct file *others[2 * MAX_OPEN];

static void *use_all(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct file *g = others[(seed + i * 7) % ARRAY_LEN(others)];
        char byte;
        failed += datafile_pread(g, &byte, 1, 0) || byte != (char)(g->fid.lo + 1);
    }
    return NULL;
}

/* A descriptor that is closed, or another file's, would give an error, or that one's byte. */
START_TEST(who_reads_has_its_own_file_open_beside_those_that_close)
{
    pthread_t threads[3];
    failed = 0;
    for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
        others[i] = nth_file(i);
        uint8_t byte = (uint8_t)(others[i]->fid.lo + 1);
        write_ok(others[i], &byte, 1, 0);
    }
    for (uintptr_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_all, (void *)i), 0);
    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_le(datafiles.nopen, MAX_OPEN);
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        file_put(others[i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("datafile");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_that_takes_anothers_place_is_the_one_in_use);
    TCase *few = tcase_create("few");
    tcase_add_checked_fixture(few, few_setup, teardown);
    tcase_set_timeout(few, 60);
    tcase_add_test(few, a_bounded_number_is_open_and_what_is_used_stays);
    tcase_add_test(few, who_reads_has_its_own_file_open_beside_those_that_close);
    Suite *s = suite_create("datafile");
    suite_add_tcase(s, t);
    suite_add_tcase(s, few);
    return run_suite(s);
}
