/* test_session.c - the session directory: who may own it, starting together, views, nodes, dirty
 * lists, probe files. */
#include "transport/session.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1u << 20)

static char top[64], base[128];
static char err_text[1024];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void make_top(void)
{
    log_open("/dev/null", LOG_LEVEL_ERROR, "test");
    strcpy(top, "/tmp/eddy-test-session-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(base, sizeof(base), "%s/sessions", top);
    err_text[0] = 0;
}

static void remove_top(void)
{
    session_close();
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int open_as(const char *name, uint32_t chunk)
{
    struct session_config c = {.dir = base, .name = name, .chunk_size = chunk};
    return session_open(&c, err_text, sizeof(err_text));
}

static void open_job(void)
{
    ck_assert_msg(open_as("job", CHUNK) == 0, "%s", err_text);
}

static void assert_says(const char *what)
{
    ck_assert_msg(strstr(err_text, what), "\"%s\" does not say \"%s\"", err_text, what);
}

/* A path below the session "job". */
static const char *in_job(const char *file)
{
    static char path[4][512];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/job/%s", base, file);
    return path[i];
}

static void write_file(const char *path, const void *text, size_t len)
{
    FILE *f = fopen(path, "w");
    ck_assert_msg(f, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    fclose(f);
}

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    ck_assert_msg(f, "%s: %s", path, strerror(errno));
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
}

static int count_files(const char *path, const char *prefix)
{
    int n = 0;
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
             !strncmp(e->d_name, prefix, strlen(prefix));
    closedir(d);
    return n;
}

/* Runs fn(i) in n processes at once; all must end with 0. */
static void in_processes(int n, int (*fn)(int i))
{
    int go[2];
    pid_t pids[32];
    ck_assert_int_le(n, 32);
    ck_assert_int_eq(pipe(go), 0);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            char c;
            close(go[1]);
            if (read(go[0], &c, 1)) /* until the parent closes it */
                _exit(100);
            _exit(fn(i));
        }
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < n; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "process %d: status %x", i,
                      status);
    }
}

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
    char text[64];
    read_text(in_job("settings"), text, sizeof(text));
    ck_assert_str_eq(text, "eddyfs 1\nchunk 1048576\n");
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

