/* policy.c - which files are dirty, who is copied out next and when.
 *
 * Every dirty file is on one of three lists, which holds a reference to it:
 *
 *     becomes dirty --> READY ----------> RUNNING --- clean: off the lists
 *                         ^ ^  (a pass)     | |
 *                         | '--- dirty -----' '-- failed --> FAILED
 *                         |    meanwhile                        |
 *                         '----- back-off over, or asked -------'
 *
 * READY is in the order in which files became dirty.  One flusher thread hands its first file to a
 * pool of writers when there is a lull; it sleeps without a time-out when there is nothing to do,
 * and else until the lull may begin. Urgent work (fsync to the PFS, `eddy flush`, unmount, room for
 * writers) does not ask for a lull and has a pool of its own: writers that wait in the middle of a
 * file for the next lull keep theirs.
 *
 * Locks: policy.lock (RANK_POLICY) for the lists and every file's flush part; not held while
 * anything of the store's, the PFS's or the claims' is called, but for file_ref.  policy.ended: a
 * pass has ended, or bytes have become clean. The flusher and waiting writers sleep on the bell
 * (lull.c).
 */
#include "flush/flush_int.h"

#include "placement/carry.h"
#include "placement/data.h"
#include "placement/store.h"
#include "transport/lock.h"
#include "transport/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_MS   200
#define ROOM_RETRY_MS 1000 /* failed files are tried again for room this often at most */

struct file_list {
    struct file *first, **last;
    unsigned n;
};

static struct {
    struct lock lock;
    pthread_cond_t ended;
    struct file_list ready, running, failed;
    uint64_t seq;           /* place in the order, given to files as they become dirty */
    uint64_t next_retry_ms; /* not later than the first retry_at_ms of failed; UINT64_MAX: none */
    uint64_t progress;      /* goes up when bytes have become clean */
    uint64_t room_tried_ms;
    unsigned writers;
    unsigned jobs, urgent_jobs; /* in the two pools */
    unsigned urgent_all;        /* callers of flush_all and flush_make_room */
    bool stop;
    bool started;
    pthread_t flusher;
    struct pool *lull_pool, *urgent_pool;
} policy;

static void list_init(struct file_list *l)
{
    l->first = NULL;
    l->last = &l->first;
    l->n = 0;
}

static void list_append(struct file_list *l, struct file *f)
{
    f->flush_list = l;
    f->flush_next = NULL;
    f->flush_prev = l->last;
    *l->last = f;
    l->last = &f->flush_next;
    l->n++;
}

static void list_prepend(struct file_list *l, struct file *f)
{
    f->flush_list = l;
    f->flush_next = l->first;
    f->flush_prev = &l->first;
    if (l->first)
        l->first->flush_prev = &f->flush_next;
    else
        l->last = &f->flush_next;
    l->first = f;
    l->n++;
}

static void list_remove(struct file *f)
{
    struct file_list *l = f->flush_list;
    *f->flush_prev = f->flush_next;
    if (f->flush_next)
        f->flush_next->flush_prev = f->flush_prev;
    else
        l->last = f->flush_prev;
    f->flush_list = NULL;
    f->flush_next = NULL;
    f->flush_prev = NULL;
    l->n--;
}

int flush_policy_parse(const char *name, enum flush_policy *out)
{
    if (strcmp(name, "idle") != 0)
        return -EINVAL;
    *out = FLUSH_IDLE;
    return 0;
}

/* ---- becoming dirty, becoming clean ---- */

static bool add_locked(struct file *f)
{
    if (f->flush_queued)
        return false;
    f->flush_queued = true;
    f->flush_seq = ++policy.seq;
    f->dirty_since_ms = boot_ms();
    return true;
}

void policy_add(struct file *f)
{
    file_ref(f);
    lock_take(&policy.lock);
    bool added = add_locked(f);
    if (added)
        list_append(&policy.ready, f);
    bool wake = added && (policy.ready.n == 1 || policy.urgent_all);
    lock_drop(&policy.lock);
    if (!added)
        file_put(f);
    else
        names_changed();
    if (wake) /* with more than one the flusher is at work, or waits for the lull that it needs
                 anyway */
        bell_ring();
}

