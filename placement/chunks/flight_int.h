/* flight_int.h - a flight's state; shared by flight.c (the table), flight_call.c (readers that wait),
 * flight_step.c (changes of the state), ask.c (questions to other nodes) and origin.c (the read of the PFS,
 * and the store).
 *
 *                     a reader, or a FETCH, finds no flight
 *                                       |
 *                                       v
 *             .----------------------- BEGUN -------------------.
 *             | another node owns it    | owned here,           | in the store
 *             v                         v or for a FETCH        | by now
 *           ASKED --no node can serve-> READ --> UNPROVEN       |
 *             |      <--beside it-----  |           |           |
 *             | the answer is right     v           v           |
 *             '----------------------> HERE <-------+-----------'
 *                                       |
 *                                       v
 *                                     ENDED <--- no bytes, from every state
 *
 * BEGUN     The flight is in the table, and only the thread that put it there works on it.  If chunks of the
 *           file have come into the store since that thread looked there, it looks again.  One look is
 * enough:
 *           only flights put fetched bytes into the store, and the chunk has no other flight.
 * ASKED     The chunk's owner is asked; or the next node, if the owner is suspected, is silent, or sends a
 * bad
 *           answer.  The answer comes in the network thread.  One of the readers checks it in its own thread;
 * if
 *           all readers have given up, the filler checks it.  A good answer leads to HERE.  After a bad
 * answer
 *           the next node is asked, and after the last node's the PFS is read (READ); without readers the
 *           flight ends.  The answers "not that file" and "not that version" lead to READ at once: this
 * node's
 *           own look at the PFS decides.  Only readers wait in this state.  If a FETCH comes, the state
 * becomes
 *           READ, and the question goes on beside the read, for nodes must not wait for each other.  (But one
 *           that an owner sent here waits for what comes, in any state: places.h.)  The owner may answer with
 *           another node's name; then that one is asked, in this state.
 * READ      A job of pool_data reads the chunk, as its owner or because no other node could serve it.  A new
 *           owner first asks the former owner, and one that has let the chunk go its caretaker; these answer from their stores; no thread waits meanwhile.  If
 * the
 *           read fails, the FETCHes get the error.  The readers get it, too, but for two cases: a question is
 *           on its way (ASKED again), or only a peer's path was tried and a reader has brought the file since
 *           (READ again).  If a question beside the read brings the bytes first, they are taken, and the
 * bytes
 *           of the read are dropped.
 * UNPROVEN  The bytes are read, and the reader that began the read has them (proof.h).  All others wait for
 * the
 *           look that proves of which version the bytes are: then HERE, or, without proof, ENDED.
 * HERE      The bytes are here and checked.  All that waited for them have them, and new ones get them at
 *           once.  The file's filler puts them into the store.
 * ENDED     The bytes are in the store, or it is known why they are not; or there are no bytes.  The flight
 * is
 *           not in the table any more.  Readers that copy its bytes may still refer to it, and a question or
 * a
 *           read that came late.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FLIGHT_INT_H
#define EDDY_PLACEMENT_CHUNKS_FLIGHT_INT_H

#include "placement/chunks/flight.h"
#include "placement/chunks/proof.h"
#include "placement/claims/home.h"

enum flight_state {
    FLIGHT_BEGUN,
    FLIGHT_ASKED,
    FLIGHT_READ,
    FLIGHT_UNPROVEN,
    FLIGHT_HERE,
    FLIGHT_ENDED,
};

/* Why the PFS is read here. */
enum flight_why {
    OWNED_HERE,  /* this node owns the chunk, or stands in for a suspected owner */
    OUR_TURN,    /* the owner could not serve the chunk, and this node is next */
    NOBODY_ELSE, /* neither the owner nor next could serve it */
    ASKED_FOR,   /* another node asks for it */
};

struct flight {
    struct chunk_key key;
    _Atomic unsigned refs; /* of the table, of each reader, of a question, of a read */
    struct shard *shard;   /* of the table */

    /* with the shard's lock */
    struct flight *next; /* in the shard's list */
    enum flight_state state;
    struct flight_reader *readers;
    struct flight_peer *peers;
    struct flight_peer *sent_here; /* they wait for what comes, whatever brings it, and keep nothing going */
    bool led;                     /* some reader was the leader */
    bool busy;                    /* some reader was there for an application */
    bool ask_idle, read_idle;     /* none was when the question, or the read, began; each only for the thread that begins it */
    struct flight_reader *leader; /* the bytes come for this reader; NULL: for FETCHes, or it has given up */
    /* The leader, if it was there when the read began, and takes bytes without proof. */
    struct flight_reader *hasty;
    /* An answer is here, and this reader was told, but has not begun to check it. */
    struct flight_reader *checker;
    struct file *file;   /* referenced, or NULL; does not change once it is set */
    char *path;          /* the path in a peer's FETCH, or NULL; does not change once it is set */
    struct chunk *spare; /* a buffer that is not used now */
    struct chunk *asked; /* buffer of a question that is under way, or whose answer is not checked yet */
    struct chunk *read;  /* buffer of the read that is under way */
    struct chunk *bytes; /* the chunk, from UNPROVEN or HERE on */
    enum source source;  /* from UNPROVEN or HERE on */

