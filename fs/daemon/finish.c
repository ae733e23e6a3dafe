/* finish.c - the end of the daemon: flush, leave, say what is not on the PFS.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flush/flush.h"
#include "flush/flush_status.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/signals.h"
#include "fs/mount.h"
#include "fs/mountinfo.h"
#include "fs/settings.h"
#include "placement/carry.h"
#include "placement/lend.h"
#include "placement/store/store_open.h"
#include "transport/members.h"
#include "transport/view.h"

static int say_unflushed(void *arg, const struct unflushed_file *u)
{
    unsigned *n = arg;
    if (u->borrower)
        log_error("%s: node %s has borrowed %llu bytes of it, and has not written them to the PFS: start eddyfs there again, or "
                  "\"eddy recover\" its cache directory, and then this node's, %s",
                  u->path, u->borrower, (unsigned long long)u->bytes, store_dir());
    else
        log_error("%s: %llu bytes are not on the PFS%s (%u tries, %s): they are kept in %s and flushed "
                  "at the next start",
                  u->path, (unsigned long long)u->bytes,
                  u->suspect ? " and suspect after a power loss" : "", u->tries,
                  u->error ? strerror(-u->error) : "no error", store_dir());
    ++*n;
    return 0;
}

/* ---- at once ---- */

enum stage { STARTING, SERVING, RECOVERING, SAID };
static _Atomic enum stage stage;
static int said_code; /* from SAID on */
static _Atomic bool replaced; /* leave_main ends the process: nothing is flushed any more */

/* Dirty data stays, as after a crash.  clean: the code if there is none.  */
static void leave(enum stage at, int clean) __attribute__((noreturn));
static void leave(enum stage at, int clean)
{
    unsigned n = 0;
    if (at == SERVING || at == RECOVERING) {
        flush_sample();
        flush_each_unflushed(say_unflushed, &n);
    }
    if (at != RECOVERING)
        unmount_lazily(settings.mountpoint);
    /* perhaps the kernel first closes files of the PFS, and waits for it there */
    if (at == SERVING) {
        mount_abort();
        if (!n) { /* what was answered until then */
            flush_sample();
            flush_each_unflushed(say_unflushed, &n);
        }
    }
    _exit(at == STARTING ? EXIT_FAILED : at == SAID ? said_code : n ? EXIT_NOT_ON_PFS : clean);
}

/* In the signals' thread, because the others may be waiting for the PFS. */
void leave_now(int signal)
{
    log_warn("signal %d: leaving at once", signal);
    leave(stage, EXIT_OK);
}

/* A thread of its own, because the network thread must not wait for anything. */
static void *leave_main(void *arg)
{
    leave(stage, EXIT_FAILED);
    return arg;
}

void leave_to_other(const struct member *by)
{
    static const char text[] =
        "another daemon is in this node's place in the session: node %s at %s, on a copy of this "
        "cache directory: this one ends, and what is not on the PFS stays in %s: when that one has "
        "ended, \"eddy recover\" writes it";
    pthread_t thread;
    replaced = true;
    log_error(text, by->name, by->addr, store_dir());
    if (log_is_file()) {
        fputs("eddyfs: ", stderr);
        fprintf(stderr, text, by->name, by->addr, store_dir());
        fputc('\n', stderr);
    }
    if (pthread_create(&thread, NULL, leave_main, NULL))
        die("a thread to leave the session cannot be made");
    pthread_detach(thread);
}

/* ---- in order ---- */

struct telling {
    unflushed_fn *each;
    void *arg;
    unsigned *n;
};

static int tell(void *arg, const struct unflushed_file *u)
{
    struct telling *t = arg;
    ++*t->n;
    return t->each(t->arg, u);
}

/* What a borrower that is away has is not on the PFS, and this node stays absent, so that nobody takes the file for complete. */
static void tell_lent(void *arg, const struct loan_status *s)
{
    const char *name = s->node ? members_name(s->node) : "?";
    tell(arg, &(struct unflushed_file){.path = s->path, .bytes = s->bytes, .borrower = name});
}

/* Programs may store into a mapping that outlived its file's close for ever. */
static unsigned say_mapped(void)
{
    unsigned n = flush_sample();
    if (n)
        log_warn("%u files are on the PFS as they are now, but processes still have them mapped: "
                 "what they store from now on is "
                 "flushed at the next start",
                 n);
    return n;
}

int flush_and_leave(bool (*progress)(void *arg, const struct flush_progress *p), unflushed_fn *each,
                    void *arg)
{
    unsigned left = 0;
    struct telling t = {each, arg, &left};
    carry_leave(); /* writers of other nodes do not prevent giving our claims back */
    flush_all(progress, arg);
    int err = flush_each_unflushed(tell, &t);
    lend_each(tell_lent, &t);
    left += say_mapped();
    report_write(left);
    said_code = err || left ? EXIT_NOT_ON_PFS : EXIT_OK;
    stage = SAID;
    steps_end_clean();
    steps_stop(NULL);
    return said_code;
}

/* While the PFS is waited for. */
static void write_out_meanwhile(void)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    if (dirty)
        store_write_out_begin();
}

int serve(void)
{
    unsigned n = 0;
    stage = SERVING;
    signals_ask();
    mount_wait(signals_fd());
    while (replaced)
        pause();
    write_out_meanwhile();
    flush_all(NULL, NULL); /* applications still have their mount; failures are logged below */
    steps_stop("control");
    return flush_and_leave(NULL, say_unflushed, &n);
}

int recover(void)
{
    unsigned n = 0;
    stage = RECOVERING;
    write_out_meanwhile();
    return flush_and_leave(NULL, say_unflushed, &n);
}
