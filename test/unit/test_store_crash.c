/* test_store_crash.c - `kill -9` between any two instructions of each change.
 *
 * The child makes a file and stops; the parent lets it run the change instruction by instruction
 * (ptrace), kills it after a random number of them, opens the store and looks: the file is as
 * before or as after the change (or in between, where the change may be seen half done, as a write
 * may), and a flush brings exactly that to the PFS.  Writes to the data file are made in two
 * halves, so that "half written" is met too.
 *
 * EDDY_TEST_SEED=n, EDDY_TEST_ROUNDS=n (deaths per change; n = 0: after every single instruction).
 */
#include "store_help.h"
#include "suite.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "placement/store/kernel_io.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#define CHUNK    (64 * KIB)
#define LIMIT    (2 * MIB)
#define FILE_MAX (300 * KIB)

/* Deaths per change: with a sanitizer there are several times the instructions to step over, and on a virtual machine a step
 * takes long. */
#define ROUNDS (SANITIZED ? 1 : 8)

/* ---- what the child's libc would do at once ---- */

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    ssize_t done = 0;
    for (int i = 0; i < n; i++) {
        const char *p = iov[i].iov_base;
        size_t half[2] = {iov[i].iov_len / 2, iov[i].iov_len - iov[i].iov_len / 2};
        for (unsigned h = 0; h < 2; p += half[h++]) {
            if (half[h] && syscall(SYS_pwrite64, fd, p, half[h], off + done) != (long)half[h])
                return -1;
            done += (ssize_t)half[h];
        }
    }
    return done;
}

/* ---- the file, the PFS, and what both should hold ---- */

struct content {
    uint64_t size;
    uint8_t bytes[FILE_MAX];
};

struct world { /* shared by parent and child */
    struct content pfs;
    int64_t pfs_changes;
    struct content before, after;
    char path_before[5000], path_after[5000];
    bool finished;
};
static struct world *world;

/* In place of the C library's: what else the machine's disk has to write takes its time. */
int syncfs(int fd)
{
    (void)fd;
    return 0;
}

static struct version pfs_version(void)
{
    return (struct version){world->pfs.size, 1000000007 + world->pfs_changes,
                            1000000009 + world->pfs_changes};
}

static void put(struct content *c, uint64_t off, uint64_t len, uint64_t seed)
{
    put_pattern(c->bytes + off, len, off, seed);
    c->size = c->size > off + len ? c->size : off + len;
}

static void cut(struct content *c, uint64_t size)
{
    if (size < c->size)
        memset(c->bytes + size, 0, c->size - size);
    c->size = size;
}

static void fill_one(struct file *f, uint64_t index)
{
    struct version v = pfs_version();
    uint64_t off = index * CHUNK, len = v.size - off < CHUNK ? v.size - off : CHUNK;
    struct clean_chunk c = {.index = index,
                            .version = v,
                            .buf = world->pfs.bytes + off,
                            .len = len,
                            .owned = index % 2};
    ck_assert_int_eq(store_fill(f, &c), 0);
}

static void write_from(struct file *f, const struct content *c, uint64_t off, uint64_t len)
{
    write_ok(f, c->bytes + off, len, off);
}

/* As flush/copyout.c: cut, pages, size; the PFS changes its version with everything. */
static void flush(struct file *f)
{
    struct file_info info;
    uint64_t from = 0;
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    store_info(f, &info);
    for (;;) {
        struct snapshot *s;
        int err = store_snapshot(f, from, 50000, &s);
        if (err)
            break;
        if (s->cut != NO_CUT)
            cut(&world->pfs, s->cut);
        for (size_t i = 0; i < s->nextents; i++) {
            const struct extent *r = &s->extents[i];
            if (r->hole) {
                memset(world->pfs.bytes + r->off, 0, r->len);
            } else {
                store_pread(f, world->pfs.bytes + r->off, r->len, r->off);
                kernel_io_copied(f, world->pfs.bytes + r->off, r->len, r->off, s->size);
            }
            from = r->off + r->len;
            world->pfs.size = MAX(world->pfs.size, from);
        }
        world->pfs_changes++;
        if (s->last || !s->nextents) {
            cut(&world->pfs, s->size);
            store_snapshot_done(s, true);
            break;
        }
        store_snapshot_done(s, true);
    }
    struct version v = pfs_version();
    store_flushed(f, &v, info.change, NULL);
}

