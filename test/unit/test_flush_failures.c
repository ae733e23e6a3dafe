/* test_flush_failures.c - write-back that fails, is stopped or comes after a crash loses nothing. */
#include "flush_env.h"

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/marks.h"
#include "transport/session.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- errors ---- */

struct listed {
    unsigned n, tries;
    int error;
    uint64_t bytes;
};

static int list_one(void *arg, const struct unflushed_file *u)
{
    struct listed *l = arg;
    ck_assert_ptr_nonnull(u->path);
    ck_assert_uint_lt(u->since_s, 60);
    ck_assert(!u->suspect);
    l->n++;
    l->tries = u->tries;
    l->error = u->error;
    l->bytes += u->bytes;
    return 0;
}

static struct listed unflushed(void)
{
    struct listed l = {0};
    flush_each_unflushed(list_one, &l);
    return l;
}

START_TEST(a_file_that_is_too_large)
{
    start(NO_LULL);
    fill_page(9);
    struct file *f = env_create("f", 0644);
    struct flush_seen handle, other, later;
    flush_error_seen(f, &handle);
    flush_error_seen(f, &other);
    env_write(f, page, 500000, 1 << 20);
    struct rlimit old, r;
    getrlimit(RLIMIT_FSIZE, &old);
    r = old;
    r.rlim_cur = 1 << 20; /* Check's own notes need some, too */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
    ck_assert_int_eq(flush_file(f), -EFBIG);
    ck_assert(dirty(f));
    ck_assert_int_eq(flush_error_once(f, &handle), -EFBIG);
    ck_assert_int_eq(flush_error_once(f, &handle), 0);     /* once */
    ck_assert_int_eq(flush_error_once(f, &other), -EFBIG); /* each */
    flush_error_seen(f, &later);
    ck_assert_int_eq(flush_error_once(f, &later), 0); /* opened after it */
    ck_assert_int_eq(flush_all(NULL, NULL), -EIO);
    ck_assert_int_eq(flush_error_once(f, &handle), 0); /* the same still */
    ck_assert_int_eq(flush_error_once(f, &later), -EFBIG);
    ck_assert_int_eq(flush_error_once(f, &later), 0);
    struct listed l = unflushed();
    ck_assert_uint_eq(l.n, 1);
    ck_assert_int_eq(l.error, -EFBIG);
    ck_assert_uint_eq(l.tries, 2);
    ck_assert_uint_ge(l.bytes, 500000);
    struct flush_status s;
    flush_status(&s);
    ck_assert_uint_eq(s.failed_files, 1);
    ck_assert_uint_eq(s.pending_files, 1);
    ck_assert_int_eq(flush_retry(NULL, NULL), -EIO);
    setrlimit(RLIMIT_FSIZE, &old);
    struct file *g = env_create("g", 0644);
    env_write(g, "abc", 3, 0);
    ck_assert_int_eq(flush_retry(NULL, NULL), 0); /* at once, not after the back-off */
    ck_assert(!dirty(f) && dirty(g));             /* only what failed */
    shut(g);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, (1 << 20) + 500000);
    ck_assert_uint_eq(unflushed().n, 0);
    ck_assert_int_eq(flush_error_once(f, &handle), 0);
    shut(f);
}
END_TEST

static _Atomic bool pfs_is_slow, pfs_loses; /* the latter: what was not synced before, told once */

