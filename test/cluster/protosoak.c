/* protosoak.c - many random claims and locks on nodes that are killed, paused, started again and
 * that leave, and a check of what they were told, from outside.
 *
 *   protosoak --protonode PROGRAM --work DIR --pfs DIR --seed N --seconds N [--nodes N]
 *
 * Every grant and every release is an acknowledged one with a time (protonode.c): from the answer
 * that grants until the command that gives back a claim or a lock is held for certain.  No two
 * nodes may hold one claim at one time, no two owners conflicting locks.  What a node held when it
 * was killed it holds until it is started again. At the end all nodes are up, all give back what
 * they hold, and each file must be there to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base.h"

#define NODES_MAX 8
#define FILES     10
#define OWNERS    2 /* of locks, per node */
#define BYTES     6 /* that are locked */
/* under way, per node: opens, locks, their cancels */
#define COMMANDS    (FILES + 2 * FILES * OWNERS + 2)
#define NEVER       UINT64_MAX
#define PATIENCE_MS 90000 /* for what must happen in the end */

static struct {
    const char *program, *work, *pfs;
    unsigned nodes, seconds;
} settings = {.nodes = 4, .seconds = 40};

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

/* ---- what was held, and when ---- */

enum { FREE, READ, WRITE };

struct held {
    unsigned node, owner, file, byte; /* a claim: owner and byte are 0 */
    int type;
    uint64_t from_ns, to_ns;
};

struct history {
    struct held *v;
    size_t n, size;
};
static struct history claims, locks;

static size_t hold(struct history *h, struct held what)
{
    if (h->n == h->size) {
        h->size = h->size ? 2 * h->size : 1024;
        h->v = xrealloc(h->v, h->size * sizeof(*h->v));
    }
    what.to_ns = NEVER;
    h->v[h->n] = what;
    return h->n++;
}

static int by_place_and_time(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->byte != y->byte)
        return x->byte < y->byte ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* How many pairs were held against each other. */
static unsigned check_history(struct history *h, const char *what)
{
    unsigned found = 0;

    qsort(h->v, h->n, sizeof(*h->v), by_place_and_time);
    for (size_t i = 0; i < h->n; i++) {
        const struct held *a = &h->v[i];

        for (size_t k = i + 1; k < h->n; k++) {
            const struct held *b = &h->v[k];

            if (b->file != a->file || b->byte != a->byte)
                break;
            if (b->from_ns >= a->to_ns || a->from_ns >= a->to_ns || b->from_ns >= b->to_ns ||
                (a->node == b->node && a->owner == b->owner) ||
                (a->type == READ && b->type == READ))
                continue;
            printf("%s of file %u, byte %u: node %u (owner %u, %s) has it from %" PRIu64
                   " to %" PRIu64 ", and node %u (owner %u, %s) "
                   "from %" PRIu64 " to %" PRIu64 "\n",
                   what, a->file, a->byte, a->node, a->owner, a->type == READ ? "read" : "write",
                   a->from_ns, a->to_ns, b->node, b->owner, b->type == READ ? "read" : "write",
                   b->from_ns, b->to_ns);
            found++;
        }
    }
    return found;
}

/* ---- nodes ---- */

struct command {
    bool used, cancelled;
    uint64_t tag;
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
    unsigned opens, here, elsewhere, locks, granted, refused, cancelled, eio, kills, pauses, leaves;
} counts;

static void bad(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("FAILED: ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    for (unsigned i = 0; i < settings.nodes; i++)
        if (nodes[i].pid)
            kill(nodes[i].pid, SIGKILL);
    exit(1);
}

static void child(unsigned i, int in, int out)
{
    char cache[4096], sessions[4096], name[16], log[4096];
    int fd;

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
          "--cache-dir", cache, "--node", name, (char *)NULL);
    _exit(127);
}

/* What it held when it was killed is free from now on. */
static void release_all(struct node *n)
{
    uint64_t t = boot_ns();

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
}