/* ---- the changes ---- */

/* begin: acknowledged before the change.  They start from a file of 200,000 bytes on the PFS,
 * claimed, the chunks 0 and 1 here, with dirty bytes in chunk 1 and 3; or from one that is nothing
 * but a hole, and has no data file. */
struct change {
    const char *name;
    void (*act)(struct file *f);
    void (*expect)(struct content *c);   /* from before to after; NULL: the bytes stay */
    bool at_once;                        /* as before or as after, nothing in between */
    enum { NOT, READER, WRITER } kernel; /* somebody for whom the kernel serves the data file */
    bool hole;
};

static void act_overwrite(struct file *f)
{
    write_from(f, &world->after, 3000, 9000);
}
static void expect_overwrite(struct content *c)
{
    put(c, 3000, 9000, 50);
}

static void act_write_missing(struct file *f)
{
    write_from(f, &world->after, 135168, 12288);
}
static void expect_write_missing(struct content *c)
{
    put(c, 135168, 12288, 51);
}

static void act_extend(struct file *f)
{
    write_from(f, &world->after, 250000, 20000);
}
static void expect_extend(struct content *c)
{
    put(c, 250000, 20000, 52);
}

static void act_append(struct file *f)
{
    uint64_t fill;
    struct appended out;
    store_append(f, world->after.bytes + 200000, 7000, SPACE_CACHE, &out, &fill);
}
static void expect_append(struct content *c)
{
    put(c, 200000, 7000, 53);
}

static void act_shrink(struct file *f)
{
    uint64_t fill;
    store_truncate(f, 67000, &fill);
}
static void expect_shrink(struct content *c)
{
    cut(c, 67000);
}

static void act_grow(struct file *f)
{
    uint64_t fill;
    store_truncate(f, 260000, &fill);
}
static void expect_grow(struct content *c)
{
    cut(c, 260000);
}

static void act_punch(struct file *f)
{
    uint64_t fill;
    store_punch(f, 5000, 100000, SPACE_CACHE, &fill);
}
static void expect_punch(struct content *c)
{
    memset(c->bytes + 5000, 0, 100000);
}

static void act_fill(struct file *f)
{
    fill_one(f, 2);
}

/* Other files' chunks: the first 20 fill the cache, what comes then pushes this file's out. */
static void fill_others(uint64_t from, uint64_t to)
{
    static uint8_t data[CHUNK];
    struct version v = version_n(32 * CHUNK, 3);
    struct file *other = get_file(100, "other");
    store_set_version(other, &v, NULL);
    for (uint64_t i = from; i < to; i++) {
        struct clean_chunk c = {
            .index = i, .version = v, .buf = data, .len = sizeof(data), .owned = true};
        ck_assert_int_eq(store_fill(other, &c), 0);
    }
    file_put(other);
}

static void act_evict(struct file *f)
{
    (void)f;
    fill_others(20, 24);
}

static void act_flush(struct file *f)
{
    flush(f);
}

static void act_new(struct file *f)
{
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 0, &fill), 0);
}
static void expect_new(struct content *c)
{
    cut(c, 0);
}

static void act_rename(struct file *f)
{
    file_set_path(f, world->path_after);
}

static void act_rename_back(struct file *f)
{
    file_set_path(f, "short");
    file_set_path(f, world->path_after);
}

static void act_sync(struct file *f)
{
    store_sync(f);
}

