/* request.c - requests that wait: answered once, by the job or by the watcher.
 *
 * libfuse may call the interrupt function of a request that is being answered at that moment, so it
 * gets a number, not a pointer, and looks it up in the list of waiting requests.
 *
 *     request_start --> job in a pool --> request_take --> reply --> request_done
 *                  '--> watcher (interrupt, stalled PFS) --> request_take --> reply
 */
#include "fs/early.h"
#include "fs/request.h"
#include "fs/settings.h"
#include "fs/uring.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS       100  /* the watcher's pace while something waits */
#define GRACE_MS      200  /* an interrupted request may still end by itself */
#define STALLED_MS    2000 /* a PFS that has been silent for this long hangs */
#define UNTOLD_MS     1000 /* a request that came over io_uring may be interrupted without a word: the pace of looks at its task */
#define STALL_WAIT_MS 250  /* ... and a request is answered from memory after this long */

static struct {
    struct lock lock; /* RANK_LEAF: all of it */
    pthread_cond_t changed;
    struct request *list;
    unsigned n;
    _Atomic uint64_t last_number;
    bool watching;         /* the watcher looks every LOOK_MS, until it has found nothing once */
    bool stopping, ending; /* a thread waits for the last request's end; the watcher is to end */
    pthread_t thread;
} all;

/* ---- the list ---- */

static void interrupted(fuse_req_t req, void *data);

/* libfuse is told first: once it is in the list the watcher may answer, and r->req is gone. */
static void enlist(struct request *r)
{
    r->number = atomic_fetch_add_explicit(&all.last_number, 1, memory_order_relaxed) + 1;
    fuse_req_interrupt_func(r->req, interrupted, (void *)(uintptr_t)r->number);
    lock_take(&all.lock);
    /* it may have come before the request was in the list */
    r->interrupted = fuse_req_interrupted(r->req);
    r->interrupted_ms = r->began_ms;
    r->next = all.list;
    r->prev = &all.list;
    if (all.list)
        all.list->prev = &r->next;
    all.list = r;
    all.n++;
    if (!all.watching)
        pthread_cond_broadcast(&all.changed);
    lock_drop(&all.lock);
}

static void delist(struct request *r)
{
    lock_take(&all.lock);
    if (r->prev) {
        *r->prev = r->next;
        if (r->next)
            r->next->prev = r->prev;
        r->prev = NULL;
        all.n--;
        if (!all.n && all.stopping)
            pthread_cond_broadcast(&all.changed);
    }
    lock_drop(&all.lock);
}

unsigned requests_waiting(void)
{
    lock_take(&all.lock);
    unsigned n = all.n;
    lock_drop(&all.lock);
    return n;
}

static void interrupted(fuse_req_t req, void *data)
{
    uint64_t number = (uint64_t)(uintptr_t)data;
    (void)req;
    lock_take(&all.lock);
    for (struct request *r = all.list; r; r = r->next) {
        if (r->number == number) {
            if (!r->interrupted) {
                /* before the flag: the watcher reads both without the lock */
                r->interrupted_ms = boot_ms();
                r->interrupted = true;
            }
            break;
        }
    }
    lock_drop(&all.lock);
}

/* ---- the watcher ---- */

#define BIT(sig) (1ull << ((sig)-1))

/* A line of /proc/TID/status. */
static bool take_mask(const char *line, const char *key, uint64_t *mask)
{
    unsigned long long m;
    if (strncmp(line, key, strlen(key)) || sscanf(line + strlen(key), "%llx", &m) != 1)
        return false;
    *mask |= m;
    return true;
}

/* Has the task a pending signal that is meant to end the wait?  dies: ... and that it does not catch.  unseen: the answer for a
 * task that is gone, or in another PID namespace: it cannot be looked at. */
static bool wants_to_end(pid_t tid, bool dies, bool unseen)
{
    uint64_t pending = 0, caught = 0;
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    FILE *status = fopen(path, "re");
    if (!status)
        return unseen;
    while (fgets(line, sizeof(line), status))
        (void)(take_mask(line, "SigPnd:", &pending) || take_mask(line, "ShdPnd:", &pending) ||
               take_mask(line, "SigCgt:", &caught));
    fclose(status);
    pending &= BIT(SIGKILL) | BIT(SIGINT) | BIT(SIGTERM) | BIT(SIGQUIT) | BIT(SIGHUP);
    return pending & ~(dies ? caught : 0);
}

/* Over io_uring the kernel says nothing of a signal that comes while the request is on its way to its queue's thread, and
 * libfuse sends back an interrupt that comes before its request. */
static bool may_be_untold(const struct request *r, uint64_t now)
{
    uint64_t waits = now - r->began_ms;
    return !uring_why_not() && !r->interrupted && waits >= UNTOLD_MS && waits % UNTOLD_MS < LOOK_MS;
}

static void drop_ref(struct request *r);

