/* test_peer_calls.c - what UCX's calls of epoll_wait, send and sendmsg are told of a socket. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "suite.h"
#include "transport/peer_int.h"

#define SOCKETS 2
#define ASKED   1000

static int set, ends[SOCKETS][2];

/* Sockets that can be both read and written. */
static void begin(void)
{
    set = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_ge(set, 0);
    for (unsigned i = 0; i < SOCKETS; i++) {
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.u32 = i};
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]), 0);
        ck_assert_int_eq(send(ends[i][1], "x", 1, 0), 1);
        ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_ADD, ends[i][0], &e), 0);
    }
}

static void end(void)
{
    calls_are_ucx(false);
    close(set);
    for (unsigned i = 0; i < SOCKETS; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

START_TEST(others_are_told_both_at_once)
{
    struct epoll_event e[SOCKETS];
    ck_assert_int_eq(epoll_wait(set, e, SOCKETS, 0), SOCKETS);
    for (unsigned i = 0; i < SOCKETS; i++)
        ck_assert_uint_eq(e[i].events, EPOLLIN | EPOLLOUT);
}
END_TEST

/* One event a call, as UCX asks (UCX_TCP_MAX_POLL): the sockets take turns. */
START_TEST(each_socket_is_told_the_one_and_the_other)
{
    unsigned in[SOCKETS] = {0}, out[SOCKETS] = {0};
    calls_are_ucx(true);
    for (unsigned i = 0; i < ASKED; i++) {
        struct epoll_event e;
        ck_assert_int_eq(epoll_wait(set, &e, 1, 0), 1);
        ck_assert(e.events == EPOLLIN || e.events == EPOLLOUT);
        in[e.data.u32] += e.events == EPOLLIN;
        out[e.data.u32] += e.events == EPOLLOUT;
    }
    for (unsigned i = 0; i < SOCKETS; i++) {
        ck_assert_uint_gt(in[i], ASKED / SOCKETS / 4);
        ck_assert_uint_gt(out[i], ASKED / SOCKETS / 4);
    }
}
END_TEST

START_TEST(what_is_one_thing_is_told_as_it_is)
{
    char c;
    struct epoll_event e;
    ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_DEL, ends[1][0], NULL), 0);
    calls_are_ucx(true);
    ck_assert_int_eq(recv(ends[0][0], &c, 1, 0), 1);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(epoll_wait(set, &e, 1, 0), 1);
        ck_assert_uint_eq(e.events, EPOLLOUT);
    }
    ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_DEL, ends[0][0], NULL), 0);
    ck_assert_int_eq(epoll_wait(set, &e, 1, 0), 0);
    close(set);
    ck_assert_int_eq(epoll_wait(set, &e, 1, 0), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

static ssize_t send_message(int fd)
{
    struct iovec part[] = {{.iov_base = "ab", .iov_len = 2}, {.iov_base = "cde", .iov_len = 3}};
    struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};
    return sendmsg(fd, &m, MSG_NOSIGNAL);
}

START_TEST(a_send_to_a_connection_that_has_ended_is_an_error_to_others)
{
    shutdown(ends[0][0], SHUT_RDWR);
    ck_assert_int_eq(send(ends[0][1], "x", 1, MSG_NOSIGNAL), -1);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert_int_eq(send_message(ends[0][1]), -1);
    ck_assert_int_eq(errno, EPIPE);
}
END_TEST

START_TEST(ucx_finds_the_end_of_a_connection_by_reading)
{
    char c;
    shutdown(ends[0][0], SHUT_RDWR);
    calls_are_ucx(true);
    ck_assert_int_eq(send(ends[0][1], "xyz", 3, MSG_NOSIGNAL), 3);
    ck_assert_int_eq(send_message(ends[0][1]), 5);
    ck_assert_int_eq(recv(ends[0][1], &c, 1, 0), 0);
}
END_TEST

START_TEST(other_errors_of_a_send_are_told)
{
    static char much[1 << 16];
    ssize_t n;
    calls_are_ucx(true);
    ck_assert_int_eq(send_message(ends[0][1]), 5);
    while ((n = send(ends[0][1], much, sizeof(much), MSG_DONTWAIT)) > 0)
        ;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(send(set, "x", 1, 0), -1);
    ck_assert_int_eq(errno, ENOTSOCK);
}
END_TEST

/* The libraries find ours before the C library's: else nothing here would be of use. */
START_TEST(ucx_calls_ours)
{
    static const char *const calls[] = {"epoll_wait", "send", "sendmsg"};
    Dl_info ours, found;
    ck_assert(dladdr((void *)begin, &ours));
    for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
        void *f = dlsym(RTLD_DEFAULT, calls[i]);
        ck_assert(f && dladdr(f, &found));
        ck_assert_msg(found.dli_fbase == ours.dli_fbase, "%s of %s", calls[i], found.dli_fname);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("peer_calls");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, others_are_told_both_at_once);
    tcase_add_test(t, each_socket_is_told_the_one_and_the_other);
    tcase_add_test(t, what_is_one_thing_is_told_as_it_is);
    tcase_add_test(t, a_send_to_a_connection_that_has_ended_is_an_error_to_others);
    tcase_add_test(t, ucx_finds_the_end_of_a_connection_by_reading);
    tcase_add_test(t, other_errors_of_a_send_are_told);
    tcase_add_test(t, ucx_calls_ours);
    return run_case("peer_calls", t);
}
