/* peer_calls.c - three calls of the C library as UCX needs them.
 *
 * epoll_wait tells UCX one thing at a time of a socket: that it can be read, or that it can be
 * written.  If an event says both, UCX's TCP (uct_tcp_iface_handle_events) reads first and then
 * writes, and does not check whether the endpoint still exists.  Reading can free the endpoint: when the
 * peer's last message after a forced close comes (CONN_FIN), and our endpoint was closed by force, too, and
 * still had something to send.  No order of closing avoids that, and no setting does.  So UCX must not
 * get such an event.  epoll reports by level, and UCX asks again until nothing is left.  So it gets the
 * other thing with a later call.  If the endpoint is freed by then, its socket is no longer in the set.
 *
 * send and sendmsg report success for a connection that has ended; the next read finds the end.  If send
 * reported the end while UCX sends the messages that waited for the connection, UCX would remove all
 * waiting messages from the endpoint except the one that it is sending, and abort: "pending_count == 0".
 * So a node that died while it connected ended other nodes.  The messages that are lost are such as a peer
 * that dies a moment later does not read either.
 *
 * These functions replace the C library's in the whole program.  Outside of UCX's progress they do the
 * same as the C library's.
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

/* Chosen by chance (xorshift; Marsaglia 2003): two busy sockets take turns in the kernel's list, and with a
 * fixed order UCX could be told the same thing of each for ever. */
static bool toss(void)
{
    coin ^= coin << 13;
    coin ^= coin >> 17;
    coin ^= coin << 5;
    return coin >> 31;
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
    int n = epoll_pwait(epfd, events, max, timeout_ms, NULL); /* the same, except for its name */
    for (int i = 0; in_ucx && i < n; i++)
        if ((events[i].events & BOTH) == BOTH)
            events[i].events &= ~(uint32_t)(toss() ? EPOLLIN : EPOLLOUT);
    return n;
}

/* Is it an error after which a read finds the end of the connection? */
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
