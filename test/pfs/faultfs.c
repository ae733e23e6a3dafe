/*
 * faultfs: a file system that plays a parallel file system in tests. It passes
 * everything through to a directory, counts it, and can be made slow. Each node of a
 * test mounts it over the same directory.
 */
#include "commands.h"
#include "control.h"
#include "counts.h"
#include "faults.h"
#include "limits.h"
#include "nodes.h"
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS   64
#define MAX_WRITE (1024 * 1024)

static const char usage_text[] =
    "usage: faultfs [options] DIRECTORY MOUNTPOINT\n"
    "       faultfs --tell SOCKET COMMAND...\n"
    "  -f                    stay in the foreground; else return when the mount answers\n"
    "  --stats FILE          write counters to FILE (JSON), again at once on SIGUSR1\n"
    "  --bandwidth BYTES     bytes per second, read and written\n"
    "  --shared FILE         share the bandwidth with the mounts that name the same FILE\n"
    "  --delay-us N          added to each request\n"
    "  --delay-meta-us N     added to each request that moves no file data\n"
    "  --no-birth-times      as a parallel file system that does not know them\n"
    "  --control SOCKET      listen there for commands\n"
    "  --fault COMMAND       given at the start; may be repeated\n"
    "  -o OPTIONS            of FUSE, besides those that faultfs sets\n"
    "  --tell SOCKET         tell the faultfs that listens there a command, and end: with 0, or\n"
    "                        with 1 and the reason\n\n";

