/* test_flush_conflict.c - an edit by somebody else on the PFS, after a run that failed or was cut off: the
 * file stays as it is, and what was written here is put beside it.  This node's own doing is no such edit. */
#include "flush_env.h"

#include "placement/claims/claim.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_write.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define SIZE   300000u
#define BESIDE ".eddy-conflict-n"

static _Atomic bool fsync_fails;

/* libc's, of a PFS that can not keep what was written. */
int fsync(int fd)
{
    if (fsync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* What a flush reads of the file is from after its note of the change that is to follow. */
static _Atomic(struct file *) being_read;
static _Atomic unsigned reads_noted, reads_not_noted;

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
    struct file_info info;
    if (being_read) {
        store_info(being_read, &info);
        bool noted = info.trace.off <= (uint64_t)off && (uint64_t)off + len <= info.trace.off + info.trace.len;
        atomic_fetch_add(noted ? &reads_noted : &reads_not_noted, 1);
    }
    return syscall(SYS_pread64, fd, buf, len, off);
}

/* What is known of the file while bytes of it change. */
static struct file *being_written;
static int64_t ctime_meanwhile;

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    struct file_info info;
    if (being_written) {
        store_info(being_written, &info);
        ctime_meanwhile = info.ctime_ns;
    }
    return syscall(SYS_pwritev, fd, iov, n, (long)off, 0L);
}

static void begin(void)
{
    start(NO_LULL);
    ck_assert_int_eq(flush_check_recovered("n"), 0);
    fill_page(3);
}

/* The PFS's clock ticks in jiffies. */
static void later(void)
{
    usleep(20000);
}

static void edit(const char *name, const void *bytes, size_t len, off_t off)
{
    later();
    int fd = open(env_path(name), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, len, off), (ssize_t)len);
    close(fd);
}

static void touch(const char *name, int64_t mtime_ns)
{
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, time_of_ns(mtime_ns)};
    ck_assert_int_eq(utimensat(AT_FDCWD, env_path(name), ts, 0), 0);
}

static bool is_there(const char *name)
{
    return access(env_path(name), F_OK) == 0;
}

/* A file of which a run has failed; closed. */
static struct file *failed(const char *name)
{
    struct file *f = env_create(name, 0644);
    env_write(f, page, SIZE, 0);
    fsync_fails = true;
    ck_assert_int_eq(flush_file(f), -EIO);
    fsync_fails = false;
    pfs_release(f);
    return f;
}

/* As after kill -9. */
static void die_and_start(struct file *f)
{
    stop_flush();
    pfs_drop(f);
    file_put(f);
    store_close(false);
    env_open_store();
    begin();
}

static void expect_beside(const char *name)
{
    char beside[64];
    snprintf(beside, sizeof(beside), "%s" BESIDE, name);
    env_expect(beside, page, SIZE);
    ck_assert_uint_eq(counted(conflicts), 1);
    ck_assert_uint_eq(pending(), 0);
}

static const char foreign[] = "by somebody else";

/* ---- after a failed run ---- */

START_TEST(an_edit_before_the_next_try_is_a_conflict)
{
    begin();
    struct file *f = failed("f");
    edit("f", foreign, sizeof(foreign), _i ? 100000 : 0);
    ck_assert_int_eq(flush_retry(NULL, NULL), 0);
    expect_beside("f");
    memcpy(page + (_i ? 100000 : 0), foreign, sizeof(foreign));
    env_expect("f", page, SIZE);
    file_put(f);
}
END_TEST

START_TEST(an_edit_before_a_restart_is_a_conflict)
{
    begin();
    struct file *f = failed("f");
    edit("f", foreign, sizeof(foreign), 100000);
    die_and_start(f);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    expect_beside("f");
    memcpy(page + 100000, foreign, sizeof(foreign));
    env_expect("f", page, SIZE);
}
END_TEST

START_TEST(a_failed_run_alone_is_none)
{
    begin();
    struct file *f = failed("f");
    later();
    ck_assert_int_eq(chmod(env_path("f"), 0600), 0);
    if (_i) {
        die_and_start(f);
    } else {
        env_write(f, "more", 4, SIZE); /* and written on */
        file_put(f);
    }
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(conflicts), 0);
    ck_assert(!is_there("f" BESIDE));
    memcpy(page + SIZE, "more", 4);
    env_expect("f", page, SIZE + (_i ? 0 : 4));
}
END_TEST

START_TEST(a_time_that_the_session_sets_after_it_is_none)
{
    begin();
    struct file *f = failed("f");
    ck_assert_int_eq(store_note_time(f, 1500000000123456789), 0);
    touch("f", 1500000000123456789);
    if (_i)
        die_and_start(f);
    else
        file_put(f);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(conflicts), 0);
    env_expect("f", page, SIZE);
}
END_TEST

START_TEST(while_it_is_open_it_waits)
{
    begin();
    struct file *f = failed("f");
    struct file *open = env_open("f", true);
    edit("f", foreign, sizeof(foreign), 0);
    ck_assert_int_eq(flush_file(f), -EBUSY);
    ck_assert(dirty(f) && !is_there("f" BESIDE));
    char here[16];
    ck_assert_int_eq(store_read(f, here, sizeof(here), 0), sizeof(here));
    ck_assert_mem_eq(here, page, sizeof(here));
    shut(open);
    ck_assert_int_eq(flush_retry(NULL, NULL), 0);
    expect_beside("f");
    file_put(f);
}
END_TEST