/* With a reference, without the lock. */
static void look_at(struct request *r, uint64_t now)
{
    if (may_be_untold(r, now) && wants_to_end(r->pid, r->may_not_end, false))
        interrupted(r->req, (void *)(uintptr_t)r->number);
    if (r->interrupted && r->is_lock) {
        r->cancel(r); /* each time: the first may come before the network thread has heard of the lock */
    } else if (r->interrupted && now - r->interrupted_ms >= GRACE_MS &&
               wants_to_end(r->pid, r->may_not_end, true)) {
        if (request_take(r))
            fuse_reply_err(r->req, EINTR);
    } else if (r->stalled && now - r->began_ms >= STALL_WAIT_MS && pfs_silent(now, STALLED_MS)) {
        r->stalled(r);
    }
    drop_ref(r);
}

static bool needs_look(const struct request *r, uint64_t now)
{
    return !r->answered && (r->interrupted || may_be_untold(r, now) || (r->stalled && now - r->began_ms >= STALL_WAIT_MS));
}

/* Looks at all of them, however many: a request that can be ended must not be hidden behind others that
 * cannot. */
static void look_round(void)
{
    unsigned n = 0;
    uint64_t now = boot_ms();
    lock_take(&all.lock);
    struct request **todo = xcalloc(all.n + 1, sizeof(*todo));
    for (struct request *r = all.list; r; r = r->next) {
        if (needs_look(r, now)) {
            r->refs++;
            todo[n++] = r;
        }
    }
    lock_drop(&all.lock);
    for (unsigned i = 0; i < n; i++)
        look_at(todo[i], now);
    free(todo);
}

static void *watch(void *arg)
{
    (void)arg;
    lock_take(&all.lock);
    while (!all.ending) {
        if (!all.n) {
            all.watching = false;
            lock_wait(&all.lock, &all.changed, 0);
            all.watching = true;
            continue;
        }
        lock_wait(&all.lock, &all.changed, LOOK_MS);
        lock_drop(&all.lock);
        look_round();
        lock_take(&all.lock);
    }
    lock_drop(&all.lock);
    return NULL;
}

void request_system_start(void)
{
    lock_init(&all.lock, RANK_LEAF);
    lock_cond_init(&all.changed);
    all.stopping = all.ending = false;
    if (pthread_create(&all.thread, NULL, watch, NULL))
        die("no thread for interrupted requests: %s", strerror(errno));
}

void request_cancel_waits(void)
{
    lock_take(&all.lock);
    for (struct request *r = all.list; r; r = r->next) {
        if (r->is_lock && !r->interrupted) {
            r->interrupted_ms = boot_ms();
            r->interrupted = true;
        }
    }
    lock_drop(&all.lock);
}

void request_system_stop(void)
{
    lock_take(&all.lock);
    all.stopping = true;
    while (all.n)
        lock_wait(&all.lock, &all.changed, 0);
    all.ending = true;
    pthread_cond_broadcast(&all.changed);
    lock_drop(&all.lock);
    pthread_join(all.thread, NULL);
}

/* ---- one request ---- */

/* The caller's; *n of them, malloc'd. */
static gid_t *groups_of(fuse_req_t req, unsigned *n)
{
    int room = 64, got;
    gid_t *groups = xcalloc((size_t)room, sizeof(*groups));
    while ((got = fuse_req_getgroups(req, room, groups)) > room) {
        room = got;
        groups = xrealloc(groups, (size_t)room * sizeof(*groups));
    }
    *n = got > 0 ? (unsigned)got : 0;
    return groups;
}

static void take_groups(struct request *r)
{
    r->cred.uid = r->uid;
    r->cred.gid = r->gid;
    r->groups = groups_of(r->req, &r->cred.ngroups);
    r->cred.groups = r->groups;
}

bool request_in_group(const struct request *r, gid_t gid)
{
    unsigned n = 0;
    gid_t *groups = r->gid == gid ? NULL : groups_of(r->req, &n);
    bool in = r->gid == gid;
    for (unsigned i = 0; i < n && !in; i++)
        in = groups[i] == gid;
    free(groups);
    return in;
}

mode_t request_drops(const struct request *r, mode_t mode, gid_t gid)
{
    if (!r->uid)
        return 0;
    bool locking = (mode & S_ISGID) && !(mode & S_IXGRP) && request_in_group(r, gid);
    return mode & (locking ? S_ISUID : S_ISUID | S_ISGID);
}

/* Its job goes on after an EINTR, and the change is made: who catches the signal and asks again would append twice, or find that
 * what it makes is there. */
static bool is_change(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_WRITE:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
    case FUSE_SETATTR:
    case FUSE_SETXATTR:
    case FUSE_REMOVEXATTR:
    case FUSE_CREATE:
    case FUSE_TMPFILE:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_SYMLINK:
    case FUSE_LINK:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
        return true;
    default:
        return false;
    }
}

