/* main.c - the daemon: options, checks, daemonising, and the wiring of the parts in one table of
 * steps.
 *
 * Every step has a start and a stop.  Stops run in reverse order, from wherever a start failed or
 * the mount ended, so the table's order says what may use what:
 *
 *   store   claims   loop   session   pfs   placement   pools   peers   members   flush   files   control   mount
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "flush/flush.h"
#include "fs/control.h"
#include "fs/fs.h"
#include "fs/mountinfo.h"
#include "fs/options.h"
#include "placement/carry.h"
#include "placement/chunk.h"
#include "placement/claim.h"
#include "placement/fetch.h"
#include "placement/home.h"
#include "placement/pfs_names.h"
#include "placement/store.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/session.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_ON_PFS = 3 };

#define LEAVE_MS  10000
#define ANSWER_MS 5000

static struct options options;
static bool ended_clean;
static int ready_fd = -1; /* to the parent that waits */

/* ---- checks of the two directories ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 1)
        return path[1] != '\0';
    return !strncmp(path, dir, len) && path[len] == '/';
}

/* The path without links, but for its last name: that may be a dead mount. */
static char *resolve_parent(const char *path)
{
    char *copy = xstrdup(path), *end = copy + strlen(copy), *full, *dir;
    while (end > copy + 1 && end[-1] == '/')
        *--end = '\0';
    char *slash = strrchr(copy, '/');
    const char *base = slash + 1;
    if (!*base || !strcmp(base, ".") || !strcmp(base, "..")) {
        full = realpath(copy, NULL);
        free(copy);
        return full;
    }
    char *name = xstrdup(base);
    slash[slash == copy] = '\0';
    dir = realpath(copy, NULL);
    if (!dir || asprintf(&full, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0)
        full = NULL;
    free(dir);
    free(name);
    free(copy);
    return full;
}

static int run_fusermount(const char *mountpoint)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        execlp("fusermount3", "fusermount3", "-u", "-z", "-q", mountpoint, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

static int refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int refuse(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("eddyfs: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return -EINVAL;
}

/* Has the daemon of this mount ended?  Asked by statfs, which the kernel never answers from memory,
 * in a process of its own: a daemon that is stopped does not answer, and lives.  One that is being
 * killed answers when it is gone. */
static bool daemon_is_gone(const char *mountpoint)
{
    struct statvfs sv;
    int status = 0, fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return false;
    pid_t pid = fork();
    if (!pid)
        _exit(statvfs(mountpoint, &sv) && (errno == ENOTCONN || errno == ECONNABORTED));
    close(fds[1]);
    struct pollfd ended = {.fd = fds[0]};
    if (pid > 0) {
        if (poll(&ended, 1, ANSWER_MS) <= 0)
            kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    close(fds[0]);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* What a killed daemon left there is cleared; a living one is not disturbed. */
static int clear_dead_mount(const char *mountpoint)
{
    if (!mounted_eddyfs(mountpoint, NULL))
        return 0;
    if (!daemon_is_gone(mountpoint))
        return refuse("an eddyfs is mounted at %s: end it with `eddy umount %s` first", mountpoint,
                      mountpoint);
    int err = geteuid() ? run_fusermount(mountpoint) : umount2(mountpoint, MNT_DETACH) ? -errno : 0;
    if (err)
        return refuse("the dead mount at %s cannot be cleared (%s): try `fusermount3 -u %s`",
                      mountpoint, strerror(-err), mountpoint);
    fprintf(stderr, "eddyfs: cleared the dead mount at %s\n", mountpoint);
    return 0;
}

static int check_mountpoint(void)
{
    struct stat st;
    char *full = resolve_parent(settings.mountpoint);
    if (!full)
        return refuse("mount point %s: %s", settings.mountpoint, strerror(errno));
    settings.mountpoint = full;
    int err = clear_dead_mount(full);
    if (err)
        return err;
    char *real = realpath(full, NULL);
    if (!real || stat(real, &st))
        return refuse("mount point %s: %s: make the directory first", full, strerror(errno));
    settings.mountpoint = real;
    if (strcmp(real, full) && (err = clear_dead_mount(real)))
        return err;
    free(full);
    return S_ISDIR(st.st_mode) ? 0 : refuse("mount point %s is not a directory", real);
}

static int check_pfs(void)
{
    struct stat st;
    char *real = realpath(settings.pfs_dir, NULL);
    if (!real || stat(real, &st))
        return refuse("PFS directory %s: %s", settings.pfs_dir, strerror(errno));
    settings.pfs_dir = real;
    if (!S_ISDIR(st.st_mode))
        return refuse("PFS directory %s is not a directory", real);
    if (access(real, R_OK | X_OK))
        return refuse("PFS directory %s: %s: the user who mounts must be able to read it", real,
                      strerror(errno));
    return 0;
}

static int check_directories(void)
{
    int err = check_mountpoint();
    if (!err)
        err = check_pfs();
    if (err)
        return err;
    const char *p = settings.pfs_dir, *m = settings.mountpoint;
    if (is_below(m, p))
        return refuse("the mount point %s is below the PFS directory %s: it would show itself; "
                      "mount elsewhere, or at %s itself",
                      m, p, p);
    if (is_below(p, m))
        return refuse("the PFS directory %s is below the mount point %s: the mount would hide it",
                      p, m);
    if (is_below(settings.cache_dir, m) || !strcmp(settings.cache_dir, m))
        return refuse("the cache directory %s is below the mount point %s: give a node-local one "
                      "with --cache-dir",
                      settings.cache_dir, m);
    options_session_dir();
    return 0;
}

/* ---- daemonising ---- */

/* The parent returns only when the mount answers: 0, or with the child's code (the child has said
 * why on our standard error). */
static int wait_for_child(pid_t pid, int fd)
{
    char text[1024];
    int status;
    ssize_t n = read(fd, text, sizeof(text));
    if (n > 0) {
        fwrite(text, 1, (size_t)n, stdout);
        return EXIT_OK;
    }
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "eddyfs: the daemon ended before the mount answered\n");
    return EXIT_FAILED;
}

static void daemonise(void)
{
    int fds[2];
    if (settings.foreground)
        return;
    if (pipe2(fds, O_CLOEXEC)) {
        perror("eddyfs: pipe");
        exit(EXIT_FAILED);
    }
    pid_t pid = fork();
    if (pid < 0) {
        perror("eddyfs: fork");
        exit(EXIT_FAILED);
    }
    if (pid) {
        close(fds[1]);
        int code = wait_for_child(pid, fds[0]);
        fflush(stdout);
        _exit(code);
    }
    close(fds[0]);
    ready_fd = fds[1];
    setsid();
}

static void let_go_of_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
}

static void say_ready(void)
{
    char text[3 * PATH_MAX];
    const struct view *v = members_view();
    int n = snprintf(text, sizeof(text),
                     "eddyfs: %s is mounted at %s (node %s, %u nodes, passthrough %s)\n",
                     settings.pfs_dir, settings.mountpoint, settings.node, v ? v->nmembers : 0,
                     settings.passthrough ? "on" : "off");
    log_info("%.*s", n - 9, text + 8);
    if (ready_fd < 0) {
        fwrite(text, 1, (size_t)n, stdout);
        fflush(stdout);
        return;
    }
    ssize_t written = write(ready_fd, text, (size_t)n);
    if (written != n)
        log_warn("who started the daemon did not wait for it");
    close(ready_fd);
    ready_fd = -1;
    let_go_of_terminal();
}

static void set_up_process(void)
{
    struct rlimit r;
    umask(0);
    if (chdir("/"))
        log_warn("cannot change to /: %s", strerror(errno));
    if (!getrlimit(RLIMIT_NOFILE, &r)) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
#ifndef __SANITIZE_ADDRESS__   /* its leak check must be able to look at us */
    prctl(PR_SET_DUMPABLE, 0); /* the session's secret is in memory */
#endif
}

/* ---- the steps ---- */

static int start_store(char *err, size_t len)
{
    struct store_config c = {
        .dir = settings.cache_dir,
        .dir_is_default = settings.cache_dir_is_default,
        .size = settings.cache_size,
        .percent = settings.cache_percent,
        .chunk_size = settings.chunk_size,
    };
    int e = store_open(&c, err, len);
    if (e || (settings.foreground && !settings.log_file))
        return e;
    char *path = NULL;
    if (!settings.log_file && asprintf(&path, "%s/eddyfs.log", store_dir()) < 0)
        die("out of memory");
    e = log_open(settings.log_file ? settings.log_file : path, options.log_level, settings.node);
    if (e) {
        snprintf(err, len, "log file %s: %s", settings.log_file ? settings.log_file : path,
                 strerror(-e));
        store_close(false);
    }
    free(path);
    return e;
}

static void stop_store(void)
{
    store_close(ended_clean);
}

static int start_claims(char *err, size_t len)
{
    (void)err;
    (void)len;
    claim_start();
    return 0;
}

static int start_loop(char *err, size_t len)
{
    int e = loop_start();
    if (e)
        snprintf(err, len, "the event loop cannot start: %s", strerror(-e));
    return e;
}

static int start_session(char *err, size_t len)
{
    struct session_config c = {settings.session_dir, settings.session, settings.chunk_size};
    int e = session_open(&c, err, len);
    if (e)
        return e;
    e = session_probe(fid_of_fd, err, len);
    if (e)
        session_close();
    return e;
}

static int start_pfs(char *err, size_t len)
{
    struct rlimit r;
    unsigned fds = 1024;
    if (!getrlimit(RLIMIT_NOFILE, &r))
        fds = (unsigned)MIN(r.rlim_cur / 4, (rlim_t)65536);
    return pfs_open(settings.pfs_dir, settings.hidden, fds, err, len);
}

static int start_placement(char *err, size_t len)
{
    (void)err;
    (void)len;
    home_start();
    chunk_rooms(settings.memory);
    fetch_start();
    carry_start();
    return 0;
}

static void stop_placement(void)
{
    carry_stop();
    fetch_stop();
}

static int start_pools(char *err, size_t len)
{
    int e = pools_start();
    if (e)
        snprintf(err, len, "threads: %s", strerror(-e));
    return e;
}

static struct member self(void)
{
    struct member m = {.id = store_node_id(), .incarnation = store_incarnation(), .weight = 100};
    snprintf(m.name, sizeof(m.name), "%s", settings.node);
    snprintf(m.addr, sizeof(m.addr), "%s", peer_address());
    return m;
}

static int start_peers(char *err, size_t len)
{
    struct peer_config c = {settings.listen, store_node_id(),     store_incarnation(),
                            settings.node,   settings.chunk_size, settings.memory};
    return peer_start(&c, err, len);
}

/* From here on no message comes: what waits for one has failed. */
static void stop_peers(void)
{
    peer_stop();
    members_stop();
    home_stop();
}

static int start_members(char *err, size_t len)
{
    struct members_config c = {self(), claim_members_ops};
    int e = members_start(&c);
    if (e) {
        snprintf(err, len, "session directory %s: %s", settings.session_dir, strerror(-e));
        return e;
    }
    e = claim_recover();
    if (e) {
        snprintf(err, len, "the cache directory's claims cannot be taken up: %s", strerror(-e));
        return e;
    }
    return members_join(settings.wait_nodes, settings.wait_timeout, err, len);
}

/* With unflushed data the node does not leave: the others must know that its files are lost until
 * it is back. */
static void stop_members(void)
{
    unsigned held = claim_give_back_all();
    if (held)
        log_warn("%u files are not on the PFS: this node stays absent in the session until it is "
                 "started again",
                 held);
    else if (members_leave(LEAVE_MS))
        log_warn("the session was not told in time that this node leaves");
}

static int start_flush(char *err, size_t len)
{
    int e = flush_start(&options.flush);
    if (!e)
        e = flush_recover();
    if (e)
        snprintf(err, len, "the flusher cannot start: %s", strerror(-e));
    return e;
}

static int start_files(char *err, size_t len)
{
    struct statx stx;
    int e = pfs_stat(pfs_root(), &stx);
    if (e) {
        snprintf(err, len, "PFS directory %s: %s", settings.pfs_dir, strerror(-e));
        return e;
    }
    file_start();
    inode_start(pfs_root(), &stx);
    struct inode *root = inode_get(FUSE_ROOT_ID);
    known_mark(root, NULL);
    inode_put(root);
    request_system_start();
    notify_start();
    return 0;
}

static void stop_files(void)
{
    notify_stop();
    inode_stop();
    mount_free();
}

static int start_mount(char *err, size_t len)
{
    struct mount_entry e = {
        .mountpoint = (char *)settings.mountpoint,
        .cache_dir = (char *)settings.cache_dir,
        .pfs_dir = (char *)settings.pfs_dir,
        .session = (char *)settings.session,
        .session_dir = (char *)settings.session_dir,
        .node = (char *)settings.node,
    };
    int code = mount_map_write(&e);
    if (code) {
        snprintf(err, len, "the list of mounts for `eddy` cannot be written: %s", strerror(-code));
        return code;
    }
    code = mount_start(err, len);
    if (code)
        mount_stop();
    return code;
}

/* RELEASEs may have been lost with the mount. */
static void stop_mount(void)
{
    mount_stop();
    file_close_all();
    request_system_stop();
}

static const struct step {
    const char *name;
    int (*start)(char *err, size_t len);
    void (*stop)(void);
} steps[] = {
    {"store", start_store, stop_store},
    {"claims", start_claims, claim_stop},
    {"loop", start_loop, loop_stop},
    {"session", start_session, session_close},
    {"pfs", start_pfs, pfs_close},
    {"placement", start_placement, stop_placement},
    {"pools", start_pools, pools_stop},
    {"peers", start_peers, stop_peers},
    {"members", start_members, stop_members},
    {"flush", start_flush, flush_stop},
    {"files", start_files, stop_files},
    {"control", control_start, control_stop},
    {"mount", start_mount, stop_mount},
};
static unsigned started;

static int start_all(void)
{
    char err[1024] = "";
    while (started < ARRAY_LEN(steps)) {
        int e = steps[started].start(err, sizeof(err));
        if (e) {
            log_error("%s", err[0] ? err : strerror(-e));
            if (!settings.foreground || settings.log_file)
                fprintf(stderr, "eddyfs: %s\n", err[0] ? err : strerror(-e));
            return e;
        }
        log_debug("%s started", steps[started].name);
        started++;
    }
    return 0;
}

static void stop_down_to(const char *name)
{
    while (started) {
        const struct step *s = &steps[started - 1];
        if (name && !strcmp(s->name, name))
            return;
        started--;
        s->stop();
        log_debug("%s stopped", s->name);
    }
}

/* ---- the end ---- */

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

static int finish(int signal)
{
    unsigned unflushed = 0;
    if (signal) {
        log_info("signal %d: flushing, then leaving; a second one leaves at once", signal);
        flush_all(go_on, NULL); /* what fails is said below */
    }
    stop_down_to("control");
    carry_leave(); /* writers of other nodes do not keep our claims */
    flush_all(go_on, NULL);
    flush_each_unflushed(say_unflushed, &unflushed);
    unflushed += say_mapped();
    ended_clean = true;
    stop_down_to(NULL);
    return unflushed ? EXIT_NOT_ON_PFS : EXIT_OK;
}

static int run(void)
{
    mount_block_signals();
    set_up_process();
    if (start_all()) {
        stop_down_to(NULL);
        return EXIT_FAILED;
    }
    say_ready();
    return finish(mount_wait());
}

static void print_version(void)
{
    printf("eddyfs %s (libfuse %s, cache format 1, protocol %d)\n", EDDY_VERSION, fuse_pkgversion(),
           MSG_VERSION >> 8);
}

int main(int argc, char **argv)
{
    if (options_parse(argc, argv, &options))
        return EXIT_USAGE;
    if (options.help || options.version) {
        options.help ? options_help() : print_version();
        return EXIT_OK;
    }
    if (peer_reexec(settings.listen, argv))
        return EXIT_FAILED;
    log_open(NULL, options.log_level, settings.node);
    if (check_directories())
        return EXIT_FAILED;
    daemonise();
    return run();
}
