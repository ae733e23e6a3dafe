/* loop.c - the network thread, its timers, and libuv's pool.
 *
 *     other threads --loop_post--> queue --eventfd--> network thread: uv_run
 *                                                             |  timers, hello.c, peer.c
 *     libuv's pool <--uv_queue_work-- loop_work <-------------+
 *
 * The queue is an array that the network thread takes as a whole and gives back empty.  So posting costs
 * a lock and no allocation.  Only a post that finds the loop asleep wakes it.  An eventfd of our own
 * does that, because libuv's uv_async_t makes the loop spin until the sender is back from its write (1.44).
 *
 * The end: loop_stop marks the loop as stopping.  When the queue is empty and libuv's pool has
 * no work of ours, the queue is closed in one step under its lock (later posts are refused), the
 * handles are closed, and uv_run returns because nothing is left.
 */
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/base.h"
#include "transport/jobs.h"
#include "transport/lock.h"
#include "transport/loop_uv.h"

#define BATCHES 16

/* ---- the network thread ---- */

static struct {
    pthread_t thread;
    uv_loop_t uv;
    uv_poll_t wake; /* of wake_fd */
    int wake_fd;    /* eventfd: made once, never closed, so that posting needs no lock for it */

    /* with the lock */
    struct lock lock;
    struct jobs queue;
    bool open;  /* posts are taken */
    bool awake; /* the loop is on its way to the queue, or at it */

    _Atomic bool posted; /* since loop_poll_begin */

    /* network thread only */
    struct jobs spare; /* empty; changes places with queue */
    unsigned working;  /* calls in libuv's pool */
    bool stopping;
} net;

static pthread_once_t net_once = PTHREAD_ONCE_INIT;
static _Thread_local bool here;

static void net_init(void)
{
    lock_init(&net.lock, RANK_NET);
    net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (net.wake_fd < 0)
        die("eventfd: %s", strerror(errno));
}

bool loop_is_here(void)
{
    return here;
}

uv_loop_t *loop_uv(void)
{
    return &net.uv;
}

static void raise_wake(void)
{
    uint64_t one = 1;
    if (write(net.wake_fd, &one, sizeof(one)) != sizeof(one))
        die("eventfd: %s", strerror(errno));
}

static bool post(void (*fn)(void *arg), void *arg)
{
    pthread_once(&net_once, net_init);
    lock_take(&net.lock);
    bool open = net.open, wake = false;
    if (open) {
        jobs_push(&net.queue, fn, arg);
        wake = !net.awake;
        net.awake = true;
        atomic_store_explicit(&net.posted, true, memory_order_relaxed);
    }
    lock_drop(&net.lock);
    if (wake)
        raise_wake();
    return open;
}

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

/* Closes the loop if it is to stop and nothing is under way. */
static void end_if_done(void)
{
    if (!net.stopping || net.working)
        return;
    lock_take(&net.lock);
    bool done = net.open && !net.queue.n;
    if (done)
        net.open = false;
    lock_drop(&net.lock);
    if (done)
        uv_walk(&net.uv, close_handle, NULL);
}

/* Runs what was queued until now. */
static void run_batch(void)
{
    lock_take(&net.lock);
    struct jobs batch = net.queue;
    net.queue = net.spare;
    lock_drop(&net.lock);

    while (batch.n) {
        struct job job = jobs_pop(&batch);
        job.fn(job.arg);
    }
    batch.head = 0;
    net.spare = batch;
}

static bool more_queued(void)
{
    lock_take(&net.lock);
    bool more = net.queue.n > 0;
    net.awake = more;
    lock_drop(&net.lock);
    return more;
}

/* Calls that these calls post are run as well, without a wake-up each: a request to this node itself is
 * three calls.  After BATCHES of them I/O has its turn. */
static void run_queue(void)
{
    for (int i = 0; i < BATCHES; i++) {
        run_batch();
        if (!more_queued()) {
            end_if_done();
            return;
        }
    }
    raise_wake();
}