struct request *request_on(fuse_req_t req, struct inode *i)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    struct request *r = xmalloc(sizeof(*r));
    memset(r, 0, offsetof(struct request, name));
    r->name[0] = '\0';
    r->req = req;
    r->inode = i;
    r->uid = ctx->uid;
    r->gid = ctx->gid;
    r->pid = ctx->pid;
    r->umask = ctx->umask;
    r->refs = 1;
    r->operation = operation_take();
    r->may_not_end = is_change(r->operation.opcode);
    r->began_ms = boot_ms();
    if (settings.several_users)
        take_groups(r);
    return r;
}

struct request *request_new(fuse_req_t req, fuse_ino_t nodeid)
{
    struct inode *i = nodeid ? inode_get(nodeid) : NULL;
    if (nodeid && !i) {
        fuse_reply_err(req, ESTALE);
        return NULL;
    }
    return request_on(req, i);
}

/* Whose fn this thread runs.  Only compared: it may have ended, and not be there any more. */
static _Thread_local const struct request *running;

/* This thread is about to have nothing more to do with it. */
static void note_waits(struct request *r)
{
    if (running != r)
        return;
    struct waits here = waits_take();
    for (unsigned i = 0; i < WAIT_KINDS; i++)
        r->operation.waits.ns[i] += here.ns[i];
    running = NULL;
}

static void run(void *arg)
{
    struct request *r = arg;
    if (r->answered && r->stalled) {
        request_done(r); /* from memory, before its turn came */
        return;
    }
    waits_take();
    running = r;
    r->fn(r);
    running = NULL;
}

/* ---- where it runs ---- */

static _Thread_local bool reader, reader_busy;
static _Atomic int readers_busy;

void request_reader(void)
{
    reader = true;
}

void request_run(struct pool *p, void (*fn)(void *arg), void *arg)
{
    if (!reader || reader_busy) {
        pool_submit(p, fn, arg);
        return;
    }
    if (atomic_fetch_add(&readers_busy, 1) < REQUEST_READERS_BUSY) {
        reader_busy = true;
        fn(arg);
        reader_busy = false;
    } else {
        pool_submit(p, fn, arg);
    }
    atomic_fetch_sub(&readers_busy, 1);
}

void request_start(struct request *r, struct pool *p, void (*fn)(struct request *r))
{
    r->fn = fn;
    /* the PFS hangs already: a listing asks file by file, and must not wait at each */
    if (r->stalled && pfs_silent(r->began_ms, STALLED_MS) && r->stalled(r)) {
        request_done(r);
        return;
    }
    enlist(r);
    if (p == pool_names)
        request_run(p, run, r);
    else
        pool_submit(p, run, r);
}

void request_move(struct request *r, struct pool *p, void (*fn)(struct request *r))
{
    note_waits(r);
    r->fn = fn;
    pool_submit(p, run, r);
}

void request_on_stall(struct request *r, bool (*stalled)(struct request *r))
{
    r->stalled = stalled;
}

void request_wait(struct request *r, void (*cancel)(struct request *r))
{
    r->cancel = cancel;
    r->is_lock = true;
    enlist(r);
}

void request_may_not_end(struct request *r)
{
    r->may_not_end = true;
    r->is_lock = false;
}

bool request_take(struct request *r)
{
    return !atomic_exchange(&r->answered, 1);
}

static void drop_ref(struct request *r)
{
    if (--r->refs)
        return;
    if (r->let_go)
        r->let_go(r);
    inode_put(r->inode);
    inode_put(r->inode2);
    free(r->name2);
    free(r->text);
    free(r->groups);
    free(r);
}

/* Of the file, or of the name in a directory; its names may be gone. */
static char *path_of(void *arg)
{
    const struct request *r = arg;
    char *dir = r->inode ? pfs_path(r->inode->node) : NULL, *path = dir;
    if (dir && *r->name && asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", r->name) >= 0)
        free(dir);
    return path;
}

void request_done(struct request *r)
{
    note_waits(r);
    operation_end(&r->operation, path_of, r, r->pid);
    delist(r);
    drop_ref(r);
}

/* Before the kernel, which asks again, is answered. */
static void doubt(struct inode *i, pid_t task)
{
    i->doubted_ms = boot_ms();
    early_doubt(i, task);
}

void request_err(struct request *r, int err)
{
    if (err == -ESTALE && r->inode)
        doubt(r->inode, r->pid);
    if (request_take(r))
        fuse_reply_err(r->req, -err);
    request_done(r);
}

void request_buf(struct request *r, const void *buf, size_t len)
{
    if (request_take(r))
        fuse_reply_buf(r->req, buf, len);
    request_done(r);
}

void request_write(struct request *r, size_t n)
{
    if (request_take(r))
        fuse_reply_write(r->req, n);
    request_done(r);
}

const struct cred *request_cred(struct request *r)
{
    return settings.several_users ? &r->cred : NULL;
}
