/* protonode.c - a node without a mount: for tests of views, claims and locks.
 *
 *   protonode --pfs DIR --session-dir DIR --cache-dir DIR --node NAME [--session NAME] [--wait-timeout SEC]
 *             [--listen ADDR] [--lie]
 *
 * With --lie it answers FETCH, all wrong (protolie.h).
 *
 * Reads commands from standard input, a line each: TAG COMMAND ARGUMENT...  Each is answered by one
 * line, those that wait when they are done, so not in order:
 *
 *   TAG ANSWER... @FROM-TO
 *
 * FROM: when the command was taken up, TO: when it was done (CLOCK_BOOTTIME, ns, the same for all
 * nodes of a host).  An error is answered as its name (EIO).  PATH is below the PFS directory.
 *
 *   where PATH|FID                            HERE | PFS | NODE name size | LOST name
 *   open-writer PATH                          HERE | NODE name
 *   close-writer PATH                         OK
 *   write PATH OFFSET TEXT                    OK: into the store; the claim must be here.  The file is dirty from then on
 *   read PATH                                 "TEXT": of a file that is HERE
 *   lock PATH fcntl|flock r|w START END OWNER [wait]     OK | EAGAIN | EINTR | EIO
 *   unlock PATH fcntl|flock START END OWNER   OK
 *   test PATH fcntl|flock r|w START END OWNER free | r START END | w START END
 *   drop PATH fcntl|flock OWNER               OK: all locks of this owner on the file
 *   cancel TAG                                OK: the lock command of that tag does not wait any more
 *   ring PATH                                 home next (names)
 *   view                                      NUMBER NAME,NAME absent NAME,... lease 0|1 settled 0|1
 *   status                                    claims N records N locks N lost N
 *   leave                                     OK | ETIMEDOUT: gives back its clean claims and leaves the session
 *   quit                                      OK: ends, without leaving
 *
 * The end of the input is a quit.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/claim.h"
#include "placement/home.h"
#include "placement/pfs_data.h"
#include "placement/ring.h"
#include "placement/store.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#include "protolie.h"

#define WORDS_MAX  10
#define LEAVE_MS   20000
#define CHUNK_SIZE (1u << 20)

static struct {
    const char *pfs, *session_dir, *session, *cache_dir, *node, *listen;
    unsigned wait_timeout;
    bool lie;
} settings = {.session = "test", .listen = "127.0.0.1", .wait_timeout = 60};

static int pfs_fd;
static struct lock lock; /* RANK_LEAF: standard output and the two lists */

/* ---- commands ---- */

struct command {
    struct command *next;
    char *line, *tag, *words[WORDS_MAX]; /* words[0] is the command */
    int n;
    uint64_t from_ns;
    uint64_t lock_id;
};

static struct command *waiting; /* locks that were asked for and not answered */

static void command_free(struct command *c)
{
    free(c->line);
    free(c);
}

/* Answers and frees c. */
__attribute__((format(printf, 2, 3))) static void answer(struct command *c, const char *format, ...)
{
    uint64_t to = boot_ns();
    va_list args;

    lock_take(&lock);
    for (struct command **p = &waiting; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    printf("%s ", c->tag);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" @%" PRIu64 "-%" PRIu64 "\n", c->from_ns, to);
    fflush(stdout);
    lock_drop(&lock);
    command_free(c);
}

static void answer_code(struct command *c, int err)
{
    const char *name = err ? strerrorname_np(-err) : "OK";

    answer(c, "%s", name ? name : "E?");
}

static const char *word(const struct command *c, int i)
{
    return i < c->n ? c->words[i] : "";
}

static uint64_t number(const struct command *c, int i)
{
    const char *w = word(c, i);

    return !strcmp(w, "max") ? INT64_MAX : strtoull(w, NULL, 10);
}

/* ---- files ---- */

static int look(const char *path, struct statx *stx)
{
    return statx(pfs_fd, path, AT_STATX_FORCE_SYNC, PFS_STATX_MASK, stx) ? -errno : 0;
}

static int fid_at(const char *path, struct fid *out)
{
    struct statx stx;
    int err;

    if (!fid_parse(path, out))
        return 0;
    err = look(path, &stx);
    if (!err)
        *out = fid_of(&stx);
    return err;
}