static const struct change changes[] = {
    {"overwrite", act_overwrite, expect_overwrite, false, NOT, false},
    {"write missing pages", act_write_missing, expect_write_missing, false, NOT, false},
    {"write beyond the end", act_extend, expect_extend, false, NOT, false},
    {"append", act_append, expect_append, false, NOT, false},
    {"shrink", act_shrink, expect_shrink, true, NOT, false},
    {"grow", act_grow, expect_grow, true, NOT, false},
    {"punch", act_punch, expect_punch, false, NOT, false},
    {"fill", act_fill, NULL, true, NOT, false},
    {"evict", act_evict, NULL, true, NOT, false},
    {"flush", act_flush, NULL, true, NOT, false},
    {"truncate at open", act_new, expect_new, true, NOT, false},
    {"rename", act_rename, NULL, true, NOT, false},
    {"rename twice", act_rename_back, NULL, true, NOT, false},
    {"fsync", act_sync, NULL, true, NOT, false},
    {"first write", act_overwrite, expect_overwrite, false, NOT, true},
    {"shrink beside a passthrough reader", act_shrink, expect_shrink, true, READER, false},
    {"shrink beside a passthrough writer", act_shrink, expect_shrink, true, WRITER, false},
    {"grow beside a passthrough writer", act_grow, expect_grow, true, WRITER, false},
    {"truncate at open beside a passthrough writer", act_new, expect_new, true, WRITER, false},
};

static void begin(const struct change *c, struct file **out)
{
    struct file *f = get_file(1, world->path_before);
    struct version v = pfs_version();
    uint64_t fill;
    *out = f;
    store_set_claim(f, 1, 1, &v);
    if (c->hole) {
        ck_assert_int_eq(store_truncate(f, world->before.size, &fill), 0);
        return;
    }
    fill_one(f, 0);
    fill_one(f, 1);
    fill_one(f, 3);
    write_from(f, &world->before, 70000, 5000);
    write_from(f, &world->before, 196608, 3392);
}

static void make_world(const struct change *c)
{
    memset(world, 0, sizeof(*world));
    if (c->hole) {
        world->before.size = 200000;
    } else {
        put(&world->pfs, 0, 200000, 1);
        world->before = world->pfs;
        put(&world->before, 70000, 5000, 2);
        put(&world->before, 196608, 3392, 3);
    }
    world->after = world->before;
    if (c->expect)
        c->expect(&world->after);
    strcpy(world->path_before, "dir/file");
    memset(world->path_after, 'q', 1000);
    if (c->act != act_rename && c->act != act_rename_back)
        strcpy(world->path_after, world->path_before);
}

/* ---- one death ---- */

static void child(const struct change *c)
{
    struct file *f;
    open_store(LIMIT, CHUNK);
    begin(c, &f);
    if (c->act == act_evict) { /* only what is clean and on the PFS can go */
        flush(f);
        fill_others(0, 20);
    }
    if (c->kernel) {
        int fd;
        unsigned life;
        fill_one(f, 2); /* only what is whole */
        ck_assert_int_eq(kernel_io_open(f, c->kernel == WRITER, &fd, &life), 0);
    }
    raise(SIGSTOP);
    c->act(f);
    world->finished = true;
    raise(SIGSTOP);
    _exit(0);
}

/* Runs the change for at most `steps` instructions; returns how many it ran. */
static uint64_t run_child(const struct change *c, uint64_t steps)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        child(c);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP,
                  "%s: the child did not get to the change", c->name);
    uint64_t n = 0;
    for (; n < steps && !world->finished; n++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
            ck_abort_msg("ptrace: %s", strerror(errno));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFSTOPPED(status), "%s: the child ended", c->name);
        ck_assert_msg(WSTOPSIG(status) == SIGTRAP, "%s: signal %d", c->name, WSTOPSIG(status));
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return n;
}

/* ---- what is there then ---- */

static void read_visible(struct file *f, struct content *c)
{
    struct file_info info;
    store_info(f, &info);
    memset(c, 0, sizeof(*c));
    c->size = info.size;
    ck_assert_uint_le(c->size, FILE_MAX);
    for (uint64_t at = 0, n, miss; at < c->size; at += n) {
        ssize_t got = store_read(f, c->bytes + at, c->size - at, at);
        ck_assert_int_ge(got, 0);
        n = (uint64_t)got;
        if (!n) {
            ck_assert(store_missing(f, at, c->size - at, &miss, &n));
            ck_assert_uint_eq(miss, at);
            memcpy(c->bytes + at, world->pfs.bytes + at, n);
        }
    }
}