/* The process has ended, or is killed here. */
static void end_node(unsigned i, bool killed, uint64_t down_ms)
{
    struct node *n = &nodes[i];
    int status;

    if (killed)
        kill(n->pid, SIGKILL);
    if (waitpid(n->pid, &status, 0) != n->pid)
        bad("waitpid: %s", strerror(errno));
    if (!killed && (!WIFEXITED(status) || WEXITSTATUS(status)))
        bad("node %u ended with status %x", i, status);
    close(n->in);
    close(n->out);
    n->pid = 0;
    n->state = DOWN;
    n->until_ms = boot_ms() + down_ms;
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

/* EBUSY: a claim is about to be given back; ETIMEDOUT: others are paused, and a majority could not
 * be had in time. */
static void leave_answered(unsigned i, const char *text)
{
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
        return;
    }
    if (!text || !times || sscanf(times, "@%" SCNu64 "-%" SCNu64, &from, &to) != 2)
        bad("node %u says: %s", i, line);
    times[-1] = 0;
    text++;
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

static void take_output(unsigned i)
{
    struct node *n = &nodes[i];
    ssize_t got = read(n->out, n->line + n->len, sizeof(n->line) - n->len - 1);
    char *end;

    if (got <= 0) {
        if (n->state != ENDING)
            bad("node %u ended by itself", i);
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

/* ---- what nodes do ---- */

static void open_or_close(unsigned i, unsigned f)
{
    struct node *n = &nodes[i];

    if (n->busy[f])
        return;
    n->busy[f] = true;
    if (n->claim[f] != NOT_HELD) {
        say(i, (struct command){.kind = 'c', .file = f}, "close-writer s%u", f);
    } else {
        counts.opens++;
        say(i, (struct command){.kind = 'o', .file = f}, "open-writer s%u", f);
    }
}

static struct command *lock_under_way(struct node *n, unsigned f, unsigned o)
{
    for (unsigned k = 0; k < COMMANDS; k++)
        if (n->commands[k].used && n->commands[k].kind == 'l' && n->commands[k].file == f &&
            n->commands[k].owner == o)
            return &n->commands[k];
    return NULL;
}

static void cancel_lock(unsigned i, struct command *c)
{
    uint64_t tag = c->tag;

    if (c->cancelled)
        return;
    c->cancelled = true;
    say(i, (struct command){.kind = 'x'}, "cancel %" PRIu64, tag);
}

static void drop_locks(unsigned i, unsigned f, unsigned o)
{
    nodes[i].owners[o].busy[f] = true;
    say(i, (struct command){.kind = 'd', .file = f, .owner = o, .last = BYTES - 1, .type = FREE},
        "drop s%u fcntl %u", f, o + 1);
}

static void set_lock(unsigned i, unsigned f, unsigned o)
{
    unsigned a = (unsigned)chance(BYTES), b = (unsigned)chance(BYTES);
    struct command c = {.kind = 'l',
                        .file = f,
                        .owner = o,
                        .first = MIN(a, b),
                        .last = MAX(a, b),
                        .type = chance(2) ? READ : WRITE};

    counts.locks++;
    nodes[i].owners[o].busy[f] = true;
    say(i, c, "lock s%u fcntl %c %u %u %u %s", f, c.type == READ ? 'r' : 'w', c.first, c.last,
        o + 1, chance(2) ? "wait" : "");
}

static void unlock(unsigned i, unsigned f, unsigned o)
{
    unsigned a = (unsigned)chance(BYTES), b = (unsigned)chance(BYTES);
    struct command c = {
        .kind = 'u', .file = f, .owner = o, .first = MIN(a, b), .last = MAX(a, b), .type = FREE};

    nodes[i].owners[o].busy[f] = true;
    say(i, c, "unlock s%u fcntl %u %u %u", f, c.first, c.last, o + 1);
}

static void lock_or_unlock(unsigned i, unsigned f, unsigned o)
{
    struct command *c = lock_under_way(&nodes[i], f, o);

    if (c && chance(8) == 0) /* two that wait for each other wait for ever, else */
        cancel_lock(i, c);
    if (nodes[i].owners[o].busy[f])
        return;
    switch (chance(6)) {
    case 0:
    case 1:
        set_lock(i, f, o);
        break;
    case 2:
    case 3:
        unlock(i, f, o);
        break;
    case 4:
        drop_locks(i, f, o);
        break;
    default:
        break;
    }
}

static void act(unsigned i)
{
    if (nodes[i].state != UP)
        return;
    if (chance(2))
        open_or_close(i, (unsigned)chance(FILES));
    else
        lock_or_unlock(i, (unsigned)chance(FILES), (unsigned)chance(OWNERS));
}

/* Gives back all it holds; true when it holds nothing and nothing is under way. */
static bool drain(unsigned i)
{
    struct node *n = &nodes[i];

    for (unsigned f = 0; f < FILES; f++) {
        if (n->claim[f] != NOT_HELD)
            open_or_close(i, f);
        for (unsigned o = 0; o < OWNERS; o++) {
            struct command *c = lock_under_way(n, f, o);

            if (c)
                cancel_lock(i, c);
            for (unsigned b = 0; b < BYTES && !n->owners[o].busy[f]; b++)
                if (n->owners[o].held[f][b] != NOT_HELD)
                    drop_locks(i, f, o);
        }
    }
    return idle(n) && !holds(n);
}

/* ---- what happens to nodes ---- */

static unsigned nodes_up(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < settings.nodes; i++)
        n += nodes[i].state == UP;
    return n;
}

/* Often at once with another one: a home and its claimant, or a home and its next.  They come back
 * at once, or long enough after it that the others have done without them. */
static void kill_some(unsigned i)
{
    unsigned other = (unsigned)chance(settings.nodes);
    bool two = nodes_up() > 3 && other != i && nodes[other].state == UP && chance(3);

    counts.kills += two ? 2 : 1;
    kill(nodes[i].pid, SIGKILL);
    if (two)
        end_node(other, true, chance(3) ? 8000 + chance(8000) : 0);
    end_node(i, true, chance(2) ? 6000 + chance(8000) : 0);
}

static void misfortune(void)
{
    unsigned i = (unsigned)chance(settings.nodes);

    if (nodes[i].state != UP || nodes_up() * 2 <= settings.nodes)
        return;
    switch (chance(5)) {
    case 0:
        counts.pauses++;
        kill(nodes[i].pid, SIGSTOP);
        nodes[i].state = PAUSED;
        nodes[i].until_ms = boot_ms() + 2000 + chance(8000);
        break;
    case 1:
        counts.leaves++;
        nodes[i].state = DRAINING;
        break;
    default:
        kill_some(i);
        break;
    }
}

static void go_on(unsigned i, uint64_t t, bool wakes)
{
    struct node *n = &nodes[i];

    if (n->state == DOWN && (wakes || t >= n->until_ms)) {
        start_node(i);
    } else if (n->state == PAUSED && (wakes || t >= n->until_ms)) {
        kill(n->pid, SIGCONT);
        n->state = UP;
    } else if (n->state == DRAINING && drain(i)) {
        n->state = LEAVING;
        say(i, (struct command){.kind = 'q'}, "leave");
    }
}

static void soak(void)
{
    uint64_t end = boot_ms() + settings.seconds * 1000ull, next_fault = boot_ms() + 3000;

    while (boot_ms() < end) {
        uint64_t t = boot_ms();

        listen_to_all((int)chance(10));
        for (unsigned i = 0; i < settings.nodes; i++)
            go_on(i, t, false);
        act((unsigned)chance(settings.nodes));
        if (t >= next_fault) {
            misfortune();
            next_fault = t + 500 + chance(4000);
        }
    }
}

/* ---- the end: all is to be had ---- */

static uint64_t patience_ends;

static void wait_a_little(const char *what, unsigned i)
{
    if (boot_ms() > patience_ends)
        bad("node %u: %s: not within %u s", i, what, PATIENCE_MS / 1000);
    listen_to_all(20);
}

static bool sees_all(const char *view)
{
    unsigned commas = 0;

    for (const char *p = strchr(view, ' '); p && *p && strncmp(p, " absent", 7); p++)
        commas += *p == ',';
    return commas + 1 == settings.nodes && strstr(view, "absent - lease 1 settled 1");
}

static void all_up_and_empty(void)
{
    for (unsigned i = 0; i < settings.nodes; i++) {
        while (nodes[i].state != UP) {
            go_on(i, boot_ms(), true);
            wait_a_little("start", i);
        }
    }
    for (unsigned i = 0; i < settings.nodes; i++)
        while (!drain(i))
            wait_a_little("give all back", i);
    for (unsigned i = 0; i < settings.nodes; i++) {
        while (!sees_all(nodes[i].members)) {
            if (idle(&nodes[i]))
                say(i, (struct command){.kind = 'v'}, "view");
            wait_a_little("see all nodes", i);
        }
    }
}

/* Each node in turn has each claim, and locks each file. */
static void all_can_be_had(void)
{
    for (unsigned i = 0; i < settings.nodes; i++) {
        for (unsigned f = 0; f < FILES; f++) {
            while (nodes[i].claim[f] == NOT_HELD) {
                if (!nodes[i].busy[f])
                    open_or_close(i, f);
                wait_a_little("open a file that nobody has", i);
            }
            while (nodes[i].owners[0].type[f][0] != WRITE) {
                if (!nodes[i].owners[0].busy[f]) {
                    nodes[i].owners[0].busy[f] = true;
                    say(i,
                        (struct command){.kind = 'l', .file = f, .last = BYTES - 1, .type = WRITE},
                        "lock s%u fcntl w 0 %u 1", f, BYTES - 1);
                }
                wait_a_little("lock a file that nobody has locked", i);
            }
        }
        while (!drain(i))
            wait_a_little("give all back", i);
    }
}

static void leave_all(void)
{
    for (unsigned i = 0; i < settings.nodes; i++)
        nodes[i].state = DRAINING;
    for (unsigned i = 0; i < settings.nodes; i++) {
        while (nodes[i].state != DOWN) {
            for (unsigned k = 0; k < settings.nodes; k++)
                if (nodes[k].state != DOWN)
                    go_on(k, 0, false);
            wait_a_little("leave", i);
        }
    }
}

/* ---- */

static void options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"protonode", required_argument, NULL, 'n'},
        {"work", required_argument, NULL, 'w'},
        {"pfs", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {"nodes", required_argument, NULL, 'N'},
        {0},
    };
    int o;

    while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (o) {
        case 'n':
            settings.program = optarg;
            break;
        case 'w':
            settings.work = optarg;
            break;
        case 'p':
            settings.pfs = optarg;
            break;
        case 's':
            chance_state = strtoull(optarg, NULL, 10) * 0x9e3779b97f4a7c15u | 1;
            break;
        case 't':
            settings.seconds = (unsigned)atoi(optarg);
            break;
        case 'N':
            settings.nodes = (unsigned)atoi(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (!settings.program || !settings.work || !settings.pfs || !chance_state || !settings.nodes ||
        settings.nodes > NODES_MAX) {
        fprintf(stderr, "protosoak: an option is missing or wrong\n");
        exit(2);
    }
}

static void make_files(void)
{
    for (unsigned f = 0; f < FILES; f++) {
        char path[4096];
        int fd;

        snprintf(path, sizeof(path), "%s/s%u", settings.pfs, f);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "soak\n", 5) != 5)
            bad("%s: %s", path, strerror(errno));
        close(fd);
    }
}

int main(int argc, char **argv)
{
    unsigned wrong;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    make_files();
    for (unsigned i = 0; i < settings.nodes; i++) {
        memset(nodes[i].claim, 0xff, sizeof(nodes[i].claim));
        for (unsigned o = 0; o < OWNERS; o++)
            memset(nodes[i].owners[o].held, 0xff, sizeof(nodes[i].owners[o].held));
        start_node(i);
    }
    soak();
    patience_ends = boot_ms() + PATIENCE_MS;
    all_up_and_empty();
    all_can_be_had();
    leave_all();
    wrong = check_history(&claims, "claim") + check_history(&locks, "lock");
    printf("%u opens for writing (%u here, %u elsewhere), %u locks (%u granted, %u refused, %u "
           "cancelled), %u times EIO; %u kills, "
           "%u pauses, %u leaves\n",
           counts.opens, counts.here, counts.elsewhere, counts.locks, counts.granted,
           counts.refused, counts.cancelled, counts.eio, counts.kills, counts.pauses,
           counts.leaves);
    free(claims.v);
    free(locks.v);
    return wrong ? 1 : 0;
}
