/* test_session.c - the session directory is opened: who may own it, starting together, file systems
 * with less. */
#include "session_env.h"
#include "suite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "transport/marks.h"
#include "transport/message.h"
#include "transport/session.h"
#include "transport/view.h"

#define TEXT_OF(number)  #number
#define FIRST_OF(number) "eddyfs " TEXT_OF(number)
#define EDDYFS           FIRST_OF(MSG_MAJOR) /* the first line of a session's settings */

/* ---- opening ---- */

START_TEST(open_makes_all_of_it_for_this_user_only)
{
    static const char *const dirs[] = {"", "probes", "nodes", "views", "forgotten", "dirty"};
    struct stat st;
    open_job();
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        ck_assert_int_eq(stat(in_job(dirs[i]), &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
    }
    ck_assert_int_eq(stat(in_job("secret"), &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
    ck_assert_int_eq(st.st_size, 32);
    ck_assert_uint_eq(st.st_nlink, 1);
    char text[128];
    read_text(in_job("settings"), text, sizeof(text));
    ck_assert_str_eq(text, EDDYFS "\nchunk 1048576\ntimes 3000 10000 4000 30000\n");
    ck_assert_int_eq(count_files(in_job("."), ".new-"), 0);
    ck_assert_str_eq(session_name(), "job");
    ck_assert_int_ge(session_dirfd(), 0);
}
END_TEST

START_TEST(open_again_finds_the_same_secret)
{
    uint8_t secret[32];
    open_job();
    memcpy(secret, session_secret(), 32);
    session_close();
    ck_assert_mem_ne(session_secret(), secret, 32); /* not kept in memory */
    ck_assert_int_eq(session_dirfd(), -1);
    open_job();
    ck_assert_mem_eq(session_secret(), secret, 32);
    session_close();
    ck_assert_int_eq(open_as("other", CHUNK), 0);
    ck_assert_mem_ne(session_secret(), secret, 32);
}
END_TEST

static char started[80];

static int start_node(int i)
{
    char name[128];
    if (open_as("job", CHUNK))
        return 1;
    snprintf(name, sizeof(name), "%s/%d", started, i);
    FILE *f = fopen(name, "w");
    fwrite(session_secret(), 1, 32, f);
    return fclose(f) ? 2 : 0;
}

START_TEST(nodes_that_start_together_share_one_secret)
{
    snprintf(started, sizeof(started), "%s/started", top);
    mkdir(started, 0700);
    in_processes(16, start_node);
    open_job();
    for (int i = 0; i < 16; i++) {
        char name[128], secret[64];
        snprintf(name, sizeof(name), "%s/%d", started, i);
        read_text(name, secret, sizeof(secret));
        ck_assert_mem_eq(secret, session_secret(), 32);
    }
    ck_assert_int_eq(count_files(in_job("."), ".new-"), 0);
}
END_TEST

START_TEST(bad_session_names_are_refused)
{
    static const char *const names[] = {"", ".", "..", "a/b", ".x", "a b", "../../etc"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ck_assert_int_eq(open_as(names[i], CHUNK), -EINVAL);
        assert_says("--session:");
    }
}
END_TEST

START_TEST(directory_that_can_not_be_made_names_the_option)
{
    snprintf(base, sizeof(base), "%s/not/there", top);
    ck_assert_int_eq(open_as("job", CHUNK), -ENOENT);
    assert_says("--session-dir");
    assert_says(base);
    snprintf(base, sizeof(base), "%s/file", top);
    write_text(base, "x");
    ck_assert_int_eq(open_as("job", CHUNK), -ENOTDIR);
    assert_says("--session-dir");
    snprintf(base, sizeof(base), "/proc/self");
    ck_assert_int_lt(open_as("job", CHUNK), 0);
    assert_says("--session-dir");
}
END_TEST

START_TEST(directory_that_others_can_write_to_is_refused)
{
    open_job();
    session_close();
    ck_assert_int_eq(chmod(in_job(""), 0770), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("chmod 700");
    ck_assert_int_eq(chmod(in_job(""), 0702), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    ck_assert_int_eq(session_dirfd(), -1);
    ck_assert_int_eq(chmod(in_job(""), 0755), 0);
    open_job();
}
END_TEST

/* What a stranger could do with a directory that holds our sessions. */
START_TEST(base_that_others_could_rename_in_is_refused)
{
    open_job();
    session_close();
    ck_assert_int_eq(chmod(base, 0777), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("others can write to it (mode 0777)");
    assert_says("--session-dir");
    ck_assert_int_eq(chmod(base, 0770), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    ck_assert_int_eq(session_dirfd(), -1);
    ck_assert_int_eq(chmod(base, 01777), 0); /* as /tmp: each user's are their own */
    open_job();
}
END_TEST

START_TEST(base_of_another_user_is_refused)
{
    if (geteuid())
        NOT_CHECKED("needs root to make one");
    open_job();
    session_close();
    ck_assert_int_eq(chown(base, 12345, (gid_t)-1), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("belongs to user 12345");
    assert_says("--session-dir");
    ck_assert_int_eq(chown(base, 0, (gid_t)-1), 0);
    open_job();
}
END_TEST

START_TEST(link_in_place_of_the_base_is_refused)
{
    char target[512];
    snprintf(target, sizeof(target), "%s/elsewhere", top);
    ck_assert_int_eq(mkdir(target, 0700), 0);
    ck_assert_int_eq(symlink(target, base), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -ENOTDIR);
    assert_says("a link to one");
    assert_says("--session-dir");
    ck_assert_int_eq(rmdir(target), 0); /* nothing was made there */
}
END_TEST

/* The directory was open to others once; what they made in it is still theirs. */
START_TEST(directory_below_that_is_not_ours_is_refused)
{
    open_job();
    session_close();
    ck_assert_int_eq(chmod(in_job("views"), 0770), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("job/views: others can write to it");
    ck_assert_int_eq(chmod(in_job("views"), 0700), 0);
    ck_assert_int_eq(rmdir(in_job("dirty")), 0);
    ck_assert_int_eq(symlink("views", in_job("dirty")), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -ENOTDIR);
    assert_says("job/dirty: is not a directory");
    if (geteuid())
        NOT_CHECKED("needs root to give one away");
    ck_assert_int_eq(chown(in_job("nodes"), 12345, (gid_t)-1), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("job/nodes: belongs to user 12345");
}
END_TEST

START_TEST(directory_of_another_user_is_refused)
{
    if (geteuid())
        NOT_CHECKED("needs root to make one");
    open_job();
    session_close();
    ck_assert_int_eq(chown(in_job(""), 12345, (gid_t)-1), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    assert_says("12345");
    assert_says("--session");
}
END_TEST

START_TEST(link_in_place_of_the_directory_is_refused)
{
    open_job();
    session_close();
    char real[256], path[256];
    snprintf(real, sizeof(real), "%s/real", base);
    snprintf(path, sizeof(path), "%s/job", base);
    ck_assert_int_eq(rename(path, real), 0);
    ck_assert_int_eq(symlink(real, path), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -ENOTDIR);
    assert_says("link");
    unlink(path);
    write_text(path, "a file");
    ck_assert_int_eq(open_as("job", CHUNK), -ENOTDIR);
}
END_TEST

START_TEST(another_pfs_directory_is_refused)
{
    struct session_config c = {.dir = base, .name = "pfs", .chunk_size = CHUNK, .pfs = {1, 2}};
    ck_assert_int_eq(session_open(&c, err_text, sizeof(err_text)), 0);
    session_close();
    ck_assert_int_eq(session_open(&c, err_text, sizeof(err_text)), 0);
    session_close();
    c.pfs.lo = 3;
    ck_assert_int_eq(session_open(&c, err_text, sizeof(err_text)), -EPROTO);
    assert_says("another PFS directory");
    c.name = "older"; /* an eddyfs made it that did not tell */
    c.pfs = (struct fid){0};
    ck_assert_int_eq(session_open(&c, err_text, sizeof(err_text)), 0);
    session_close();
    c.pfs.lo = 3;
    ck_assert_int_eq(session_open(&c, err_text, sizeof(err_text)), 0);
}
END_TEST

START_TEST(another_chunk_size_is_refused_and_names_the_right_one)
{
    open_job();
    session_close();
    ck_assert_int_eq(open_as("job", 65536), -EPROTO);
    assert_says("--chunk-size 1048576");
    open_job();
}
END_TEST

START_TEST(other_times_are_refused_and_the_right_ones_named)
{
    open_job();
    session_close();
    times.dead = 20000;
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
    assert_says("--suspect-after 3 --dead-after 10 --lease 4 --open-wait 30");
    times = TIMES_DEFAULT;
    open_job();
}
END_TEST

START_TEST(another_protocol_is_refused)
{
    open_job();
    session_close();
    write_text(in_job("settings"), "eddyfs 99\nsomething new\n");
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
    assert_says("protocol 99");
    write_text(in_job("settings"), "eddyfs 2\nchunk 1048576\ntimes 3000 10000 4000 30000\n");
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO); /* as those before 0.1 */
    assert_says("protocol 2");
}
END_TEST

START_TEST(junk_settings_and_secrets_are_refused)
{
    static const char *const junk[] = {"",
                                       "eddyfs",
                                       "eddyfs \n",
                                       EDDYFS,
                                       EDDYFS "\nchunk x\n",
                                       EDDYFS "\nchunk 1048576",
                                       EDDYFS "\nchunk 1048576\n",
                                       EDDYFS "\nchunk 1048576\ntimes 3000 4000\n",
                                       "EDDYFS 1\nchunk 1048576\n",
                                       "eddyfs 99999999999999999999\nchunk 1\n"};
    open_job();
    session_close();
    for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
        write_text(in_job("settings"), junk[i]);
        ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
        assert_says("--session");
    }
    write_text(in_job("settings"), EDDYFS "\nchunk 1048576\ntimes 3000 10000 4000 30000\nlater "
                                          "7\n"); /* a later minor version may add lines */
    open_job();
    session_close();
    write_text(in_job("secret"), "short");
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
    assert_says("secret");
    write_file(in_job("secret"), base, 100);
    ck_assert_int_lt(open_as("job", CHUNK), 0);
    write_file(in_job("secret"), base, 32);
    ck_assert_int_eq(chmod(in_job("secret"), 0640), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EACCES);
    ck_assert_int_eq(unlink(in_job("secret")), 0);
    ck_assert_int_eq(symlink("settings", in_job("secret")), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
    unlink(in_job("secret"));
    ck_assert_int_eq(mkfifo(in_job("secret"), 0600), 0);
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO); /* and does not hang */
}
END_TEST

START_TEST(clock_offset_of_a_local_directory_is_small)
{
    open_job();
    ck_assert_int_lt(llabs(session_clock_offset_ns()), INT64_C(1500000000));
    ck_assert_int_eq(count_files(in_job("."), ".new-"), 0);
}
END_TEST

static int no_fid(int fd, struct fid *out)
{
    (void)fd;
    (void)out;
    return -EIO;
}

START_TEST(nothing_works_without_a_session)
{
    struct member m = member(1), node;
    struct view *v;
    uint64_t number;
    ck_assert_int_eq(session_newest(&number), -EBADF);
    ck_assert_int_eq(session_read_view(1, &v), -EBADF);
    ck_assert_int_eq(make_view(1), -EBADF);
    ck_assert_int_eq(session_write_node(&m), -EBADF);
    ck_assert_int_eq(session_read_node(1, &node), -EBADF);
    ck_assert_int_eq(session_write_dirty(1, NULL, 0), -EBADF);
    ck_assert_int_eq(session_probe(no_fid, err_text, sizeof(err_text)), -EBADF);
}
END_TEST

/* ---- file systems with less: the library's calls end here ---- */

static struct {
    int link_error, rename_error;
    bool link_forgets; /* link() works and says EEXIST, as NFS may when the answer was lost */
    unsigned write_ms, fsync_ms, slow_fsyncs; /* they take so long, the first so many fsyncs */
} less;

static void take_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (ms && nanosleep(&t, &t))
        ;
}

ssize_t write(int fd, const void *buf, size_t n)
{
    take_ms(less.write_ms);
    return syscall(SYS_write, fd, buf, n);
}

int fsync(int fd)
{
    if (less.slow_fsyncs) {
        less.slow_fsyncs--;
        take_ms(less.fsync_ms);
    }
    return (int)syscall(SYS_fsync, fd);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    if (less.link_error) {
        errno = less.link_error;
        return -1;
    }
    int r = (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
    if (!r && less.link_forgets) {
        errno = EEXIST;
        return -1;
    }
    return r;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (less.rename_error) {
        errno = less.rename_error;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

START_TEST(without_hard_links_names_are_still_given_once)
{
    uint8_t secret[32];
    less.link_error = EPERM;
    open_job();
    memcpy(secret, session_secret(), 32);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(make_view(1), -EEXIST);
    ck_assert_int_eq(count_files(in_job("views"), ""), 1);
    session_close();
    open_job();
    ck_assert_mem_eq(session_secret(), secret, 32);
    ck_assert_int_eq(count_files(in_job("."), ".new-"), 0);
}
END_TEST

START_TEST(without_links_and_exclusive_renames_open_says_what_to_do)
{
    less.link_error = EOPNOTSUPP;
    less.rename_error = EINVAL;
    ck_assert_int_eq(open_as("job", CHUNK), -EOPNOTSUPP);
    assert_says("hard links");
    assert_says("--session-dir");
    ck_assert_int_eq(count_files(base, ""), 0); /* nothing is left of the try */
}
END_TEST

START_TEST(link_whose_answer_was_lost_counts_as_made)
{
    open_job();
    less.link_forgets = true;
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(make_view(1), -EEXIST);
}
END_TEST

/* Both clocks are the same one here.  What is read by a clock that is ahead of the PFS's would be
 * taken for older than it is, and so for what cannot change unseen any more. */
START_TEST(slow_writes_do_not_put_the_clock_ahead)
{
    open_job();
    session_close();
    less.write_ms = 300;
    open_job();
    ck_assert_int_le(session_clock_offset_ns(), 0);
}
END_TEST

START_TEST(one_slow_look_at_the_clock_does_not_put_it_back)
{
    open_job();
    session_close();
    less.fsync_ms = 2000;
    less.slow_fsyncs = 1;
    open_job();
    ck_assert_uint_eq(less.slow_fsyncs, 0);
    ck_assert_int_gt(session_clock_offset_ns(), -INT64_C(900000000));
    ck_assert_int_le(session_clock_offset_ns(), 0);
}
END_TEST

static void add_open_tests(TCase *t)
{
    tcase_add_test(t, open_makes_all_of_it_for_this_user_only);
    tcase_add_test(t, open_again_finds_the_same_secret);
    tcase_add_test(t, nodes_that_start_together_share_one_secret);
    tcase_add_test(t, bad_session_names_are_refused);
    tcase_add_test(t, directory_that_can_not_be_made_names_the_option);
    tcase_add_test(t, directory_that_others_can_write_to_is_refused);
    tcase_add_test(t, base_that_others_could_rename_in_is_refused);
    tcase_add_test(t, base_of_another_user_is_refused);
    tcase_add_test(t, link_in_place_of_the_base_is_refused);
    tcase_add_test(t, directory_below_that_is_not_ours_is_refused);
    tcase_add_test(t, directory_of_another_user_is_refused);
    tcase_add_test(t, link_in_place_of_the_directory_is_refused);
    tcase_add_test(t, another_pfs_directory_is_refused);
    tcase_add_test(t, another_chunk_size_is_refused_and_names_the_right_one);
    tcase_add_test(t, other_times_are_refused_and_the_right_ones_named);
    tcase_add_test(t, another_protocol_is_refused);
    tcase_add_test(t, junk_settings_and_secrets_are_refused);
    tcase_add_test(t, clock_offset_of_a_local_directory_is_small);
    tcase_add_test(t, nothing_works_without_a_session);
}

static void add_less_tests(TCase *t)
{
    tcase_add_test(t, without_hard_links_names_are_still_given_once);
    tcase_add_test(t, without_links_and_exclusive_renames_open_says_what_to_do);
    tcase_add_test(t, link_whose_answer_was_lost_counts_as_made);
    tcase_add_test(t, slow_writes_do_not_put_the_clock_ahead);
    tcase_add_test(t, one_slow_look_at_the_clock_does_not_put_it_back);
}

int main(void)
{
    Suite *s = suite_create("session");
    add_open_tests(new_case(s, "open"));
    add_less_tests(new_case(s, "file systems with less"));
    return run_suite(s);
}
