/* soak_nodes.h - protosoak's nodes: protonode processes that are started, told what to do, and
 * whose answers are entered in the history of what was held. */
#ifndef EDDY_TEST_SOAK_NODES_H
#define EDDY_TEST_SOAK_NODES_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak_history.h"

#define NODES_MAX 8
#define FILES     10
#define OWNERS    2 /* of locks, per node */
#define BYTES     6 /* that are locked */
/* under way, per node: opens, locks, their cancels */
#define COMMANDS (FILES + 2 * FILES * OWNERS + 2)

static struct {
    const char *program, *work, *pfs;
    unsigned nodes, seconds;
    unsigned partitions, cut_seconds; /* how many, and how long each */
    unsigned skew_s;                  /* node i's clocks are i times so much ahead */
    pid_t hosts[NODES_MAX];           /* processes whose networks the nodes have, or 0 */
} settings = {.nodes = 4, .seconds = 40, .cut_seconds = 30};

/* ---- chance: the same for the same seed, as far as the nodes' timing allows ---- */

static uint64_t chance_state;

static uint64_t chance(uint64_t n)
{
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return chance_state % n;
}

static void bad(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- nodes ---- */

struct command {
    bool used, cancelled;
    uint64_t tag, said_ns;
    char kind; /* o open, c close, l lock, u unlock, d drop, q leave, v view */
    unsigned file, owner, first, last;
    int type;
};

#define NOT_HELD SIZE_MAX

struct owner {
    int type[FILES][BYTES];
    size_t held[FILES][BYTES]; /* in `locks` */
    bool busy[FILES];
};

static struct node {
    enum { DOWN, STARTING, UP, DRAINING, LEAVING, ENDING, PAUSED } state;
    pid_t pid;
    int in, out;
    char line[4096];
    size_t len;
    struct command commands[COMMANDS];
    size_t claim[FILES]; /* in `claims` */
    bool busy[FILES];
    struct owner owners[OWNERS];
    uint64_t until_ms; /* DOWN, PAUSED: so long */
    char members[64];
} nodes[NODES_MAX];

static uint64_t next_tag;
static struct {
    unsigned opens, here, elsewhere, locks, granted, refused, cancelled, eio, kills, pauses, leaves,
        partitions;
} counts;

static void bad(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("FAILED: ");
    vprintf(format, args);
    printf(" (at %" PRIu64 ")\n", boot_ns());
    va_end(args);
    print_events();
    for (unsigned i = 0; i < settings.nodes; i++)
        if (nodes[i].pid)
            kill(nodes[i].pid, SIGKILL);
    exit(1);
}

/* The network of its host, where it has one: address 10.77.0.(i + 1), as lib.sh gives them. */
static void enter_network(unsigned i, char address[32])
{
    char path[64];
    int fd;

    snprintf(address, 32, "127.0.0.1");
    if (!settings.hosts[i])
        return;
    snprintf(address, 32, "10.77.0.%u", i + 1);
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)settings.hosts[i]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        _exit(126);
}

static uint64_t skew_ns(unsigned i)
{
    return (uint64_t)i * settings.skew_s * 1000000000u;
}

/* Children that are forked from now on have their clocks so much ahead. */
static void set_clocks_of(unsigned i)
{
    char text[64];
    int fd, len;

    if (!settings.skew_s)
        return;
    len = snprintf(text, sizeof(text), "monotonic %u 0\nboottime %u 0\n", i * settings.skew_s,
                   i * settings.skew_s);
    if (unshare(CLONE_NEWTIME))
        bad("a time namespace: %s", strerror(errno));
    fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        bad("/proc/self/timens_offsets: %s", strerror(errno));
    close(fd);
}

static void child(unsigned i, int in, int out)
{
    char cache[4096], sessions[4096], name[16], log[4096], address[32];
    int fd;

    enter_network(i, address);

    snprintf(cache, sizeof(cache), "%s/cache-%u", settings.work, i);
    snprintf(sessions, sizeof(sessions), "%s/sessions", settings.work);
    snprintf(log, sizeof(log), "%s/n%u.log", settings.work, i);
    snprintf(name, sizeof(name), "n%u", i);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also one that is paused */
    dup2(in, 0);
    dup2(out, 1);
    dup2(fd, 2);
    execl(settings.program, settings.program, "--pfs", settings.pfs, "--session-dir", sessions,
          "--cache-dir", cache, "--node", name, "--listen", address, (char *)NULL);
    _exit(127);
}

/* What it was about to give back, or to change, when it was killed: the home may have heard of that
 * though the answer did not come any more.  So it was held for certain until that was said. */
static void release_under_way(struct node *n, const struct command *c)
{
    if (c->kind == 'c' && n->claim[c->file] != NOT_HELD) {
        claims.v[n->claim[c->file]].to_ns = c->said_ns;
        n->claim[c->file] = NOT_HELD;
    }
    if (c->kind != 'l' && c->kind != 'u' && c->kind != 'd')
        return;
    for (unsigned b = c->first; b <= c->last; b++) {
        size_t *held = &n->owners[c->owner].held[c->file][b];

        if (*held == NOT_HELD || n->owners[c->owner].type[c->file][b] == c->type)
            continue;
        locks.v[*held].to_ns = c->said_ns;
        *held = NOT_HELD;
    }
}

