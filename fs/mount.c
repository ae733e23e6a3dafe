/* mount.c - the FUSE session: what we ask the kernel for, the start and the end of a mount. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/mount.h"
#include "fs/mount_beneath.h"
#include "fs/mount_why.h"
#include "fs/mountinfo.h"
#include "fs/ops.h"
#include "fs/readahead.h"
#include "fs/request_pages.h"
#include "fs/settings.h"
#include "fs/uring.h"
#include "fs/workers.h"
#include "placement/store/store_open.h"

#define INIT_WAIT_MS     20000
#define LAST_REQUESTS_MS 2000

static struct {
    struct fuse_session *session;
    struct fuse_args args;
    char *words[32]; /* the same, for mount_user */
    int nwords;
    int gone_fd;               /* eventfd: the kernel says that the mount is gone */
    int init_fd;               /* eventfd: the kernel's INIT was answered */
    bool mounted, passthrough; /* passthrough: the kernel's FUSE has it */
} m = {.gone_fd = -1, .init_fd = -1};

struct fuse_session *mount_session(void)
{
    return m.session;
}

static void raise_event(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));
    if (n != sizeof(one))
        die("eventfd: %s", strerror(errno));
}

/* ---- INIT ---- */

static _Thread_local bool init_begun; /* by this worker, which says so when it has been answered */

static void want(struct fuse_conn_info *conn, uint64_t flag, const char *what)
{
    if (!fuse_set_feature_flag(conn, flag) && what)
        log_warn("this kernel's FUSE has no %s", what);
}

static void op_init(void *arg, struct fuse_conn_info *conn)
{
    (void)arg;
    want(conn, FUSE_CAP_ASYNC_READ, NULL);
    want(conn, FUSE_CAP_PARALLEL_DIROPS, NULL);
    want(conn, FUSE_CAP_ATOMIC_O_TRUNC, "atomic O_TRUNC");
    want(conn, FUSE_CAP_AUTO_INVAL_DATA, NULL);
    want(conn, FUSE_CAP_HANDLE_KILLPRIV_V2, NULL);
    want(conn, FUSE_CAP_POSIX_ACL, "POSIX ACLs");
    want(conn, FUSE_CAP_DONT_MASK, NULL);
    want(conn, FUSE_CAP_READDIRPLUS, NULL);
    want(conn, FUSE_CAP_READDIRPLUS_AUTO, NULL);
    want(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP, NULL);
    want(conn, FUSE_CAP_POSIX_LOCKS, "fcntl locks: they hold on this node only");
    want(conn, FUSE_CAP_FLOCK_LOCKS, "flock: it holds on this node only");
    if (settings.passthrough)
        m.passthrough = fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH);
    /* no more than is needed: the kernel stacks two in all, and an overlay over the mount is one */
    conn->max_backing_stack_depth = store_is_stacked() ? 1 : 0;
    /* with it the kernel waits for an O_DIRECT read, and not even SIGKILL ends this wait
     * (measured on 6.18) */
    fuse_unset_feature_flag(conn, FUSE_CAP_ASYNC_DIO);
    /* one copy from memory is cheaper than a pipe per request; with write-back in the kernel its
     * pages would become stale */
    fuse_unset_feature_flag(conn, FUSE_CAP_SPLICE_READ);
    fuse_unset_feature_flag(conn, FUSE_CAP_SPLICE_WRITE);
    fuse_unset_feature_flag(conn, FUSE_CAP_SPLICE_MOVE);
    fuse_unset_feature_flag(conn, FUSE_CAP_WRITEBACK_CACHE);
    conn->max_write = conn->max_read = FUSE_IO_MAX;
    conn->max_background = 64;
    conn->congestion_threshold = 48;
    conn->time_gran = 1;
    init_begun = true;
}

/* All that libfuse sends to the kernel. */
static ssize_t send_to_kernel(int fd, struct iovec *iov, int n, void *unused)
{
    (void)unused;
    ssize_t sent;
    if (init_begun)
        return request_pages_answer(fd, iov, n);
    return uring_answer(iov, n, &sent) ? sent : writev(fd, iov, n);
}

static ssize_t read_from_kernel(int fd, void *buf, size_t len, void *unused)
{
    (void)unused;
    return read(fd, buf, len);
}

static void answered(void)
{
    if (!init_begun)
        return;
    init_begun = false;
    raise_event(m.init_fd);
}

static void gone(void)
{
    raise_event(m.gone_fd);
}

