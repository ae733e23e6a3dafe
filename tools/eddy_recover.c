/* eddy_recover.c - eddy recover: what a dead daemon left in its cache directory, without a mount.
 *
 *     --list      reads the records, changes nothing
 *     (nothing)   starts the parts that a daemon starts before it mounts; they take up what is
 *                 there, as at a restart; then flushes and leaves
 *     --to DIR    opens the store alone, and copies
 *
 * CACHE_DIR/mount says what it was mounted as.  If root runs it, it works as the owner of the cache
 * directory: that user wrote what is in it, and the PFS may give root no rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "flush/flush.h"
#include "flush/flush_recover.h"
#include "fs/daemon/daemon.h"
#include "fs/settings.h"
#include "fs/user.h"
#include "placement/pfs/pfs.h"
#include "placement/store/cachedir.h"
#include "placement/store/store_open.h"
#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "transport/peer.h"
#include "transport/view.h"

struct recover {
    const char *dir; /* as given */
    char *path;      /* absolute */
    const char *to;  /* --to */
    bool list, json;
    uint64_t deadline;
    struct mount_entry entry;
    struct unflushed_list left; /* not on the PFS, or not copied */
    json_t *files, *written;    /* --json: left, and what was written beside or elsewhere */
    unsigned conflicts, copies;
    struct progress progress;
};

/* ---- the report ---- */

static void add_left(struct recover *r, const char *path, uint64_t bytes, const char *reason,
                     bool suspect)
{
    char *escaped = control_escape(path);
    unflushed_add(&r->left, escaped, bytes, reason);
    json_array_append_new(r->files,
                          json_pack("{s:s, s:I, s:b, s:s}", "path", escaped, "bytes",
                                    (json_int_t)bytes, "suspect", suspect, "reason", reason));
    free(escaped);
}

static void add_written(struct recover *r, const char *path, const char *made, uint64_t missing)
{
    char *escaped = control_escape(path), *escaped_made = control_escape(made);
    json_array_append_new(r->written,
                          json_pack("{s:s, s:s, s:I}", "path", escaped, "written", escaped_made,
                                    "missing_bytes", (json_int_t)missing));
    if (!r->json && strcmp(path, made) != 0)
        printf("%s: written as %s%s\n", escaped, escaped_made,
               missing ? ", with holes for bytes that are not in this cache" : "");
    free(escaped);
    free(escaped_made);
}

static int report(struct recover *r, int code)
{
    size_t n = r->left.n;
    progress_clear();
    if (code == DONE)
        code = n ? NOT_ON_PFS : r->conflicts ? CONFLICT : DONE;
    if (r->json) {
        json_t *all =
            json_pack("{s:s, s:s?, s:s?, s:s?, s:i, s:O, s:O}", "cache_dir", r->path, "pfs",
                      r->entry.pfs_dir, "session", r->entry.session, "node", r->entry.node, "code",
                      code, "files", r->files, "written", r->written);
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
    } else {
        unflushed_print(&r->left);
    }
    if (n && !r->list)
        complain("%zu file%s not %s; the data is kept in %s", n, n == 1 ? " is" : "s are",
                 r->to ? "copied whole" : "on the PFS", r->path);
    if (r->conflicts)
        complain("%u file%s changed meanwhile and %s written beside", r->conflicts,
                 r->conflicts == 1 ? " was" : "s were", r->conflicts == 1 ? "was" : "were");
    return code;
}

/* err: of cachedir_open_readonly. */
static void complain_of_cache(const char *path, int err)
{
    if (err == -EEXIST || err == -ENOENT || err == -ENOTDIR)
        complain("%s: is not a cache directory of eddyfs", path);
    else if (err == -EINVAL)
        complain("%s: was made by another version of eddyfs, or is damaged (%s/format): use the version that made it", path,
                 path);
    else if (err == -EWOULDBLOCK)
        complain("%s: a daemon uses it: end that one with \"eddy umount\", or wait for it with \"eddy wait\"", path);
    else
        complain("%s: cannot be read: %s", path, strerror(-err));
}

/* ---- --list ---- */

static int list_one(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    static const char *const reasons[] = {[UNFLUSHED_DIRTY] = "not written yet",
                                          [UNFLUSHED_SUSPECT] = "suspect after a power loss: not covered by fsync, never written by itself",
                                          [UNFLUSHED_LENT] = UNFLUSHED_BORROWED};
    (void)fid;
    add_left(arg, path, bytes, reasons[why], why == UNFLUSHED_SUSPECT);
    return 0;
}