void policy_progress(uint64_t bytes)
{
    count(flushed_bytes, bytes);
    lock_take(&policy.lock);
    policy.progress++;
    pthread_cond_broadcast(&policy.ended);
    lock_drop(&policy.lock);
}

/* Off the lists.  What was dirtied between the pass's own look and this moment did not come in by
 * policy_add (the file was still queued): look again. */
static void settle_clean(struct file *f)
{
    names_changed();
    struct file_info info;
    store_info(f, &info);
    if (info.dirty)
        policy_add(f);
    file_put(f);
}

/* ---- a pass, in a thread of one of the pools ---- */

struct job {
    struct file *f;
    bool urgent;
};

/* The lock is held.  f goes where it belongs now; true: it is clean, and the list's reference is
 * the caller's. */
static bool end_pass(struct file *f, int err, bool clean, bool *is_news)
{
    uint64_t now = boot_ms();
    bool again = f->flush_again;
    *is_news = false;
    f->flushing = f->flush_again = false;
    f->flush_ended = f->flush_begun;
    list_remove(f);
    pthread_cond_broadcast(&policy.ended);
    if (err == -ECANCELED) {
        list_prepend(&policy.ready, f);
        return false;
    }
    if (err) {
        *is_news = retry_failed(f, err, now);
        policy.next_retry_ms = MIN(policy.next_retry_ms, f->retry_at_ms);
        list_append(&policy.failed, f);
        return false;
    }
    retry_succeeded(f);
    policy.progress++;
    if (clean) {
        f->flush_queued = false;
        return true;
    }
    if (again) { /* who came during this pass waits for a whole one: it keeps its place */
        list_prepend(&policy.ready, f);
    } else {
        f->flush_seq = ++policy.seq;
        f->dirty_since_ms = now;
        list_append(&policy.ready, f);
    }
    return false;
}

static void run_job(void *arg)
{
    struct job *j = arg;
    struct file *f = file_ref(j->f);
    bool clean, is_news;
    int err = copyout_file(f, j->urgent, &clean);
    lock_take(&policy.lock);
    bool done = end_pass(f, err, clean, &is_news);
    if (j->urgent)
        policy.urgent_jobs--;
    else
        policy.jobs--;
    lock_drop(&policy.lock);
    if (is_news)
        retry_log(f, err);
    if (done)
        settle_clean(f);
    file_put(f);
    free(j);
    bell_ring();
}

/* The lock is held; f is on a list and no pass of it runs. */
static void start_pass(struct file *f, bool urgent)
{
    list_remove(f);
    list_append(&policy.running, f);
    f->flushing = true;
    f->flush_begun++;
    struct job *j = xmalloc(sizeof(*j));
    *j = (struct job){f, urgent};
    if (urgent)
        policy.urgent_jobs++;
    else
        policy.jobs++;
    pool_submit(urgent ? policy.urgent_pool : policy.lull_pool, run_job, j);
}

int policy_gate(struct file *f, bool urgent, bool *idle)
{
    for (;;) {
        uint64_t seen = bell_seen();
        lock_take(&policy.lock);
        bool stop = policy.stop;
        bool asked = urgent || f->flush_urgent || policy.urgent_all;
        lock_drop(&policy.lock);
        *idle = !asked;
        if (stop)
            return -ECANCELED;
        if (asked)
            return 0;
        uint64_t due = lull_due_ms();
        if (!due)
            return 0;
        bell_wait(seen, due == UINT64_MAX ? 0 : due);
    }
}

/* ---- the flusher thread ---- */

/* Lock held: failed files whose time has come are ready again (asked: all, whatever their time). */
static void retry_due(bool asked, uint64_t now)
{
    if (!asked && now < policy.next_retry_ms)
        return;
    policy.next_retry_ms = UINT64_MAX;
    for (struct file *f = policy.failed.first, *next; f; f = next) {
        next = f->flush_next;
        if (asked || f->retry_at_ms <= now) {
            list_remove(f);
            list_append(&policy.ready, f);
        } else { /* many failures of one moment come due together, not each with a walk of its own
                  */
            policy.next_retry_ms = MIN(policy.next_retry_ms, MAX(f->retry_at_ms, now + 500));
        }
    }
}