static int file_at(const char *path, struct file **out, struct version *v)
{
    struct statx stx;
    int err = look(path, &stx);

    if (err)
        return err;
    *v = version_of(&stx);
    return file_get(fid_of(&stx), path, out);
}

/* ---- claims ---- */

static void show_where(struct command *c, const struct location *at)
{
    switch (at->where) {
    case WHERE_HERE:
        answer(c, "HERE");
        break;
    case WHERE_PFS:
        answer(c, "PFS");
        break;
    case WHERE_NODE:
        answer(c, "NODE %s %" PRIu64, members_name(at->node), at->size);
        break;
    case WHERE_LOST:
        answer(c, "LOST %s", members_name(at->node));
        break;
    }
}

static void do_where(void *arg)
{
    struct command *c = arg;
    struct location at;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err)
        err = claim_where(fid, &at);
    if (err)
        answer_code(c, err);
    else
        show_where(c, &at);
}

/* The file stays referenced while it is open: close-writer puts it twice. */
static void do_open_writer(void *arg)
{
    struct command *c = arg;
    struct location at = {0};
    struct version v;
    struct file *f;
    int err = file_at(word(c, 1), &f, &v);

    if (err) {
        answer_code(c, err);
        return;
    }
    err = store_set_version(f, &v, NULL);
    if (!err || err == -EBUSY)
        err = claim_open_writer(f, &v, 0, &at);
    if (err || at.where != WHERE_HERE)
        file_put(f);
    if (err)
        answer_code(c, err);
    else if (at.where == WHERE_HERE)
        answer(c, "HERE");
    else
        answer(c, "NODE %s", members_name(at.node));
}

static void do_close_writer(void *arg)
{
    struct command *c = arg;
    struct fid fid;
    struct file *f = NULL;
    int err = fid_at(word(c, 1), &fid);

    if (!err && !(f = file_find(fid)))
        err = -ENOENT;
    if (!err) {
        claim_close_writer(f);
        file_put(f);
        file_put(f); /* open-writer's */
    }
    answer_code(c, err);
}

static void do_write(void *arg)
{
    struct command *c = arg;
    const char *text = word(c, 3);
    struct fid fid;
    struct file *f = NULL;
    uint64_t fill;
    int err = fid_at(word(c, 1), &fid);

    if (!err && !(f = file_find(fid)))
        err = -ENOENT;
    if (!err) {
        err = store_write(f, text, strlen(text), number(c, 2), &fill);
        file_put(f);
    }
    answer_code(c, err);
}

static void do_read(void *arg)
{
    struct command *c = arg;
    struct location at;
    struct file *f = NULL;
    char text[4096];
    size_t n = 0;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err && (!claim_here(fid, &at) || !(f = file_find(fid))))
        err = -ENOENT;
    if (!err) {
        n = store_pin(f, 0, MIN(at.size, sizeof(text)));
        err = n ? store_pread(f, text, n, 0) : 0;
        if (n)
            store_unpin(f, 0, n);
        file_put(f);
    }
    if (err)
        answer_code(c, err);
    else
        answer(c, "\"%.*s\"", (int)n, text);
}

/* ---- locks ---- */

/* PATH KIND [TYPE] [START END] OWNER, as the command has them. */
static int lock_of(const struct command *c, bool type, bool range, struct lock_ask *a)
{
    int i = 3;

    memset(a, 0, sizeof(*a));
    a->flock = !strcmp(word(c, 2), "flock");
    a->type = F_UNLCK;
    a->end = INT64_MAX;
    a->pid = (uint32_t)getpid();
    if (type)
        a->type = !strcmp(word(c, i++), "w") ? F_WRLCK : F_RDLCK;
    if (range) {
        a->start = number(c, i++);
        a->end = number(c, i++);
    }
    a->owner = number(c, i);
    return fid_at(word(c, 1), &a->fid);
}

static void locked(void *arg, int err, const struct lock_ask *found)
{
    (void)found;
    answer_code(arg, err);
}

static void tested(void *arg, int err, const struct lock_ask *found)
{
    if (err)
        answer_code(arg, err);
    else if (found->type == F_UNLCK)
        answer(arg, "free");
    else
        answer(arg, "%s %" PRIu64 " %" PRIu64, found->type == F_WRLCK ? "w" : "r", found->start,
               found->end);
}