static bool same(const struct content *a, const struct content *b)
{
    return a->size == b->size && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void check_content(const struct change *c, const struct content *now, uint64_t steps)
{
    const struct content *a = &world->before, *b = &world->after;
    if (same(now, a) || same(now, b))
        return;
    if (now->size != a->size && now->size != b->size)
        ck_abort_msg("%s, %llu instructions: size %llu", c->name, (unsigned long long)steps,
                     (unsigned long long)now->size);
    for (uint64_t i = 0; i < FILE_MAX; i++)
        if (c->at_once ? now->bytes[i] != (now->size == a->size ? a : b)->bytes[i]
                       : now->bytes[i] != a->bytes[i] && now->bytes[i] != b->bytes[i])
            ck_abort_msg("%s, %llu instructions: size %llu, byte %llu is %u, should be %u or %u",
                         c->name, (unsigned long long)steps, (unsigned long long)now->size,
                         (unsigned long long)i, now->bytes[i], a->bytes[i], b->bytes[i]);
    ck_assert_msg(!c->at_once, "%s, %llu instructions: neither before nor after", c->name,
                  (unsigned long long)steps);
}

static void check_after(const struct change *c, uint64_t steps)
{
    static struct content now, again;
    open_store(LIMIT, CHUNK);
    struct file *f = file_find(fid_n(1));
    ck_assert_msg(f != NULL, "%s, %llu instructions: the file is gone", c->name,
                  (unsigned long long)steps);
    char *path = file_path(f);
    ck_assert_msg(!strcmp(path, world->path_before) || !strcmp(path, world->path_after) ||
                      !strcmp(path, "short"),
                  "%s: path %s", c->name, path);
    free(path);
    read_visible(f, &now);
    check_content(c, &now, steps);
    flush(f);
    read_visible(f, &again);
    ck_assert_msg(same(&now, &again), "%s, %llu instructions: the flush changed it", c->name,
                  (unsigned long long)steps);
    struct file_info info;
    store_info(f, &info);
    ck_assert_msg(!info.dirty, "%s, %llu instructions: dirty after the flush", c->name,
                  (unsigned long long)steps);
    ck_assert_msg(world->pfs.size == now.size && !memcmp(world->pfs.bytes, now.bytes, now.size),
                  "%s, %llu instructions: the PFS has something else", c->name,
                  (unsigned long long)steps);
    uint64_t fill; /* nothing that was cut off or never got in shows up in the end */
    ck_assert_int_eq(store_truncate(f, FILE_MAX, &fill), 0);
    now.size = FILE_MAX;
    read_visible(f, &again);
    ck_assert_msg(same(&now, &again), "%s, %llu instructions: old bytes beyond the end", c->name,
                  (unsigned long long)steps);
    kernel_io_forget();
    file_put(f);
    store_close(false);
}

static void empty_cache(void)
{
    remove_tree(cache_dir);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

START_TEST(a_death_at_any_instruction_leaves_the_file_as_before_or_after)
{
    const struct change *c = &changes[_i];
    uint64_t rounds = env_number("EDDY_TEST_ROUNDS", ROUNDS),
             seed = env_number("EDDY_TEST_SEED", random_u64() | 1);
    printf("%s: seed %llu", c->name, (unsigned long long)seed);
    make_world(c);
    uint64_t total = run_child(c, UINT64_MAX);
    printf(", %llu instructions\n", (unsigned long long)total);
    fflush(stdout);
    check_after(c, total);
    for (uint64_t i = 0; i < (rounds ? rounds : total); i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        uint64_t steps = rounds ? seed % total : i;
        empty_cache();
        make_world(c);
        run_child(c, steps);
        check_after(c, steps);
    }
}
END_TEST

/* Parent and child take turns at every instruction: on two processors each turn would wake the
 * other one up, which takes several times as long as the rest of the step. */
static void stay_on_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void setup(void)
{
    dir_setup();
    stay_on_one_processor();
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(world, MAP_FAILED);
}

static bool may_trace(void)
{
    int status;
    pid_t pid = fork();
    if (!pid)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    if (!may_trace()) {
        printf("skipped: ptrace is not permitted here\n");
        return 77;
    }
    TCase *t = tcase_create("crash");
    tcase_add_checked_fixture(t, setup, dir_teardown);
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, a_death_at_any_instruction_leaves_the_file_as_before_or_after, 0,
                        (int)ARRAY_LEN(changes));
    return run_case("store crash", t);
}
