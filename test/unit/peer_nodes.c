/* peer_nodes.c - this node, and the others: begun, stopped, killed; and how the tests are run. */
#include "peer_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/onesided.h"
#include "transport/session.h"

char dir[64];

/* ---- this node ---- */

/* So much memory that others read one-sided, with a pattern; or "lies": what it says of it is wrong. */
static void begin_memory(uint64_t id)
{
    char err[512];
    size_t len;
    if (!strcmp(getenv(MEMORY_ENV), "lies")) {
        peer_handle(MSG_MEMORY, answer_memory_with_lies);
        return;
    }
    struct onesided_config c = {.size = strtoull(getenv(MEMORY_ENV), NULL, 10), .id = id};
    if (onesided_start(&c, err, sizeof(err)))
        die("%s", err);
    void *at = onesided_memory(&len);
    fill(at, len, id);
}

static void node_begin(uint64_t id, uint64_t incarnation, uint64_t memory, uint32_t chunk)
{
    char err[512] = "";
    char name[32];
    struct session_config s = {.dir = dir, .name = "test", .chunk_size = CHUNK};
    snprintf(name, sizeof(name), "n%u.%u", (unsigned)id, (unsigned)incarnation);
    log_open(NULL, getenv("EDDY_TEST_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, name);
    if (session_open(&s, err, sizeof(err)))
        die("session: %s", err);
    if (loop_start())
        die("loop");
    answer_requests();
    if (getenv(MEMORY_ENV))
        begin_memory(id);
    struct peer_config c = {.listen = LISTEN,
                            .id = id,
                            .incarnation = incarnation,
                            .name = name,
                            .chunk_size = chunk,
                            .memory = memory};
    if (peer_start(&c, err, sizeof(err)))
        die("peer_start: %s", err);
}

static void node_end(void)
{
    peer_stop();
    if (getenv(MEMORY_ENV) && onesided_memory(&(size_t){0}))
        onesided_stop();
    loop_stop();
    session_close();
}

/* ---- other nodes ---- */

static int node_main(char **argv)
{
    snprintf(dir, sizeof(dir), "%s", argv[2]);
    node_begin(strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
               strtoull(argv[5], NULL, 10), (uint32_t)strtoul(argv[6], NULL, 10));
    printf("%s\n", peer_address());
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0)
        ;
    node_end();
    return 0;
}

struct node node_spawn(const char *session_dir, uint64_t id, uint64_t incarnation, uint64_t memory,
                       uint32_t chunk)
{
    struct node n = {.member = {.id = id, .incarnation = incarnation, .weight = 100}};
    int in[2], out[2];
    char text[4][32];
    snprintf(text[0], 32, "%llu", (unsigned long long)id);
    snprintf(text[1], 32, "%llu", (unsigned long long)incarnation);
    snprintf(text[2], 32, "%llu", (unsigned long long)memory);
    snprintf(text[3], 32, "%u", chunk);
    ck_assert(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
    n.pid = fork();
    ck_assert(n.pid >= 0);
    if (!n.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also a stopped one must not stay behind */
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "node", "--node", session_dir, text[0], text[1], text[2], text[3],
              NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    n.in = in[1];
    snprintf(n.member.name, sizeof(n.member.name), "n%u.%u", (unsigned)id, (unsigned)incarnation);
    FILE *f = fdopen(out[0], "r");
    ck_assert_msg(fgets(n.member.addr, sizeof(n.member.addr), f) != NULL, "the node did not start");
    n.member.addr[strcspn(n.member.addr, "\n")] = 0;
    fclose(f);
    return n;
}

struct node node_start(uint64_t id, uint64_t incarnation)
{
    struct node n = node_spawn(dir, id, incarnation, 0, CHUNK);
    peer_know(&n.member);
    return n;
}

void node_pause(const struct node *n)
{
    int status;
    kill(n->pid, SIGSTOP);
    ck_assert_int_eq(waitpid(n->pid, &status, WUNTRACED), n->pid);
    ck_assert_msg(WIFSTOPPED(status), "node ended with status %x", status);
}

void node_kill(struct node *n)
{
    kill(n->pid, SIGKILL);
    ck_assert_int_eq(waitpid(n->pid, NULL, 0), n->pid);
    close(n->in);
}

void node_finish(struct node *n)
{
    int status;
    close(n->in);
    ck_assert_int_eq(waitpid(n->pid, &status, 0), n->pid);
    ck_assert_msg(status == 0, "node ended with status %x", status);
}

/* ---- before and after each test ---- */

static void begin(void)
{
    strcpy(dir, "/tmp/eddy-test-peer-XXXXXX");
    ck_assert(mkdtemp(dir) != NULL);
    node_begin(ME, 1, 0, CHUNK);
}

void remove_dir(const char *d)
{
    char cmd[128];
    snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'", d);
    ck_assert_int_eq(system(cmd), 0);
}

static void end(void)
{
    node_end();
    remove_dir(dir);
}

/* ---- running them ---- */

void add(Suite *s, const char *name, const TTest *test)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, test);
    suite_add_tcase(s, t);
}

int tests_main(int argc, char **argv, Suite *(*suite)(void))
{
    if (argc == 7 && !strcmp(argv[1], "--node"))
        return node_main(argv);
    signal(SIGPIPE, SIG_IGN);
    if (peer_reexec(LISTEN, argv))
        return 1;
    return run_suite(suite());
}
