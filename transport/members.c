/* members.c - views, leases and joining (docs/protocol.md, rules 1-5, 15, 16, 18).
 *
 * The views on the PFS decide which nodes are members.  The code here decides which node writes the next
 * view, when, and how long a node may act under the view that it has.  A node's life:
 *
 *     outside --(all members answer: asks the keeper; no member left: makes a view)--> member
 *     member  --(reads a view without itself)--> outside (fenced)
 *     member  --(members_leave)--> gone, not absent
 *
 * All state but the atomics in members_now belongs to the network thread.  Access to the session
 * directory is a job in pool_session that posts its result back: read_job (newest views, touch) and
 * make_job (one new view).  At most one of each is in progress.  A timer calls tick twice a second, which
 * looks at everything; messages and jobs only record facts, and may call tick early.
 */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/members_ping.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/session_end.h"
#include "transport/view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY_WAITING_MS 3000
#define TICK_MS       500
#define READ_AGAIN_MS 50

static const struct view **views; /* by number, as far as they were read */
static uint64_t views_size;
static struct loop_timer *timer;

struct members_state members_st;
struct members_shared members_now;

/* ---- looking at views ---- */

const struct member *view_member(const struct view *v, uint64_t id)
{
    uint32_t lo = 0, hi = v ? v->nmembers : 0;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (v->members[mid].id == id)
            return &v->members[mid];
        if (v->members[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

bool view_has(const struct view *v, uint64_t id, uint64_t incarnation)
{
    const struct member *m = view_member(v, id);
    return m && m->incarnation == incarnation;
}

const struct view *members_view(void)
{
    return members_now.adopted;
}
uint64_t members_newest(void)
{
    return members_now.newest;
}
uint64_t members_self(void)
{
    return members_st.cfg.self.id;
}
uint64_t members_incarnation(void)
{
    return members_st.cfg.self.incarnation;
}
bool members_lease(void)
{
    return !members_now.leaving && boot_ms() < members_now.lease_until_ms;
}
uint64_t members_lease_left(void)
{
    uint64_t until = members_now.lease_until_ms, now = boot_ms();
    return !members_now.leaving && until > now ? until - now : 0;
}
uint64_t members_patience(void)
{
    uint64_t alone = members_now.adopted ? 0 : members_now.alone_ms;
    return T_OPEN - MIN(alone, T_OPEN);
}
bool members_leaving(void)
{
    return members_now.leaving;
}
bool members_settled(void)
{
    return members_now.adopted && boot_ms() >= members_now.settled_at_ms;
}

const struct view *members_view_number(uint64_t n)
{
    return n < views_size ? views[n] : NULL;
}

const struct view *members_newest_view(void)
{
    return members_view_number(members_now.newest);
}

static void keep_view(struct view *v)
{
    if (v->number >= views_size) {
        uint64_t size = MAX(v->number + 16, views_size * 2);
        views = xrealloc(views, size * sizeof(*views));
        memset(views + views_size, 0, (size - views_size) * sizeof(*views));
        views_size = size;
    }
    if (views[v->number])
        view_free(v);
    else
        views[v->number] = v;
}

static const char *name_in(const struct view *v, uint64_t id)
{
    const struct member *m = view_member(v, id);
    if (m)
        return m->name;
    for (uint32_t i = 0; v && i < v->nabsent; i++)
        if (v->absents[i].id == id)
            return v->absents[i].name;
    return NULL;
}

/* A node that is fenced has adopted no view, and one that just came is in the newest one only. */
const char *members_name(uint64_t id)
{
    const char *name = name_in(members_now.adopted, id);
    if (!name)
        name = name_in(members_now.last_read, id);
    return name ? name : "?";
}

/* ---- reading views/ ---- */

struct read_job {
    uint64_t t0, from, number, newest;
    bool touch, age, over;
    struct view **got;
    uint64_t ngot;
    int err;
    uint64_t age_ms;
};

static void read_done(void *arg);

/* How far back rule 7 may have to look; older files are removed by session_make_view. */
#define VIEWS_BACK 15

static void read_job(void *arg)
{
    struct read_job *j = arg;
    j->t0 = boot_ms();
    j->err = session_newest(&j->newest);
    if (!j->err && j->touch && j->newest == j->number)
        /* only a sign of life: the next read will show whether the PFS is gone */
        (void)session_touch_view(j->newest);
    if (!j->err && j->age && j->newest && session_view_age_ms(j->newest, &j->age_ms))
        j->age = false; /* what can be read counts, also where nothing can be written */
    if (!j->err && j->newest >= j->from) {
        uint64_t first = MAX(j->from, j->newest > VIEWS_BACK ? j->newest - VIEWS_BACK : 1);
        j->got = xcalloc(j->newest - first + 1, sizeof(*j->got));
        for (uint64_t n = first; n <= j->newest && !j->err; n++) {
            int err = session_read_view(n, &j->got[j->ngot]);
            if (!err)
                j->ngot++;
            else if (n == j->newest || err != -ENOENT)
                j->err = err;
        }
    }
    j->over = !members_now.adopted && session_is_over(j->ngot ? j->got[j->ngot - 1] : NULL, j->err);
    if (!members_now.adopted && members_st.cfg.ops.outside)
        members_st.cfg.ops.outside();
    loop_post(read_done, j);
}

static void know_members(const struct view *v)
{
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id != members_st.cfg.self.id)
            peer_know(&v->members[i]);
}

static void take_newest(uint64_t number, uint64_t t0)
{
    static _Atomic uint64_t said;
    /* the directory was emptied, or the PFS shows an old state of it: this read confirms nothing */
    if (number < members_now.newest) {
        if (log_every(&said, 60000))
            log_warn("the session directory has lost view %lu: this node waits until it is back",
                     (unsigned long)members_now.newest);
        return;
    }
    if (number > members_now.newest) {
        members_now.newest = number;
        members_st.first_seen_ms = boot_ms();
        members_st.view_age_known = false;
        members_now.last_read = members_newest_view();
        know_members(members_newest_view());
    }
    const struct view *v = members_newest_view();
    members_st.newest_read_t0 = t0;
    if (!v || members_is_replaced(v))
        return;
    if (members_st.view == v)
        members_lease_from(t0);
    else
        members_adopt(v, t0);
}

static void read_done(void *arg)
{
    static _Atomic uint64_t said;
    struct read_job *j = arg;
    uint64_t before = members_now.newest;
    members_st.reading = false;
    if (j->over)
        members_session_is_over();
    for (uint64_t i = 0; i < j->ngot; i++)
        keep_view(j->got[i]);
    if (members_st.left || members_now.over) {
        members_st.read_again = false;
    } else if (j->err) {
        if (log_every(&said, 60000))
            log_warn("session directory cannot be read (%s): nobody is declared dead, cached files "
                     "go on, opens that need a decision wait",
                     strerror(-j->err));
    } else {
        if (j->age) {
            members_st.view_age_ms = j->age_ms;
            members_st.view_age_known = true;
        }
        take_newest(j->newest, j->t0);
    }
    free(j->got);
    free(j);
    if (members_st.read_again && members_now.newest > before)
        members_want_read();
    /* other nodes know of a view that this PFS client does not show yet: do not ask as fast as
     * possible */
    else if (members_st.read_again)
        members_tick_in(READ_AGAIN_MS);
    if (!members_st.view || members_st.leaving)
        loop_post(members_tick, NULL);
}

void members_want_read(void)
{
    if (members_st.left || members_now.over)
        return;
    if (members_st.reading) {
        members_st.read_again = true;
        return;
    }
    members_st.reading = true;
    members_st.read_again = false;
    members_st.last_read_ms = boot_ms();
    struct read_job *j = xcalloc(1, sizeof(*j));
    j->from = members_now.newest ? members_now.newest + 1 : 1;
    j->number = members_now.newest;
    j->touch = members_keeper_is_self() && !members_st.leaving;
    j->age = !members_st.view;
    pool_submit(pool_session, read_job, j);
}

/* ---- at each tick ---- */

/* read_done logs that the PFS fails; this logs that it hangs. */
static void note_silent_pfs(uint64_t t)
{
    static _Atomic uint64_t said;
    if (members_st.reading && t > members_st.last_read_ms + T_LEASE && log_every(&said, 60000))
        log_warn("the session directory does not answer for %lu s: nobody is declared dead, cached "
                 "files go on, opens that need a decision wait",
                 (unsigned long)(t - members_st.last_read_ms) / 1000);
}

static void count_alone(uint64_t t)
{
    const struct view *v = members_st.view;
    uint64_t ran = MIN(t - members_st.last_tick_ms, T_PING);
    members_st.last_tick_ms = t;
    if (v && (v->nmembers == 1 || t - members_st.contact_ms < 2 * T_PING))
        members_now.alone_ms = 0;
    else
        members_now.alone_ms += ran;
}

static void member_tick(uint64_t t)
{
    static uint64_t last_ping;
    /* ticks come a little early or late */
    bool due = t - members_st.last_read_ms >= T_PING - TICK_MS / 2;
    if (t - last_ping >= T_PING - TICK_MS / 2) {
        last_ping = t;
        members_ping_round(t);
    }
    if (due && (members_keeper_is_self() || members_now.lease_until_ms < t + T_PING + TICK_MS))
        members_want_read();
    note_silent_pfs(t);
    members_resend_all();
    members_propose(t);
}

void members_tick(void *arg)
{
    uint64_t t = boot_ms();
    (void)arg;
    if (members_st.left || members_now.over)
        return;
    if (members_st.read_again && !members_st.reading)
        members_want_read();
    count_alone(t);
    if (members_st.leaving)
        members_leave_step();
    if (members_st.view)
        member_tick(t);
    else if (!members_now.unsure)
        members_outside_tick(t);
}

/* Once earlier than the next one would be. */
void members_tick_in(uint64_t ms)
{
    if (timer)
        loop_timer_set(timer, ms, TICK_MS);
}

void members_wake(void)
{
    lock_take(&members_now.lock);
    pthread_cond_broadcast(&members_now.changed);
    lock_drop(&members_now.lock);
}

/* ---- start, join, stop ---- */

/* Before this node joined, the last of the others left and closed the session: members_join says so. */
void members_session_is_over(void)
{
    if (!members_st.joining || members_st.view)
        return;
    members_now.over = true;
    members_wake();
}

/* What is known is of a session that is over. */
static void forget_views(void)
{
    memset(views, 0, views_size * sizeof(*views));
    members_now.newest = 0;
    members_now.last_read = NULL;
    members_st.newest_read_t0 = members_st.first_seen_ms = 0;
    members_st.view_age_known = false;
}

static void begin(void *arg)
{
    (void)arg;
    if (members_now.over)
        forget_views();
    members_now.over = false;
    if (!timer)
        timer = loop_timer_new(members_tick, NULL);
    loop_timer_set(timer, TICK_MS, TICK_MS);
    peer_on_heard(members_heard);
    peer_on_down(members_went_down);
    members_st.joining = true;
    members_want_read();
}

void members_start(const struct members_config *c)
{
    members_st.cfg = *c;
    lock_init(&members_now.lock, RANK_LEAF);
    lock_cond_init(&members_now.changed);
    peer_handle(MSG_PING, members_handle_ping);
    peer_handle(MSG_NOTE, members_handle_note);
    peer_handle(MSG_ADOPTED, members_handle_adopted);
}

/* Jobs of the session that is over may still be under way. */
static void is_at_rest(void *arg)
{
    *(bool *)arg = !members_st.reading && !members_st.making;
}

static int session_ended(void)
{
    bool rest = false;
    while (loop_call(is_at_rest, &rest), !rest)
        poll(NULL, 0, 1);
    return -ESTALE;
}

static void copy_problem(void *arg)
{
    memcpy(arg, members_st.join_problem, sizeof(members_st.join_problem));
}

/* A user that starts a node sees why nothing happens, before the time is over. */
static void say_problem(uint64_t end)
{
    static char said[sizeof(members_st.join_problem)];
    char problem[sizeof(members_st.join_problem)];
    loop_call(copy_problem, problem);
    if (!problem[0] || !strcmp(problem, said))
        return;
    memcpy(said, problem, sizeof(said));
    if (members_st.cfg.ops.waits)
        members_st.cfg.ops.waits(problem, (unsigned)((end - MIN(end, boot_ms()) + 999) / 1000));
}

static void go_on(void *arg)
{
    (void)arg;
    members_now.unsure = false;
    members_want_read();
}

/* A daemon came into this node's place since it was looked for: perhaps one of this node's own starts, whose
 * wish to join was fulfilled late. */
static int look_for_twin_again(uint64_t end, char *err, size_t errlen)
{
    uint64_t now = boot_ms();
    int e = members_look_for_twin((unsigned)((end - MIN(end, now)) / 1000), err, errlen);
    if (!e)
        loop_call(go_on, NULL);
    return e;
}

/* Nodes with another PFS directory, session or session directory never meet this one: so all of that is said. */
static void say_who_joined(const struct view *v, unsigned wait_nodes, unsigned timeout_s, char *err, size_t errlen)
{
    char names[256] = "";
    size_t at = 0;
    for (unsigned i = 0; i < v->nmembers && at < sizeof(names); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "", v->members[i].name);
    if (at >= sizeof(names))
        strcpy(names + sizeof(names) - 4, "...");
    snprintf(err, errlen,
             "only %u of %u nodes (--wait-nodes) joined session %s in %s within %u s (--wait-timeout): %s.  Are the others started "
             "with the same PFS_DIR, --session and --session-dir?  Their logs say why they do not join",
             v->nmembers, wait_nodes, session_name(), session_base(), timeout_s, names);
}

int members_join(unsigned wait_nodes, unsigned timeout_s, char *err, size_t errlen)
{
    uint64_t end = boot_ms() + timeout_s * 1000ull, look = boot_ms() + SAY_WAITING_MS;
    char problem[sizeof(members_st.join_problem)];
    int e = session_write_node(&members_st.cfg.self);
    if (e && session_is_over(NULL, e))
        return -ESTALE;
    if (e) {
        snprintf(err, errlen, "the session directory cannot be written: %s", strerror(-e));
        return e;
    }
    loop_call(begin, NULL);
    lock_take(&members_now.lock);
    const struct view *v;
    for (;;) {
        v = members_now.adopted;
        if (v && v->nmembers >= wait_nodes)
            break;
        if (boot_ms() >= end || members_now.over)
            break;
        lock_wait(&members_now.lock, &members_now.changed, 100);
        if (members_now.adopted || (boot_ms() < look && !members_now.unsure))
            continue;
        lock_drop(&members_now.lock);
        if (members_now.unsure && (e = look_for_twin_again(end, err, errlen)))
            return e;
        say_problem(end);
        look = boot_ms() + 1000;
        lock_take(&members_now.lock);
    }
    lock_drop(&members_now.lock);
    if (v && v->nmembers >= wait_nodes)
        return 0;
    if (members_now.over)
        return session_ended();
    loop_call(copy_problem, problem);
    if (v)
        say_who_joined(v, wait_nodes, timeout_s, err, errlen);
    else
        snprintf(err, errlen, "could not join the session within %u s (--wait-timeout): %s",
                 timeout_s, problem[0] ? problem : "the session directory did not answer");
    return -ETIMEDOUT;
}

static void end_here(void *arg)
{
    (void)arg;
    members_st.left = true;
    members_st.view = NULL;
    members_now.adopted = NULL;
    if (timer)
        loop_timer_free(timer);
    timer = NULL;
    lock_take(&members_now.lock);
    struct node *n;
    while ((n = members_st.nodes)) {
        members_st.nodes = n->next;
        free(n);
    }
    memset(members_st.by_id, 0, sizeof(members_st.by_id));
    lock_drop(&members_now.lock);
    members_adopt_stop();
}

/* After peer_stop: no message or reply comes any more. */
void members_stop(void)
{
    loop_call(end_here, NULL);
}
