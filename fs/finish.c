/* finish.c - the end of the daemon: flush, leave, say what is not on the PFS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flush/flush.h"
#include "fs/daemon.h"
#include "fs/fs.h"
#include "placement/carry.h"
#include "placement/store.h"

static int say_unflushed(void *arg, const char *path, uint64_t bytes, uint64_t since_s,
                         unsigned tries, int error, bool suspect)
{
    unsigned *n = arg;
    (void)since_s;
    log_error("%s: %llu bytes are not on the PFS%s (%u tries, %s): they are kept in %s and flushed "
              "at the next start",
              path, (unsigned long long)bytes, suspect ? " and suspect after a power loss" : "",
              tries, error ? strerror(-error) : "no error", store_dir());
    ++*n;
    return 0;
}

/* A second signal: leave at once; what is dirty stays, as after a crash. */
static bool go_on(void *arg, const struct flush_progress *p)
{
    unsigned n = 0;
    (void)arg;
    (void)p;
    if (!mount_signal_pending())
        return true;
    log_warn("a second signal: leaving at once");
    flush_each_unflushed(say_unflushed, &n);
    _exit(n ? EXIT_NOT_ON_PFS : EXIT_OK);
}

/* A mapping that outlived its file's close may be stored into for ever. */
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

/* Other nodes may write here while there is a session: their last writes are flushed too. */
int flush_and_leave(bool (*progress)(void *arg, const struct flush_progress *p), unflushed_fn *each,
                    void *arg)
{
    carry_leave(); /* writers of other nodes do not keep our claims */
    flush_all(progress, arg);
    int err = flush_each_unflushed(each, arg);
    unsigned mapped = say_mapped();
    steps_end_clean();
    steps_stop(NULL);
    return err ? err : (int)mapped;
}

int finish(int signal)
{
    unsigned unflushed = 0;
    if (signal) {
        log_info("signal %d: flushing, then leaving; a second one leaves at once", signal);
        flush_all(go_on, NULL); /* what fails is said below */
    }
    steps_stop("control");
    if (flush_and_leave(go_on, say_unflushed, &unflushed))
        unflushed++;
    return unflushed ? EXIT_NOT_ON_PFS : EXIT_OK;
}
