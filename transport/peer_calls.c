/* peer_calls.c - three calls of the C library as UCX needs them.
 *
 * epoll_wait: UCX is told one thing at a time of a socket: that it can be read, or that it can be
 * written.  For an event that says both, UCX's TCP (uct_tcp_iface_handle_events) reads first and then
 * writes, and does not ask whether the endpoint is still there.  Reading can free it: with the last
 * word of a peer that closed its endpoint by force (CONN_FIN), when ours was closed so too and still
 * had something to send.  Neither order of closing avoids that, and no setting does; so it must not
 * get such an event.  Told of the one, it finds the other when it asks again, which it does until
 * there is nothing left: epoll reports by level.  If the endpoint is gone then, so is its socket
 * from the set.
 *
 * send, sendmsg: to a connection that has ended UCX seems to send; that it has ended is found by the
 * next read.  Told of it by the send, while it works off what waited for the connection, UCX purges
 * the endpoint of all that waits but of what it is just sending, and aborts: "pending_count == 0".
 * So a node that died while it connected took others along.  What is lost is what a peer that dies a
 * moment later does not read either.
 *
 * These stand before the C library's for the whole program.  For everybody but UCX's progress they
 * are those.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/peer_int.h"

#define BOTH (EPOLLIN | EPOLLOUT)

static _Thread_local bool in_ucx;
static _Thread_local uint32_t coin = 1;

void calls_are_ucx(bool on)
{
    in_ucx = on;
}

/* By chance (xorshift; Marsaglia 2003): two busy sockets take turns in the kernel's list, and with a
 * fixed order each could be told the same thing for ever. */
static bool toss(void)
{
    coin ^= coin << 13;
    coin ^= coin >> 17;
    coin ^= coin << 5;
    return coin >> 31;
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
    int n = epoll_pwait(epfd, events, max, timeout_ms, NULL); /* the same but for its name */
    for (int i = 0; in_ucx && i < n; i++)
        if ((events[i].events & BOTH) == BOTH)
            events[i].events &= ~(uint32_t)(toss() ? EPOLLIN : EPOLLOUT);
    return n;
}

/* The errors after which a read finds the end. */
static bool has_ended(ssize_t sent)
{
    return in_ucx && sent < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    ssize_t n = sendto(fd, buf, len, flags, NULL, 0);
    return has_ended(n) ? (ssize_t)len : n;
}

static size_t length_of(const struct msghdr *m)
{
    size_t len = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++)
        len += m->msg_iov[i].iov_len;
    return len;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    ssize_t n = syscall(SYS_sendmsg, fd, m, flags);
    return has_ended(n) ? (ssize_t)length_of(m) : n;
}