    /* of the question: only for the thread that asks or checks */
    unsigned turn; /* which node of the chunk's order is asked: 0: the owner, 1: next, 2: none */
    uint64_t node; /* that node */
    int answer_err;
    bool sent;    /* the owner has sent this node there */
    uint64_t in_vain; /* the node to which it did, if that could not serve the chunk; 0: it may send the flight once */
    bool failed;  /* a node that was not suspected could not serve the chunk */
    bool replica; /* another node sent the bytes, and keeps them */

    /* of the read: only for its thread, but for `why` */
    enum flight_why why;   /* with the shard's lock */
    bool owns;             /* this node owns the chunk, or stands in for its owner */
    struct file *by_file;  /* the read tries this file's descriptor first; or NULL */
    const char *by_path;   /* the path in the peer's FETCH, or NULL */
    struct version before; /* the store's version when the chunk was not in the store; for FETCHes only */
    bool before_known;
    uint64_t former; /* the former owner, or the caretaker, which is asked */
    bool kept_there; /* it is the caretaker, and keeps the chunk */
    int former_err;
    struct home_moment began; /* when the read of the PFS began */
    struct unproven proof;
    bool given; /* a reader has got the bytes without proof */
};

/* ---- ask.c ---- */

/* The flight's next step: asks another node, or reads the PFS here.  Called by the thread that began the
 * flight, or that has checked an answer. */
void flight_go(struct flight *fl);
/* Checks the answer that has come, and goes on.  A reader's thread or the filler's. */
void flight_check(void *fl);

/* ---- origin.c: pool_data ---- */

void flight_read(void *fl);
/* A filler: puts the bytes into the store. */
void flight_keep(void *fl);

/* ---- flight.c ---- */

void flight_lock(struct flight *fl);
void flight_unlock(struct flight *fl);
/* The state becomes ENDED.  Shard locked; the caller drops the table's reference. */
void flight_leave_table(struct flight *fl);
void flight_drop(struct flight *fl); /* drops a reference; never the network thread */
struct file *flight_file(struct flight *fl); /* or NULL; valid as long as the flight */
/* The flight takes over the reference; returns the file that it has. */
struct file *flight_give_file(struct flight *fl, struct file *f);

/* ---- flight_call.c: shard locked ---- */

void flight_add_reader(struct flight *fl, struct flight_reader *r);
/* Tells a reader its end. */
void flight_end_reader(struct flight *fl, struct flight_reader *r, int err);
/* Tells the readers that take the bytes their end; all: every reader. */
void flight_end_readers(struct flight *fl, int err, bool all);
/* Gives the leader the credit for the chunk's bytes that it does not take now. */
void flight_credit(const struct flight *fl);
/* An answer has come: tells a reader to check it; without readers, the filler checks it. */
void flight_find_checker(struct flight *fl);

/* ---- flight_step.c ---- */

/* That node is to be asked: the state becomes ASKED, with a reference for the question.  False: it is not to
 * be asked: no reader waits, or a FETCH does (which must not wait for another node), or the flight has gone
 * on. */
bool flight_asks(struct flight *fl, uint64_t node);
/* The question has been answered, or has failed with err.  Network thread. */
void flight_answered(struct flight *fl, int err);
/* The answer is bad.  The caller keeps the question's reference. */
void flight_unasked(struct flight *fl);
/* The PFS is to be read: the state becomes READ, and the job is submitted.  If a read is under way, nothing
 * is done; if no reader and no FETCH waits, the flight ends. */
void flight_reads(struct flight *fl, enum flight_why why);
/* The state becomes READ; the caller knows that no read is under way, and submits flight_read.  Shard
 * locked. */
void flight_begin_read(struct flight *fl, enum flight_why why);
/* The job begins: sets by_file and by_path.  True: a reader takes the bytes without proof. */
bool flight_read_begins(struct flight *fl);
/* The read's bytes are here without proof: the state becomes UNPROVEN.  False: no reader takes them. */
bool flight_unproven(struct flight *fl);
/* The read has failed. */
void flight_read_failed(struct flight *fl, int err);
/* *buffer (asked, read or spare) has the right bytes: the state becomes HERE.  False: the bytes were here
 * already. */
bool flight_here(struct flight *fl, struct chunk **buffer, enum source source);
/* The bytes are in the store, or are not for the reason `kept` (-errno): the state becomes ENDED. */
void flight_kept(struct flight *fl, int kept);

#endif
