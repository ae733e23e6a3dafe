/* The log of moves in the session directory: its text, its order, its trimming; and the guesses that
 * placement/pfs/pfs_moves.c makes of it. */
#include <fcntl.h>
#include <sys/stat.h>

#include "placement/pfs/pfs_moves.h"
#include "session_env.h"
#include "transport/moves.h"

static const struct fid DIR_FID = {1, 2}, FILE_FID = {3, 4};

static uint64_t log_move(struct fid fid, const char *from, const char *to, bool exchange)
{
    struct session_move m = {.fid = fid, .exchange = exchange, .from = (char *)from, .to = (char *)to};
    ck_assert_int_eq(session_write_move(&m), 0);
    return m.number;
}

START_TEST(an_entry_is_read_as_it_was_written)
{
    static const char *const paths[] = {"a", "a/b c", "line\nfrom 3 x\n", "\xff\x01"};
    for (size_t k = 0; k < 4; k++) {
        struct session_move m = {.fid = {~UINT64_C(0), k},
                                 .exchange = k & 1,
                                 .last = k == 1,
                                 .open_at = k == 1 ? 0xa1 : 0,
                                 .open_inc = k == 1 ? 7 : 0,
                                 .from = (char *)paths[k],
                                 .to = (char *)(k == 1 ? "" : paths[3 - k])};
        struct session_move back;
        size_t len;
        char *text = move_print(&m, &len);
        ck_assert_int_eq(move_parse(text, len, &back), 0);
        ck_assert(fid_eq(back.fid, m.fid) && back.exchange == m.exchange && back.last == m.last);
        ck_assert(back.open_at == m.open_at && back.open_inc == m.open_inc);
        ck_assert_str_eq(back.from, m.from);
        ck_assert_str_eq(back.to, m.to);
        move_free(&back);
        const char *open = strstr(text, "\nopen ");
        size_t closed = open ? (size_t)(open - text) + 1 : len;
        for (size_t cut = 0; cut < len; cut++)
            if (cut != closed) /* without its last line it is one of a file that nobody had open */
                ck_assert_int_eq(move_parse(text, cut, &back), -EPROTO);
        free(text);
    }
    char *longest = xcalloc(PATH_BYTES_MAX + 2, 1);
    memset(longest, 'p', PATH_BYTES_MAX);
    struct session_move m = {.from = longest, .to = longest}, back;
    size_t len;
    char *text = move_print(&m, &len);
    ck_assert_int_eq(move_parse(text, len, &back), 0);
    ck_assert_uint_eq(strlen(back.to), PATH_BYTES_MAX);
    move_free(&back);
    free(text);
    longest[PATH_BYTES_MAX] = 'p';
    text = move_print(&m, &len);
    ck_assert_int_eq(move_parse(text, len, &back), -EPROTO);
    free(text);
    free(longest);
}
END_TEST

static int collect(void *arg, const struct session_move *m)
{
    char *all = arg;
    sprintf(all + strlen(all), "%llu:%s ", (unsigned long long)m->number, m->to);
    return 0;
}

START_TEST(entries_come_in_their_order)
{
    open_job();
    char got[256] = "";
    for (int k = 0; k < 12; k++) {
        char to[8];
        snprintf(to, sizeof(to), "t%d", k);
        ck_assert_uint_eq(log_move(DIR_FID, "f", to, false), (uint64_t)k + 1);
    }
    ck_assert_int_eq(session_drop_move(11), 0);
    ck_assert_int_eq(session_drop_move(11), 0);
    ck_assert_int_eq(session_each_move(8, collect, got), 0);
    ck_assert_str_eq(got, "9:t8 10:t9 12:t11 ");
    ck_assert_uint_eq(log_move(DIR_FID, "f", "failed", false), 13);
    ck_assert_int_eq(session_drop_move(13), 0); /* other nodes may have read it: they read what comes after it */
    ck_assert_uint_eq(log_move(DIR_FID, "f", "last", false), 14);
    got[0] = '\0';
    ck_assert_int_eq(session_each_move(12, collect, got), 0);
    ck_assert_str_eq(got, "14:last ");
}
END_TEST

static void make_old(const char *name, int hours)
{
    int fd = openat(session_dirfd(), name, O_RDONLY | O_CREAT, 0600);
    struct timespec ts[2];
    ck_assert_int_ge(fd, 0);
    clock_gettime(CLOCK_REALTIME, &ts[0]);
    ts[0].tv_sec -= hours * 3600;
    ts[1] = ts[0];
    ck_assert_int_eq(futimens(fd, ts), 0);
    close(fd);
}