static void do_lock(struct command *c)
{
    bool unlocks = !strcmp(word(c, 0), "unlock"), wait = !strcmp(word(c, 7), "wait");
    struct lock_ask a;
    int err = lock_of(c, !unlocks, true, &a);
    uint64_t id;

    if (err) {
        answer_code(c, err);
        return;
    }
    id = c->lock_id = lock_new_id();
    lock_take(&lock);
    c->next = waiting;
    waiting = c;
    lock_drop(&lock);
    lock_request_as(id, &a, wait, locked, c);
}

static void do_test(struct command *c)
{
    struct lock_ask a;
    int err = lock_of(c, true, true, &a);

    if (err)
        answer_code(c, err);
    else
        lock_test(&a, tested, c);
}

static void do_drop(struct command *c)
{
    struct lock_ask a;
    int err = lock_of(c, false, false, &a);

    if (err)
        answer_code(c, err);
    else
        lock_drop_owner(a.fid, a.flock, a.owner, locked, c);
}

static void do_cancel(struct command *c)
{
    uint64_t id = 0;

    lock_take(&lock);
    for (struct command *w = waiting; w; w = w->next)
        if (!strcmp(w->tag, word(c, 1)))
            id = w->lock_id;
    lock_drop(&lock);
    if (id)
        lock_cancel(id);
    answer_code(c, id ? 0 : -ENOENT);
}

/* ---- what there is ---- */

static void do_ring(struct command *c)
{
    const struct view *v = members_view();
    uint64_t home, next;
    struct fid fid;
    int err = v ? fid_at(word(c, 1), &fid) : -ENOTCONN;

    if (err) {
        answer_code(c, err);
        return;
    }
    home = ring_home(ring_of(v), fid, 0);
    next = ring_home(ring_of(v), fid, 1);
    answer(c, "%s %s", members_name(home), next ? members_name(next) : "-");
}

static void do_view(struct command *c)
{
    const struct view *v = members_view();
    char *text = NULL;
    size_t len;
    FILE *f;

    if (!v) {
        answer(c, "none");
        return;
    }
    f = open_memstream(&text, &len);
    if (!f)
        die("out of memory");
    fprintf(f, "%" PRIu64 " ", v->number);
    for (uint32_t i = 0; i < v->nmembers; i++)
        fprintf(f, "%s%s", i ? "," : "", v->members[i].name);
    fprintf(f, " absent ");
    for (uint32_t i = 0; i < v->nabsent; i++)
        fprintf(f, "%s%s", i ? "," : "", v->absents[i].name);
    if (!v->nabsent)
        fprintf(f, "-");
    fclose(f);
    answer(c, "%s lease %d settled %d", text, members_lease(), members_settled());
    free(text);
}

static void do_status(struct command *c)
{
    struct home_status h;

    home_status(&h);
    answer(c, "claims %u records %u locks %u lost %u", claim_held(), h.records, h.locks, h.lost);
}

static void do_leave(void *arg)
{
    struct command *c = arg;
    unsigned held = claim_give_back_all();

    answer_code(c, held ? -EBUSY : members_leave(LEAVE_MS));
}

static const struct {
    const char *name;
    void (*quick)(struct command *c);
    void (*waits)(void *c); /* in a pool */
} commands[] = {
    {"where", NULL, do_where},
    {"open-writer", NULL, do_open_writer},
    {"close-writer", NULL, do_close_writer},
    {"write", NULL, do_write},
    {"read", NULL, do_read},
    {"lock", do_lock, NULL},
    {"unlock", do_lock, NULL},
    {"test", do_test, NULL},
    {"drop", do_drop, NULL},
    {"cancel", do_cancel, NULL},
    {"ring", do_ring, NULL},
    {"view", do_view, NULL},
    {"status", do_status, NULL},
    {"leave", NULL, do_leave},
};

static void run(struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(word(c, 0), commands[i].name))
            continue;
        if (commands[i].quick)
            commands[i].quick(c);
        else
            pool_submit(pool_waiters, commands[i].waits, c);
        return;
    }
    answer_code(c, -EINVAL);
}

/* NULL: an empty line. */
static struct command *parse(const char *line)
{
    struct command *c = xcalloc(1, sizeof(*c));
    char *save = NULL, *w;