/* What is there now, without a change. */
static int list(struct recover *r)
{
    int err = store_each_unflushed(r->path, list_one, r);
    if (!err)
        return DONE;
    if (err == -EUCLEAN)
        complain(UNFLUSHED_DAMAGED, r->path);
    else
        complain_of_cache(r->path, err);
    return FAILED;
}

/* ---- the parts ---- */

/* Ends the process without waiting for a PFS that hangs.  Other threads may be at any point of their work:
 * the cache directory is then as a dead daemon leaves it. */
static void on_alarm(int signal)
{
    static const char text[] = "eddy: the time is over: what is not on the PFS is kept, see "
                               "\"eddy recover --list\"\n";
    (void)signal;
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(n < 0 ? FAILED : NOT_ON_PFS);
}

static void set_alarm(uint64_t deadline)
{
    if (deadline == NO_DEADLINE)
        return;
    uint64_t now = boot_ms(), ms = deadline > now ? deadline - now : 1;
    struct itimerval t = {
        .it_value = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &t, NULL);
}

static void make_settings(const struct recover *r, uint32_t chunk_size)
{
    const struct mount_entry *e = &r->entry;
    settings = (struct settings){
        .pfs_dir = e->pfs_dir,
        .mountpoint = e->mountpoint,
        .cache_dir = r->path,
        .session = e->session,
        .session_dir = e->session_dir,
        .node = e->node,
        .listen = e->listen && *e->listen ? e->listen : NULL,
        .foreground = true, /* the log is standard error */
        .chunk_size = chunk_size,
        .memory = 256u << 20,
        .wait_nodes = 1,
        .wait_timeout = 60,
    };
    if (asprintf(&settings.hidden, ".eddyfs-%u", (unsigned)getuid()) < 0)
        die("out of memory");
}

static bool show(void *arg, const struct flush_progress *p)
{
    struct recover *r = arg;
    progress_show(&r->progress, p->done_bytes, p->total_bytes);
    return true;
}

static int add_unflushed(void *arg, const struct unflushed_file *u)
{
    char reason[512] = "not written yet";
    if (u->borrower)
        snprintf(reason, sizeof(reason), "node %s has borrowed parts of it: recover that one's cache directory, then this", u->borrower);
    else if (u->suspect)
        snprintf(reason, sizeof(reason),
                 "suspect after a power loss: not covered by fsync, never written by itself");
    else if (u->error)
        snprintf(reason, sizeof(reason), "%s", strerror(-u->error));
    add_left(arg, u->path, u->bytes, reason, u->suspect);
    return 0;
}

static int add_conflict(void *arg, const struct flush_conflict *c)
{
    struct recover *r = arg;
    r->conflicts++;
    add_written(r, c->path, c->beside, c->missing);
    return 0;
}

/* In the network thread.  The cache directory is then as a dead daemon leaves it. */
static void replaced(const struct member *by)
{
    complain(
        "another daemon is in this node's place in the session: node %s at %s, on a copy of this "
        "cache directory: what is not on the PFS is kept, recover it when that one has ended",
        by->name, by->addr);
    _exit(NOT_ON_PFS);
}

static int flush(struct recover *r, const struct options *o)
{
    if (steps_start(o, "flush", replaced)) {
        steps_stop(NULL);
        return FAILED;
    }
    int code = flush_and_leave(show, add_unflushed, r);
    flush_each_conflict(add_conflict, r);
    if (code == EXIT_OK)
        return DONE;
    if (!r->left.n)
        complain("processes still have files mapped: end them, then recover again");
    return NOT_ON_PFS;
}

/* ---- --to ---- */

static const char *why_left(const struct flush_copy *c)
{
    if (c->err)
        return strerror(-c->err);
    if (c->suspect)
        return "suspect after a power loss: not covered by fsync: some of it may be missing, or older";
    return c->part ? "other nodes have parts of it: copy them from their cache directories, too" : "these bytes were only on the PFS, which has other ones now or cannot be read";
}

static void copied(void *arg, const struct flush_copy *c)
{
    struct recover *r = arg;
    if (c->made) {
        r->copies++;
        r->conflicts += !c->missing && !c->part && !c->suspect && strcmp(c->path, c->made) != 0;
        add_written(r, c->path, c->made, c->suspect ? 0 : c->missing);
    }
    if (c->err || c->missing || c->part || c->suspect)
        add_left(r, c->path, c->missing, why_left(c), c->suspect);
}

/* What is removed with the cache directory is no copy. */
static bool is_in_the_cache(const struct recover *r)
{
    char *to = realpath(r->to, NULL);
    size_t len = strlen(r->path);
    bool is = to && !strncmp(to, r->path, len) && (!to[len] || to[len] == '/');
    free(to);
    return is;
}

