/* Requests that wait: answered once whoever comes first, ended by the right signals, served from
 * memory when the PFS hangs. libfuse's side is played here: a fuse_req counts its answers and calls
 * the interrupt function as libfuse does. */
#include <check.h>
#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/request.h"
#include "fs/uring.h"
#include "placement/pfs/pfs.h"

#include "suite.h"

#define SOON_MS 1000  /* the contract's second, for an answer by signal */
#define LATE_MS 20000 /* a condition that never comes */

/* ---- libfuse ---- */

struct fuse_req {
    struct fuse_ctx ctx;
    pthread_mutex_t lock; /* held while func is called, and by who sets it */
    fuse_interrupt_func_t func;
    void *data;
    bool interrupted;
    _Atomic unsigned answers;
    _Atomic int err;
};

/* Where libfuse would have them: no leak while the test's process lives. */
static struct fuse_req *made[65536];
static unsigned nmade;

static struct fuse_req *new_req(pid_t pid)
{
    struct fuse_req *q = xcalloc(1, sizeof(*q));
    made[nmade++ % ARRAY_LEN(made)] = q;
    q->ctx = (struct fuse_ctx){.uid = 7, .gid = 8, .pid = pid, .umask = 022};
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t q)
{
    return &q->ctx;
}

int fuse_req_getgroups(fuse_req_t q, int size, gid_t list[])
{
    (void)q;
    if (size > 0)
        list[0] = 99;
    return 1;
}

void fuse_req_interrupt_func(fuse_req_t q, fuse_interrupt_func_t func, void *data)
{
    pthread_mutex_lock(&q->lock);
    q->func = func;
    q->data = data;
    if (q->interrupted && func)
        func(q, data);
    pthread_mutex_unlock(&q->lock);
}

/* Of fs/uring.c, which needs a kernel. */
const char *uring_why_not(void)
{
    return "no rings in this test";
}

int fuse_req_interrupted(fuse_req_t q)
{
    return __atomic_load_n(&q->interrupted, __ATOMIC_RELAXED);
}

static void interrupt(struct fuse_req *q)
{
    pthread_mutex_lock(&q->lock);
    __atomic_store_n(&q->interrupted, true, __ATOMIC_RELAXED);
    if (q->func)
        q->func(q, q->data);
    pthread_mutex_unlock(&q->lock);
}

static int answer(fuse_req_t q, int err)
{
    q->err = err;
    q->answers++;
    return 0;
}

int fuse_reply_err(fuse_req_t q, int err)
{
    return answer(q, err);
}

int fuse_reply_attr(fuse_req_t q, const struct stat *st, double timeout)
{
    (void)st;
    (void)timeout;
    return answer(q, 0);
}

int fuse_reply_buf(fuse_req_t q, const char *buf, size_t len)
{
    (void)buf;
    (void)len;
    return answer(q, 0);
}

int fuse_reply_write(fuse_req_t q, size_t n)
{
    (void)n;
    return answer(q, 0);
}

/* ---- a job that ends when it is told to ---- */

static struct pool *pool;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool open_gate;
static unsigned begun, ended;

static void job(struct request *r)
{
    pthread_mutex_lock(&gate);
    begun++;
    pthread_cond_broadcast(&gate_moved);
    while (!open_gate)
        pthread_cond_wait(&gate_moved, &gate);
    ended++;
    pthread_mutex_unlock(&gate);
    request_err(r, 0);
}

static void wait_begun(unsigned n)
{
    pthread_mutex_lock(&gate);
    while (begun < n)
        pthread_cond_wait(&gate_moved, &gate);
    pthread_mutex_unlock(&gate);
}

static void let_jobs_end(void)
{
    pthread_mutex_lock(&gate);
    open_gate = true;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate);
}

static bool answered_within(struct fuse_req *q, uint64_t ms)
{
    for (uint64_t end = boot_ms() + ms; !q->answers && boot_ms() < end;)
        usleep(2000); /* the condition is looked at again */
    return q->answers;
}