START_TEST(directory_of_another_user_is_refused)
{
    if (geteuid())
        return; /* needs root to make one */
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

START_TEST(another_chunk_size_is_refused_and_names_the_right_one)
{
    open_job();
    session_close();
    ck_assert_int_eq(open_as("job", 65536), -EPROTO);
    assert_says("--chunk-size 1048576");
    open_job();
}
END_TEST

START_TEST(another_protocol_is_refused)
{
    open_job();
    session_close();
    write_text(in_job("settings"), "eddyfs 2\nsomething new\n");
    ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
    assert_says("protocol 2");
}
END_TEST

START_TEST(junk_settings_and_secrets_are_refused)
{
    static const char *const junk[] = {"",
                                       "eddyfs",
                                       "eddyfs \n",
                                       "eddyfs 1",
                                       "eddyfs 1\nchunk x\n",
                                       "eddyfs 1\nchunk 1048576",
                                       "EDDYFS 1\nchunk 1048576\n",
                                       "eddyfs 99999999999999999999\nchunk 1\n"};
    open_job();
    session_close();
    for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
        write_text(in_job("settings"), junk[i]);
        ck_assert_int_eq(open_as("job", CHUNK), -EPROTO);
        assert_says("--session");
    }
    write_text(in_job("settings"),
               "eddyfs 1\nchunk 1048576\nlater 7\n"); /* a later minor version may add lines */
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

/* ---- file systems with less: the library's calls end here ---- */

static struct {
    int link_error, rename_error;
    bool link_forgets; /* link() works and says EEXIST, as NFS may when the answer was lost */
} less;

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

static int make_view(uint64_t number);

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
    ck_assert_int_eq(count_files(in_job("."), ".new-"), 0);
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

/* ---- views ---- */

static struct member member(uint64_t id)
{
    struct member m = {.id = id, .incarnation = id * 3 + 1, .weight = 100};
    snprintf(m.name, sizeof(m.name), "node%03u", (unsigned)id);
    snprintf(m.addr, sizeof(m.addr), "10.0.0.%u:40123", (unsigned)id);
    return m;
}

static struct absent absent(uint64_t id)
{
    struct absent a = {.id = id, .incarnation = 5};
    snprintf(a.name, sizeof(a.name), "gone%u", (unsigned)id);
    return a;
}

static int make_view(uint64_t number)
{
    struct member members[] = {member(1), member(7), member(200)};
    struct absent absents[] = {absent(3), absent(0xffffffffffffffff)};
    struct view v = {
        .number = number, .nmembers = 3, .nabsent = 2, .members = members, .absents = absents};
    return session_make_view(&v);
}

static void assert_is_our_view(const struct view *v, uint64_t number)
{
    ck_assert_uint_eq(v->number, number);
    ck_assert_uint_eq(v->nmembers, 3);
    ck_assert_uint_eq(v->members[0].id, 1);
    ck_assert_uint_eq(v->members[1].id, 7);
    ck_assert_uint_eq(v->members[2].id, 200);
    ck_assert_uint_eq(v->members[2].incarnation, 601);
    ck_assert_uint_eq(v->members[2].weight, 100);
    ck_assert_str_eq(v->members[2].name, "node200");
    ck_assert_str_eq(v->members[2].addr, "10.0.0.200:40123");
    ck_assert_uint_eq(v->nabsent, 2);
    ck_assert_uint_eq(v->absents[0].id, 3);
    ck_assert_uint_eq(v->absents[1].id, 0xffffffffffffffff);
    ck_assert_uint_eq(v->absents[1].incarnation, 5);
    ck_assert_str_eq(v->absents[0].name, "gone3");
}

START_TEST(view_is_made_found_and_read)
{
    uint64_t number = 99;
    struct view *v;
    open_job();
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 0);
    ck_assert_int_eq(session_read_view(1, &v), -ENOENT);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 1);
    ck_assert_int_eq(session_read_view(1, &v), 0);
    assert_is_our_view(v, 1);
    view_free(v);
    ck_assert_int_eq(access(in_job("views/000001"), R_OK), 0);
    ck_assert_int_eq(count_files(in_job("views"), ""), 1);
}
END_TEST

START_TEST(view_number_is_given_once)
{
    struct member m = member(9);
    struct view other = {.number = 4, .nmembers = 1, .members = &m};
    struct view *v;
    open_job();
    ck_assert_int_eq(make_view(4), 0);
    ck_assert_int_eq(session_make_view(&other), -EEXIST);
    ck_assert_int_eq(session_read_view(4, &v), 0);
    assert_is_our_view(v, 4);
    view_free(v);
    ck_assert_int_eq(count_files(in_job("views"), ".new-"), 0);
}
END_TEST

static int race_for_view(int i)
{
    struct member m = member((uint64_t)i + 1);
    if (open_as("job", CHUNK))
        return 1;
    for (uint64_t k = 1; k <= 5; k++) {
        struct view v = {.number = k, .nmembers = 1, .members = &m}, *read;
        int err = session_make_view(&v);
        if (err && err != -EEXIST)
            return 2;
        if (session_read_view(k, &read))
            return 3;
        if (!err && read->members[0].id != m.id)
            return 4; /* both won */
        view_free(read);
    }
    return 0;
}

START_TEST(one_of_many_makes_the_view_and_all_read_the_same)
{
    in_processes(12, race_for_view);
    open_job();
    ck_assert_int_eq(count_files(in_job("views"), ""), 5);
}
END_TEST

START_TEST(old_views_are_removed_and_stay_removed)
{
    uint64_t number;
    struct view *v;
    open_job();
    for (uint64_t k = 1; k <= 40; k++)
        ck_assert_int_eq(make_view(k), 0);
    ck_assert_int_eq(count_files(in_job("views"), ""), 16);
    ck_assert_int_eq(session_read_view(24, &v), -ENOENT);
    ck_assert_int_eq(session_read_view(25, &v), 0);
    view_free(v);
    /* A maker that slept since view 2 was the newest: its name is free again, but it is not first.
     */
    ck_assert_int_eq(make_view(3), -EEXIST);
    ck_assert_int_eq(session_read_view(3, &v), -ENOENT);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 40);
}
END_TEST

