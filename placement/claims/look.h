/* look.h - what this node believes of files that others may change, and how those beliefs end
 * (docs/protocol.md, "Looking").
 *
 * A node looks at a file while it may hold beliefs about its data or size: attributes or pages in its kernel, an
 * open descriptor, an answer that is being given, an admitted hint.  The file's home knows the lookers.  Before it grants the
 * claim to a node, it tells the others (BREAK), and each answers when its beliefs have ended (BROKEN).
 *
 *     ticket = look_now(fid) --> WHERE --> AT, keep --> look_answer_begin(fid, ticket)
 *                                                          true: the kernel is answered with a time-out
 *                                                                --> look_answer_end(fid, ticket)
 *                                                          false: void, it is answered with time-out 0
 *
 * A BREAK that comes between the ticket and the answer voids the answer, whichever of AT and BREAK was sent
 * first.  An answer that was asked for after the BREAK came is of a home that has entered this node again, or
 * says "keep nothing".
 *
 * Tickets are of slots, not of files: two files of one slot void each other's answers, which costs a time-out of
 * 0.  They take no lock.  The open files are in a table of their own, in parts with a lock each (RANK_LEAF).
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOOK_H
#define EDDY_PLACEMENT_CLAIMS_LOOK_H

#include "transport/base.h"
#include "transport/fid.h"
#include "transport/message.h"

/* How long the asker of WHERE looks at the file; as it is in the message. */
enum look {
    LOOK_NONE = 0, /* not at all: it wants to know where the bytes are, and keeps nothing */
    LOOK_STAT = 1, /* for LOOK_STAT_MS: attributes */
    LOOK_OPEN = 2, /* until the file is closed here (look_closed) */
    /* the home's word, and next's: it has the file open, but keeps nothing: it is not told, but named in GRANT */
    LOOK_QUIET = 3,
    /* until look_goes_end: a name of it is about to go.  Other nodes that have it open get a descriptor first, as its
     * home tells them (name_goes.h) */
    LOOK_GOES = 4,
};
/* So long after its ticket an answer may be kept.  The home's entry lives longer (LOOKER_STAT_MS), by the time
 * that a thread may need from look_answer_begin until the kernel has the answer. */
#define LOOK_STAT_MS 1000

/* Descriptors that are left after a BREAK or CHANGED; bits, in BROKEN, CHANGED_OK, GRANT and FREE.  Those of
 * LOOKER_SERVED serve bytes that this daemon cannot take back by itself; a node with any but LOOKER_OPEN is told of
 * changes. */
#define LOOKER_CACHED      1u /* through the kernel's pages */
#define LOOKER_PASSTHROUGH 2u /* from the data file itself */
#define LOOKER_APPENDS     4u /* none, but by the size that the kernel believes it counts the place of an append */
#define LOOKER_OPEN        8u /* any: if the file loses its last name, its bytes are kept for them */
#define LOOKER_SERVED      (LOOKER_CACHED | LOOKER_PASSTHROUGH)

/* ---- answers ---- */

struct look_ticket {
    uint64_t breaks; /* of the slot */
    uint64_t ms;     /* boot_ms of when it was taken */
};

/* To be taken before WHERE is sent (claim_where* do so: location.ticket).  Any thread, no lock. */
struct look_ticket look_now(struct fid fid);
/* How long an answer may be kept if it is given now: until LOOK_STAT_MS after the ticket, and not beyond this node's
 * lease, unless it is alone in its view.  0: not at all. */
uint64_t look_left_ms(struct look_ticket t);
/* Has no BREAK of a file of this slot come since, and no view been adopted?  However long ago that was. */
bool look_unbroken(struct fid fid, struct look_ticket t);
/* Is there time left, and has neither a BREAK of a file of this slot come since, nor a view been adopted?  Any thread,
 * no lock. */
bool look_holds(struct fid fid, struct look_ticket t);
/* As look_holds.  True: the answer counts as being given until look_answer_end; only system calls in between,
 * since a BREAK waits for it. */
bool look_answer_begin(struct fid fid, struct look_ticket t);
void look_answer_end(struct fid fid, struct look_ticket t);
/* All tickets of the slot are void, and no answer that held one is being given any more.  For a BREAK, a CHANGED
 * and each change that is made here.  May wait for system calls of other threads: not in the network thread,
 * and not between look_answer_begin and look_answer_end. */
void look_break(struct fid fid);

/* ---- open files ---- */

/* A descriptor is about to be located (before WHERE is sent), and is gone; counted.  The last look_closed tells
 * the home some time later (LEAVE), if there is another member.  Any thread. */
void look_opened(struct fid fid);
void look_closed(struct fid fid);
bool look_is_open(struct fid fid);
/* A name of the file is about to go: it counts as open until look_goes_end, and nobody opens it here without a
 * descriptor.  Any thread. */
void look_goes(struct fid fid);
void look_goes_end(struct fid fid);
bool look_name_goes(struct fid fid);
/* `kinds` of descriptors, as LOOKER_... bits, and LOOKER_OPEN if it is open here. */
unsigned look_left_here(struct fid fid, unsigned kinds);
unsigned look_open_files(void);

/* ---- the end of beliefs ---- */

/* fn ends all beliefs of this node about the file (after look_break was called for it), and says which descriptors
 * are left: LOOKER_... bits.  It may be called for a file of which this node knows nothing.  It is called in
 * threads of a pool that is there for it alone, for several files at once, but not twice at once for one file.
 * It must not wait for other nodes, the PFS, or requests that wait for them: a grant waits for it.  Without
 * fn nothing is left.  fn NULL: none any more; no call is under way when this returns.  Any thread but fn's. */
void look_on_break(unsigned (*fn)(struct fid fid));

/* ---- for placement/claims alone ---- */

void look_start(void); /* the tables */
void look_stop(void);
/* Ends all beliefs about each file that is open here.  wait: returns when they have ended; not in the network
 * thread. */
void look_end_all(bool wait);
/* BREAK is answered and LEAVE is sent from now on; while the loop runs.  The end waits for fn. */
void look_told_start(void);
void look_told_stop(void);
/* The number of a WHERE that is about to be sent; later ones have higher numbers (LEAVE). */
uint64_t look_number(void);
/* A view was adopted, or this node was fenced: all tickets are void.  After its own home has stopped acting under the older
 * view, and before ADOPTED's contents are made.  Network thread. */
void look_adopted(void);
/* The files that are open here, for ADOPTED: malloc'd.  goes: only those of which a name goes. */
void look_list(bool goes, uint32_t *n, struct item_fid_item **out);

#endif