/* libc's, of a PFS that says after a while that it is over quota. */
int fsync(int fd)
{
    if (pfs_is_slow) {
        usleep(400000);
        errno = EDQUOT;
        return -1;
    }
    if (atomic_exchange(&pfs_loses, false)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Linux counts the pages as written, and tells it neither again nor to another descriptor. */
START_TEST(what_an_fsync_of_the_pfs_lost_is_written_again)
{
    static const uint8_t nothing[500000];
    static uint8_t have[500000];
    start(NO_LULL);
    fill_page(9);
    struct file *f = env_create("f", 0644);
    env_write(f, page, sizeof(have), 0);
    pfs_loses = true;
    ck_assert_int_eq(flush_file(f), -EIO);
    ck_assert(!pfs_loses && dirty(f));
    int fd = open(env_path("f"), O_RDWR);
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(pwrite(fd, nothing, sizeof(nothing), 0), sizeof(nothing));
    ck_assert_int_eq(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
    if (_i) {
        shut(f);
        ck_assert_int_eq(flush_all(NULL, NULL), 0);
    } else {
        ck_assert_int_eq(flush_file(f), 0);
        shut(f);
    }
    ck_assert_int_eq(pread(fd, have, sizeof(have), 0), sizeof(have));
    ck_assert_mem_eq(have, page, sizeof(have));
    close(fd);
}
END_TEST

#define SLOW_FILES 16

/* The first are due again before the last were tried. */
START_TEST(a_flush_of_all_ends_when_each_has_failed)
{
    struct file *f[SLOW_FILES];
    start(NO_LULL);
    create_files(f, SLOW_FILES);
    for (unsigned n = 0; n < SLOW_FILES; n++)
        env_write(f[n], "x", 1, 0);
    uint64_t before = counted(flush_errors);
    pfs_is_slow = true;
    ck_assert_int_eq(flush_all(NULL, NULL), -EIO);
    uint64_t failures = counted(flush_errors) - before;
    pfs_is_slow = false;
    ck_assert_uint_ge(failures, SLOW_FILES);
    ck_assert_uint_lt(failures, SLOW_FILES + SLOW_FILES / 2);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    for (unsigned n = 0; n < SLOW_FILES; n++)
        shut(f[n]);
}
END_TEST

/* Its time has come, but there is no lull: it waits like any other, and has failed all the same. */
START_TEST(what_failed_is_tried_again_also_after_its_back_off)
{
    start(NO_LULL);
    fill_page(9);
    struct file *f = env_create("f", 0644);
    env_write(f, page, 500000, 1 << 20);
    struct rlimit old, r;
    getrlimit(RLIMIT_FSIZE, &old);
    r = old;
    r.rlim_cur = 1 << 20;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
    ck_assert_int_eq(flush_file(f), -EFBIG);
    struct flush_status s;
    UNTIL((flush_status(&s), !s.failed_files));
    ck_assert_int_eq(flush_retry(NULL, NULL), -EIO);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_int_eq(flush_retry(NULL, NULL), 0);
    ck_assert(!dirty(f));
    shut(f);
}
END_TEST

START_TEST(a_failed_file_is_tried_again_by_itself)
{
    start(20);
    struct file *f = env_create("f", 0644);
    struct rlimit old, r;
    getrlimit(RLIMIT_FSIZE, &old);
    r = old;
    r.rlim_cur = 1 << 20;
    lull_begin();
    env_write(f, "abc", 3, 1 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
    lull_end();
    UNTIL(unflushed().error == -EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    UNTIL(!dirty(f));
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, (1 << 20) + 3);
    shut(f);
}
END_TEST

START_TEST(a_file_that_may_not_be_written)
{
    start(NO_LULL);
    if (getuid() != 0)
        NOT_CHECKED("needs root");
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    pfs_release(f);
    pfs_drop(f);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chown(env_path("f"), 0, 0), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(flush_file(f), -EACCES);
    ck_assert(dirty(f));
    env_expect("f", "", 0);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(env_path("f"), 0666), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "abc", 3);
    file_put(f);
}
END_TEST

/* As git, tar and cp -p make them. */
START_TEST(a_file_without_owner_write)
{
    start(50);
    struct file *f = env_create("with", 0444), *g = env_create("without", 0400);
    env_write(f, "abc", 3, 0);
    env_write(g, "abcd", 4, 0);
    lull_begin();
    pfs_release(f); /* its descriptor is kept */
    pfs_release(g);
    pfs_drop(g); /* this one fell out of the budget */
    lull_end();
    UNTIL(!dirty(f) && !dirty(g));
    UNTIL(!pending());
    ck_assert_uint_eq(env_mode("with"), 0444);
    ck_assert_uint_eq(env_mode("without"), 0400);
    env_expect("with", "abc", 3);
    env_expect("without", "abcd", 4);
    file_put(f);
    file_put(g);
}
END_TEST

START_TEST(unlinked_is_never_flushed)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644), *g = env_create("g", 0644);
    uint64_t before = counted(pfs_write_bytes);
    env_write(f, "abc", 3, 0);
    env_write(g, "abc", 3, 0);
    /* f: seen by its descriptor; g: told */
    ck_assert_int_eq(unlink(env_path("f")), 0);
    ck_assert_int_eq(unlink(env_path("g")), 0);
    lock_take(&g->lock);
    g->unlinked = true;
    lock_drop(&g->lock);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(pfs_write_bytes), before);
    ck_assert_uint_eq(unflushed().n, 0);
    char back[3]; /* who has it open reads on */
    ck_assert_int_eq(store_read(f, back, 3, 0), 3);
    ck_assert_mem_eq(back, "abc", 3);
    shut(f);
    shut(g);
}
END_TEST