/* Lock held: begins what may begin now.  Returns ms until there may be more to do, UINT64_MAX: only
 * after a ring. */
static uint64_t work(void)
{
    uint64_t now = boot_ms();
    if (policy.urgent_all) {
        while (policy.ready.first && policy.urgent_jobs < policy.writers)
            start_pass(policy.ready.first, true);
        return UINT64_MAX;
    }
    retry_due(false, now);
    uint64_t retry = policy.next_retry_ms == UINT64_MAX
                         ? UINT64_MAX
                         : policy.next_retry_ms - MIN(now, policy.next_retry_ms);
    while (policy.ready.first && policy.jobs < policy.writers) {
        uint64_t due = lull_due_ms();
        if (due)
            return MIN(due, retry);
        start_pass(policy.ready.first, false);
    }
    return retry;
}

static void *flusher(void *arg)
{
    (void)arg;
    for (;;) {
        uint64_t seen = bell_seen();
        lock_take(&policy.lock);
        bool stop = policy.stop;
        uint64_t wait = stop ? 0 : work();
        lock_drop(&policy.lock);
        if (stop)
            return NULL;
        uint64_t list = names_due_ms(boot_ms());
        if (!list) {
            names_write_soon();
            continue;
        }
        wait = MIN(wait, list);
        bell_wait(seen, wait == UINT64_MAX ? 0 : MAX(wait, (uint64_t)1));
    }
}

int flush_start(const struct flush_config *c)
{
    if (!policy.started) {
        lock_init(&policy.lock, RANK_POLICY);
        lock_cond_init(&policy.ended);
        list_init(&policy.ready);
        list_init(&policy.running);
        list_init(&policy.failed);
        policy.started = true;
    }
    policy.next_retry_ms = UINT64_MAX;
    policy.writers = c->writers ? c->writers : 1;
    policy.stop = false;
    policy.urgent_all = policy.jobs = policy.urgent_jobs = 0;
    policy.lull_pool = pool_new("eddy-flush", (int)policy.writers);
    policy.urgent_pool = pool_new("eddy-flush-now", (int)policy.writers);
    lull_set_wait(c->wait_ms);
    names_start();
    int err = -pthread_create(&policy.flusher, NULL, flusher, NULL);
    if (!err)
        err = sample_start();
    if (err)
        return err;
    store_on_dirty(policy_add);
    data_on_need(flush_make_room);
    carry_on_need(flush_make_room, flush_file);
    carry_on_activity(lull_begin, lull_end);
    return 0;
}

static void drop_lists(void)
{
    struct file_list *lists[] = {&policy.ready, &policy.failed};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        lock_take(&policy.lock);
        struct file *f;
        while ((f = lists[i]->first)) {
            list_remove(f);
            f->flush_queued = false;
            lock_drop(&policy.lock);
            file_put(f);
            lock_take(&policy.lock);
        }
        lock_drop(&policy.lock);
    }
}

/* Passes end after the piece that they are at; what is dirty stays so, named in the session
 * directory. */
void flush_stop(void)
{
    store_on_dirty(NULL);
    sample_stop();
    lock_take(&policy.lock);
    policy.stop = true;
    pthread_cond_broadcast(&policy.ended);
    lock_drop(&policy.lock);
    bell_ring();
    pthread_join(policy.flusher, NULL);
    pool_free(policy.lull_pool);
    pool_free(policy.urgent_pool);
    store_pass_forget();
    names_write_now();
    drop_lists();
}

/* ---- asking ---- */

/* Lock held: waits until a pass that began after `wanted` - 1 has ended, and begins it if nobody
 * does. */