static void start(void)
{
    open_gate = false;
    begun = ended = 0;
    pool = pool_new("test", 4);
    request_system_start();
}

static void stop(void)
{
    let_jobs_end();
    request_system_stop();
    pool_free(pool);
}

static struct request *start_request(struct fuse_req *q)
{
    struct request *r = request_new(q, 0);
    request_start(r, pool, job);
    return r;
}

/* ---- a process that waits, with a signal pending ---- */

static void handler(int sig)
{
    (void)sig;
}

/* Stopped, so that what is sent to it stays pending; SIGTERM, which it does not catch, is held back: it would end it. */
static pid_t stopped_process(void)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pid_t pid = fork();
    if (!pid) {
        sigprocmask(SIG_BLOCK, &term, NULL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, handler);
        signal(SIGALRM, handler);
        raise(SIGSTOP);
        pause();
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    return pid;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- the tests ---- */

START_TEST(the_job_answers)
{
    struct fuse_req *q = new_req(getpid());
    start_request(q);
    wait_begun(1);
    ck_assert_uint_eq(q->answers, 0);
    ck_assert_uint_eq(requests_waiting(), 1);
    let_jobs_end();
    ck_assert(answered_within(q, LATE_MS));
    stop();
    ck_assert_uint_eq(q->answers, 1);
    ck_assert_uint_eq(requests_waiting(), 0);
}
END_TEST

START_TEST(ctrl_c_ends_the_wait_within_a_second_and_the_jobs_answer_is_dropped)
{
    pid_t pid = stopped_process();
    struct fuse_req *q = new_req(pid);
    start_request(q);
    wait_begun(1);
    kill(pid, SIGINT);
    interrupt(q);
    ck_assert_msg(answered_within(q, SOON_MS), "no answer within %d ms of the interrupt", SOON_MS);
    ck_assert_int_eq(q->err, EINTR);
    stop();
    ck_assert_uint_eq(q->answers, 1);
    end_process(pid);
}
END_TEST

START_TEST(a_handled_alarm_does_not_end_the_wait)
{
    pid_t pid = stopped_process();
    struct fuse_req *q = new_req(pid);
    start_request(q);
    wait_begun(1);
    kill(pid, SIGALRM);
    interrupt(q);
    ck_assert_msg(!answered_within(q, 2 * SOON_MS), "SIGALRM ended the wait with %d", q->err);
    let_jobs_end();
    ck_assert(answered_within(q, LATE_MS));
    ck_assert_int_eq(q->err, 0);
    stop();
    end_process(pid);
}
END_TEST

/* Its process would do again what is done: it catches SIGINT, but not SIGTERM, which ends it. */
START_TEST(a_change_is_ended_only_by_what_ends_its_process)
{
    static const uint32_t changes[] = {FUSE_WRITE, FUSE_SETATTR, FUSE_CREATE, FUSE_MKDIR, FUSE_LINK, FUSE_UNLINK, FUSE_RENAME2};
    pid_t catches = stopped_process(), dies = stopped_process();
    struct fuse_req *waits[ARRAY_LEN(changes)], *ends[ARRAY_LEN(changes)];
    kill(catches, SIGINT);
    kill(dies, SIGTERM);
    for (size_t n = 0; n < ARRAY_LEN(changes); n++) {
        operation_begin(changes[n]);
        start_request(waits[n] = new_req(catches));
        operation_begin(changes[n]);
        start_request(ends[n] = new_req(dies));
        interrupt(waits[n]);
        interrupt(ends[n]);
    }
    for (size_t n = 0; n < ARRAY_LEN(changes); n++) {
        ck_assert_msg(answered_within(ends[n], SOON_MS), "%u", changes[n]);
        ck_assert_int_eq(ends[n]->err, EINTR);
    }
    usleep(SOON_MS * 1000);
    for (size_t n = 0; n < ARRAY_LEN(changes); n++)
        ck_assert_msg(!waits[n]->answers, "%u: SIGINT ended the wait with %d", changes[n], waits[n]->err);
    let_jobs_end();
    for (size_t n = 0; n < ARRAY_LEN(changes); n++) {
        ck_assert(answered_within(waits[n], LATE_MS));
        ck_assert_int_eq(waits[n]->err, 0);
    }
    stop();
    end_process(catches);
    end_process(dies);
}
END_TEST

START_TEST(a_thread_that_is_gone_is_not_waited_for)
{
    pid_t pid = stopped_process();
    end_process(pid);
    struct fuse_req *q = new_req(pid);
    start_request(q);
    wait_begun(1);
    interrupt(q);
    ck_assert(answered_within(q, SOON_MS));
    ck_assert_int_eq(q->err, EINTR);
    stop();
}
END_TEST

/* One that can be ended must not hide behind many that cannot. */
START_TEST(an_interrupt_is_seen_among_many_that_wait)
{
    enum { MANY = 200 };
    pid_t pid = stopped_process();
    kill(pid, SIGALRM);
    struct fuse_req *mine = new_req(pid), *others[MANY];
    pid_t gone = stopped_process();
    end_process(gone);
    mine->ctx.pid = gone;
    start_request(mine);
    for (int n = 0; n < MANY; n++) {
        others[n] = new_req(pid);
        start_request(others[n]);
        interrupt(others[n]);
    }
    interrupt(mine);
    ck_assert_msg(answered_within(mine, SOON_MS), "not seen among %d interrupted requests", MANY);
    stop();
    for (int n = 0; n < MANY; n++)
        ck_assert_uint_eq(others[n]->answers, 1);
    ck_assert_uint_eq(mine->answers, 1);
    end_process(pid);
}
END_TEST

static bool from_memory(struct request *r)
{
    if (request_take(r))
        fuse_reply_err(r->req, 77);
    return true;
}

START_TEST(a_pfs_that_hangs_is_answered_from_memory)
{
    struct fuse_req *q = new_req(getpid()), *without = new_req(getpid());
    uint64_t ticket = pfs_call_begin();
    struct request *r = request_new(q, 0);
    request_on_stall(r, from_memory);
    request_start(r, pool, job);
    start_request(without);
    ck_assert(answered_within(q, LATE_MS));
    ck_assert_int_eq(q->err, 77);
    ck_assert_uint_ge(pfs_waiting_ms(), 2000);
    ck_assert_uint_eq(without->answers, 0); /* nothing is known: it waits */
    pfs_call_end(ticket);
    stop();
    ck_assert_uint_eq(q->answers, 1);
    ck_assert_uint_eq(without->answers, 1);
}
END_TEST

/* `ls -l` of a cached directory asks file by file. */
START_TEST(while_the_pfs_hangs_a_listing_goes_on_at_speed)
{
    enum { FILES = 40 };
    uint64_t ticket = pfs_call_begin();
    for (uint64_t end = boot_ms() + LATE_MS; pfs_waiting_ms() < 2500 && boot_ms() < end;)
        usleep(10000);
    uint64_t begin = boot_ms();
    for (int n = 0; n < FILES; n++) {
        struct fuse_req *q = new_req(getpid());
        struct request *r = request_new(q, 0);
        request_on_stall(r, from_memory);
        request_start(r, pool, job);
        ck_assert(answered_within(q, LATE_MS));
    }
    uint64_t took = boot_ms() - begin;
    pfs_call_end(ticket);
    stop();
    ck_assert_msg(took < 4000, "%d answers from memory took %llu ms", FILES,
                  (unsigned long long)took);
}
END_TEST

static _Atomic unsigned cancels;

static void cancel(struct request *r)
{
    (void)r;
    cancels++;
}

START_TEST(a_lock_that_waits_is_cancelled_by_any_signal_and_answers_itself)
{
    struct fuse_req *q = new_req(getpid()); /* no signal is pending here */
    struct request *r = request_new(q, 0);
    cancels = 0;
    request_wait(r, cancel);
    interrupt(q);
    for (uint64_t end = boot_ms() + SOON_MS; !cancels && boot_ms() < end;)
        usleep(2000);
    ck_assert_uint_ge(cancels, 1);
    ck_assert_uint_eq(q->answers, 0);
    request_err(r, -EINTR);
    stop();
    ck_assert_uint_eq(q->answers, 1);
    ck_assert_int_eq(q->err, EINTR);
}
END_TEST

START_TEST(an_interrupt_that_came_first_is_not_lost)
{
    pid_t pid = stopped_process();
    kill(pid, SIGINT);
    struct fuse_req *q = new_req(pid);
    interrupt(q);
    start_request(q);
    ck_assert(answered_within(q, SOON_MS));
    ck_assert_int_eq(q->err, EINTR);
    stop();
    end_process(pid);
}
END_TEST

/* ---- races ---- */

enum { RACES = 2000 };
static struct fuse_req *racing[RACES];

static void quick(struct request *r)
{
    request_err(r, 0);
}

static void *interrupt_all(void *arg)
{
    (void)arg;
    for (int n = 0; n < RACES; n++) {
        struct fuse_req *q;
        while (!(q = __atomic_load_n(&racing[n], __ATOMIC_ACQUIRE)))
            sched_yield();
        interrupt(q);
    }
    return NULL;
}

START_TEST(answer_and_interrupt_at_once_give_one_answer)
{
    pthread_t thread;
    pthread_create(&thread, NULL, interrupt_all, NULL);
    for (int n = 0; n < RACES; n++) {
        struct fuse_req *q = new_req(getpid());
        struct request *r = request_new(q, 0);
        __atomic_store_n(&racing[n], q, __ATOMIC_RELEASE);
        request_start(r, pool, quick);
    }
    pthread_join(thread, NULL);
    stop();
    for (int n = 0; n < RACES; n++)
        ck_assert_uint_eq(racing[n]->answers, 1);
}
END_TEST

static void *stop_thread(void *arg)
{
    (void)arg;
    request_system_stop();
    return NULL;
}

START_TEST(stopping_waits_for_all)
{
    pthread_t thread;
    struct fuse_req *q = new_req(getpid());
    start_request(q);
    wait_begun(1);
    pthread_create(&thread, NULL, stop_thread, NULL);
    ck_assert_int_ne(pthread_tryjoin_np(thread, NULL), 0);
    let_jobs_end();
    pthread_join(thread, NULL);
    ck_assert_uint_eq(ended, 1);
    ck_assert_uint_eq(q->answers, 1);
    pool_free(pool);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("request");
    tcase_add_checked_fixture(t, start, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_job_answers);
    tcase_add_test(t, ctrl_c_ends_the_wait_within_a_second_and_the_jobs_answer_is_dropped);
    tcase_add_test(t, a_handled_alarm_does_not_end_the_wait);
    tcase_add_test(t, a_change_is_ended_only_by_what_ends_its_process);
    tcase_add_test(t, a_thread_that_is_gone_is_not_waited_for);
    tcase_add_test(t, an_interrupt_is_seen_among_many_that_wait);
    tcase_add_test(t, a_pfs_that_hangs_is_answered_from_memory);
    tcase_add_test(t, while_the_pfs_hangs_a_listing_goes_on_at_speed);
    tcase_add_test(t, a_lock_that_waits_is_cancelled_by_any_signal_and_answers_itself);
    tcase_add_test(t, an_interrupt_that_came_first_is_not_lost);
    tcase_add_test(t, answer_and_interrupt_at_once_give_one_answer);
    tcase_add_test(t, stopping_waits_for_all);
    return run_case("request", t);
}