static void descriptor_goes_with_the_claim(struct file *f)
{
    ck_assert(!dirty(f));
    ck_assert(pfs_has_descriptor(f));
    ck_assert(store_clear_claim(f, NULL));
    pfs_drop_clean(f);
    ck_assert(!pfs_has_descriptor(f));
    file_put(f);
}

/* Nodes that have it open are told before the claim goes, and read by this descriptor what is not here. */
START_TEST(what_was_removed_keeps_its_descriptor_as_long_as_its_claim)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    pfs_release(f);
    ck_assert(pfs_has_descriptor(f));
    ck_assert_int_eq(unlink(env_path("f")), 0);
    ck_assert_int_eq(flush_file(f), 0); /* finds that it has no name any more */
    descriptor_goes_with_the_claim(f);
}
END_TEST

/* The last close here may come before those nodes have answered. */
START_TEST(what_was_removed_while_it_was_open_keeps_its_descriptor_as_long_as_its_claim)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    ck_assert_int_eq(unlink(env_path("f")), 0);
    file_set_unlinked(f, true);
    store_set_deleted(f);
    pfs_release(f);
    descriptor_goes_with_the_claim(f);
}
END_TEST

/* Only its name leads to it. */
static struct file *unflushed_without_descriptor(void)
{
    struct file *f = env_create("f", 0644);
    env_write(f, "abc", 3, 0);
    pfs_release(f);
    pfs_drop(f);
    return f;
}

START_TEST(removed_behind_our_back_keeps_the_data)
{
    start(NO_LULL);
    struct file *f = unflushed_without_descriptor();
    ck_assert_int_eq(mkdir(env_path("d"), 0755), 0);
    ck_assert_int_eq(rename(env_path("f"), env_path("d/elsewhere")), 0);
    ck_assert_int_eq(flush_file(f), -ENOENT);
    env_put("f", "other", 5, 0644);
    ck_assert_int_eq(flush_file(f), -ESTALE);
    env_expect("f", "other", 5);
    ck_assert(dirty(f));
    file_set_path(f, "d/elsewhere"); /* found again */
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    env_expect("d/elsewhere", "abc", 3);
    file_put(f);
}
END_TEST

START_TEST(renamed_behind_our_back_is_found_in_its_directory)
{
    start(NO_LULL);
    struct file *f = unflushed_without_descriptor();
    ck_assert_int_eq(rename(env_path("f"), env_path("elsewhere")), 0);
    env_put("f", "other", 5, 0644);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    env_expect("f", "other", 5);
    env_expect("elsewhere", "abc", 3);
    file_put(f);
}
END_TEST

/* Of several names the one that this node knows is gone, and a descriptor that only reads is all that leads to it. */
START_TEST(what_is_open_for_reading_is_flushed_whatever_its_name)
{
    start(NO_LULL);
    ck_assert_int_eq(mkdir(env_path("d"), 0755), 0);
    struct file *f = unflushed_without_descriptor();
    ck_assert_int_eq(pfs_open_late(f, NULL), 0);
    pfs_open_known(f);
    ck_assert_int_eq(rename(env_path("f"), env_path("d/elsewhere")), 0);
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    env_expect("d/elsewhere", "abc", 3);
    pfs_release(f);
    file_put(f);
}
END_TEST