static int wait_for_pass(struct file *f, uint64_t wanted)
{
    while (f->flush_queued) {
        if (f->flush_ended >= wanted)
            return f->flush_error;
        if (policy.stop)
            return -ECANCELED;
        if (f->flushing)
            lock_wait(&policy.lock, &policy.ended, 0);
        else
            start_pass(f, true);
    }
    return 0; /* clean: the pass that ran when we came found nothing after it */
}

int flush_file(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    policy_add(f); /* in case the store's word is still on its way */
    lock_take(&policy.lock);
    /* What is dirty now is all taken by a pass that begins from now on. */
    uint64_t wanted = f->flush_begun + 1;
    f->flush_urgent++;
    if (f->flushing) {
        f->flush_again = true;
        lock_drop(&policy.lock);
        bell_ring(); /* if it waits for a lull: go on */
        lock_take(&policy.lock);
    }
    int err = policy.stop ? -ECANCELED : wait_for_pass(f, wanted);
    f->flush_urgent--;
    lock_drop(&policy.lock);
    return err;
}

struct left {
    uint64_t files, failed;
};

/* Lock held: of the files that were dirty when the order was at `upto`, how many are to be done,
 * how many failed. */
static struct left count_left(uint64_t upto)
{
    struct left l = {0, 0};
    const struct file_list *lists[] = {&policy.ready, &policy.running};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct file *f = lists[i]->first; f; f = f->flush_next)
            l.files += f->flush_seq <= upto;
    for (const struct file *f = policy.failed.first; f; f = f->flush_next)
        l.failed += f->flush_seq <= upto;
    return l;
}

static uint64_t dirty_bytes(void)
{
    struct store_usage u;
    store_usage(&u);
    return u.dirty;
}

static bool report(bool (*progress)(void *arg, const struct flush_progress *p), void *arg,
                   uint64_t flushed_before, struct left left)
{
    uint64_t done = counted(flushed_bytes) - flushed_before;
    struct flush_progress p = {done, done + dirty_bytes(), left.files + left.failed};
    return !progress || progress(arg, &p);
}

/* Lock held: everybody's flushing from now on; running passes must be followed by a whole one if
 * the file is dirty then. */
static uint64_t begin_all(void)
{
    policy.urgent_all++;
    retry_due(true, boot_ms());
    for (struct file *f = policy.running.first; f; f = f->flush_next)
        f->flush_again = true;
    return policy.seq;
}

/* Lock held: something may have changed for flush_all.  Counting looks at every file, so it is not
 * done for each that ends. */
static void wait_for_news(void)
{
    uint64_t until = boot_ms() + PROGRESS_MS;
    while (policy.ready.n + policy.running.n && !policy.stop) {
        uint64_t now = boot_ms();
        if (now >= until)
            break;
        lock_wait(&policy.lock, &policy.ended, until - now);
    }
}

int flush_all(bool (*progress)(void *arg, const struct flush_progress *p), void *arg)
{
    uint64_t before = counted(flushed_bytes);
    flush_sample();
    lock_take(&policy.lock);
    uint64_t upto = begin_all();
    lock_drop(&policy.lock);
    bell_ring();
    struct left left;
    int err = 0;
    lock_take(&policy.lock);
    for (;;) {
        left = count_left(upto);
        bool stop = policy.stop;
        lock_drop(&policy.lock);
        bool go_on = report(progress, arg, before, left);
        lock_take(&policy.lock);
        if (!left.files)
            break;
        if (!go_on || stop) {
            err = -ECANCELED;
            break;
        }
        wait_for_news();
    }
    policy.urgent_all--;
    lock_drop(&policy.lock);
    bell_ring(); /* back to lulls */
    return err ? err : left.failed ? -EIO : 0;
}

/* Lock held: is there anything that could become clean?  *ring: the flusher must be told. */
static bool something_to_do(bool *ring)
{
    uint64_t now = boot_ms();
    if (!policy.ready.n && !policy.running.n && now - policy.room_tried_ms >= ROOM_RETRY_MS) {
        policy.room_tried_ms = now;
        retry_due(true, now);
        *ring = policy.ready.n;
    }
    return policy.ready.n || policy.running.n;
}