START_TEST(numbers_sort_as_numbers_and_junk_names_are_not_views)
{
    static const char *const junk[] = {"views/7",
                                       "views/0000099",
                                       "views/00099x",
                                       "views/-00099",
                                       "views/000000",
                                       "views/.000098",
                                       "views/99999999999999999999999"};
    uint64_t number;
    open_job();
    for (size_t i = 0; i < ARRAY_LEN(junk); i++)
        write_text(in_job(junk[i]), "x");
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 0);
    ck_assert_int_eq(make_view(999999), 0);
    ck_assert_int_eq(make_view(1000000), 0);
    ck_assert_int_eq(session_newest(&number), 0);
    ck_assert_uint_eq(number, 1000000);
}
END_TEST

START_TEST(leftovers_of_dead_makers_are_swept)
{
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    open_job();
    write_text(in_job("views/.new-dead"), "x");
    write_text(in_job("views/.new-living"), "x");
    ck_assert_int_eq(utimensat(AT_FDCWD, in_job("views/.new-dead"), old, 0), 0);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(access(in_job("views/.new-dead"), F_OK), -1);
    ck_assert_int_eq(access(in_job("views/.new-living"), F_OK), 0);
}
END_TEST

START_TEST(view_file_of_another_number_or_kind_is_refused)
{
    struct view *v;
    open_job();
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(link(in_job("views/000001"), in_job("views/000002")), 0);
    ck_assert_int_eq(session_read_view(2, &v), -EPROTO);
    ck_assert_int_eq(mkdir(in_job("views/000003"), 0700), 0);
    ck_assert_int_eq(session_read_view(3, &v), -EPROTO);
    ck_assert_int_eq(symlink("000001", in_job("views/000004")), 0);
    ck_assert_int_eq(session_read_view(4, &v), -EPROTO);
    write_text(in_job("views/000005"), "");
    ck_assert_int_eq(truncate(in_job("views/000005"), (off_t)1 << 40), 0);
    ck_assert_int_eq(session_read_view(5, &v), -EPROTO);
}
END_TEST

START_TEST(view_that_readers_would_refuse_is_not_written)
{
    struct member unsorted[] = {member(7), member(1)}, nameless = member(1);
    struct view v = {.number = 1, .nmembers = 2, .members = unsorted};
    open_job();
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    nameless.name[0] = 0;
    v = (struct view){.number = 1, .nmembers = 1, .members = &nameless};
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    v.nmembers = 0;
    v.number = 0;
    ck_assert_int_eq(session_make_view(&v), -EINVAL);
    ck_assert_int_eq(count_files(in_job("views"), ""), 0);
    v.number = 1; /* the last one out writes an empty view */
    ck_assert_int_eq(session_make_view(&v), 0);
}
END_TEST

START_TEST(view_age_starts_again_with_a_touch)
{
    uint64_t ms;
    struct timespec past[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 100}};
    open_job();
    ck_assert_int_eq(session_view_age_ms(1, &ms), -ENOENT);
    ck_assert_int_eq(session_touch_view(1), -ENOENT);
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_lt(ms, 20000);
    ck_assert_int_eq(utimensat(AT_FDCWD, in_job("views/000001"), past, 0), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_ge(ms, 98000);
    ck_assert_uint_lt(ms, 130000);
    ck_assert_int_eq(session_touch_view(1), 0);
    ck_assert_int_eq(session_view_age_ms(1, &ms), 0);
    ck_assert_uint_lt(ms, 20000);
    ck_assert_int_eq(count_files(in_job("views"), ".new-"), 0);
}
END_TEST

/* ---- the text of views ---- */

#define HEAD(n, m, a) "eddyfs view 1\nnumber " n "\nmembers " m "\nabsent " a "\n"
#define M1            "member 0000000000000001 4 100 10.0.0.1:1 one\n"
#define M2            "member 0000000000000002 4 100 [::1]:65535 two\n"
#define A3            "absent 0000000000000003 9 three\n"

