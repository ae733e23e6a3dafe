/* test_siblings.c - the daemons that share a disk know of each other.  flock is this program's own. */
#include "store_help.h"
#include "suite.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "placement/store/siblings.h"

static int registry = -1;
static bool looks;

/* What a daemon does with a file that nobody has locked. */
static void remove_unlocked(void)
{
    DIR *dir = fdopendir(openat(registry, ".", O_RDONLY | O_DIRECTORY));
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        int fd = e->d_name[0] == '.' ? -1 : openat(registry, e->d_name, O_RDONLY);
        if (fd >= 0 && !syscall(SYS_flock, fd, LOCK_SH | LOCK_NB))
            unlinkat(registry, e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
}

/* Another one looks, before the first lock. */
int flock(int fd, int op)
{
    if (looks) {
        looks = false;
        remove_unlocked();
    }
    return (int)syscall(SYS_flock, fd, op);
}

static int open_registry(void)
{
    char dir[200];
    snprintf(dir, sizeof(dir), "/run/user/%u/eddyfs/caches", (unsigned)geteuid());
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    snprintf(dir, sizeof(dir), "%s/eddyfs-%u/.caches", test_dir, (unsigned)geteuid());
    return fd >= 0 ? fd : open(dir, O_RDONLY | O_DIRECTORY);
}

START_TEST(who_joins_while_another_one_looks_is_counted)
{
    setenv("TMPDIR", test_dir, 1);
    siblings_join(1, 1); /* makes the directory */
    registry = open_registry();
    ck_assert_int_ge(registry, 0);
    close(openat(registry, ".keep", O_CREAT | O_WRONLY, 0600)); /* with it, the directory stays */
    siblings_leave();
    looks = true;
    siblings_join(0x1234, 1);
    ck_assert(!looks);
    ck_assert_int_eq(faccessat(registry, "0000000000001234", F_OK, 0), 0);
    remove_unlocked(); /* it is locked */
    ck_assert_int_eq(faccessat(registry, "0000000000001234", F_OK, 0), 0);
    siblings_leave();
    ck_assert_int_ne(faccessat(registry, "0000000000001234", F_OK, 0), 0);
    unlinkat(registry, ".keep", 0);
    close(registry);
}
END_TEST

START_TEST(the_last_one_leaves_no_directory)
{
    setenv("TMPDIR", test_dir, 1);
    siblings_join(1, 1);
    registry = open_registry();
    ck_assert_int_ge(registry, 0);
    siblings_leave();
    if (!faccessat(registry, "..", F_OK, 0))
        NOT_CHECKED("the registry is in /run here, and stays");
    close(registry);
    siblings_join(1, 1); /* makes it anew */
    registry = open_registry();
    ck_assert_int_eq(faccessat(registry, "0000000000000001", F_OK, 0), 0);
    siblings_leave();
    close(registry);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("siblings");
    tcase_add_checked_fixture(t, dir_setup, dir_teardown);
    tcase_add_test(t, who_joins_while_another_one_looks_is_counted);
    tcase_add_test(t, the_last_one_leaves_no_directory);
    return run_case("siblings", t);
}