static bool small_pfs(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    char pfs[128];
    snprintf(pfs, sizeof(pfs), "%s/pfs", env_dir);
    pfs_close();
    bool mounted = mount("none", pfs, "tmpfs", 0, "size=4m,mode=0777") == 0;
    env_open_pfs();
    return mounted;
}

START_TEST(a_full_pfs_loses_nothing)
{
    bool full = small_pfs();
    start(NO_LULL);
    if (!full)
        NOT_CHECKED("no mounts can be made");
    enum { FILES = 30 };
    struct file *f[FILES];
    char name[16];
    env_put("ballast", page, sizeof(page), 0644);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
        memset(page, i + 1, 200000);
        env_write(f[i], page, 200000, 0);
    }
    ck_assert_int_eq(flush_all(NULL, NULL), -EIO);
    struct listed l = unflushed();
    ck_assert_uint_gt(l.n, 5);
    ck_assert_uint_lt(l.n, FILES);
    ck_assert_int_eq(l.error, -ENOSPC);
    /* a writer who needs room is told, and does not hang */
    uint64_t seen = UINT64_MAX;
    int err = flush_make_room(f[0], &seen); /* 0: some files have just become clean */
    ck_assert(err == 0 || err == -ENOSPC);
    ck_assert_int_eq(flush_make_room(f[0], &seen), -ENOSPC);
    char pfs[128], options[] = "size=64m";
    snprintf(pfs, sizeof(pfs), "%s/pfs", env_dir);
    ck_assert_int_eq(mount("none", pfs, NULL, MS_REMOUNT, options), 0);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        memset(page, i + 1, 200000);
        env_expect(name, page, 200000);
        shut(f[i]);
    }
    pfs_close();
    umount2(pfs, MNT_DETACH);
    env_open_pfs();
}
END_TEST

START_TEST(room_is_made_by_flushing)
{
    start(NO_LULL);
    lull_begin();
    struct file *f = env_create("f", 0644);
    env_write(f, page, sizeof(page), 0);
    uint64_t seen = UINT64_MAX, other = UINT64_MAX;
    ck_assert_int_eq(flush_make_room(f, &seen), 0);
    UNTIL(!dirty(f));
    /* once more is the truth for who did not know; then there is nothing that could be flushed */
    int err = flush_make_room(f, &seen);
    ck_assert(err == 0 || err == -ENOSPC);
    ck_assert_int_eq(flush_make_room(f, &seen), -ENOSPC);
    /* another change of this thread had no room before */
    ck_assert_int_eq(flush_make_room(f, &other), 0);
    ck_assert_int_eq(flush_make_room(f, &other), -ENOSPC);
    lull_end();
    shut(f);
}
END_TEST

/* ---- the end, and after a crash ---- */

START_TEST(a_stop_in_the_middle_keeps_what_is_dirty)
{
    start(30);
    struct file *f = env_create("f", 0644);
    fill_page(2);
    for (int i = 0; i < 40; i++)
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    uint64_t before = counted(pfs_write_bytes);
    UNTIL(counted(pfs_write_bytes) > before);
    lull_begin();
    stop_flush(); /* must not wait for a lull */
    lull_end();
    start(NO_LULL);
    ck_assert_int_eq(flush_recover(), 0);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert(!dirty(f));
    int fd = open(env_path("f"), O_RDONLY);
    static char back[1 << 20];
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(read(fd, back, sizeof(back)), (ssize_t)sizeof(back));
        ck_assert_mem_eq(back, page, sizeof(page));
    }
    close(fd);
    shut(f);
}
END_TEST

