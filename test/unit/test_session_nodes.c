/* test_session_nodes.c - what nodes say of themselves in the session directory: node files, lists of
 * dirty files, probe files. */
#include "session_env.h"

#include <dlfcn.h>

#include "suite.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/view.h"

/* ---- nodes ---- */

/* A PFS that fails in the middle of a list. */
static bool lists_fail;

struct dirent *readdir(DIR *dir)
{
    static struct dirent *(*real)(DIR *dir);
    if (lists_fail) {
        errno = EIO;
        return NULL;
    }
    if (!real)
        real = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir64");
    return real(dir);
}

START_TEST(node_files_are_written_replaced_read_and_removed)
{
    struct member a = member(1), b = member(0xabcdef), got;
    open_job();
    ck_assert_int_eq(session_read_node(1, &got), -ENOENT);
    ck_assert_int_eq(session_write_node(&a), 0);
    ck_assert_int_eq(session_write_node(&b), 0);
    b.incarnation = 77;
    strcpy(b.addr, "[fe80::1]:9");
    ck_assert_int_eq(session_write_node(&b), 0);
    ck_assert_int_eq(session_read_node(1, &got), 0);
    ck_assert_str_eq(got.addr, a.addr);
    ck_assert_int_eq(session_read_node(0xabcdef, &got), 0);
    ck_assert_uint_eq(got.id, 0xabcdef);
    ck_assert_uint_eq(got.incarnation, 77);
    ck_assert_uint_eq(got.weight, 100);
    ck_assert_str_eq(got.addr, "[fe80::1]:9");
    ck_assert_str_eq(got.name, b.name);
    ck_assert_int_eq(session_remove_node(1), 0);
    ck_assert_int_eq(session_remove_node(1), 0);
    ck_assert_int_eq(session_read_node(1, &got), -ENOENT);
    ck_assert_int_eq(session_read_node(0xabcdef, &got), 0);
    ck_assert_int_eq(count_files(in_job("nodes"), ""), 1);
    strcpy(a.name, "no name");
    ck_assert_int_eq(session_write_node(&a), -EINVAL);
}
END_TEST

