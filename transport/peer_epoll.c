/* peer_epoll.c - UCX is told one thing at a time of a socket: that it can be read, or that it can be
 * written.
 *
 * For an event that says both, UCX's TCP (uct_tcp_iface_handle_events) reads first and then writes,
 * and does not ask whether the endpoint is still there.  Reading can free it: with the last word of
 * a peer that closed its endpoint by force (CONN_FIN), when ours was closed so too and still had
 * something to send.  Neither order of closing avoids that, and no setting does; so it must not
 * get such an event.  Told of the one, it finds the other when it asks again, which it does until
 * there is nothing left: epoll reports by level.  If the endpoint is gone then, so is its socket
 * from the set.
 *
 * This epoll_wait stands before the C library's for the whole program.  For everybody but UCX's
 * progress it is that one.
 */
#include <sys/epoll.h>

#include "transport/peer_int.h"

#define BOTH (EPOLLIN | EPOLLOUT)

static _Thread_local bool one_thing;
static _Thread_local uint32_t coin = 1;

void epoll_one_thing(bool on)
{
    one_thing = on;
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
    for (int i = 0; one_thing && i < n; i++)
        if ((events[i].events & BOTH) == BOTH)
            events[i].events &= ~(uint32_t)(toss() ? EPOLLIN : EPOLLOUT);
    return n;
}