START_TEST(view_text_is_as_documented)
{
    static const char text[] = HEAD("12", "2", "1") M1 M2 A3 "end\n";
    struct view *v;
    size_t len;
    ck_assert_int_eq(view_parse(text, sizeof(text) - 1, &v), 0);
    ck_assert_uint_eq(v->number, 12);
    ck_assert_str_eq(v->members[1].addr, "[::1]:65535");
    ck_assert_str_eq(v->absents[0].name, "three");
    char *again = view_print(v, &len);
    ck_assert_uint_eq(len, sizeof(text) - 1);
    ck_assert_str_eq(again, text);
    free(again);
    view_free(v);
}
END_TEST

static const char *const bad_views[] = {
    "",
    "eddyfs view 2\nnumber 1\nmembers 0\nabsent 0\nend\n",
    HEAD("0", "0", "0") "end\n",
    HEAD("9223372036854775808", "0", "0") "end\n",
    HEAD("18446744073709551617", "0", "0") "end\n",
    HEAD("1", "0", "0") "end",
    HEAD("1", "0", "0") "end\n\n",
    HEAD("1", "0", "0") M1 "end\n",
    HEAD("1", "1", "0") "end\n",
    HEAD("1", "2", "0") M1 "end\n",
    HEAD("1", "2", "0") M2 M1 "end\n",
    HEAD("1", "2", "0") M1 M1 "end\n",
    HEAD("1", "1", "2") M1 A3 A3 "end\n",
    HEAD("1", "16384", "0") M1 "end\n",
    HEAD("1", "16385", "0") M1 "end\n",
    HEAD("1", "4294967297", "0") M1 "end\n",
    HEAD("1", "-1", "0") M1 "end\n",
    HEAD("1", "1", "0") "member 000000000000001 4 100 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 000000000000000g 4 100 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 0 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 10001 a:1 one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 \nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100  one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 ../one\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 4 100 a:1 one two\nend\n",
    HEAD("1", "1", "0") "member 0000000000000001 18446744073709551616 100 a:1 one\nend\n",
    HEAD("1", "1",
         "0") "member 0000000000000001 4 100 a:1 "
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nend\n", /* 65 */
    HEAD(
        "1", "1",
        "0") "member 0000000000000001 4 100 "
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa one\nend\n", /* 64 */
    HEAD("1", "1", "1") M1 "absent 0000000000000001 4 one\nend\n",
};

START_TEST(malformed_view_text_is_refused)
{
    struct view *v;
    size_t len = strlen(bad_views[_i]);
    char *copy =
        malloc(len + 1); /* exactly as long, so that a memory checker sees a byte too many */
    memcpy(copy, bad_views[_i], len);
    ck_assert_msg(view_parse(copy, len, &v) == -EPROTO, "%s", bad_views[_i]);
    free(copy);
}
END_TEST

START_TEST(view_text_cut_anywhere_is_refused)
{
    static const char text[] = HEAD("12", "2", "1") M1 M2 A3 "end\n";
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        struct view *v;
        char *copy = malloc(len + 1);
        memcpy(copy, text, len);
        ck_assert_int_eq(view_parse(copy, len, &v), -EPROTO);
        free(copy);
    }
}
END_TEST

START_TEST(largest_view_fits)
{
    uint32_t n = SESSION_MAX_MEMBERS;
    struct view v = {.number = INT64_MAX, .nmembers = n, .nabsent = n}, *back;
    v.members = calloc(n, sizeof(*v.members));
    v.absents = calloc(n, sizeof(*v.absents));
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = &v.members[i];
        struct absent *a = &v.absents[i];
        m->id = 2 * i;
        a->id = 2 * i + 1;
        m->incarnation = a->incarnation = UINT64_MAX;
        m->weight = 10000;
        memset(m->name, 'n', NODE_NAME_MAX);
        memset(a->name, 'n', NODE_NAME_MAX);
        memset(m->addr, 'a', NODE_ADDR_MAX - 1);
    }
    open_job();
    ck_assert_int_eq(session_make_view(&v), 0);
    ck_assert_int_eq(session_read_view(INT64_MAX, &back), 0);
    ck_assert_uint_eq(back->nmembers, n);
    ck_assert_mem_eq(back->members, v.members, n * sizeof(*v.members));
    ck_assert_mem_eq(back->absents, v.absents, n * sizeof(*v.absents));
    view_free(back);
    free(v.members);
    free(v.absents);
}
END_TEST