/* ---- what is open while it is put beside ---- */

static _Atomic bool opened;

static void *open_it(void *f)
{
    ck_assert_int_eq(claim_aside_wait(f, UINT64_MAX), 0);
    opened = true;
    return NULL;
}

START_TEST(an_open_waits_until_it_is_settled)
{
    begin();
    struct file *f = env_create("f", 0644);
    ck_assert_int_eq(claim_aside_wait(f, 0), 0);
    ck_assert(claim_aside_begin(f));
    ck_assert_int_eq(claim_aside_wait(f, boot_ms()), -EIO);
    pthread_t t;
    ck_assert_int_eq(pthread_create(&t, NULL, open_it, f), 0);
    later();
    ck_assert(!opened);
    claim_aside_end(f);
    pthread_join(t, NULL);
    ck_assert(opened);
    shut(f);
}
END_TEST

/* ---- a run that was cut off ---- */

/* As if the daemon had died in its write of [off, off + len): `wrote` of it has got to the PFS. */
static struct file *cut_off(size_t len, off_t off, size_t wrote)
{
    struct file *f = env_create("f", 0644);
    env_write(f, page, SIZE, 0);
    pfs_release(f);
    later();
    ck_assert_int_eq(store_flush_begins(f), 0);
    store_flush_changes(f, (uint64_t)off, len);
    edit("f", page + off, wrote, off);
    return f;
}

START_TEST(a_run_that_was_cut_off_alone_is_none)
{
    static const size_t wrote[] = {0, 4096, SIZE};
    begin();
    struct file *f = cut_off(SIZE, 0, wrote[_i]);
    die_and_start(f);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(conflicts), 0);
    env_expect("f", page, SIZE);
}
END_TEST

START_TEST(a_run_that_was_cut_off_between_two_writes)
{
    begin();
    struct file *f = cut_off(8192, 0, 8192);
    store_flush_changed(f);
    memset(page, 'x', 8192);
    if (_i) /* the same bytes are not there any more, and nothing was under way */
        edit("f", page, 8192, 0);
    fill_page(3);
    die_and_start(f);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    ck_assert_uint_eq(counted(conflicts), (unsigned)_i);
    if (!_i)
        env_expect("f", page, SIZE);
}
END_TEST

/* If the file changes between the read and the note, and the daemon dies in the write, the PFS has bytes that are not here
 * any more, from before the last change here: they would count as somebody else's. */
START_TEST(a_change_is_noted_before_its_bytes_are_read)
{
    begin();
    struct file *f = env_create("f", 0644);
    env_write(f, page, 8192, 0); /* too small for a view */
    pfs_release(f);
    being_read = f;
    ck_assert_int_eq(flush_file(f), 0);
    being_read = NULL;
    ck_assert_uint_ge(reads_noted, 1);
    ck_assert_uint_eq(reads_not_noted, 0);
    env_expect("f", page, 8192);
    file_put(f);
}
END_TEST

/* A daemon may die between the change of the bytes and that of the record, while a run has the older bytes at the PFS. */
START_TEST(bytes_change_here_after_the_record_says_so)
{
    begin();
    struct file *f = cut_off(8192, 0, 8192);
    being_written = f;
    env_write(f, page + 8192, 8192, 0);
    being_written = NULL;
    struct file_info info;
    store_info(f, &info);
    ck_assert_int_gt(ctime_meanwhile, info.trace.v.ctime_ns);
    file_put(f);
}
END_TEST

START_TEST(an_edit_after_it_is_a_conflict)
{
    begin();
    struct file *f = cut_off(SIZE, 0, _i == 2 ? SIZE : 0);
    if (_i == 0) /* where the write was, which never came */
        edit("f", foreign, sizeof(foreign), 0);
    else if (_i == 1) /* longer than any run would have made it */
        edit("f", foreign, sizeof(foreign), SIZE);
    else /* after a look at the start */
        die_and_start(f), f = NULL, edit("f", foreign, sizeof(foreign), 0);
    if (f)
        die_and_start(f);
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    expect_beside("f");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("flush_conflict");
    TCase *t = add_case(s, "flush_conflict", setup, teardown, 100);
    tcase_add_loop_test(t, an_edit_before_the_next_try_is_a_conflict, 0, 2);
    tcase_add_test(t, an_edit_before_a_restart_is_a_conflict);
    tcase_add_loop_test(t, a_failed_run_alone_is_none, 0, 2);
    tcase_add_loop_test(t, a_time_that_the_session_sets_after_it_is_none, 0, 2);
    tcase_add_test(t, while_it_is_open_it_waits);
    tcase_add_test(t, an_open_waits_until_it_is_settled);
    tcase_add_loop_test(t, a_run_that_was_cut_off_alone_is_none, 0, 3);
    tcase_add_loop_test(t, a_run_that_was_cut_off_between_two_writes, 0, 2);
    tcase_add_test(t, a_change_is_noted_before_its_bytes_are_read);
    tcase_add_test(t, bytes_change_here_after_the_record_says_so);
    tcase_add_loop_test(t, an_edit_after_it_is_a_conflict, 0, 3);
    return run_suite(s);
}