static void on_wake(uv_poll_t *h, int status, int events)
{
    uint64_t n;
    (void)h;
    (void)status;
    (void)events;
    if (read(net.wake_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        die("eventfd: %s", strerror(errno));
    run_queue();
}

void loop_poll_begin(void)
{
    lock_take(&net.lock);
    net.awake = true;
    net.posted = net.queue.n > 0;
    lock_drop(&net.lock);
}

bool loop_posted(void)
{
    return atomic_load_explicit(&net.posted, memory_order_relaxed);
}

void loop_poll_end(void)
{
    run_queue();
}

static void *net_main(void *arg)
{
    (void)arg;
    here = true;
    uv_run(&net.uv, UV_RUN_DEFAULT);
    int err = uv_loop_close(&net.uv);
    if (err)
        log_error("network loop ended with open handles: %s", uv_strerror(err));
    return NULL;
}

int loop_start(void)
{
    pthread_once(&net_once, net_init);
    if (net.open)
        die("loop_start: the loop runs already");
    int err = uv_loop_init(&net.uv);
    if (err)
        return err;
    err = uv_poll_init(&net.uv, &net.wake, net.wake_fd);
    if (!err)
        err = uv_poll_start(&net.wake, UV_READABLE, on_wake);
    if (err) {
        uv_loop_close(&net.uv);
        return err;
    }
    net.stopping = false;
    lock_take(&net.lock);
    net.open = true;
    net.awake = false;
    lock_drop(&net.lock);
    err = thread_start(&net.thread, net_main, NULL, "eddy-net");
    if (err) {
        net.open = false;
        uv_close((uv_handle_t *)&net.wake, NULL);
        uv_run(&net.uv, UV_RUN_DEFAULT);
        uv_loop_close(&net.uv);
    }
    return err;
}

static void stop_soon(void *arg)
{
    (void)arg;
    net.stopping = true; /* on_wake looks after this batch */
}

void loop_stop(void)
{
    if (here)
        die("loop_stop: in the network thread");
    if (!post(stop_soon, NULL))
        return; /* not running */
    pthread_join(net.thread, NULL);
    free(net.queue.v);
    free(net.spare.v);
    net.queue = net.spare = (struct jobs){0};
}

void loop_post(void (*fn)(void *arg), void *arg)
{
    if (!post(fn, arg))
        log_debug("a call to the network thread came while it does not run: dropped");
}

struct call {
    void (*fn)(void *arg);
    void *arg;
    struct lock lock;
    pthread_cond_t cond;
    bool done;
};

static void run_call(void *arg)
{
    struct call *c = arg;
    c->fn(c->arg);
    lock_take(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->cond);
    lock_drop(&c->lock);
}

void loop_call(void (*fn)(void *arg), void *arg)
{
    if (here) {
        fn(arg);
        return;
    }
    lock_assert_none(); /* fn may need a lock that the caller holds */
    struct call c = {.fn = fn, .arg = arg};
    lock_init(&c.lock, RANK_LEAF);
    lock_cond_init(&c.cond);
    if (post(run_call, &c)) {
        lock_take(&c.lock);
        while (!c.done)
            lock_wait(&c.lock, &c.cond, 0);
        lock_drop(&c.lock);
    } else {
        fn(arg); /* no network thread: what it owns is the caller's */
    }
    pthread_cond_destroy(&c.cond);
    lock_destroy(&c.lock);
}

/* ---- timers ---- */

struct loop_timer {
    uv_timer_t uv;
    void (*fn)(void *arg);
    void *arg;
};

static void on_timer(uv_timer_t *h)
{
    struct loop_timer *t = h->data;
    t->fn(t->arg);
}

static void on_timer_closed(uv_handle_t *h)
{
    free(h->data);
}

struct loop_timer *loop_timer_new(void (*fn)(void *arg), void *arg)
{
    if (!here)
        die("loop_timer_new: not in the network thread");
    struct loop_timer *t = xcalloc(1, sizeof(*t));
    t->fn = fn;
    t->arg = arg;
    uv_timer_init(&net.uv, &t->uv);
    t->uv.data = t;
    return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t first_ms, uint64_t repeat_ms)
{
    if (!here)
        die("loop_timer_set: not in the network thread");
    uv_update_time(&net.uv); /* count from now, not from when this turn of the loop began */
    uv_timer_start(&t->uv, on_timer, first_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *t)
{
    uv_timer_stop(&t->uv);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    if (!here)
        die("loop_timer_free: not in the network thread");
    uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}

/* ---- libuv's pool ---- */

struct work {
    uv_work_t uv;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void on_work(uv_work_t *uv)
{
    struct work *w = uv->data;
    w->work(w->arg);
}

static void on_work_done(uv_work_t *uv, int status)
{
    struct work *w = uv->data;
    (void)status; /* nothing is ever cancelled */
    if (w->done)
        w->done(w->arg);
    free(w);
    net.working--;
    end_if_done();
}

static void queue_work(void *arg)
{
    struct work *w = arg;
    w->uv.data = w;
    net.working++;
    int err = uv_queue_work(&net.uv, &w->uv, on_work, on_work_done);
    if (err)
        die("libuv's pool takes no work: %s", uv_strerror(err));
}

void loop_work(void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = xcalloc(1, sizeof(*w));
    w->work = work;
    w->done = done;
    w->arg = arg;
    if (here) {
        queue_work(w);
    } else if (!post(queue_work, w)) {
        log_debug("work for libuv's pool came while the network thread does not run: dropped");
        free(w);
    }
}