/* ---- nodes ---- */

START_TEST(node_files_are_written_replaced_read_and_removed)
{
    struct member a = member(1), b = member(0xabcdef), *nodes;
    uint32_t n;
    open_job();
    ck_assert_int_eq(session_read_nodes(&nodes, &n), 0);
    ck_assert_uint_eq(n, 0);
    free(nodes);
    ck_assert_int_eq(session_write_node(&a), 0);
    ck_assert_int_eq(session_write_node(&b), 0);
    b.incarnation = 77;
    strcpy(b.addr, "[fe80::1]:9");
    ck_assert_int_eq(session_write_node(&b), 0);
    ck_assert_int_eq(session_read_nodes(&nodes, &n), 0);
    ck_assert_uint_eq(n, 2);
    const struct member *got = nodes[0].id == 1 ? &nodes[1] : &nodes[0];
    ck_assert_uint_eq(got->id, 0xabcdef);
    ck_assert_uint_eq(got->incarnation, 77);
    ck_assert_uint_eq(got->weight, 100);
    ck_assert_str_eq(got->addr, "[fe80::1]:9");
    ck_assert_str_eq(got->name, b.name);
    free(nodes);
    ck_assert_int_eq(session_remove_node(1), 0);
    ck_assert_int_eq(session_remove_node(1), 0);
    ck_assert_int_eq(session_read_nodes(&nodes, &n), 0);
    ck_assert_uint_eq(n, 1);
    free(nodes);
    ck_assert_int_eq(count_files(in_job("nodes"), ""), 1);
    strcpy(a.name, "no name");
    ck_assert_int_eq(session_write_node(&a), -EINVAL);
}
END_TEST

