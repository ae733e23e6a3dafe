/* test_session_end.c - a session ends: its directory goes, whoever comes meanwhile. */
#include "session_env.h"
#include "suite.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/session_end.h"
#include "transport/session_int.h"
#include "transport/view.h"

static int make_empty(uint64_t number, bool closed)
{
    struct view v = {.number = number, .closed = closed};
    return session_make_view(&v);
}

static bool is_there(void)
{
    return !access(in_job(""), F_OK);
}

START_TEST(the_last_node_leaves_nothing)
{
    struct member m = member(1);
    open_job();
    ck_assert_int_eq(session_write_node(&m), 0);
    ck_assert_int_eq(make_empty(1, false), 0);
    ck_assert_int_eq(session_end(1), 0);
    ck_assert(!is_there());
    session_close();
    open_job(); /* another one */
    uint64_t newest;
    ck_assert_int_eq(session_newest(&newest), 0);
    ck_assert_uint_eq(newest, 0);
}
END_TEST

START_TEST(what_others_need_stays)
{
    struct dirty_name name = {.fid = {1, 2}, .path = (char *)"out/file"};
    struct mark mark = {.fid = {1, 2}, .node = 3, .incarnation = 1, .number = 1};
    open_job();
    ck_assert_int_eq(make_view(1), 0); /* has members */
    ck_assert_int_eq(session_end(99), -EBUSY);
    struct absent a = absent(3);
    struct view v = {.number = 2, .nabsent = 1, .absents = &a};
    ck_assert_int_eq(session_make_view(&v), 0);
    ck_assert_int_eq(session_end(99), -ENOTEMPTY);
    ck_assert_int_eq(make_empty(3, false), 0);
    ck_assert_int_eq(session_write_dirty(7, &name, 1), 0);
    ck_assert_int_eq(session_end(99), -ENOTEMPTY);
    ck_assert_int_eq(session_write_dirty(7, NULL, 0), 0);
    ck_assert_int_eq(session_write_mark(&mark), 0);
    ck_assert_int_eq(session_end(99), -ENOTEMPTY);
    ck_assert(is_there() && !access(in_job("secret"), F_OK));
    ck_assert_int_eq(session_remove_mark(&mark), 0);
    ck_assert_int_eq(session_end(99), 0);
    ck_assert(!is_there());
}
END_TEST

