/* test_data_deadline.c - a call ends by its own deadline, whoever is silent.
 *
 * waits
 */
#include "nodes_data.h"

#include <dirent.h>
#include <signal.h>

/* A message to a silent node costs T_SUSPECT, and no view is made without it: each part of a read that had a
 * time of its own would show. */
#define SUSPECT_MS 6000
#define OPEN_MS    9000
#define MESSAGE_MS 2500 /* the last one may be on its way at the deadline */
#define SIZE       10000
#define LARGE      (16 * NODE_CHUNK) /* its end is not fetched when it is opened */
#define FILES      64

/* name: out: its home, and next. */
static void order_tellers(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    o->err = pfs_stat(n, &stx);
    pfs_unref(n);
    if (o->err)
        return;
    const struct ring *r = ring_of(members_view());
    o->out[0] = ring_home(r, fid_of(&stx), 0);
    o->out[1] = ring_home(r, fid_of(&stx), 1);
}

/* A file of which node 0 is neither home nor next.  A test of three nodes: a third of all are. */
static void make_told_by_others(const char *prefix, uint64_t size, char *name, size_t len)
{
    struct order self = {0};
    node_run(0, order_members, &self);
    for (unsigned i = 0; i < FILES; i++) {
        struct order o = {0};
        snprintf(name, len, "%s%u", prefix, i);
        pfs_make(name, size, 7);
        snprintf(o.name, sizeof(o.name), "%s", name);
        node_run(0, order_tellers, &o);
        ck_assert_int_eq(o.err, 0);
        if (o.out[0] != self.out[2] && o.out[1] != self.out[2])
            return;
    }
    ck_abort_msg("no file has its home elsewhere");
}

static char thread_state(pid_t pid, const char *thread)
{
    char path[320], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, thread);
    FILE *f = fopen(path, "r");
    const char *read = f ? fgets(text, sizeof(text), f) : NULL;
    const char *end = read ? strrchr(text, ')') : NULL;
    if (f)
        fclose(f);
    return end && end[1] ? end[2] : 'X';
}

static bool is_paused(pid_t pid)
{
    char path[64];
    bool paused = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        paused = paused && (e->d_name[0] == '.' || thread_state(pid, e->d_name) == 'T');
    closedir(d);
    return paused;
}

/* kill alone comes back before all threads have stopped, and those that have not answer. */
static void pause_others(void)
{
    uint64_t end = boot_ms() + 10000;
    for (unsigned i = 1; i < nnodes; i++)
        ck_assert_int_eq(kill(nodes[i].pid, SIGSTOP), 0);
    for (unsigned i = 1; i < nnodes; i++)
        while (!is_paused(nodes[i].pid)) {
            ck_assert_msg(boot_ms() < end, "node %u does not stop", i);
            usleep(1000);
        }
}

static void continue_others(void)
{
    for (unsigned i = 1; i < nnodes; i++)
        ck_assert_int_eq(kill(nodes[i].pid, SIGCONT), 0);
}

START_TEST(a_read_ends_by_its_deadline_while_claimant_home_and_next_are_silent)
{
    char claimed[32], clean[32];
    make_told_by_others("claimed", SIZE, claimed, sizeof(claimed));
    make_told_by_others("clean", LARGE, clean, sizeof(clean));
    open_on(1, claimed, 0, O_RDWR);
    write_on(1, 0, 0, SIZE, 8);
    open_on(0, claimed, 0, O_RDONLY);
    open_on(0, clean, 1, O_RDONLY);
    assert_read(0, 0, 0, SIZE, SIZE, 8);
    pause_others();
    struct order lost = read_on(0, 0, 0, SIZE), there = read_on(0, 1, LARGE - SIZE, SIZE);
    continue_others();
    ck_assert_int_eq(lost.err, -EIO); /* the PFS has older bytes */
    ck_assert_uint_ge(lost.out[2], OPEN_MS - 1);
    ck_assert_uint_le(lost.out[2], OPEN_MS + MESSAGE_MS);
    ck_assert_int_eq(there.err, 0); /* the PFS has them */
    ck_assert_uint_eq(there.out[1], hash_pattern(SIZE, 7, LARGE - SIZE));
    ck_assert_uint_le(there.out[2], OPEN_MS + MESSAGE_MS);
    close_on(0, 0);
    close_on(0, 1);
    close_on(1, 0);
}
END_TEST

static void begin(void)
{
    nodes_begin(3, 1u << 30);
}

int main(int argc, char **argv)
{
    times.suspect = SUSPECT_MS;
    times.dead = 10 * OPEN_MS;
    times.open = OPEN_MS;
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = nodes_case("deadline", begin);
    tcase_add_test(t, a_read_ends_by_its_deadline_while_claimant_home_and_next_are_silent);
    return run_case("data, deadline", t);
}
