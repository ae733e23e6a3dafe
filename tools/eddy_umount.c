/* eddy_umount.c - the end of a mount: eddy umount, eddy wait.
 *
 *   1  the daemon flushes
 *   2  unmount
 *   3  wait for the daemon's end
 *   4  read the cache directory: is all on the PFS?
 *
 * A daemon that dies meanwhile may be started again and mount again: then all steps are done once more.
 *
 * `eddy wait` begins with step 3.  Only step 4 decides.  Step 1 is there for its progress line, and for the
 * reasons why files fail.  Also, an application that is still busy has its mount in place meanwhile.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "placement/store/store_open.h"
#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"

#define BUSY_MS   2000 /* a mount that somebody just looked at is busy for a moment */
#define FORCE_MS  2000 /* a slower unmount waits for a daemon that may not answer at all */
#define STATUS_MS 500
#define GRACE_MS  1000 /* for the daemon's end when the time is over */
#define COPIES_MS 2000 /* for the daemon to hear that it is unmounted */

#define MOUNTED_AGAIN (-1) /* no exit code */

struct ending {
    struct mount_entry entry;
    struct mounted at;
    bool mounted, runs;
    bool take_away; /* when the time is over */
    uint64_t deadline;
    bool unmounted;        /* by this */
    uint64_t unmounted_ms; /* boot_ms of that, until other copies of the mount were looked for; 0 */
    struct unflushed_list failed; /* what the flush said */
    struct progress progress;
    uint64_t flushed_before;
};

/* ---- 1: flush ---- */

/* Whatever goes wrong here: the daemon flushes again when it is unmounted. */
static void flush_first(struct ending *e)
{
    int err = flush_by_daemon(&e->entry, "umount", NULL, e->deadline, &e->failed);
    if (err == -ETIMEDOUT)
        complain("%s: not all is on the PFS when the time is over", e->entry.mountpoint);
    unflushed_sort(&e->failed);
}

/* ---- 2: unmount ---- */

