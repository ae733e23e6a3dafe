/* test_datafile.c - descriptors of data files: who has which, while one takes another's place. */
#include "store_help.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "placement/store/datafile.h"
#include "placement/store/datafile_pass.h"
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
        ck_assert_int_eq(datafile_replace(f), 0);
        ck_assert_int_eq(datafile_stat(f, &st), 0);
        ck_assert_uint_eq(inode_in_use(), st.st_ino);
    }
    over = true;
    pthread_join(thread, NULL);
    ck_assert_uint_eq(failed, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("datafile");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_that_takes_anothers_place_is_the_one_in_use);
    return run_case("datafile", t);
}
