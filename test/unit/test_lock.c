/* test_lock.c - debug builds find a wrong lock order; waiting keeps to its deadline. */
#include "transport/lock.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base.h"

#include "suite.h"

static struct lock inode, inode2, file, leaf;

static void make_locks(void)
{
    lock_init(&inode, RANK_INODE);
    lock_init(&inode2, RANK_INODE);
    lock_init(&file, RANK_FILE);
    lock_init(&leaf, RANK_LEAF);
}

static void destroy_locks(void)
{
    lock_destroy(&inode);
    lock_destroy(&inode2);
    lock_destroy(&file);
    lock_destroy(&leaf);
}

START_TEST(right_order_and_any_order_of_dropping)
{
    lock_assert_none();
    lock_take(&inode);
    lock_take(&file);
    lock_take(&leaf);
    lock_assert_held(&inode);
    lock_drop(&inode);
    lock_assert_held(&leaf);
    lock_drop(&leaf);
    lock_drop(&file);
    lock_take(&inode);
    lock_drop(&inode);
    lock_assert_none();
}
END_TEST

START_TEST(pairs_beside_other_locks)
{
    struct lock mount;
    lock_init(&mount, RANK_MOUNT);
    lock_take(&mount);
    lock_pair(&inode, 7, &inode2, 3);
    lock_take(&file);
    lock_drop(&file);
    lock_drop(&inode);
    lock_drop(&inode2);
    lock_pair(&inode, 5, &inode2, 5);
    lock_drop(&inode2);
    lock_drop(&inode);
    lock_drop(&mount);
    lock_assert_none();
    lock_destroy(&mount);
}
END_TEST

#define ROUNDS 20000

static void *take_pairs(void *arg)
{
    bool swap = arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (swap)
            lock_pair(&inode2, 2, &inode, 1);
        else
            lock_pair(&inode, 1, &inode2, 2);
        lock_drop(&inode);
        lock_drop(&inode2);
    }
    return NULL;
}

START_TEST(pairs_named_in_both_orders_do_not_deadlock)
{
    pthread_t a, b;
    pthread_create(&a, NULL, take_pairs, NULL);
    pthread_create(&b, NULL, take_pairs, &inode2);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
END_TEST

static struct {
    pthread_cond_t cond;
    bool go;
    long sum;
} shared;

static void *add_when_told(void *arg)
{
    lock_take(&file);
    while (!shared.go)
        ck_assert_int_eq(lock_wait(&file, &shared.cond, 0), 0);
    lock_assert_held(&file);
    for (int i = 0; i < 1000; i++)
        shared.sum++;
    lock_drop(&file);
    return arg;
}

START_TEST(waiters_wake_with_the_lock_held)
{
    pthread_t t[4];
    lock_cond_init(&shared.cond);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, add_when_told, NULL);
    lock_take(&file);
    shared.go = true;
    pthread_cond_broadcast(&shared.cond);
    lock_drop(&file);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(shared.sum, 4000);
    pthread_cond_destroy(&shared.cond);
}
END_TEST

START_TEST(wait_ends_at_its_deadline)
{
    pthread_cond_t c;
    lock_cond_init(&c);
    lock_take(&file);
    uint64_t start = boot_ms();
    int err;
    do
        err = lock_wait(&file, &c, 50);
    while (!err); /* spurious */
    ck_assert_int_eq(err, -ETIMEDOUT);
    ck_assert_uint_ge(boot_ms() - start, 49);
    lock_assert_held(&file);
    lock_drop(&file);
    pthread_cond_destroy(&c);
}
END_TEST

static void *try_file(void *arg)
{
    bool *got = arg;
    *got = lock_try(&file);
    if (*got) {
        lock_assert_held(&file);
        lock_drop(&file);
    }
    return NULL;
}

START_TEST(a_try_takes_what_is_free_and_never_waits)
{
    pthread_t t;
    bool got = true;
    lock_take(&file);
    pthread_create(&t, NULL, try_file, &got);
    pthread_join(t, NULL); /* for ever, if it waited */
    ck_assert(!got);
    lock_drop(&file);
    pthread_create(&t, NULL, try_file, &got);
    pthread_join(t, NULL);
    ck_assert(got);
    lock_take(&file); /* it was given back */
    lock_drop(&file);
}
END_TEST