/* What a person names by mistake: nothing of it is a session's. */
START_TEST(other_directories_are_no_sessions)
{
    open_job();
    int fd = session_dirfd();
    ck_assert_int_eq(session_is_one(fd, true), 1);
    ck_assert_int_eq(make_empty(1, false), 0);
    ck_assert_int_eq(session_is_one(fd, true), 1);
    FILE *f = fopen(in_job("views/notes.txt"), "w");
    fclose(f);
    ck_assert_int_eq(session_is_one(fd, true), 0);
    ck_assert_int_eq(unlink(in_job("views/notes.txt")), 0);
    f = fopen(in_job(".new-1"), "w");
    fclose(f);
    ck_assert_int_eq(session_is_one(fd, true), 1);
    f = fopen(in_job("passwd"), "w");
    fclose(f);
    ck_assert_int_eq(session_is_one(fd, true), 0);
    ck_assert_int_eq(session_is_one(fd, false), 0);
    ck_assert_int_eq(unlink(in_job("passwd")), 0);
    ck_assert_int_eq(mkdir(in_job("empty"), 0700), 0);
    ck_assert_int_eq(session_is_one(fd, true), 0);
    int empty = open(in_job("empty"), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(session_is_one(empty, true), 0);
    ck_assert_int_eq(session_is_one(empty, false), 1); /* which has a name that nobody else gives */
    close(empty);
    ck_assert_int_eq(rmdir(in_job("empty")), 0);
    ck_assert_int_eq(session_is_one(fd, true), 1);
}
END_TEST

/* A directory of somebody's has the session's name: it is left as it is, whatever its files are called. */
START_TEST(a_directory_of_other_files_is_left_as_it_is)
{
    static const char *const files[] = {"results.csv", "views/index.html", "settings"};
    ck_assert(!mkdir(base, 0700) && !mkdir(in_job(""), 0700) && !mkdir(in_job("views"), 0700));
    for (size_t n = 0; n < ARRAY_LEN(files); n++) {
        write_text(in_job(files[n]), "precious");
        int before = count_files(in_job(""), "");
        ck_assert_int_ne(open_as("job", CHUNK), 0);
        assert_says("choose another name with --session");
        ck_assert_int_eq(count_files(in_job(""), ""), before);
        ck_assert_int_eq(access(in_job(files[n]), F_OK), 0);
        ck_assert_int_eq(unlink(in_job(files[n])), 0);
    }
}
END_TEST

/* Somebody has put a file into a session's directory: it is there when the session has ended, and after the next start. */
START_TEST(a_file_that_is_no_sessions_outlives_it)
{
    open_job();
    write_text(in_job("notes.txt"), "precious");
    ck_assert_int_eq(make_empty(1, false), 0);
    ck_assert_int_eq(session_end(1), -ENOTEMPTY);
    session_close();
    ck_assert_int_eq(count_files(in_job(""), ""), 1);
    ck_assert_int_ne(open_as("job", CHUNK), 0);
    ck_assert_int_eq(access(in_job("notes.txt"), F_OK), 0);
    ck_assert_int_eq(unlink(in_job("notes.txt")), 0);
    open_job();
    session_close();
}
END_TEST

/* It read views/ before the session was closed, and goes on when all is gone but views/, or when that is gone, too. */
START_TEST(a_view_that_comes_late_does_not_count)
{
    open_job();
    ck_assert_int_eq(make_empty(1, false), 0);
    ck_assert_int_eq(make_empty(2, true), 0);
    ck_assert_int_eq(make_view(2), -EEXIST);
    ck_assert_int_eq(unlink(in_job("settings")), 0);
    ck_assert_int_eq(unlink(in_job("views/000002")), 0);
    ck_assert_int_eq(make_view(2), -ESTALE);
    ck_assert_int_eq(count_files(in_job("views"), "000002"), 0);
    ck_assert_int_eq(session_end(1), 0);
    ck_assert_int_eq(make_view(2), -ENOENT);
    ck_assert(session_is_over(NULL, -ENOENT));
    ck_assert(!session_is_over(NULL, -EIO));
}
END_TEST

/* At each moment of a removal another node comes: it gets a session that is whole. */
START_TEST(remains_give_way_to_another_session)
{
    static const char *const gone[] = {"settings", "secret", "views/000001", "views/000002", NULL};
    for (size_t n = 0; n < ARRAY_LEN(gone); n++) {
        open_job();
        ck_assert_int_eq(make_empty(1, false), 0);
        ck_assert_int_eq(make_empty(2, true), 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(unlink(in_job(gone[i])), 0);
        session_close();
        uint64_t newest = 99;
        open_job();
        ck_assert_int_eq(session_newest(&newest), 0);
        ck_assert_uint_eq(newest, 0);
        ck_assert_int_eq(make_view(1), 0);
        ck_assert_int_eq(unlink(in_job("views/000001")), 0);
        ck_assert_int_eq(session_end(1), 0);
        session_close();
    }
    ck_assert_int_eq(count_files(base, ""), 0);
}
END_TEST

/* Who is slow with removing has only the old directory in hand. */
START_TEST(a_slow_remover_takes_nothing_of_the_next_session)
{
    open_job();
    ck_assert_int_eq(make_empty(1, true), 0);
    int old = dup(session_dirfd()), base_fd = open(base, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(session_end(1), 0);
    session_close();
    open_job();
    ck_assert_int_eq(make_view(1), 0);
    ck_assert_int_eq(session_remove(base_fd, "job", old), -ENOTEMPTY);
    ck_assert_int_eq(access(in_job("secret"), F_OK), 0);
    ck_assert_int_eq(access(in_job("views/000001"), F_OK), 0);
    close(old);
    close(base_fd);
}
END_TEST

/* A node still has the directory open that the last one removed, at any step of its own. */
START_TEST(a_directory_that_is_gone_is_no_session)
{
    open_job();
    ck_assert_int_eq(session_is_open(session_dirfd()), 1);
    ck_assert_int_eq(session_has_settings(session_dirfd()), 1);
    int fd = dup(session_dirfd());
    session_end(1);
    ck_assert_int_eq(count_files(base, ""), 0);
    ck_assert_int_eq(session_has_settings(fd), 0);
    ck_assert_int_eq(session_is_open(fd), 0);
    close(fd);
}
END_TEST

/* The number of a view that leaves nobody out; 0: others are in it, or it is over. */
static uint64_t free_number(void)
{
    struct view *v;
    uint64_t newest;
    if (session_newest(&newest))
        return 0;
    if (!newest)
        return 1;
    if (session_read_view(newest, &v))
        return 0;
    bool is_free = !v->nmembers && !v->closed;
    view_free(v);
    return is_free ? newest + 1 : 0;
}

static int come_and_go(int i)
{
    for (int round = 0; round < 20; round++) {
        struct member m = member((uint64_t)i + 1);
        struct view v = {.nmembers = 1, .members = &m};
        if (open_as("job", CHUNK)) {
            fprintf(stderr, "process %d, round %d: %s\n", i, round, err_text);
            return 1;
        }
        v.number = free_number();
        int err = v.number ? session_make_view(&v) : -EBUSY;
        if (!err) { /* nobody else is a member now: the directory is this node's until it makes the next view */
            struct stat st, named;
            struct view *mine = NULL;
            if (fstat(session_dirfd(), &st) || stat(in_job(""), &named) || st.st_ino != named.st_ino)
                return 2;
            if (session_has_settings(session_dirfd()) != 1 || session_read_view(v.number, &mine))
                return 4;
            view_free(mine);
            err = make_empty(v.number + 1, false);
            if (err && err != -ESTALE) { /* that one: another node has found this view already, and closed the session */
                fprintf(stderr, "process %d, round %d: view %llu: %s\n", i, round, (unsigned long long)v.number + 1,
                        strerror(-err));
                return 3;
            }
        }
        session_end(m.id);
        session_close();
    }
    return 0;
}

START_TEST(who_joins_is_in_the_session_of_that_name)
{
    in_processes(8, come_and_go);
    open_job();
    session_end(1);
    ck_assert_int_eq(count_files(base, ""), 0);
}
END_TEST

START_TEST(closed_views_have_no_nodes)
{
    static const char good[] = "eddyfs view 1\nnumber 7\nmembers 0\nabsent 0\nclosed\nend\n",
                      bad[] = "eddyfs view 1\nnumber 7\nmembers 0\nabsent 1\nabsent b0417fe13c2299aa 2 node019\nclosed\nend\n";
    struct view *v;
    size_t len;
    ck_assert_int_eq(view_parse(good, strlen(good), &v), 0);
    ck_assert(v->closed);
    char *text = view_print(v, &len);
    ck_assert_str_eq(text, good);
    free(text);
    view_free(v);
    ck_assert_int_eq(view_parse(bad, strlen(bad), &v), -EPROTO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("session_end");
    TCase *t = new_case(s, "end");
    tcase_add_test(t, the_last_node_leaves_nothing);
    tcase_add_test(t, what_others_need_stays);
    tcase_add_test(t, other_directories_are_no_sessions);
    tcase_add_test(t, a_directory_of_other_files_is_left_as_it_is);
    tcase_add_test(t, a_file_that_is_no_sessions_outlives_it);
    tcase_add_test(t, a_view_that_comes_late_does_not_count);
    tcase_add_test(t, remains_give_way_to_another_session);
    tcase_add_test(t, a_slow_remover_takes_nothing_of_the_next_session);
    tcase_add_test(t, a_directory_that_is_gone_is_no_session);
    tcase_add_test(t, who_joins_is_in_the_session_of_that_name);
    tcase_add_test(t, closed_views_have_no_nodes);
    return run_suite(s);
}