/* In a process of its own: an unmount may wait for a daemon that waits for a PFS that hangs. */
static int unmount_within(const struct mounted *m, bool lazily, uint64_t ms)
{
    int fds[2], status;
    if (pipe2(fds, 0))
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        _exit(-unmount(m, lazily));
    close(fds[1]);
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    int ended = pid < 0 ? -1 : poll(&p, 1, (int)MIN(ms, (uint64_t)INT_MAX));
    close(fds[0]);
    if (ended <= 0)
        return pid < 0 ? -EAGAIN : -ETIMEDOUT;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int complain_busy(const struct ending *e)
{
    complain("%s is busy:", e->entry.mountpoint);
    if (!complain_of_users(&e->at))
        complain("  no process that you can see uses it: it may be in another mount namespace, or "
                 "be mounted upon");
    if (e->deadline == NO_DEADLINE)
        complain("end what uses it, or give --timeout SEC, after which it is taken away from them");
    return -EBUSY;
}

/* Processes that use it get ENOTCONN; the daemon loses no data. */
static int take_away(const struct ending *e)
{
    const char *path = e->entry.mountpoint;
    json_t *answer = NULL;
    int err = unmount_within(&e->at, false, FORCE_MS);
    if (!err || err == -ESTALE)
        return err;
    if (err == -EBUSY)
        complain_busy(e);
    complain("%s: the time is over: it is removed, and processes that use it get errors", path);
    err = abort_connection(&e->at);
    if (err && !talk_once(&e->entry, "abort", NULL, FORCE_MS, &answer))
        err = 0;
    json_decref(answer);
    if (err)
        complain("%s: its connection cannot be aborted: %s: only the name is removed", path,
                 strerror(-err));
    return unmount_within(&e->at, true, FORCE_MS);
}

static int unmount_once(const struct ending *e)
{
    uint64_t now = boot_ms();
    if (e->deadline == NO_DEADLINE)
        return unmount(&e->at, false);
    return now < e->deadline ? unmount_within(&e->at, false, e->deadline - now) : -ETIMEDOUT;
}

static int unmount_in_time(const struct ending *e)
{
    uint64_t end = e->deadline == NO_DEADLINE ? boot_ms() + BUSY_MS : e->deadline;
    int err;
    while ((err = unmount_once(e)) == -EBUSY && boot_ms() < end)
        poll(NULL, 0, 100); /* the kernel tells nobody when a mount becomes free */
    return err;
}

static int unmount_it(struct ending *e)
{
    if (daemon_is_dead(&e->entry)) { /* nothing in it works any more, for any process */
        int err = unmount(&e->at, false);
        return err == -EBUSY ? unmount(&e->at, true) : err;
    }
    int err = unmount_in_time(e);
    if (err == -EBUSY && e->deadline == NO_DEADLINE)
        return complain_busy(e);
    return err == -EBUSY || err == -ETIMEDOUT ? take_away(e) : err;
}

/* ---- 3: the daemon's end ---- */

static void show_progress(void *arg)
{
    struct ending *e = arg;
    json_t *status;
    if (!isatty(STDERR_FILENO))
        return;
    if (!talk_once(&e->entry, "status", NULL, STATUS_MS, &status)) {
        const json_t *flush = json_object_get(status, "flush");
        uint64_t done = json_u64(flush, "flushed_bytes");
        if (!e->flushed_before)
            e->flushed_before = done;
        done -= MIN(done, e->flushed_before);
        progress_show(&e->progress, done, done + json_u64(flush, "pending_bytes"));
    }
    json_decref(status);
}

static int end_with_list(struct unflushed_list *l, const struct ending *e)
{
    size_t n = l->n;
    unflushed_print(l);
    unflushed_free(l);
    if (!n)
        return DONE;
    complain("%zu file%s not on the PFS; the data is kept in %s", n, n == 1 ? " is" : "s are",
             e->entry.cache_dir);
    return NOT_ON_PFS;
}

/* The time is over, and a daemon still runs. */
static int report_from_daemon(const struct ending *e)
{
    struct unflushed_list l = {0};
    int err = unflushed_ask(&e->entry, FORCE_MS, &l);
    bool mounted = mounted_eddyfs(e->entry.mountpoint, NULL);
    if (err) {
        unflushed_free(&l);
        complain("%s: the daemon still runs and does not tell what is not on the PFS: %s",
                 e->entry.mountpoint, strerror(-err));
        return FAILED;
    }
    if (mounted)
        complain("%s: is still mounted", e->entry.mountpoint);
    else
        complain("%s: the daemon still runs: \"eddy wait %s\" waits for its end",
                 e->entry.mountpoint, e->entry.mountpoint);
    int code = end_with_list(&l, e);
    return code == DONE && mounted ? FAILED : code;
}

/* ---- 4: is all on the PFS? ---- */

struct report {
    const struct ending *ending;
    struct unflushed_list list;
};

static int add_file(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    struct report *r = arg;
    char *escaped = control_escape(path);
    const char *reason = unflushed_reason(&r->ending->failed, escaped);
    (void)fid;
    if (why == UNFLUSHED_LENT)
        reason = UNFLUSHED_BORROWED;
    else if (why == UNFLUSHED_SUSPECT)
        reason = "suspect after a power loss: not covered by fsync, never written by itself";
    unflushed_add(&r->list, escaped, bytes,
                  reason ? reason : "the daemon ended before it was written");
    free(escaped);
    return 0;
}

/* This is the last that the command does. */
static int read_as_owner(const struct ending *e, struct report *r)
{
    int err = become_owner(&e->entry);
    return err ? err : store_each_unflushed(e->entry.cache_dir, add_file, r);
}

/* The daemon has removed its cache, when everything was on the PFS. */
static bool ended_clean(const struct ending *e)
{
    struct mount_entry now;
    if (mount_map_find(e->entry.mountpoint, &now))
        return false;
    bool clean = mount_entry_ended(&now) && !strcmp(now.cache_dir, e->entry.cache_dir) && now.owner == e->entry.owner;
    mount_entry_free(&now);
    return clean;
}

static int report_from_cache(const struct ending *e)
{
    struct report r = {.ending = e};
    int err = read_as_owner(e, &r);
    if (!err || err == -EUCLEAN) {
        int code = end_with_list(&r.list, e);
        if (code != DONE)
            complain("\"eddy recover %s\", or eddyfs started again with it, writes them; \"eddy recover "
                     "--to DIR %s\" copies what cannot be written",
                     e->entry.cache_dir, e->entry.cache_dir);
        if (!err)
            return code;
        complain(UNFLUSHED_DAMAGED, e->entry.cache_dir);
        return FAILED;
    }
    unflushed_free(&r.list);
    if (err == -ENOENT && ended_clean(e))
        return DONE;
    if (err == -EWOULDBLOCK)
        complain("%s: an eddyfs was started again on %s meanwhile", e->entry.mountpoint,
                 e->entry.cache_dir);
    else
        complain("%s: cannot be read: %s: whether all is on the PFS is not known",
                 e->entry.cache_dir, strerror(-err));
    return FAILED;
}

/* The mount of this user that is there now: at, to be freed after true. */
static bool find_mounted(const struct ending *e, struct mounted *at)
{
    if (!mounted_eddyfs(e->entry.mountpoint, at))
        return false;
    if (at->user == e->entry.owner)
        return true;
    mounted_free(at);
    return false;
}

/* By now another daemon may use the directory. */
static bool is_mounted_now(const struct ending *e, struct mounted *at)
{
    struct mount_entry now;
    if (!find_mounted(e, at))
        return false;
    bool ours = !mount_map_find(e->entry.mountpoint, &now);
    if (ours) {
        ours = !strcmp(now.cache_dir, e->entry.cache_dir) && now.owner == e->entry.owner;
        mount_entry_free(&now);
    }
    if (!ours)
        mounted_free(at);
    return ours;
}

/* A daemon that was killed leaves its mount behind. */
static void clear_dead_mount(const struct ending *e)
{
    struct mounted at;
    if (!is_mounted_now(e, &at))
        return;
    unmount(&at, true);
    mounted_free(&at);
}

/* It was unmounted lazily.  Processes that have files open in it would wait for as long as its
 * daemon does. */
static void abort_by_daemon(const struct ending *e)
{
    json_t *answer = NULL;
    struct mounted at;
    if (find_mounted(e, &at))
        mounted_free(&at);
    else
        talk_once(&e->entry, "abort", NULL, FORCE_MS, &answer);
    json_decref(answer);
}

/* The mount still exists in other mount namespaces, which were made while it was here (containers,
 * other jobs' steps).  The kernel does not tell the daemon of its end until these end.  No process here uses
 * the mount. */
static void end_copies(struct ending *e)
{
    if (!e->unmounted_ms || boot_ms() < e->unmounted_ms + COPIES_MS)
        return;
    e->unmounted_ms = 0;
    abort_by_daemon(e);
}

/* The daemon had died, and this command unmounted the dead mount.  The daemon has been started again since.
 * */
static bool is_back(const struct ending *e)
{
    struct mounted at;
    if (!e->unmounted || boot_ms() >= e->deadline || !is_mounted_now(e, &at))
        return false;
    mounted_free(&at);
    return true;
}

static bool wait_on(void *arg)
{
    if (is_back(arg))
        return false;
    end_copies(arg);
    show_progress(arg);
    return true;
}

/* MOUNTED_AGAIN, or the command's exit code. */
static int settle(struct ending *e)
{
    uint64_t deadline =
        e->deadline == NO_DEADLINE ? NO_DEADLINE : MAX(e->deadline, boot_ms() + GRACE_MS);
    int err = wait_for_daemon(&e->entry, deadline, wait_on, e);
    progress_clear();
    if (err == -ECANCELED)
        return MOUNTED_AGAIN;
    if (err == -ETIMEDOUT && e->take_away)
        abort_by_daemon(e);
    if (err == -ETIMEDOUT)
        return report_from_daemon(e);
    if (err == -ENOENT && ended_clean(e))
        return DONE;
    if (err) {
        complain("%s: %s: whether all is on the PFS is not known", e->entry.cache_dir,
                 strerror(-err));
        return FAILED;
    }
    clear_dead_mount(e);
    return report_from_cache(e);
}

/* ---- commands ---- */

/* Its path led to something else.  It is gone, and a daemon that was started again may have mounted there; or
 * somebody has moved or hidden it. */
static int look_again(const struct ending *e)
{
    if (!is_still_mounted(&e->at))
        return MOUNTED_AGAIN;
    complain("%s: was moved, or is hidden by another mount: nothing is unmounted",
             e->entry.mountpoint);
    return FAILED;
}

static int end_mount_once(struct ending *e)
{
    if (e->mounted && e->runs)
        flush_first(e);
    int err = e->mounted ? unmount_it(e) : 0;
    if (err)
        return err == -ESTALE ? look_again(e) : FAILED;
    if (e->mounted) {
        e->unmounted = true;
        e->unmounted_ms = boot_ms();
    }
    return settle(e);
}

static int end_mount(struct ending *e)
{
    int code;
    while ((code = end_mount_once(e)) == MOUNTED_AGAIN) {
        mounted_free(&e->at);
        e->mounted = find_mounted(e, &e->at);
    }
    return code;
}

/* A bind mount: the mount itself, its daemon and the dirty data stay. */
static int umount_copy(const struct mounted *copy, const struct mount_entry *original,
                       uint64_t deadline)
{
    struct ending e = {.entry.mountpoint = copy->path, .at = *copy, .deadline = deadline};
    int err = unmount_in_time(&e);
    if (err == -EBUSY && deadline == NO_DEADLINE)
        complain_busy(&e);
    else if (err == -EBUSY || err == -ETIMEDOUT)
        err = unmount_within(copy, true, FORCE_MS);
    if (err && err != -EBUSY)
        complain("%s: %s", copy->path, strerror(-err));
    if (!err)
        complain("%s: was a bind mount of %s, which stays", copy->path, original->mountpoint);
    return err ? FAILED : DONE;
}

static int parse(int argc, char **argv, const char *command, struct ending *e)
{
    static const struct option options[] = {
        {"timeout", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
    e->deadline = NO_DEADLINE;
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            exit(help_of(command));
        if (c != 't')
            return usage_of(command);
        if (parse_timeout(optarg, &e->deadline)) {
            complain("--timeout %s: is not a number of seconds", optarg);
            return WRONG_USAGE;
        }
    }
    return argc - optind == 1 ? DONE : usage_of(command);
}

static int find(const char *path, struct ending *e)
{
    if (find_mount(path, &e->entry))
        return FAILED;
    e->progress.what = "flushing";
    e->mounted = find_mounted(e, &e->at);
    int err = daemon_runs(&e->entry, &e->runs);
    if (err && !(err == -ENOENT && ended_clean(e))) {
        complain("%s/lock: %s: whether the daemon runs is not known", e->entry.cache_dir,
                 strerror(-err));
        e->runs = e->mounted;
    }
    return DONE;
}

static void ending_free(struct ending *e)
{
    mount_entry_free(&e->entry);
    mounted_free(&e->at);
    unflushed_free(&e->failed);
}

/* Its own working directory may be what keeps the mount busy. */
static void leave_directory(void)
{
    if (chdir("/"))
        complain("/: %m");
}

static int umount_original(const char *path, struct ending *e)
{
    int code = find(path, e);
    e->take_away = true;
    if (code == DONE) {
        if (!e->mounted)
            complain("%s: is not mounted%s", e->entry.mountpoint,
                     e->runs ? " any more, its daemon still flushes" : "");
        leave_directory();
        code = end_mount(e);
    }
    ending_free(e);
    return code;
}

int umount_main(int argc, char **argv)
{
    struct ending e = {0};
    struct mounted copy;
    struct mount_entry original;
    int code = parse(argc, argv, "umount", &e);
    if (code != DONE)
        return code;
    if (!find_copied(argv[optind], &copy, &original))
        return umount_original(argv[optind], &e);
    leave_directory();
    code = umount_copy(&copy, &original, e.deadline);
    mounted_free(&copy);
    mount_entry_free(&original);
    return code;
}

int wait_main(int argc, char **argv)
{
    struct ending e = {0};
    int code = parse(argc, argv, "wait", &e);
    if (code == DONE)
        code = find(argv[optind], &e);
    if (code == DONE) {
        if (e.mounted && e.runs)
            complain("%s: is still mounted: waiting until somebody unmounts it",
                     e.entry.mountpoint);
        code = settle(&e);
    }
    ending_free(&e);
    return code;
}