static int copy_to(struct recover *r, const struct options *o)
{
    char err[512];
    int to = open(r->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0) {
        complain("%s: %m", r->to);
        return FAILED;
    }
    if (is_in_the_cache(r)) {
        complain("--to %s: is in the cache directory itself: name one elsewhere", r->to);
        close(to);
        return WRONG_USAGE;
    }
    if (steps_start(o, "store", NULL)) {
        close(to);
        return FAILED;
    }
    bool origin = !pfs_open(settings.pfs_dir, settings.hidden, 1024, err, sizeof(err));
    if (!origin)
        complain("%s: what only the PFS has of these files cannot be read", err);
    int e = flush_copy_to(to, settings.node, origin, copied, r);
    if (origin)
        pfs_close();
    steps_end_clean();
    steps_stop(NULL);
    close(to);
    if (!r->json && !e)
        printf("%u file%s copied to %s\n", r->copies, r->copies == 1 ? "" : "s", r->to);
    return e ? FAILED : DONE;
}

/* ---- the command ---- */

static int work(struct recover *r, uint32_t chunk_size, char **argv)
{
    struct options o = {
        .flush = {.policy = FLUSH_IDLE, .wait_ms = 1000, .writers = 4},
        .log_level = LOG_LEVEL_WARN,
    };
    make_settings(r, chunk_size);
    if (!r->to && peer_reexec(settings.listen, argv)) {
        complain("%s: %m", argv[0]);
        return FAILED;
    }
    log_open(NULL, o.log_level, settings.node);
    umask(0);
    set_alarm(r->deadline);
    return r->to ? copy_to(r, &o) : flush(r, &o);
}

/* Checks the owner, and whether it is in use, and reads what it was mounted as. */
static int open_dir(struct recover *r, uint32_t *chunk_size)
{
    struct stat st;
    struct cachedir d;
    if (stat(r->path, &st)) {
        complain("%s: %m", r->path);
        return FAILED;
    }
    int err = !geteuid() && st.st_uid ? become_user(st.st_uid, false) : 0;
    if (err) {
        complain("%s: cannot become its owner, uid %u: %s", r->path, (unsigned)st.st_uid,
                 strerror(-err));
        return FAILED;
    }
    err = cachedir_open_readonly(&d, r->path);
    if (err) {
        complain_of_cache(r->path, err);
        return FAILED;
    }
    *chunk_size = d.chunk_size;
    err = mount_entry_read(d.fd, &r->entry);
    cachedir_close(&d);
    if (!err || r->list)
        return DONE;
    complain("%s/mount: %s: does not say what it was mounted as: start eddyfs with it instead",
             r->path, strerror(-err));
    return FAILED;
}

static int parse(int argc, char **argv, struct recover *r)
{
    static const struct option options[] = {
        {"list", no_argument, NULL, 'l'}, {"to", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'}, {"timeout", required_argument, NULL, 'T'},
        {"help", no_argument, NULL, 'h'}, {0}};
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;)
        switch (c) {
        case 'h':
            exit(help_of("recover"));
        case 'l':
            r->list = true;
            break;
        case 'j':
            r->json = true;
            break;
        case 't':
            r->to = optarg;
            break;
        case 'T':
            if (!parse_timeout(optarg, &r->deadline))
                break;
            complain("--timeout %s: is not a number of seconds", optarg);
            return WRONG_USAGE;
        default:
            return usage_of("recover");
        }
    if (r->list && r->to) {
        complain("--list and --to: give one of them");
        return WRONG_USAGE;
    }
    if (argc - optind != 1)
        return usage_of("recover");
    r->dir = argv[optind];
    return DONE;
}

int recover_main(int argc, char **argv)
{
    struct recover r = {.deadline = NO_DEADLINE, .progress.what = "flushing"};
    uint32_t chunk_size = 0;
    int code = parse(argc, argv, &r);
    if (code != DONE)
        return code;
    r.path = realpath(r.dir, NULL);
    if (!r.path) {
        complain("%s: %m", r.dir);
        return FAILED;
    }
    r.files = json_array();
    r.written = json_array();
    code = open_dir(&r, &chunk_size);
    if (code == DONE)
        code = r.list ? list(&r) : work(&r, chunk_size, argv - 1);
    if (code == DONE || code == NOT_ON_PFS)
        code = report(&r, code);
    json_decref(r.files);
    json_decref(r.written);
    mount_entry_free(&r.entry);
    unflushed_free(&r.left);
    free(r.path);
    return code;
}