START_TEST(bad_node_files_are_left_out)
{
    struct member good = member(5), *nodes;
    uint32_t n;
    open_job();
    ck_assert_int_eq(session_write_node(&good), 0);
    ck_assert_int_eq(link(in_job("nodes/0000000000000005"), in_job("nodes/0000000000000006")),
                     0); /* another's id */
    write_text(in_job("nodes/0000000000000007"), "junk");
    write_text(in_job("nodes/README"), "junk");
    write_text(in_job("nodes/0000000000000008"), "");
    ck_assert_int_eq(truncate(in_job("nodes/0000000000000008"), 1 << 30), 0);
    ck_assert_int_eq(mkfifo(in_job("nodes/0000000000000009"), 0600), 0);
    ck_assert_int_eq(symlink("0000000000000005", in_job("nodes/000000000000000a")), 0);
    ck_assert_int_eq(session_read_nodes(&nodes, &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(nodes[0].id, 5);
    free(nodes);
}
END_TEST

START_TEST(node_text_cut_anywhere_is_refused)
{
    struct member m = member(5), back;
    size_t len;
    char *text = node_print(&m, &len);
    ck_assert_ptr_eq(strstr(text,
                            "eddyfs node 1\nid 0000000000000005\nincarnation 16\nname node005\n"
                            "addr 10.0.0.5:40123\nweight 100\n"),
                     text);
    size_t needed = (size_t)(strstr(text, "weight 100\n") - text) + strlen("weight 100\n");
    for (size_t cut = 0; cut < needed; cut++) {
        char *copy = malloc(cut + 1);
        memcpy(copy, text, cut);
        ck_assert_int_eq(node_parse(copy, cut, &back), -EPROTO);
        free(copy);
    }
    ck_assert_int_eq(node_parse(text, len, &back), 0);
    ck_assert_mem_eq(&back, &m, sizeof(m));
    free(text);
}
END_TEST

/* ---- dirty lists ---- */

struct seen {
    int n, stop_at;
    struct {
        char session[65], node_name[65];
        uint64_t node;
        struct fid fid;
        char path[5000];
    } v[16];
};

static int see(void *arg, const char *name, uint64_t node, const char *node_name, struct fid fid,
               const char *path)
{
    struct seen *s = arg;
    ck_assert_int_lt(s->n, 16);
    strcpy(s->v[s->n].session, name);
    strcpy(s->v[s->n].node_name, node_name);
    strcpy(s->v[s->n].path, path);
    s->v[s->n].node = node;
    s->v[s->n].fid = fid;
    return ++s->n == s->stop_at ? -ECANCELED : 0;
}

static struct seen seen;

START_TEST(dirty_names_survive_whatever_their_bytes)
{
    static char longest[4097];
    memset(longest, '\n', 4096);
    struct dirty_name names[] = {
        {{1, 2}, (char *)"out/step 1.h5"},
        {{3, 4}, (char *)"new\nline\\n and \\ and \xff\t"},
        {{5, UINT64_MAX}, longest},
    };
    struct member m = member(0x1f);
    open_job();
    ck_assert_int_eq(session_write_node(&m), 0);
    ck_assert_int_eq(session_write_dirty(0x1f, names, 3), 0);
    ck_assert_int_eq(session_each_dirty(base, see, &seen), 0);
    ck_assert_int_eq(seen.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(seen.v[i].session, "job");
        ck_assert_str_eq(seen.v[i].node_name, "node031");
        ck_assert_uint_eq(seen.v[i].node, 0x1f);
        ck_assert(fid_eq(seen.v[i].fid, names[i].fid));
        ck_assert_str_eq(seen.v[i].path, names[i].path);
    }
    char text[64];
    read_text(in_job("dirty/000000000000001f"), text, sizeof(text));
    ck_assert_ptr_eq(strstr(text, "00000000000000010000000000000002 out/step 1.h5\n"), text);
}
END_TEST

START_TEST(dirty_list_is_replaced_and_removed)
{
    struct dirty_name names[] = {{{1, 2}, (char *)"a"}, {{3, 4}, (char *)"b"}};
    open_job();
    ck_assert_int_eq(session_write_dirty(9, NULL, 0), 0);
    ck_assert_int_eq(session_write_dirty(9, names, 2), 0);
    ck_assert_int_eq(session_write_dirty(9, names + 1, 1), 0);
    ck_assert_int_eq(session_each_dirty(base, see, &seen), 0);
    ck_assert_int_eq(seen.n, 1);
    ck_assert_str_eq(seen.v[0].path, "b");
    ck_assert_str_eq(seen.v[0].node_name, "?");
    ck_assert_int_eq(session_write_dirty(9, NULL, 0), 0);
    ck_assert_int_eq(count_files(in_job("dirty"), ""), 0);
}
END_TEST

START_TEST(dirty_lists_of_all_sessions_are_read_and_junk_is_passed_over)
{
    static char longline[20000];
    struct dirty_name name = {{1, 2}, (char *)"mine"};
    open_job();
    ck_assert_int_eq(session_write_dirty(1, &name, 1), 0);
    session_close();
    ck_assert_int_eq(open_as("second", CHUNK), 0);
    ck_assert_int_eq(session_write_dirty(2, &name, 1), 0);

    memset(longline, 'f', sizeof(longline));
    FILE *f = fopen(in_job("dirty/0000000000000003"), "w");
    fprintf(f, "junk\n\n00000000000000010000000000000002\n00000000000000010000000000000002 \n");
    fprintf(f, "00000000000000010000000000000002 bad \\x escape\n00000000000000010000000000000002 "
               "ends in \\\n");
    fwrite(longline, 1, sizeof(longline), f);
    fprintf(f, "\n0000000000000001000000000000000G x\n");
    fwrite("00000000000000010000000000000002 nul\0byte\n", 1, 42, f);
    fprintf(f, "00000000000000070000000000000008 good\n00000000000000010000000000000002 cut off");
    fclose(f);
    write_text(in_job("dirty/notanid"), "00000000000000010000000000000002 x\n");
    ck_assert_int_eq(mkfifo(in_job("dirty/0000000000000004"), 0600), 0);
    ck_assert_int_eq(mkdir(in_job("dirty/0000000000000005"), 0700), 0);
    char path[256];
    snprintf(path, sizeof(path), "%s/file", base);
    write_text(path, "x");
    snprintf(path, sizeof(path), "%s/empty", base);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/link", base);
    ck_assert_int_eq(symlink("job", path), 0);

    ck_assert_int_eq(session_each_dirty(base, see, &seen), 0);
    ck_assert_int_eq(seen.n, 3);
    int mine = 0, good = 0;
    for (int i = 0; i < 3; i++) {
        mine += !strcmp(seen.v[i].path, "mine") &&
                seen.v[i].node == (strcmp(seen.v[i].session, "job") ? 2 : 1);
        good += !strcmp(seen.v[i].path, "good") && seen.v[i].node == 3 && seen.v[i].fid.lo == 8;
    }
    ck_assert_int_eq(mine, 2);
    ck_assert_int_eq(good, 1);

    memset(&seen, 0, sizeof(seen));
    seen.stop_at = 2;
    ck_assert_int_eq(session_each_dirty(base, see, &seen), -ECANCELED);
    ck_assert_int_eq(seen.n, 2);
    ck_assert_int_eq(session_each_dirty("/nonexistent", see, &seen), -ENOENT);
}
END_TEST

/* ---- probe files ---- */

static int fid_by_inode(int fd, struct fid *out)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    *out = (struct fid){.hi = st.st_ino, .lo = 17};
    return 0;
}

/* A PFS that numbers files in the order of look-ups. */
static int fid_by_order(int fd, struct fid *out)
{
    static uint64_t next = 1;
    (void)fd;
    *out = (struct fid){.lo = next++};
    return 0;
}

/* Another node's view of the same PFS: other numbers. */
static int fid_of_another_node(int fd, struct fid *out)
{
    int err = fid_by_inode(fd, out);
    out->lo = 18;
    return err;
}

static int fid_all_alike(int fd, struct fid *out)
{
    (void)fd;
    *out = (struct fid){1, 1};
    return 0;
}

static int fid_fails(int fd, struct fid *out)
{
    (void)fd;
    (void)out;
    return -EIO;
}

START_TEST(probes_agree_where_inodes_are_stable)
{
    open_job();
    ck_assert_msg(session_probe(fid_by_inode, err_text, sizeof(err_text)) == 0, "%s", err_text);
    ck_assert_int_eq(count_files(in_job("probes"), ""), 4);
    ck_assert_int_eq(session_probe(fid_by_inode, err_text, sizeof(err_text)), 0);
}
END_TEST

START_TEST(probes_find_numbers_that_differ)
{
    open_job();
    ck_assert_int_eq(session_probe(fid_by_order, err_text, sizeof(err_text)), -EXDEV);
    assert_says("inode");
    session_close();
    ck_assert_int_eq(open_as("job2", CHUNK), 0);
    ck_assert_int_eq(session_probe(fid_by_inode, err_text, sizeof(err_text)), 0);
    ck_assert_int_eq(session_probe(fid_of_another_node, err_text, sizeof(err_text)), -EXDEV);
    session_close();
    ck_assert_int_eq(open_as("job3", CHUNK), 0);
    ck_assert_int_eq(session_probe(fid_all_alike, err_text, sizeof(err_text)), -EXDEV);
}
END_TEST

START_TEST(probes_report_other_errors)
{
    open_job();
    ck_assert_int_eq(session_probe(fid_fails, err_text, sizeof(err_text)), -EIO);
    assert_says("--session");
    write_text(in_job("probes/fids"), "eddyfs probes 1\np0 junk\n");
    ck_assert_int_eq(session_probe(fid_by_inode, err_text, sizeof(err_text)), -EPROTO);
}
END_TEST

static int probe_as_node(int i)
{
    (void)i;
    if (open_as("job", CHUNK))
        return 1;
    return session_probe(fid_by_inode, err_text, sizeof(err_text)) ? 2 : 0;
}

START_TEST(probes_agree_when_all_nodes_start_together)
{
    in_processes(12, probe_as_node);
    open_job();
    ck_assert_int_eq(count_files(in_job("probes"), ""), 4);
}
END_TEST

START_TEST(nothing_works_without_a_session)
{
    struct member m = member(1), *nodes;
    struct view *v;
    uint64_t number;
    uint32_t n;
    ck_assert_int_eq(session_newest(&number), -EBADF);
    ck_assert_int_eq(session_read_view(1, &v), -EBADF);
    ck_assert_int_eq(make_view(1), -EBADF);
    ck_assert_int_eq(session_write_node(&m), -EBADF);
    ck_assert_int_eq(session_read_nodes(&nodes, &n), -EBADF);
    ck_assert_int_eq(session_write_dirty(1, NULL, 0), -EBADF);
    ck_assert_int_eq(session_probe(fid_by_inode, err_text, sizeof(err_text)), -EBADF);
}
END_TEST

static TCase *new_case(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_top, remove_top);
    suite_add_tcase(s, t);
    return t;
}