/* What it held when it was killed is free from now on. */
static void release_all(struct node *n)
{
    uint64_t t = boot_ns();

    for (unsigned k = 0; k < COMMANDS; k++)
        if (n->commands[k].used)
            release_under_way(n, &n->commands[k]);
    for (unsigned f = 0; f < FILES; f++) {
        if (n->claim[f] != NOT_HELD)
            claims.v[n->claim[f]].to_ns = t;
        n->claim[f] = NOT_HELD;
        n->busy[f] = false;
        for (unsigned o = 0; o < OWNERS; o++) {
            n->owners[o].busy[f] = false;
            for (unsigned b = 0; b < BYTES; b++) {
                if (n->owners[o].held[f][b] != NOT_HELD)
                    locks.v[n->owners[o].held[f][b]].to_ns = t;
                n->owners[o].held[f][b] = NOT_HELD;
                n->owners[o].type[f][b] = FREE;
            }
        }
    }
    memset(n->commands, 0, sizeof(n->commands));
}

static void start_node(unsigned i)
{
    struct node *n = &nodes[i];
    int in[2], out[2];

    release_all(n);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        bad("pipe: %s", strerror(errno));
    set_clocks_of(i);
    n->pid = fork();
    if (n->pid < 0)
        bad("fork: %s", strerror(errno));
    if (!n->pid)
        child(i, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    n->in = in[1];
    n->out = out[0];
    n->len = 0;
    n->state = STARTING;
    note(i, "is started");
}

static void kill_node(unsigned i)
{
    kill(nodes[i].pid, SIGKILL);
    note(i, "is killed");
}

/* The process has ended, or was killed. */
static void end_node(unsigned i, bool killed, uint64_t down_ms)
{
    struct node *n = &nodes[i];
    int status;

    if (waitpid(n->pid, &status, 0) != n->pid)
        bad("waitpid: %s", strerror(errno));
    if (!killed && (!WIFEXITED(status) || WEXITSTATUS(status)))
        bad("node %u ended with status %x", i, status);
    close(n->in);
    close(n->out);
    n->pid = 0;
    n->state = DOWN;
    n->until_ms = boot_ms() + down_ms;
    if (!killed)
        note(i, "has ended");
}

static struct command *say(unsigned i, struct command c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static struct command *say(unsigned i, struct command c, const char *format, ...)
{
    struct node *n = &nodes[i];
    struct command *slot = n->commands;
    char text[512];
    va_list args;
    int len;

    while (slot < n->commands + COMMANDS && slot->used)
        slot++;
    if (slot == n->commands + COMMANDS)
        bad("too many commands for node %u", i);
    *slot = c;
    slot->used = true;
    slot->tag = ++next_tag;
    slot->said_ns = boot_ns();
    len = snprintf(text, sizeof(text), "%" PRIu64 " ", slot->tag);
    va_start(args, format);
    len += vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
    va_end(args);
    text[len++] = '\n';
    if (write(n->in, text, (size_t)len) != len) /* fewer than PIPE_BUF, and never many of them */
        bad("node %u takes no commands: %s", i, strerror(errno));
    return slot;
}

static bool idle(const struct node *n)
{
    for (unsigned k = 0; k < COMMANDS; k++)
        if (n->commands[k].used)
            return false;
    return true;
}

static bool holds(const struct node *n)
{
    for (unsigned f = 0; f < FILES; f++) {
        if (n->claim[f] != NOT_HELD)
            return true;
        for (unsigned o = 0; o < OWNERS; o++)
            for (unsigned b = 0; b < BYTES; b++)
                if (n->owners[o].held[f][b] != NOT_HELD)
                    return true;
    }
    return false;
}

/* ---- answers ---- */

static void set_byte(unsigned i, const struct command *c, unsigned b, int type, uint64_t from,
                     uint64_t to)
{
    struct owner *o = &nodes[i].owners[c->owner];
    size_t *held = &o->held[c->file][b];

    if (o->type[c->file][b] == type)
        return;
    if (*held != NOT_HELD)
        locks.v[*held].to_ns = from;
    *held = NOT_HELD;
    o->type[c->file][b] = type;
    if (type != FREE)
        *held = hold(&locks, (struct held){.node = i,
                                           .owner = c->owner,
                                           .file = c->file,
                                           .byte = b,
                                           .type = type,
                                           .from_ns = to});
}

static void lock_answered(unsigned i, const struct command *c, const char *text, uint64_t from,
                          uint64_t to)
{
    nodes[i].owners[c->owner].busy[c->file] = false;
    if (!strcmp(text, "OK")) {
        counts.granted += c->kind == 'l';
        for (unsigned b = c->first; b <= c->last; b++)
            set_byte(i, c, b, c->type, from, to);
    } else if (c->kind != 'l') {
        bad("node %u: unlock of file %u: %s", i, c->file, text);
    } else if (!strcmp(text, "EAGAIN")) {
        counts.refused++;
    } else if (!strcmp(text, "EINTR") && c->cancelled) {
        counts.cancelled++;
    } else if (!strcmp(text, "EIO")) {
        counts.eio++;
    } else {
        bad("node %u: lock of file %u: %s", i, c->file, text);
    }
}

static void open_answered(unsigned i, const struct command *c, const char *text, uint64_t to)
{
    nodes[i].busy[c->file] = false;
    if (!strcmp(text, "HERE")) {
        counts.here++;
        nodes[i].claim[c->file] =
            hold(&claims, (struct held){.node = i, .file = c->file, .type = WRITE, .from_ns = to});
    } else if (!strncmp(text, "NODE ", 5)) {
        counts.elsewhere++;
    } else if (!strcmp(text, "EIO")) {
        counts.eio++;
    } else {
        bad("node %u: open of file %u: %s", i, c->file, text);
    }
}

static void close_answered(unsigned i, const struct command *c, const char *text, uint64_t from)
{
    nodes[i].busy[c->file] = false;
    if (strcmp(text, "OK"))
        bad("node %u: close of file %u: %s", i, c->file, text);
    claims.v[nodes[i].claim[c->file]].to_ns = from;
    nodes[i].claim[c->file] = NOT_HELD;
}

/* EBUSY: a claim is about to be given back. */
static void leave_answered(unsigned i, const char *text)
{
    note(i, "answers to leave: %s", text);
    if (!strcmp(text, "EBUSY")) {
        nodes[i].state = DRAINING;
    } else if (strcmp(text, "OK")) {
        bad("node %u could not leave: %s", i, text);
    } else {
        close(nodes[i].in); /* which is a quit */
        nodes[i].in = open("/dev/null", O_WRONLY | O_CLOEXEC);
        nodes[i].state = ENDING;
    }
}

static void take_line(unsigned i, char *line)
{
    struct node *n = &nodes[i];
    char *text = strchr(line, ' '), *times = strrchr(line, '@');
    uint64_t tag = strtoull(line, NULL, 10), from, to;
    struct command c = {0};

    if (!strcmp(line, "ready")) {
        n->state = UP;
        note(i, "has joined");
        return;
    }
    if (!text || !times || sscanf(times, "@%" SCNu64 "-%" SCNu64, &from, &to) != 2)
        bad("node %u says: %s", i, line);
    times[-1] = 0;
    text++;
    from -= skew_ns(i);
    to -= skew_ns(i);
    for (unsigned k = 0; k < COMMANDS; k++) {
        if (n->commands[k].used && n->commands[k].tag == tag) {
            c = n->commands[k];
            n->commands[k].used = false;
        }
    }
    switch (c.kind) {
    case 'o':
        open_answered(i, &c, text, to);
        break;
    case 'c':
        close_answered(i, &c, text, from);
        break;
    case 'l':
    case 'u':
    case 'd':
        lock_answered(i, &c, text, from, to);
        break;
    case 'q':
        leave_answered(i, text);
        break;
    case 'v':
        snprintf(n->members, sizeof(n->members), "%s", text);
        break;
    default:
        break; /* of a cancel */
    }
}

static void say_how_it_ended(unsigned i)
{
    int status = 0;

    waitpid(nodes[i].pid, &status, 0);
    nodes[i].pid = 0;
    if (WIFSIGNALED(status))
        bad("node %u ended by signal %d", i, WTERMSIG(status));
    bad("node %u ended by itself, code %d", i, WEXITSTATUS(status));
}

static void take_output(unsigned i)
{
    struct node *n = &nodes[i];
    ssize_t got = read(n->out, n->line + n->len, sizeof(n->line) - n->len - 1);
    char *end;

    if (got <= 0) {
        if (n->state != ENDING)
            say_how_it_ended(i);
        end_node(i, false, chance(3000));
        return;
    }
    n->len += (size_t)got;
    n->line[n->len] = 0;
    while ((end = strchr(n->line, '\n'))) {
        *end = 0;
        take_line(i, n->line);
        n->len -= (size_t)(end + 1 - n->line);
        memmove(n->line, end + 1, n->len + 1);
    }
}

static void listen_to_all(int ms)
{
    struct pollfd p[NODES_MAX];
    unsigned who[NODES_MAX], n = 0;

    for (unsigned i = 0; i < settings.nodes; i++) {
        if (!nodes[i].pid)
            continue;
        who[n] = i;
        p[n++] = (struct pollfd){.fd = nodes[i].out, .events = POLLIN};
    }
    if (poll(p, n, ms) < 0 && errno != EINTR)
        bad("poll: %s", strerror(errno));
    for (unsigned k = 0; k < n; k++)
        if (p[k].revents)
            take_output(who[k]);
}

#endif
