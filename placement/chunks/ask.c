/* ask.c - a flight asks other nodes for its chunk: first the owner, then the next node; then this node reads
 * the PFS.
 *
 * The owner may send the flight to a node that has the chunk or is getting it (places.h), once: if that one cannot serve it,
 * the owner itself does.
 *
 * Before the owner is asked, its memory is looked at, if this host can (shelves.h): then no node's processor has a part in it.
 *
 * If this node is the owner or the next one, it reads the PFS as soon as it is its turn.  A suspected node is
 * passed over.  The hash of an answer is checked in a reader's thread, which needs the bytes in its
 * processor's cache anyway.
 *
 * Only this file asks a second node, and each node is asked once, but for an owner that sent the flight in vain: so a flight
 * waits for the silence of three nodes at most, T_suspect each.  Its readers wait until their deadlines.
 */
#include "placement/chunks/flight_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk_answer.h"
#include "placement/chunks/filler.h"
#include "placement/chunks/former.h"
#include "placement/chunks/places.h"
#include "placement/chunks/shelves_here.h"
#include "placement/chunks/shelves_there.h"
#include "placement/ring/ring.h"
#include "transport/complaint.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

#define TURNS 2 /* owner and next */

/* The node that is to be asked, from fl->turn on; 0: the PFS is to be read here, and *why says why. */
static uint64_t next_node(struct flight *fl, enum flight_why *why)
{
    const struct view *v = members_view();
    *why = NOBODY_ELSE;
    if (former_is_redirected(fl->key.fid, fl->key.index))
        return 0;
    for (; v && fl->turn < TURNS; fl->turn++) {
        uint64_t node = ring_owner(ring_of(v), fl->key.fid, fl->key.index, fl->turn);
        if (!node)
            return 0;
        if (node == members_self()) {
            *why = fl->failed ? OUR_TURN : OWNED_HERE;
            return 0;
        }
        if (!members_suspected(node))
            return node;
    }
    return 0;
}

/* ---- the question ---- */

static void on_chunk(void *arg, int err, struct msg *reply, bool *keep);

static void ask_node(struct flight *fl, enum fetch_way way, const char *path)
{
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.fid = fl->key.fid;
    m->fetch.index = fl->key.index;
    m->fetch.version = fl->key.version;
    m->fetch.ahead = fl->ask_idle;
    m->fetch.way = way;
    m->fetch.not_at = fl->in_vain;
    m->fetch.path = path;
    peer_request(fl->node, m, T_SUSPECT, fl->asked->data, fl->asked->size, on_chunk, fl);
}

/* The owner's answer is that another node has the chunk.  0: that one is asked now. */
static int go_where_sent(struct flight *fl, const struct body_elsewhere *b)
{
    struct chunk_key key = {.fid = b->fid, .index = b->index, .version = b->version};
    const struct view *v = members_view();
    if (fl->sent || fl->in_vain || !chunk_key_eq(&key, &fl->key) || !b->node || b->node == members_self() ||
        b->node == fl->node) {
        count(bad_answers, 1);
        complain_of_node(members_name(fl->node), "a node that cannot be asked for a chunk");
        return -EBADMSG;
    }
    fl->node = b->node;
    fl->sent = true;
    if (!v || !view_member(v, b->node) || members_suspected(b->node))
        return -EHOSTUNREACH;
    ask_node(fl, FETCH_SENT, "");
    return 0;
}

/* Network thread. */
static void on_chunk(void *arg, int err, struct msg *reply, bool *keep)
{
    (void)keep;
    struct flight *fl = arg;
    if (!err && reply->head.type == MSG_ELSEWHERE) {
        err = go_where_sent(fl, &reply->elsewhere);
        if (!err)
            return;
    } else if (!err) {
        err = chunk_answer_take(fl->asked, &fl->key, reply, fl->node);
    }
    flight_answered(fl, err);
}

/* The chunk is here, from another node, and is kept. */
static void came(struct flight *fl)
{
    fl->replica = true;
    filler_submit(fl->key.fid, flight_keep, fl);
}

/* True: the owner's memory led to the chunk, and no node need be asked. */
static bool is_on_shelf(struct flight *fl)
{
    unsigned nplaces;
    if (fl->turn || fl->in_vain || shelves_there_read(fl->node, &fl->key, fl->asked, &nplaces))
        return false;
    shelves_here_got(&fl->key, fl->asked, fl->node, nplaces);
    if (flight_here(fl, &fl->asked, FROM_PEER))
        came(fl);
    flight_drop(fl);
    return true;
}

/* Asks the node whose turn it is; it need not answer itself, but if it has sent this flight in vain. */
static void ask_in_turn(struct flight *fl)
{
    if (is_on_shelf(fl))
        return;
    char *path = file_path(fl->file);
    ask_node(fl, fl->in_vain ? FETCH_HERE : FETCH_ANY, path);
    free(path);
}

void flight_go(struct flight *fl)
{
    enum flight_why why;
    uint64_t node = next_node(fl, &why);
    if (!node)
        flight_reads(fl, why);
    else if (flight_asks(fl, node))
        ask_in_turn(fl);
    else
        flight_reads(fl, ASKED_FOR);
}

/* The node to which the owner had sent this one did not serve the chunk: the owner is asked again.  It says no WORKING, so its
 * silence says nothing about it. */
static void learn_of_sent(struct flight *fl, int err)
{
    fl->sent = false;
    fl->in_vain = fl->node;
    count(redirects_in_vain, 1);
    if (members_no_contact(err) && err != -ETIMEDOUT)
        members_doubt(fl->node);
    log_debug("FETCH at %s, to which the owner sent us, failed: %s", members_name(fl->node), strerror(-err));
}

/* Notes what a node's error says about the node, and moves fl->turn on to the node that is asked next. */
static void learn(struct flight *fl, int err)
{
    if (fl->sent) {
        learn_of_sent(fl, err);
        return;
    }
    fl->failed = true;
    if (err == -ESTALE || err == -ENOENT) {
        fl->turn = TURNS; /* it looked and does not have it; this node's own look decides */
        return;
    }
    bool its_pfs = err == -EIO || err == -EACCES || err == -EPERM; /* the node answers, but cannot read */
    if (err != -EBADMSG && !its_pfs)
        members_doubt(fl->node);
    log_debug("FETCH at %s failed: %s: asking the next node", members_name(fl->node), strerror(-err));
    fl->turn++;
}

/* 0: the bytes are those that the node hashed; else -errno. */
static int answer_is_bad(const struct flight *fl)
{
    return fl->answer_err ? fl->answer_err : chunk_answer_check(fl->asked, &fl->key, fl->node);
}

void flight_check(void *arg)
{
    struct flight *fl = arg;
    int err = answer_is_bad(fl);
    if (err) {
        flight_unasked(fl);
        learn(fl, err);
        flight_go(fl);
    } else if (flight_here(fl, &fl->asked, FROM_PEER)) {
        if (fl->sent)
            count(redirected_bytes, chunk_key_len(&fl->key));
        came(fl);
    }
    flight_drop(fl);
}