/* ---- options ---- */

void mount_option(const char *opt)
{
    if (!m.args.argc)
        fuse_opt_add_arg(&m.args, "eddyfs"); /* argv[0] */
    fuse_opt_add_arg(&m.args, "-o");
    fuse_opt_add_arg(&m.args, opt);
    if (m.nwords < (int)ARRAY_LEN(m.words))
        m.words[m.nwords++] = xstrdup(opt);
}

/* A comma or backslash in a value is escaped for libfuse's parser. */
static void mount_option_value(const char *name, const char *value)
{
    char *text = xmalloc(strlen(name) + 2 * strlen(value) + 2), *p = stpcpy(text, name);
    *p++ = '=';
    for (; *value; value++) {
        if (*value == ',' || *value == '\\')
            *p++ = '\\';
        *p++ = *value;
    }
    *p = '\0';
    mount_option(text);
    free(text);
}

/* The kernel trusts files of root's own mount only, and of a PFS where it would trust them, too. */
static void trust_option(bool wanted, const char *name, unsigned long forbidden)
{
    if (!wanted)
        return;
    if (geteuid() || settings.as_user)
        log_info("-o %s: only root's own mount can have it: left out", name);
    else if (forbidden)
        log_warn("-o %s: the PFS directory's own mount has no%s: left out", name, name);
    else
        mount_option(name);
}

static void trust_options(void)
{
    struct statvfs sv = {.f_flag = ST_NOSUID | ST_NODEV};
    if ((settings.suid || settings.dev) && statvfs(settings.pfs_dir, &sv))
        log_warn("PFS directory %s: statvfs: %s", settings.pfs_dir, strerror(errno));
    trust_option(settings.suid, "suid", sv.f_flag & ST_NOSUID);
    trust_option(settings.dev, "dev", sv.f_flag & ST_NODEV);
}

/* ---- start ---- */

static bool kernel_answered(void)
{
    struct pollfd p[2] = {{.fd = m.init_fd, .events = POLLIN}, {.fd = m.gone_fd, .events = POLLIN}};
    int n;
    do
        n = poll(p, 2, INIT_WAIT_MS);
    while (n < 0 && errno == EINTR);
    return p[0].revents & POLLIN;
}

/* What we have mounted ourselves: libfuse takes over its descriptor. */
static int hand_over(int fd, char *err, size_t errlen)
{
    char path[32];
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    if (!fuse_session_mount(m.session, path))
        return 0;
    unmount_lazily(settings.mountpoint);
    snprintf(err, errlen, "libfuse does not take over the mount at %s", settings.mountpoint);
    return -EIO;
}

/* In place of the dead mount.  *fd: the mount's; -1: it was not possible. */
static void mount_in_its_place(const struct mount_before *before, int *fd)
{
    struct mounted dead;
    *fd = -1;
    if ((geteuid() && !settings.as_user) || !mounted_eddyfs(settings.mountpoint, &dead))
        return;
    int fuse = settings.as_user ? mount_user_fuse() : open("/dev/fuse", O_RDWR | O_CLOEXEC);
    int e = fuse < 0 ? -errno : before->dead(dead.path) ? mount_beneath(&dead, fuse, m.words, m.nwords) : -EBUSY;
    mounted_free(&dead);
    if (!e) {
        *fd = fuse;
        return;
    }
    log_info("the mount cannot take the place of the dead one in one step: %s", strerror(-e));
    if (settings.as_user)
        mount_user_renew();
    else if (fuse >= 0)
        close(fuse);
}

static int mount_it(const struct mount_before *before, char *err, size_t errlen)
{
    int fd = -1, e = 0;
    if (before)
        mount_in_its_place(before, &fd);
    if (fd >= 0)
        return hand_over(fd, err, errlen);
    if (before && (e = before->clear()))
        return e;
    if (settings.as_user) {
        fd = mount_user(m.words, m.nwords, err, errlen);
        return fd < 0 ? fd : hand_over(fd, err, errlen);
    }
    if (!fuse_session_mount(m.session, settings.mountpoint))
        return 0;
    mount_why(err, errlen);
    return -EPERM;
}

