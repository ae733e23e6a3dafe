/* peer_twin.c - does a live daemon with this node's own id answer at an address?
 *
 * A node never talks to its own id.  So both sides end such a hello once both have proved themselves, and
 * each then knows that the other one lives (hello_proto.c). /
 */
#include "transport/peer_twin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/hello.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/peer.h"

/* One question at a time, of the thread that starts the daemon. */
static struct {
    struct lock lock; /* RANK_LEAF: answered and err */
    pthread_cond_t changed;
    bool answered;
    int err;
    uint64_t id;
    char addr[NODE_ADDR_MAX];
} twin;

static void ask(void *unused)
{
    (void)unused;
    hello_connect(twin.addr, twin.id, &twin);
}

bool peer_twin_failed(const void *arg, int err)
{
    if (arg != &twin)
        return false;
    lock_take(&twin.lock);
    twin.answered = true;
    twin.err = err;
    pthread_cond_broadcast(&twin.changed);
    lock_drop(&twin.lock);
    return true;
}

int peer_find_twin(uint64_t id, const char *addr)
{
    if (!strcmp(addr, peer_address())) /* this daemon has its port */
        return -ECONNREFUSED;
    lock_init(&twin.lock, RANK_LEAF);
    lock_cond_init(&twin.changed);
    twin.answered = false;
    twin.id = id;
    snprintf(twin.addr, sizeof(twin.addr), "%s", addr);
    loop_post(ask, NULL);
    lock_take(&twin.lock);
    while (!twin.answered)
        lock_wait(&twin.lock, &twin.changed, 0);
    lock_drop(&twin.lock);
    return twin.err;
}