START_TEST(bad_node_files_are_refused)
{
    struct member good = member(5), got;
    open_job();
    ck_assert_int_eq(session_write_node(&good), 0);
    ck_assert_int_eq(link(in_job("nodes/0000000000000005"), in_job("nodes/0000000000000006")),
                     0); /* another's id */
    write_text(in_job("nodes/0000000000000007"), "junk");
    write_text(in_job("nodes/0000000000000008"), "");
    ck_assert_int_eq(truncate(in_job("nodes/0000000000000008"), 1 << 30), 0);
    ck_assert_int_eq(mkfifo(in_job("nodes/0000000000000009"), 0600), 0);
    ck_assert_int_eq(symlink("0000000000000005", in_job("nodes/000000000000000a")), 0);
    ck_assert_int_eq(session_read_node(5, &got), 0);
    ck_assert_uint_eq(got.id, 5);
    for (uint64_t id = 6; id <= 10; id++)
        ck_assert_msg(session_read_node(id, &got) < 0, "%u", (unsigned)id);
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
        {{1, 2}, (char *)"out/step 1.h5", 0, 0},
        {{3, 4}, (char *)"new\nline\\n and \\ and \xff\t", 5, 6},
        {{5, UINT64_MAX}, longest, INT64_MIN, INT64_MAX},
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

static int same_name(void *arg, const struct dirty_name *name)
{
    const struct dirty_name **next = arg;
    ck_assert(fid_eq(name->fid, (*next)->fid));
    ck_assert_str_eq(name->path, (*next)->path);
    ck_assert_int_eq(name->mtime_ns, (*next)->mtime_ns);
    ck_assert_int_eq(name->ctime_ns, (*next)->ctime_ns);
    ++*next;
    return 0;
}

START_TEST(dirty_names_keep_their_times)
{
    struct dirty_name names[] = {
        {{1, 2}, (char *)":a b", 1700000000123456789, 1700000000987654321},
        {{3, 4}, (char *)"not known", 0, 0},
        {{5, 6}, (char *)"before 1970", -1, INT64_MIN},
    };
    const struct dirty_name *next = names;
    open_job();
    ck_assert_int_eq(session_write_dirty(7, names, 3), 0);
    ck_assert_int_eq(session_write_dirty(8, names, 1), 0);
    ck_assert_int_eq(session_each_dirty_of(base, 7, same_name, &next), 0);
    ck_assert_ptr_eq(next, names + 3);
    ck_assert_int_eq(session_each_dirty(base, see, &seen), 0);
    ck_assert_int_eq(seen.n, 4);
    ck_assert_str_eq(seen.v[0].path, ":a b");
}
END_TEST

START_TEST(dirty_list_is_replaced_and_removed)
{
    struct dirty_name names[] = {{{1, 2}, (char *)"a", 0, 0}, {{3, 4}, (char *)"b", 0, 0}};
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
    struct dirty_name name = {{1, 2}, (char *)"mine", 0, 0};
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
    fprintf(f, "00000000000000010000000000000002:0000000000000001 one time\n"
               "00000000000000010000000000000002:0000000000000001:000000000000000x junk\n");
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

/* ---- marks of eddy forget ---- */

static void write_mark(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", in_job("forgotten"), name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(marks_are_written_replaced_read_and_removed)
{
    struct mark a = {.fid = {1, 2}, .node = 7, .incarnation = 3, .number = 17},
                all = {.node = 8, .incarnation = 4, .number = UINT64_MAX}, *list;
    uint32_t n;
    open_job();
    ck_assert_int_eq(session_write_mark(&a), 0);
    a.number = 18;
    ck_assert_int_eq(session_write_mark(&a), 0);
    ck_assert_int_eq(session_write_mark(&all), 0);
    ck_assert_int_eq(session_read_marks(0, &list, &n), 0);
    ck_assert_uint_eq(n, 2);
    free(list);
    ck_assert_int_eq(session_read_marks(7, &list, &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert(fid_eq(list[0].fid, a.fid) && list[0].node == 7 && list[0].incarnation == 3 &&
              list[0].number == 18);
    free(list);
    ck_assert_int_eq(session_remove_mark(&a), 0);
    ck_assert_int_eq(session_remove_mark(&a), 0);
    ck_assert_int_eq(session_read_marks(7, &list, &n), 0);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(what_is_no_mark_is_passed_over)
{
    char long_text[5001];
    struct mark *list;
    uint32_t n;
    memset(long_text, '9', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    open_job();
    write_mark("README", "hello\n");
    write_mark("ALL.7", "eddyfs forgotten 1\nincarnation 1\nnumber 1\n");
    write_mark("00000000000000000000000000000000.0000000000000007",
               "eddyfs forgotten 1\nincarnation 1\nnumber 1\n");
    write_mark("00000000000000010000000000000002.0000000000000007",
               "eddyfs forgotten 1\nincarnation 1\nnumber 1");
    write_mark("00000000000000010000000000000003.0000000000000007", "");
    write_mark("00000000000000010000000000000004.0000000000000007", long_text);
    ck_assert_int_eq(session_read_marks(0, &list, &n), 0);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(a_mark_covers_requests_up_to_its_own)
{
    struct mark m = {.fid = {1, 2}, .node = 7, .incarnation = 3, .number = 17},
                all = {.node = 7, .incarnation = 3, .number = UINT64_MAX};
    struct fid other = {1, 3};
    ck_assert(mark_covers(&m, m.fid, 3, 17) && mark_covers(&m, m.fid, 2, 99));
    ck_assert(!mark_covers(&m, m.fid, 3, 18) && !mark_covers(&m, m.fid, 4, 1));
    ck_assert(!mark_covers(&m, other, 3, 1));
    ck_assert(mark_covers(&all, other, 3, UINT64_MAX) && !mark_covers(&all, other, 4, 1));
}
END_TEST

START_TEST(a_list_that_fails_is_not_an_empty_one)
{
    struct mark *list, m = {.fid = {1, 2}, .node = 7, .incarnation = 3, .number = 9};
    struct dirty_name name = {.fid = {1, 2}, .path = "only/here"};
    uint64_t number;
    uint32_t n;
    open_job();
    ck_assert_int_eq(session_write_mark(&m), 0);
    ck_assert_int_eq(session_write_dirty(7, &name, 1), 0);
    lists_fail = true;
    int marks = session_read_marks(7, &list, &n), dirty = session_each_dirty(base, see, &seen);
    int newest = session_newest(&number);
    lists_fail = false;
    ck_assert_int_eq(marks, -EIO);
    ck_assert_int_eq(dirty, -EIO);
    ck_assert_int_eq(newest, -EIO);
    ck_assert_int_eq(session_read_marks(7, &list, &n), 0);
    ck_assert_uint_eq(n, 1);
    free(list);
}
END_TEST

static void add_mark_tests(TCase *t)
{
    tcase_add_test(t, marks_are_written_replaced_read_and_removed);
    tcase_add_test(t, what_is_no_mark_is_passed_over);
    tcase_add_test(t, a_mark_covers_requests_up_to_its_own);
}

static void add_node_tests(TCase *t)
{
    tcase_add_test(t, node_files_are_written_replaced_read_and_removed);
    tcase_add_test(t, bad_node_files_are_refused);
    tcase_add_test(t, node_text_cut_anywhere_is_refused);
}

static void add_dirty_tests(TCase *t)
{
    tcase_add_test(t, dirty_names_survive_whatever_their_bytes);
    tcase_add_test(t, dirty_names_keep_their_times);
    tcase_add_test(t, dirty_list_is_replaced_and_removed);
    tcase_add_test(t, a_list_that_fails_is_not_an_empty_one);
    tcase_add_test(t, dirty_lists_of_all_sessions_are_read_and_junk_is_passed_over);
}

static void add_probe_tests(TCase *t)
{
    tcase_add_test(t, probes_agree_where_inodes_are_stable);
    tcase_add_test(t, probes_find_numbers_that_differ);
    tcase_add_test(t, probes_report_other_errors);
    tcase_add_test(t, probes_agree_when_all_nodes_start_together);
}

int main(void)
{
    Suite *s = suite_create("session_nodes");
    add_node_tests(new_case(s, "nodes"));
    add_dirty_tests(new_case(s, "dirty lists"));
    add_probe_tests(new_case(s, "probes"));
    add_mark_tests(new_case(s, "marks"));
    return run_suite(s);
}