START_TEST(an_entry_stays_as_long_as_a_list_of_dirty_files_may_need_it)
{
    open_job();
    char got[256] = "";
    for (int k = 0; k < 5; k++)
        log_move(DIR_FID, "f", "t", false);
    make_old("moves/00000001", 30);
    make_old("moves/00000002", 20);
    make_old("moves/00000003", 10);
    make_old("dirty/00000000000000aa", 15);
    ck_assert_int_eq(session_trim_moves(), 0);
    ck_assert_int_eq(session_each_move(0, collect, got), 0);
    ck_assert_str_eq(got, "3:t 4:t 5:t ");
    unlinkat(session_dirfd(), "dirty/00000000000000aa", 0);
    ck_assert_int_eq(session_trim_moves(), 0);
    got[0] = 0;
    ck_assert_int_eq(session_each_move(0, collect, got), 0);
    ck_assert_str_eq(got, "4:t 5:t ");
}
END_TEST

static void expect_guesses(const char *path, struct fid fid, uint64_t since, const char *expected)
{
    char all[512] = "", *guess;
    for (size_t n = 0; (guess = moves_guess(path, fid, since, n)); n++) {
        strcat(all, guess);
        strcat(all, " ");
        free(guess);
    }
    ck_assert_str_eq(all, expected);
}

START_TEST(guesses_follow_a_path_from_each_entry_on)
{
    open_job();
    log_move(DIR_FID, "a/b", "a/c", false);
    log_move(DIR_FID, "x", "a/b", false);
    log_move(DIR_FID, "a", "d", false);
    ck_assert_uint_eq(moves_read(), 3);
    expect_guesses("a/b/f", FILE_FID, 0, "d/b/f d/c/f ");
    expect_guesses("a/b/f", FILE_FID, 2, "d/b/f ");
    expect_guesses("x/f", FILE_FID, 0, "d/b/f ");
    expect_guesses("ab/f", FILE_FID, 0, "");
    log_move(DIR_FID, "d", "e", true);
    moves_read();
    expect_guesses("e/f", FILE_FID, 0, "d/f ");
    expect_guesses("d/f", FILE_FID, 0, "e/f ");
    log_move(FILE_FID, "p/f", "q/g", false);
    log_move(FILE_FID, "p/gone", "", false);
    moves_read();
    expect_guesses("p/f", FILE_FID, 0, "q/g ");
    expect_guesses("p/f", DIR_FID, 0, ""); /* another file's */
    expect_guesses("p/gone", FILE_FID, 0, "");
    ck_assert(moves_say_removed("p/gone", FILE_FID));
    ck_assert(!moves_say_removed("p/gone", DIR_FID) && !moves_say_removed("p/f", FILE_FID));
}
END_TEST

START_TEST(a_file_that_lost_its_last_name_is_gone)
{
    open_job();
    log_move(FILE_FID, "p/one-of-two", "", false);
    moves_read();
    ck_assert(!moves_say_gone(FILE_FID));
    moves_log_gone(FILE_FID, NULL, false); /* its path is not known */
    ck_assert(!moves_say_gone(FILE_FID)); /* not read yet */
    moves_log_gone(DIR_FID, "p/gone", false);
    ck_assert_uint_eq(moves_read(), 3);
    ck_assert(moves_say_gone(FILE_FID) && moves_say_gone(DIR_FID));
    ck_assert(!moves_say_removed("p/gone", DIR_FID)); /* it has no others */
    ck_assert(!moves_say_gone((struct fid){5, 6}));
    struct session_move open = {
        .fid = {5, 6}, .from = (char *)"p/open", .to = (char *)"", .last = true, .open_at = 0xa1, .open_inc = 1};
    ck_assert_int_eq(session_write_move(&open), 0);
    moves_read();
    ck_assert_int_eq(moves_say_gone((struct fid){5, 6}), MOVES_GONE_MAY_BE_OPEN);
    moves_log_gone((struct fid){5, 6}, "p/open", false);
    moves_read();
    ck_assert_int_eq(moves_say_gone((struct fid){5, 6}), MOVES_GONE);
    struct session_move m = {.from = (char *)"a", .to = (char *)"b", .last = true}, back;
    size_t len;
    char *text = move_print(&m, &len);
    ck_assert_int_eq(move_parse(text, len, &back), -EPROTO); /* what has a path now is not gone */
    free(text);
    m = (struct session_move){.from = (char *)"a", .to = (char *)"", .open_at = 1, .open_inc = 2};
    text = move_print(&m, &len);
    ck_assert_int_eq(move_parse(text, len, &back), -EPROTO); /* who has it open is said of a last name only */
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("session_moves");
    TCase *t = new_case(s, "moves");
    tcase_add_test(t, an_entry_is_read_as_it_was_written);
    tcase_add_test(t, entries_come_in_their_order);
    tcase_add_test(t, an_entry_stays_as_long_as_a_list_of_dirty_files_may_need_it);
    tcase_add_test(t, a_file_that_lost_its_last_name_is_gone);
    tcase_add_test(t, guesses_follow_a_path_from_each_entry_on);
    return run_suite(s);
}