/* Lock held: the answer when nothing can become clean.  Who comes for the first time since
 * something did had no room before that, and has it now; who comes again without has it not. */
static int no_room(uint64_t last_seen)
{
    if (policy.progress != last_seen)
        return 0;
    for (const struct file *f = policy.failed.first; f; f = f->flush_next)
        if (f->flush_error && f->flush_error != -EUCLEAN)
            return f->flush_error;
    return -ENOSPC;
}

/* Lock held. */
static int wait_for_room(uint64_t last_seen)
{
    uint64_t progress = policy.progress;
    bool ring = true;
    while (progress == policy.progress) {
        if (policy.stop)
            return -ECANCELED;
        if (!something_to_do(&ring))
            return no_room(last_seen);
        if (ring) {
            lock_drop(&policy.lock);
            bell_ring();
            lock_take(&policy.lock);
            ring = false;
        } else {
            lock_wait(&policy.lock, &policy.ended, 0);
        }
    }
    return 0;
}

int flush_make_room(struct file *f)
{
    static _Thread_local uint64_t last_seen =
        UINT64_MAX; /* progress when this thread was here last */
    (void)f;        /* oldest first, whoever asks: his own file is on the list as well */
    lock_take(&policy.lock);
    policy.urgent_all++;
    int err = wait_for_room(last_seen);
    last_seen = policy.progress;
    policy.urgent_all--;
    lock_drop(&policy.lock);
    bell_ring(); /* back to lulls */
    return err;
}

/* ---- for status ---- */

struct file **policy_files(size_t *n)
{
    const struct file_list *lists[] = {&policy.running, &policy.ready, &policy.failed};
    lock_take(&policy.lock);
    struct file **out =
        xcalloc(MAX(policy.running.n + policy.ready.n + policy.failed.n, 1u), sizeof(*out));
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct file *f = lists[i]->first; f; f = f->flush_next)
            out[at++] = file_ref(f);
    lock_drop(&policy.lock);
    *n = at;
    return out;
}

static const char *state_name(void)
{
    if (policy.urgent_all || policy.urgent_jobs)
        return "flushing now";
    if (policy.jobs)
        return lull_now() ? "flushing" : "paused: I/O is in progress";
    if (policy.ready.n)
        return "waiting for a lull";
    return policy.failed.n ? "waiting to try again" : "clean";
}

void flush_status(struct flush_status *out)
{
    lock_take(&policy.lock);
    *out = (struct flush_status){
        .policy = "idle",
        .state = state_name(),
        .flushed_bytes = counted(flushed_bytes),
        .pending_files = policy.ready.n + policy.running.n + policy.failed.n,
        .failed_files = policy.failed.n,
    };
    lock_drop(&policy.lock);
    out->pending_bytes = dirty_bytes();
}

typedef int (*unflushed_fn)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                            unsigned tries, int error, bool suspect);

static int tell_unflushed(struct file *f, unflushed_fn cb, void *arg)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    lock_take(&policy.lock);
    uint64_t now = boot_ms(), since_s = (now - MIN(now, f->dirty_since_ms)) / 1000;
    unsigned tries = f->flush_tries;
    int error = f->flush_error;
    lock_drop(&policy.lock);
    char *path = file_path(f);
    int rc = cb(arg, path, info.dirty_bytes, since_s, tries, error, false);
    free(path);
    return rc;
}

struct telling {
    unflushed_fn cb;
    void *arg;
};

static int tell_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, bool suspect)
{
    struct telling *t = arg;
    (void)fid;
    return t->cb(t->arg, path, bytes, 0, 0, 0, suspect);
}

int flush_each_unflushed(int (*cb)(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                                   unsigned tries, int error, bool suspect),
                         void *arg)
{
    size_t n;
    int rc = 0;
    struct file **files = policy_files(&n);
    for (size_t i = 0; i < n; i++) {
        struct file *f = files[i];
        rc = rc ? rc : tell_unflushed(f, cb, arg);
        file_put(f);
    }
    free(files);
    return rc ? rc : store_each_suspect(tell_suspect, &(struct telling){cb, arg});
}