    c->from_ns = boot_ns();
    c->line = xstrdup(line);
    c->tag = strtok_r(c->line, " \n", &save);
    while (c->tag && c->n < WORDS_MAX && (w = strtok_r(NULL, " \n", &save)))
        c->words[c->n++] = w;
    if (c->tag)
        return c;
    command_free(c);
    return NULL;
}

static void serve(void)
{
    struct command *c;
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        c = parse(line);
        if (c && !strcmp(word(c, 0), "quit")) {
            answer_code(c, 0);
            break;
        }
        if (c)
            run(c);
    }
    free(line);
}

/* ---- start and end, in the order of fs/main.c ---- */

static void check(int code, const char *what, const char *err)
{
    if (!code)
        return;
    fprintf(stderr, "protonode: %s: %s\n", what, err && err[0] ? err : strerror(-code));
    exit(1);
}

static void handle_fetch(struct msg *m)
{
    lie_about(m, pfs_fd, CHUNK_SIZE);
}

static void start(void)
{
    char err[1024] = "";
    struct store_config store = {
        .dir = settings.cache_dir, .size = 64u << 20, .chunk_size = CHUNK_SIZE};
    struct session_config session = {settings.session_dir, settings.session, CHUNK_SIZE};
    struct peer_config peer = {.listen = settings.listen,
                               .name = settings.node,
                               .chunk_size = CHUNK_SIZE,
                               .memory = 64u << 20};
    struct members_config members = {.ops = claim_members_ops};

    check(store_open(&store, err, sizeof(err)), "store", err);
    claim_start();
    check(loop_start(), "loop", NULL);
    check(session_open(&session, err, sizeof(err)), "session", err);
    check(pfs_open(settings.pfs, ".hidden", 256, err, sizeof(err)), "pfs", err);
    home_start();
    check(pools_start(), "pools", NULL);
    peer.id = store_node_id();
    peer.incarnation = store_incarnation();
    if (settings.lie)
        peer_handle(MSG_FETCH, handle_fetch);
    check(peer_start(&peer, err, sizeof(err)), "peer", err);
    members.self = (struct member){.id = peer.id, .incarnation = peer.incarnation, .weight = 100};
    snprintf(members.self.name, sizeof(members.self.name), "%s", settings.node);
    snprintf(members.self.addr, sizeof(members.self.addr), "%s", peer_address());
    check(members_start(&members), "members", NULL);
    check(claim_recover(), "recover", NULL);
    check(members_join(1, settings.wait_timeout, err, sizeof(err)), "join", err);
}

static void stop(void)
{
    peer_stop();
    members_stop();
    home_stop();
    pools_stop();
    pfs_data_stop();
    pfs_close();
    session_close();
    loop_stop();
    claim_stop();
    store_close(true);
}

static void options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"pfs", required_argument, NULL, 'p'},
        {"session-dir", required_argument, NULL, 'd'},
        {"session", required_argument, NULL, 's'},
        {"cache-dir", required_argument, NULL, 'c'},
        {"node", required_argument, NULL, 'n'},
        {"wait-timeout", required_argument, NULL, 't'},
        {"listen", required_argument, NULL, 'a'},
        {"lie", no_argument, NULL, 'l'},
        {0},
    };
    int o;

    while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (o) {
        case 'p':
            settings.pfs = optarg;
            break;
        case 'd':
            settings.session_dir = optarg;
            break;
        case 's':
            settings.session = optarg;
            break;
        case 'c':
            settings.cache_dir = optarg;
            break;
        case 'n':
            settings.node = optarg;
            break;
        case 'a':
            settings.listen = optarg;
            break;
        case 't':
            settings.wait_timeout = (unsigned)atoi(optarg);
            break;
        case 'l':
            settings.lie = true;
            break;
        default:
            exit(2);
        }
    }
    if (!settings.pfs || !settings.session_dir || !settings.cache_dir || !settings.node) {
        fprintf(stderr, "protonode: an option is missing\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    options(argc, argv);
    check(peer_reexec(settings.listen, argv), "exec", NULL);
    log_open(NULL, LOG_LEVEL_INFO, settings.node);
    lock_init(&lock, RANK_LEAF);
    pfs_fd = open(settings.pfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    check(pfs_fd < 0 ? -errno : 0, settings.pfs, NULL);
    start();
    printf("ready\n");
    fflush(stdout);
    serve();
    stop();
    close(pfs_fd);
    return 0;
}