START_TEST(pair_of_one_lock_aborts)
{
    log_open("/dev/null", LOG_LEVEL_ERROR, "n");
    lock_pair(&inode, 1, &inode, 1);
}
END_TEST

#ifdef EDDY_DEBUG_LOCKS

static void wrong_order(void)
{
    lock_take(&file);
    lock_take(&inode);
}

static void try_in_the_wrong_order(void)
{
    lock_take(&file);
    lock_try(&inode);
}

static void wrong_order_far_apart(void)
{
    lock_take(&inode);
    lock_take(&leaf);
    lock_drop(&inode);
    lock_take(&file);
}

static void same_rank(void)
{
    lock_take(&inode);
    lock_take(&inode2);
}

static void twice(void)
{
    lock_take(&inode);
    lock_take(&inode);
}

static void drop_of_another(void)
{
    lock_drop(&inode);
}

static void assert_held(void)
{
    lock_assert_held(&inode);
}

static void assert_none(void)
{
    lock_take(&file);
    lock_assert_none();
}

static void not_made(void)
{
    struct lock l;
    memset(&l, 0, sizeof(l));
    lock_take(&l);
}

static void wait_under_a_higher_one(void)
{
    pthread_cond_t c;
    lock_cond_init(&c);
    lock_take(&inode);
    lock_take(&leaf);
    lock_wait(&inode, &c, 1);
}

static const struct {
    void (*fn)(void);
    const char *says;
} wrong[] = {
    {wrong_order, "wrong lock order: takes INODE (3) while it holds FILE (8)"},
    {try_in_the_wrong_order, "wrong lock order: takes INODE (3) while it holds FILE (8)"},
    {wrong_order_far_apart, "wrong lock order: takes FILE (8) while it holds LEAF (19)"},
    {same_rank, "wrong lock order: takes INODE (3) while it holds INODE (3)"},
    {twice, "already holds this lock (INODE)"},
    {drop_of_another, "does not hold this lock (INODE)"},
    {assert_held, "must hold INODE (3) here"},
    {assert_none, "no lock may be held here: FILE (8)"},
    {not_made, "lock_init is missing"},
    {wait_under_a_higher_one, "waits with INODE (3) while it holds LEAF (19)"},
};

START_TEST(wrong_use_aborts_and_says_why)
{
    int fds[2], status;
    char text[4096] = "";
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        log_open(NULL, LOG_LEVEL_ERROR, "n");
        wrong[_i].fn();
        _exit(0);
    }
    close(fds[1]);
    size_t len = 0;
    for (ssize_t n;
         len < sizeof(text) - 1 && (n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0;)
        len += (size_t)n;
    close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(strstr(text, wrong[_i].says), "\"%s\" is not in \"%s\"", wrong[_i].says, text);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

static void *hold_inode(void *arg)
{
    lock_assert_none();
    lock_take(&inode);
    lock_drop(&inode);
    return arg;
}

START_TEST(locks_of_another_thread_do_not_count)
{
    pthread_t t;
    lock_take(&file);
    pthread_create(&t, NULL, hold_inode, NULL);
    pthread_join(t, NULL);
    lock_drop(&file);
}
END_TEST

#endif

int main(void)
{
    TCase *t = tcase_create("lock");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_locks, destroy_locks);
    tcase_add_test(t, right_order_and_any_order_of_dropping);
    tcase_add_test(t, pairs_beside_other_locks);
    tcase_add_test(t, pairs_named_in_both_orders_do_not_deadlock);
    tcase_add_test(t, waiters_wake_with_the_lock_held);
    tcase_add_test(t, wait_ends_at_its_deadline);
    tcase_add_test(t, a_try_takes_what_is_free_and_never_waits);
    tcase_add_test_raise_signal(t, pair_of_one_lock_aborts, SIGABRT);
#ifdef EDDY_DEBUG_LOCKS
    tcase_add_loop_test(t, wrong_use_aborts_and_says_why, 0, ARRAY_LEN(wrong));
    tcase_add_test(t, locks_of_another_thread_do_not_count);
#endif
    return run_case("lock", t);
}
