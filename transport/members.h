/* members.h - views: which nodes take part, under which lease (docs/protocol.md, rules 1-5, 15, 16, 18).
 *
 * The state belongs to the network thread.  Reads and writes of the session directory run in
 * pool_session.  Any thread may read the current view without a lock: views are never freed.
 */
#ifndef EDDY_TRANSPORT_MEMBERS_H
#define EDDY_TRANSPORT_MEMBERS_H

#include "transport/message.h"
#include "transport/times.h"
#include "transport/view.h"

#include <errno.h>

struct members_ops {
    /* Network thread, all but `outside` and `waits`. */
    /* Makes the report that this node sends in ADOPTED(v), as it is now: claims, records, locks.  farewell: v
     * is to be made without this node.  Then each member gets all of it, for other nodes may leave or die
     * before v is made. */
    void *(*report_make)(const struct view *v, bool farewell);
    /* Sets the lists of piece m->adopted.piece for member `to`, and m->adopted.more.  The lists belong to the
     * report. */
    void (*report_fill)(const void *report, uint64_t to, struct msg *m);
    void (*report_free)(void *report);
    /* A view was adopted: stop acting under the older one.  v NULL: fenced. */
    void (*adopted)(const struct view *v);
    /* A piece of ADOPTED(v) came from a member (also from this node itself), each once and in their
     * order; m stays valid during the call. */
    void (*heard_adopted)(const struct view *v, uint64_t from, const struct msg *m);
    void (*all_adopted)(const struct view *v); /* ... from all members */
    /* In pool_session: this node is outside, has read the views, and may adopt one of them next.  May be
     * NULL. */
    void (*outside)(void);
    /* Called in members_join when it waits for longer than a moment: why it waits, and how long at most. */
    void (*waits)(const char *why, unsigned seconds);
    /* Another daemon is in this node's place: its cache directory has this node's id.  This node takes no
     * part any more, and the process must end.  by: of the other one, during the call.  May be NULL. */
    void (*replaced)(const struct member *by);
};

struct members_config {
    struct member self;
    uint64_t former; /* an incarnation of this node that has surely ended; 0: none is known */
    struct members_ops ops;
};

void members_start(const struct members_config *c);
/* To be called before other nodes hear of this one: is another daemon in its place?  Asks the one that the
 * newest view names, and waits for at most timeout_s where it cannot be known.  -EEXIST: it lives;
 * -ETIMEDOUT; -errno; err then says what to do.  Not in the network thread. */
int members_look_for_twin(unsigned timeout_s, char *err, size_t errlen);
/* Joins: makes or asks for a view that has this node.  Waits until this node is in a view and n nodes are
 * members, or until the time-out.  Not in the network thread.  -ETIMEDOUT: err says what was missing;
 * -EEXIST: another live node has this node's name; -ESTALE: the session ended before: to be called again when another one of
 * its name is open (session_open_again). */
int members_join(unsigned wait_nodes, unsigned timeout_s, char *err, size_t errlen);
/* Rule 18: sends ADOPTED as leaving; the keeper makes the view without this node.  The caller has nothing
 * dirty or claimed any more.  It takes timeout_ms at most; 0 or -ETIMEDOUT. */
int members_leave(unsigned timeout_ms);
void members_stop(void);

/* adopted view, NULL when fenced or not joined; any thread */
const struct view *members_view(void);
/* any view read so far, or NULL; network thread */
const struct view *members_view_number(uint64_t n);
uint64_t members_newest(void); /* newest view number seen; any thread */
uint64_t members_self(void);   /* own node id */
uint64_t members_incarnation(void);
bool members_lease(void);   /* own lease valid now?  any thread */
/* ms that the lease is still valid if it is not renewed, or 0; any thread */
uint64_t members_lease_left(void);
bool members_settled(void); /* rule 5; any thread */
/* farewells were sent: this node does not act as home or next any more; any thread */
bool members_leaving(void);
const struct member *view_member(const struct view *v, uint64_t id); /* NULL */
bool view_has(const struct view *v, uint64_t id, uint64_t incarnation);
const char *members_name(uint64_t id); /* of a member or an absent node, "?" */
/* How long (ms) an open that begins now waits for a decision: T_open.  While this node is fenced, it is
 * T_open less the time since the node last reached another one or was fenced.  So a second try (the kernel's,
 * for one open) does not wait for the whole time again.  Time in which the node was stopped does not count.
 * Any thread. */
uint64_t members_patience(void);
/* Has the node not answered two tries?  Never true for this node.  Any thread. */
bool members_suspected(uint64_t id);
/* Makes a view without this absent node, if this node may make one now.  The caller looks whether it was
 * made, and calls again.  Not in the network thread. */
void members_forget(uint64_t id, uint64_t incarnation);
/* A request to this node was not answered: it is pinged now.  Any thread. */
void members_doubt(uint64_t id);
/* Does this error of a request mean that its node could not be reached, or is silent? */
static inline bool members_no_contact(int err)
{
    return err == -ETIMEDOUT || err == -ECONNREFUSED || err == -ECONNRESET;
}

#endif
