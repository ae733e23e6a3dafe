/* test_data_unsteady.c - a read of a file that changes on the PFS each time while its bytes are read there.
 */
#include "nodes_data.h"

#include <sys/syscall.h>

#define SIZE    10000
#define FILES   64
#define CHANGES 6 /* the fetches of one read, and what it reads after these */

/* Somebody else's writes to one file: each comes when one half of it has been read. */
static struct {
    int fd;
    struct stat st;
    unsigned left;
    uint64_t seed; /* of the bytes that are there */
} others = {.fd = -1};

static bool is_theirs(int fd)
{
    struct stat st;
    return others.left && fd != others.fd && !fstat(fd, &st) && st.st_ino == others.st.st_ino &&
           st.st_dev == others.st.st_dev;
}

static void rewrite(void)
{
    uint8_t buf[SIZE];
    others.left--;
    fill_pattern(buf, SIZE, ++others.seed, 0);
    if (pwrite(others.fd, buf, SIZE, 0) != SIZE)
        abort();
}

/* The C library's, in the whole program. */
ssize_t pread64(int fd, void *buf, size_t len, off64_t off);
ssize_t pread64(int fd, void *buf, size_t len, off64_t off)
{
    size_t half = is_theirs(fd) ? len / 2 : len;
    ssize_t n = syscall(SYS_pread64, fd, buf, half, off);
    if (half == len || n != (ssize_t)half)
        return n;
    rewrite();
    ssize_t rest = syscall(SYS_pread64, fd, (char *)buf + half, len - half, off + (off64_t)half);
    return rest < 0 ? rest : n + rest;
}

/* name: the file's path; its bytes are of seed b, and they write it `off` times.  out[0]: how often they had
 * still to. */
static void order_others(struct order *o)
{
    if (others.fd < 0)
        others.fd = open(o->name, O_RDWR | O_CLOEXEC);
    o->err = others.fd < 0 || fstat(others.fd, &others.st) ? -errno : 0;
    o->out[0] = others.left;
    others.seed = o->b;
    others.left = (unsigned)o->off;
}

/* out: the file's home, and the owner of its chunk. */
static void order_places(struct order *o)
{
    struct pfs_node *n = pfs_child(pfs_root(), o->name);
    struct statx stx;
    o->err = pfs_stat(n, &stx);
    pfs_unref(n);
    if (o->err)
        return;
    const struct ring *r = ring_of(members_view());
    o->out[0] = ring_home(r, fid_of(&stx), 0);
    o->out[1] = ring_owner(r, fid_of(&stx), 0, 0);
}

/* A file whose chunk node 0 reads from the PFS, and does not give away before the look that proves its version:
 * another node is the home, so a node may be flushing the file. */
static void make_ours(char *name, size_t len)
{
    struct order self = {0};
    node_run(0, order_members, &self);
    for (unsigned i = 0; i < FILES; i++) {
        struct order o = {0};
        snprintf(name, len, "unsteady%u", i);
        pfs_make(name, SIZE, 1);
        snprintf(o.name, sizeof(o.name), "%s", name);
        node_run(0, order_places, &o);
        ck_assert_int_eq(o.err, 0);
        if (o.out[0] != self.out[2] && o.out[1] == self.out[2])
            return;
    }
    ck_abort_msg("no file has its home there and its owner here");
}

START_TEST(a_read_gives_one_version_of_a_file_that_changes_while_it_is_read)
{
    struct order o = {.off = CHANGES, .b = 1};
    char name[32];
    make_ours(name, sizeof(name));
    int n = snprintf(o.name, sizeof(o.name), "%s/pfs/%s", nodes_top, name);
    ck_assert_int_lt(n, (int)sizeof(o.name));
    node_run(0, order_others, &o); /* before the open, which may read ahead */
    ck_assert_int_eq(o.err, 0);
    open_on(0, name, 0, O_RDONLY);
    struct order read = read_on(0, 0, 0, SIZE);
    ck_assert_msg(!read.err, "%s", strerror(-read.err));
    o.off = 0;
    node_run(0, order_others, &o);
    ck_assert_uint_eq(o.out[0], 0); /* each of the changes came in the middle of a read */
    ck_assert_uint_eq(read.out[0], SIZE);
    ck_assert_msg(read.out[1] == hash_pattern(SIZE, 1 + CHANGES, 0), "bytes of two versions");
    close_on(0, 0);
}
END_TEST

static void begin(void)
{
    nodes_begin(2, 1u << 30);
}

int main(int argc, char **argv)
{
    if (node_is(argc, argv))
        return node_main(argc, argv);
    TCase *t = nodes_case("unsteady", begin);
    tcase_add_test(t, a_read_gives_one_version_of_a_file_that_changes_while_it_is_read);
    return run_case("data, unsteady", t);
}