int mount_start(const struct fuse_lowlevel_ops *answers, const struct mount_before *before, char *err, size_t errlen)
{
    static const struct fuse_custom_io io = {.writev = send_to_kernel, .read = read_from_kernel};
    struct fuse_lowlevel_ops ops = *answers;
    char max_read[32];
    int e;
    ops.init = op_init;
    mount_option("default_permissions,subtype=eddyfs");
    snprintf(max_read, sizeof(max_read), "max_read=%u", FUSE_IO_MAX);
    mount_option(max_read);
    mount_option_value("fsname", settings.pfs_dir);
    if (settings.allow_other)
        mount_option("allow_other");
    if (settings.read_only)
        mount_option("ro");
    trust_options();
    m.gone_fd = eventfd(0, EFD_CLOEXEC);
    m.init_fd = eventfd(0, EFD_CLOEXEC);
    if (m.gone_fd < 0 || m.init_fd < 0) {
        snprintf(err, errlen, "eventfd: %s", strerror(errno));
        return -errno;
    }
    m.session = fuse_session_new(&m.args, &ops, sizeof(ops), NULL);
    fuse_opt_free_args(&m.args);
    if (!m.session) {
        snprintf(err, errlen,
                 "FUSE refused an option (see above); eddyfs -h lists those of eddyfs");
        return -EINVAL;
    }
    uring_make();
    if (!settings.as_user)
        request_pages_raise();
    e = mount_it(before, err, errlen);
    if (e)
        return e;
    m.mounted = true;
    e = fuse_session_custom_io(m.session, &io, sizeof(io), fuse_session_fd(m.session));
    if (!e)
        e = workers_start(m.session, answered, gone);
    if (!e && !kernel_answered())
        e = -ETIMEDOUT;
    if (!e)
        e = uring_begin(m.session, workers_serve);
    if (e) {
        snprintf(err, errlen, "the mount at %s does not answer: %s", settings.mountpoint,
                 strerror(-e));
        return e;
    }
    readahead_raise(settings.mountpoint);
    return 0;
}

/* ---- the end ---- */

void mount_wait(int leave_fd)
{
    struct pollfd p[2] = {{.fd = m.gone_fd, .events = POLLIN},
                          {.fd = leave_fd, .events = POLLIN}};
    while (poll(p, 2, -1) < 0)
        ;
}

bool mount_kernel_passes(void)
{
    return m.passthrough;
}

bool mount_is_up(void)
{
    struct pollfd p = {.fd = m.gone_fd, .events = POLLIN};
    return m.mounted && poll(&p, 1, 0) == 0;
}

/* The kernel aborts the connection when its last descriptor is closed and no thread reads from it.
 * The end of a pipe without a reader takes the descriptor's place.  So late answers are dropped, and
 * libfuse gets an error, as on a connection that is gone. */
void mount_abort(void)
{
    int pipe_fds[2];
    if (!m.session || fuse_session_fd(m.session) < 0 || pipe2(pipe_fds, O_CLOEXEC))
        return;
    close(pipe_fds[0]);
    raise_event(m.gone_fd);
    workers_end_reading();
    uring_end(); /* what the kernel's rings have given to it are descriptors of the connection, too */
    if (dup3(pipe_fds[1], fuse_session_fd(m.session), O_CLOEXEC) < 0)
        log_error("the connection to the kernel cannot be ended: %s", strerror(errno));
    close(pipe_fds[1]);
}

/* Requests in progress get their time.  Then processes that still wait get an error.  This is necessary: no
 * thread would read the interrupt of a task that is killed, and the PFS may hang. */
static void end_requests(void)
{
    uint64_t end = boot_ms() + LAST_REQUESTS_MS;
    while (mount_is_up() && requests_waiting() && boot_ms() < end)
        poll(&(struct pollfd){.fd = m.gone_fd, .events = POLLIN}, 1, 20);
}

/* After this no request comes any more.  A request that a worker has begun ends first. */
void mount_stop(void)
{
    if (!m.session)
        return;
    end_requests();
    if (mount_is_up()) {
        unmount_lazily(settings.mountpoint); /* not libfuse's: it runs umount(8), which may hang */
        mount_abort();
    }
    workers_join();
    uring_end();
    fuse_session_exit(m.session); /* libfuse does not complain about late answers */
    if (m.mounted)
        /* its descriptor shows that nothing is mounted, so it only frees */
        fuse_session_unmount(m.session);
    m.mounted = false;
}

/* When nothing will be answered or notified any more. */
void mount_free(void)
{
    uring_free();
    if (m.session)
        fuse_session_destroy(m.session);
    m.session = NULL;
    close(m.gone_fd);
    close(m.init_fd);
}
