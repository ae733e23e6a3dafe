/* look_leave.c - LEAVE: tells homes that this node does not look at files any more.
 *
 * It is a note, sent LEAVE_MS after the first close in one message to each home.  If it is lost, or comes in
 * another view, the home breaks a file at this node once more than it needs to.
 */
#include "placement/claims/look_int.h"

#include "placement/ring/ring.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#include <stdlib.h>

#define LEAVE_MS 1000

/* In the order of the closes. */
static struct {
    struct lock lock; /* RANK_LEAF */
    struct item_left *v;
    uint32_t n, room;
} left = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static struct loop_timer *timer; /* network thread; NULL: not started */

static bool is_alone(void)
{
    const struct view *v = members_view();
    return !v || v->nmembers == 1;
}

/* One piece of what one home is told. */
static void send_leave(uint64_t home, struct item_left *v, uint32_t n)
{
    struct msg *m = msg_new(MSG_LEAVE);
    m->leave.files.n = n;
    m->leave.files.v = v;
    peer_send(home, m);
}

/* Moves the files of v's home to the front; answers how many there are. */
static uint32_t gather(const struct ring *ring, struct item_left *v, uint32_t n)
{
    uint64_t home = ring_home(ring, v->fid, 0);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n && k < MSG_PIECE_ITEMS; i++) {
        struct item_left item = v[i];
        if (ring_home(ring, item.fid, 0) != home)
            continue;
        v[i] = v[k];
        v[k++] = item;
    }
    return k;
}

static void tell(const struct ring *ring, struct item_left *v, uint32_t n)
{
    while (n) {
        uint32_t k = gather(ring, v, n);
        uint64_t home = ring_home(ring, v->fid, 0);
        if (home)
            send_leave(home, v, k);
        v += k;
        n -= k;
    }
}

static void tick(void *arg)
{
    (void)arg;
    lock_take(&left.lock);
    struct item_left *v = left.v;
    uint32_t n = left.n;
    left.v = NULL;
    left.n = left.room = 0;
    lock_drop(&left.lock);
    if (!is_alone())
        tell(ring_of(members_view()), v, n);
    free(v);
}

static void arm(void *arg)
{
    (void)arg;
    if (timer)
        loop_timer_set(timer, LEAVE_MS, 0);
}

void look_left(struct fid fid, uint64_t number)
{
    if (is_alone())
        return;
    lock_take(&left.lock);
    bool first = !left.n;
    if (left.n == left.room) {
        left.room = MAX(2 * left.room, 64u);
        left.v = xrealloc(left.v, left.room * sizeof(*left.v));
    }
    left.v[left.n++] = (struct item_left){fid, number};
    lock_drop(&left.lock);
    if (first)
        loop_post(arm, NULL);
}

void look_leave_start(void)
{
    timer = loop_timer_new(tick, NULL);
}

void look_leave_stop(void)
{
    loop_timer_free(timer);
    timer = NULL;
    free(left.v);
    left.v = NULL;
    left.n = left.room = 0;
}
