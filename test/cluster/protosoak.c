/* protosoak.c - many random claims and locks on nodes that are killed, paused, started again and
 * that leave, and a check of what they were told, from outside.
 *
 *   protosoak --protonode PROGRAM --work DIR --pfs DIR --seed N --seconds N [--nodes N]
 *             [--hosts PID,PID,...] [--partitions N [--cut-seconds N]] [--skew N]
 *
 * Every grant and every release is an acknowledged one with a time (protonode.c): from the answer
 * that grants until the command that gives back a claim or a lock is held for certain.  No two
 * nodes may hold one claim at one time, no two owners conflicting locks.  What a node held when it
 * was killed it holds until it is started again, but for what it was told to give back: that may
 * have been heard.  At the end all nodes are up, all give back what they hold, and each file must
 * be there to be had.  When a check fails, what was done to the nodes is told, too.
 *
 * With --hosts, node i runs in the network of process i of that list.  With --partitions nothing is
 * killed: nodes' links (named n0, n1, ... here) are moved to a bridge of their own, br1, and back to
 * br0, and after each time all must be in one view again.  With --skew the clocks of node i are i
 * times so many seconds ahead.
 */
#include <getopt.h>

#include "soak_nodes.h"

#define PATIENCE_MS 90000 /* for what must happen in the end */

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
    kill_node(i);
    if (two) {
        kill_node(other);
        end_node(other, true, chance(3) ? 8000 + chance(8000) : 0);
    }
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
        note(i, "is paused");
        nodes[i].state = PAUSED;
        nodes[i].until_ms = boot_ms() + 2000 + chance(8000);
        break;
    case 1:
        counts.leaves++;
        note(i, "is to give all back and to leave");
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
        note(i, "goes on");
        n->state = UP;
    } else if (n->state == DRAINING && drain(i)) {
        n->state = LEAVING;
        note(i, "is told to leave");
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

/* ---- partitions ---- */

static void run(const char *const argv[])
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        bad("%s %s %s %s fails", argv[0], argv[1], argv[2], argv[3]);
}

static void plug(unsigned i, const char *bridge)
{
    char name[16];

    snprintf(name, sizeof(name), "n%u", i);
    run((const char *const[]){"ip", "link", "set", name, "master", bridge, NULL});
}

static void go_on_for(unsigned seconds)
{
    uint64_t end = boot_ms() + seconds * 1000ull;

    while (boot_ms() < end) {
        listen_to_all((int)chance(10));
        act((unsigned)chance(settings.nodes));
    }
}

/* Fewer than half of the nodes, for the others to go on without them. */
static void cut(bool away[NODES_MAX])
{
    unsigned left = (settings.nodes - 1) / 2;

    memset(away, 0, NODES_MAX * sizeof(*away));
    while (left) {
        unsigned i = (unsigned)chance(settings.nodes);

        if (away[i])
            continue;
        away[i] = true;
        left--;
        plug(i, "br1");
        printf("%" PRIu64 ": node %u is cut off\n", boot_ns(), i);
    }
    counts.partitions++;
}

static void heal(const bool away[NODES_MAX])
{
    for (unsigned i = 0; i < settings.nodes; i++)
        if (away[i])
            plug(i, "br0");
    printf("%" PRIu64 ": healed\n", boot_ns());
}

/* ---- the end: all is to be had ---- */

static uint64_t patience_ends;

static void wait_a_little(const char *what, unsigned i)
{
    if (boot_ms() > patience_ends)
        bad("node %u: %s: not within %u s", i, what, PATIENCE_MS / 1000);
    listen_to_all(20);
}

static bool asks_for_view(const struct node *n)
{
    for (unsigned k = 0; k < COMMANDS; k++)
        if (n->commands[k].used && n->commands[k].kind == 'v')
            return true;
    return false;
}

static bool sees_all(const char *view)
{
    unsigned commas = 0;

    for (const char *p = strchr(view, ' '); p && *p && strncmp(p, " absent", 7); p++)
        commas += *p == ',';
    return commas + 1 == settings.nodes && strstr(view, "absent - lease 1 settled 1");
}

static void all_see_all(void)
{
    for (unsigned i = 0; i < settings.nodes; i++) {
        nodes[i].members[0] = 0;
        while (!sees_all(nodes[i].members)) {
            if (!asks_for_view(&nodes[i]))
                say(i, (struct command){.kind = 'v'}, "view");
            wait_a_little("see all nodes", i);
        }
    }
}

static void all_started(void)
{
    for (unsigned i = 0; i < settings.nodes; i++)
        while (nodes[i].state == STARTING)
            wait_a_little("start", i);
    all_see_all();
}

/* While claims and locks are asked for all the time. */
static void partition_again_and_again(void)
{
    bool away[NODES_MAX];

    patience_ends = boot_ms() + PATIENCE_MS;
    all_started();
    for (unsigned r = 0; r < settings.partitions; r++) {
        go_on_for(3);
        cut(away);
        go_on_for(settings.cut_seconds);
        heal(away);
        patience_ends = boot_ms() + PATIENCE_MS;
        all_see_all();
    }
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
    all_see_all();
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

static void take_hosts(const char *list)
{
    char *end;

    for (unsigned i = 0; i < NODES_MAX && *list; i++, list = end + (*end == ','))
        settings.hosts[i] = (pid_t)strtol(list, &end, 10);
}

static void options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"protonode", required_argument, NULL, 'n'},
        {"work", required_argument, NULL, 'w'},
        {"pfs", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {"nodes", required_argument, NULL, 'N'},
        {"hosts", required_argument, NULL, 'h'},
        {"partitions", required_argument, NULL, 'P'},
        {"cut-seconds", required_argument, NULL, 'c'},
        {"skew", required_argument, NULL, 'k'},
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
        case 'h':
            take_hosts(optarg);
            break;
        case 'P':
            settings.partitions = (unsigned)atoi(optarg);
            break;
        case 'c':
            settings.cut_seconds = (unsigned)atoi(optarg);
            break;
        case 'k':
            settings.skew_s = (unsigned)atoi(optarg);
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
    if (settings.partitions)
        partition_again_and_again();
    else
        soak();
    patience_ends = boot_ms() + PATIENCE_MS;
    all_up_and_empty();
    all_can_be_had();
    leave_all();
    wrong = check_history(&claims, "claim") + check_history(&locks, "lock");
    printf("%u opens for writing (%u here, %u elsewhere), %u locks (%u granted, %u refused, %u "
           "cancelled), %u times EIO; %u kills, "
           "%u pauses, %u leaves, %u partitions\n",
           counts.opens, counts.here, counts.elsewhere, counts.locks, counts.granted,
           counts.refused, counts.cancelled, counts.eio, counts.kills, counts.pauses, counts.leaves,
           counts.partitions);
    if (wrong)
        print_events();
    free(claims.v);
    free(locks.v);
    free(events.v);
    return wrong ? 1 : 0;
}