START_TEST(what_a_dead_daemon_left_is_flushed)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644), *g = env_create("g", 0644);
    fill_page(4);
    env_write(f, page, 70000, 0);
    env_write(g, "abc", 3, 0);
    ck_assert_int_eq(chmod(env_path("g"), 0644), 0); /* a flush of it was under way: it is 0444 */
    store_set_raised_mode(g, 0444);
    shut(f);
    shut(g);
    stop_flush();
    pfs_drop(f); /* the last reference: after kill -9 nobody knows them */
    pfs_drop(g);
    store_close(false); /* nothing is flushed */
    env_open_store();
    start(NO_LULL);
    ck_assert_int_eq(flush_recover(), 0);
    ck_assert_uint_eq(env_mode("g"), 0444);
    ck_assert_uint_eq(pending(), 2);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(pending(), 0);
    env_expect("f", page, 70000);
    env_expect("g", "abc", 3);
    ck_assert_uint_eq(env_mode("g"), 0444);
}
END_TEST

static int count_name(void *arg, const char *session, uint64_t node, const char *node_name,
                      struct fid fid, const char *path)
{
    unsigned *n = arg;
    (void)session;
    (void)node_name;
    ck_assert_uint_eq(node, store_node_id());
    ck_assert(!fid_is_zero(fid));
    ck_assert(strncmp(path, "file ", 5) == 0);
    ++*n;
    return 0;
}

static unsigned named(const char *dir)
{
    unsigned n = 0;
    int err = session_each_dirty(dir, count_name, &n);
    ck_assert(err == 0 || err == -ENOENT);
    return n;
}

START_TEST(dirty_files_are_named_in_the_session)
{
    char err[256] = "", dir[128];
    snprintf(dir, sizeof(dir), "%s/sessions", env_dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    struct session_config c = {.dir = dir, .name = "test", .chunk_size = 1 << 20};
    ck_assert_msg(session_open(&c, err, sizeof(err)) == 0, "%s", err);
    start(NO_LULL);
    struct file *f[20];
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file %d\nof \\ many", i);
        f[i] = env_create(name, 0644);
        env_write(f[i], "x", 1, 0);
    }
    UNTIL(named(dir) == 20); /* a batch, within a second */
    ck_assert_int_eq(flush_file(f[0]), 0);
    UNTIL(named(dir) == 19);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    UNTIL(named(dir) == 0);
    env_write(f[3], "y", 1, 0);
    stop_flush(); /* at once, in the end */
    ck_assert_uint_eq(named(dir), 1);
    start(NO_LULL);
    for (int i = 0; i < 20; i++)
        shut(f[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("flush_failures");
    TCase *t = add_case(s, "flush_failures", setup, teardown, 100);
    tcase_add_test(t, a_file_that_is_too_large);
    tcase_add_loop_test(t, what_an_fsync_of_the_pfs_lost_is_written_again, 0, 2);
    tcase_add_test(t, a_flush_of_all_ends_when_each_has_failed);
    tcase_add_test(t, what_failed_is_tried_again_also_after_its_back_off);
    tcase_add_test(t, a_failed_file_is_tried_again_by_itself);
    tcase_add_test(t, unlinked_is_never_flushed);
    tcase_add_test(t, what_was_removed_keeps_its_descriptor_as_long_as_its_claim);
    tcase_add_test(t, what_was_removed_while_it_was_open_keeps_its_descriptor_as_long_as_its_claim);
    tcase_add_test(t, removed_behind_our_back_keeps_the_data);
    tcase_add_test(t, renamed_behind_our_back_is_found_in_its_directory);
    tcase_add_test(t, what_is_open_for_reading_is_flushed_whatever_its_name);
    tcase_add_test(t, a_full_pfs_loses_nothing);
    tcase_add_test(t, room_is_made_by_flushing);
    tcase_add_test(t, a_stop_in_the_middle_keeps_what_is_dirty);
    tcase_add_test(t, what_a_dead_daemon_left_is_flushed);
    tcase_add_test(t, dirty_files_are_named_in_the_session);
    t = add_case(s, "user", setup_user, teardown, 100);
    tcase_add_test(t, a_file_that_may_not_be_written);
    tcase_add_test(t, a_file_without_owner_write);
    return run_suite(s);
}