static void add_open_tests(TCase *t)
{
    tcase_add_test(t, open_makes_all_of_it_for_this_user_only);
    tcase_add_test(t, open_again_finds_the_same_secret);
    tcase_add_test(t, nodes_that_start_together_share_one_secret);
    tcase_add_test(t, bad_session_names_are_refused);
    tcase_add_test(t, directory_that_can_not_be_made_names_the_option);
    tcase_add_test(t, directory_that_others_can_write_to_is_refused);
    tcase_add_test(t, directory_of_another_user_is_refused);
    tcase_add_test(t, link_in_place_of_the_directory_is_refused);
    tcase_add_test(t, another_chunk_size_is_refused_and_names_the_right_one);
    tcase_add_test(t, another_protocol_is_refused);
    tcase_add_test(t, junk_settings_and_secrets_are_refused);
    tcase_add_test(t, clock_offset_of_a_local_directory_is_small);
    tcase_add_test(t, nothing_works_without_a_session);
    tcase_add_test(t, without_hard_links_names_are_still_given_once);
    tcase_add_test(t, without_links_and_exclusive_renames_open_says_what_to_do);
    tcase_add_test(t, link_whose_answer_was_lost_counts_as_made);
}

static void add_view_tests(TCase *t)
{
    tcase_add_test(t, view_is_made_found_and_read);
    tcase_add_test(t, view_number_is_given_once);
    tcase_add_test(t, one_of_many_makes_the_view_and_all_read_the_same);
    tcase_add_test(t, old_views_are_removed_and_stay_removed);
    tcase_add_test(t, numbers_sort_as_numbers_and_junk_names_are_not_views);
    tcase_add_test(t, leftovers_of_dead_makers_are_swept);
    tcase_add_test(t, view_file_of_another_number_or_kind_is_refused);
    tcase_add_test(t, view_that_readers_would_refuse_is_not_written);
    tcase_add_test(t, view_age_starts_again_with_a_touch);
    tcase_add_test(t, view_text_is_as_documented);
    tcase_add_loop_test(t, malformed_view_text_is_refused, 0, ARRAY_LEN(bad_views));
    tcase_add_test(t, view_text_cut_anywhere_is_refused);
    tcase_add_test(t, largest_view_fits);
}

static void add_other_tests(TCase *t)
{
    tcase_add_test(t, node_files_are_written_replaced_read_and_removed);
    tcase_add_test(t, bad_node_files_are_left_out);
    tcase_add_test(t, node_text_cut_anywhere_is_refused);
    tcase_add_test(t, dirty_names_survive_whatever_their_bytes);
    tcase_add_test(t, dirty_list_is_replaced_and_removed);
    tcase_add_test(t, dirty_lists_of_all_sessions_are_read_and_junk_is_passed_over);
    tcase_add_test(t, probes_agree_where_inodes_are_stable);
    tcase_add_test(t, probes_find_numbers_that_differ);
    tcase_add_test(t, probes_report_other_errors);
    tcase_add_test(t, probes_agree_when_all_nodes_start_together);
}

int main(void)
{
    Suite *s = suite_create("session");
    add_open_tests(new_case(s, "open"));
    add_view_tests(new_case(s, "views"));
    add_other_tests(new_case(s, "nodes, dirty lists, probes"));
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