struct settings {
    bool foreground, no_birth_times;
    const char *stats;
    const char *shared, *control;
    const char *fuse_options;
    const char *directory, *mountpoint;
};

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        fprintf(stderr, "faultfs: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static void give_fault(const char *command)
{
    char *answer = NULL;
    size_t length;
    FILE *out = open_memstream(&answer, &length);
    int err = out ? commands_do(command, out) : -errno;

    if (out)
        fclose(out);
    if (err) {
        fprintf(stderr, "faultfs: --fault '%s': %s", command, answer ? answer : "no memory\n");
        exit(2);
    }
    free(answer);
}

static void print_usage(FILE *out)
{
    fputs(usage_text, out);
    fputs(commands_text, out);
}

static void parse(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = {
        {"stats", required_argument, NULL, 's'},
        {"bandwidth", required_argument, NULL, 'b'},
        {"shared", required_argument, NULL, 'S'},
        {"delay-us", required_argument, NULL, 'd'},
        {"delay-meta-us", required_argument, NULL, 'm'},
        {"no-birth-times", no_argument, NULL, 'n'},
        {"control", required_argument, NULL, 'c'},
        {"fault", required_argument, NULL, 'F'},
        {"tell", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "fho:", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            settings->foreground = true;
            break;
        case 'o':
            settings->fuse_options = optarg;
            break;
        case 's':
            settings->stats = optarg;
            break;
        case 'b':
            limits_set_bandwidth(number(optarg));
            break;
        case 'S':
            settings->shared = optarg;
            break;
        case 'd':
            limits_set_delay_us(number(optarg));
            break;
        case 'm':
            limits_set_delay_meta_us(number(optarg));
            break;
        case 'n':
            settings->no_birth_times = true;
            break;
        case 'c':
            settings->control = optarg;
            break;
        case 'F':
            give_fault(optarg);
            break;
        case 't':
            exit(control_tell(optarg, argv + optind));
        default:
            print_usage(option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (argc - optind != 2) {
        print_usage(stderr);
        exit(2);
    }
    settings->directory = argv[optind];
    settings->mountpoint = argv[optind + 1];
}

/* One descriptor per file that the kernel knows: as many as we may have. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The mount answers from here on. `data` is where the pipe to a waiting parent is, or -1. */
static void fs_init(void *data, struct fuse_conn_info *conn)
{
    int *ready = data;

    fuse_set_feature_flag(conn, FUSE_CAP_PARALLEL_DIROPS);
    fuse_set_feature_flag(conn, FUSE_CAP_POSIX_ACL);
    fuse_set_feature_flag(conn, FUSE_CAP_DONT_MASK); /* default ACLs replace the umask */
    fuse_set_feature_flag(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
    /* The kernel removes set-id bits, except at a write, where the file system below removes them. */
    fuse_unset_feature_flag(conn, FUSE_CAP_HANDLE_KILLPRIV);
    fuse_unset_feature_flag(conn, FUSE_CAP_HANDLE_KILLPRIV_V2);
    conn->max_write = MAX_WRITE;
    conn->max_background = 64;
    if (*ready >= 0) {
        if (write(*ready, "", 1) != 1)
            fprintf(stderr, "faultfs: cannot tell the parent: %s\n", strerror(errno));
        close(*ready);
        *ready = -1;
    }
}

static struct fuse_session *make_session(const struct settings *settings, int *ready)
{
    struct fuse_lowlevel_ops ops = {.init = fs_init};
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *session = NULL;
    int err;

    names_add(&ops);
    attrs_add(&ops);
    files_add(&ops);
    dirs_add(&ops);
    err = fuse_opt_add_arg(&args, "faultfs") ||
          fuse_opt_add_arg(&args, "-ofsname=faultfs,subtype=faultfs,default_permissions");
    if (geteuid() == 0)
        err = err || fuse_opt_add_arg(&args, "-oallow_other,dev,suid");
    if (settings->fuse_options)
        err =
            err || fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, settings->fuse_options);
    if (!err)
        session = fuse_session_new(&args, &ops, sizeof(ops), ready);
    fuse_opt_free_args(&args);
    return session;
}

/*
 * Forks. The child goes on, with the write end of a pipe in *ready, by which it says
 * that the mount answers. The parent waits for that, or for the child's death.
 */
static void daemonise(int *ready)
{
    int ends[2], null;
    char byte;

    if (pipe2(ends, O_CLOEXEC) != 0)
        exit(1);
    switch (fork()) {
    case -1:
        exit(1);
    case 0:
        close(ends[0]);
        *ready = ends[1];
        setsid();
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        break;
    default:
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
    }
}

static int failed(const char *what, const char *name, int err)
{
    fprintf(stderr, "faultfs: %s: %s: %s\n", what, name, strerror(-err));
    return 1;
}

/* ---- the threads that serve ---- */

static struct {
    struct fuse_session *session;
    bool birth_times;
    sem_t ended;
} workers;

static void *work(void *arg)
{
    struct fuse_session *session = workers.session;
    struct fuse_buf buf = {0};

    (void)arg;
    while (!fuse_session_exited(session)) {
        int n = fuse_session_receive_buf(session, &buf);

        if (n == -EINTR)
            continue;
        if (n <= 0)
            break;
        if (!workers.birth_times || !statx_answered(session, &buf))
            fuse_session_process_buf(session, &buf);
    }
    free(buf.mem);
    sem_post(&workers.ended);
    return NULL;
}

static int start_workers(void)
{
    sigset_t ends, before;
    pthread_t thread;
    int err = 0;

    sem_init(&workers.ended, 0, 0);
    sigemptyset(&ends); /* for the first thread: they end its wait */
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    for (int n = 0; n < THREADS && !err; n++)
        err = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

/*
 * Until the mount is gone, or a signal came. The threads end with the process: a lazy
 * unmount does not wake them.
 */
static int serve(const struct settings *settings, struct fuse_session *session)
{
    workers.session = session;
    workers.birth_times = !settings->no_birth_times;
    int err = start_workers();

    while (!err && !fuse_session_exited(session) && sem_wait(&workers.ended) != 0)
        ;
    if (settings->stats)
        counts_stop();
    control_stop();
    fuse_session_unmount(session);
    return err ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {0};
    struct fuse_session *session;
    sigset_t usr1;
    int ready = -1;
    int err;

    parse(argc, argv, &settings);
    raise_descriptor_limit();
    err = nodes_start(settings.directory);
    if (err)
        return failed("cannot open", settings.directory, err);
    err = settings.shared ? limits_share(settings.shared) : 0;
    if (err)
        return failed("cannot map", settings.shared, err);
    err = settings.control ? control_listen(settings.control) : 0;
    if (err)
        return failed("cannot listen at", settings.control, err);

    if (!settings.foreground)
        daemonise(&ready);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    session = make_session(&settings, &ready);
    if (!session || fuse_set_signal_handlers(session) != 0)
        return failed("cannot start", settings.mountpoint, -EINVAL);
    if (fuse_session_mount(session, settings.mountpoint) != 0)
        return failed("cannot mount", settings.mountpoint, -EIO);
    err = settings.stats ? counts_start(settings.stats) : 0;
    if (err) {
        fuse_session_unmount(session);
        return failed("cannot write", settings.stats, err);
    }
    err = settings.control ? control_start() : 0;
    if (err)
        return failed("cannot serve", settings.control, err);
    return serve(&settings, session);
}
