/* flight_int.h - a flight's state, and what these files share: flight.c (the table), flight_call.c (readers
 * that wait), flight_step.c (changes of the state), ask.c (questions to other nodes), origin.c (the read of the
 * PFS, and the store).
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
 *                                     ENDED <--- no bytes, from each of them
 *
 * BEGUN     It is in the table, and nobody but the thread that put it there does anything.  If chunks of the
 *           file came into the store since that thread had looked there, it looks again: only a flight puts
 *           fetched bytes into the store, and there is no other for this chunk, so this look is the last.
 * ASKED     The chunk's owner is asked, or the next node if the owner is suspected, silent, or answers wrong.
 *           The answer comes in the network thread; one of the readers checks it in its own thread, or,
 *           when all have given up, the filler does.  A good answer leads to HERE; a bad one to the next
 *           node, and behind the last one to READ; or to ENDED if nobody waits.  "Not that file", "not that
 *           version" leads to READ at once: our own look at the PFS is the last word.  Only readers wait in
 *           this state: if a FETCH comes, it becomes READ, and the question goes on beside the read, for
 *           nodes must not wait for each other.
 * READ      A job of pool_data reads the chunk, as its owner or because no other node could serve.  A new
 *           owner first asks the former one, which answers from its store; no thread waits meanwhile.  If the
 *           read fails, the FETCHes are told; the readers are too, unless a question is on its way (ASKED
 *           again), or only a peer's path was tried and a reader has brought the file since (READ again).
 *           If a question beside it brings the bytes first, they count, and what is read is dropped.
 * UNPROVEN  The bytes are read, and the reader that began the read has them (proof.h).  All others wait until
 *           a look has proved of which version they are: HERE, or without proof ENDED.
 * HERE      The bytes are here and checked: all that want them have them, and those that come take them
 *           at once.  The file's filler puts them into the store.
 * ENDED     In the store, or it is known why not; or there are no bytes.  It is not in the table any more.
 *           What still refers to it are readers that copy bytes, and a question or a read that came late.
 */
#ifndef EDDY_PLACEMENT_FLIGHT_INT_H
#define EDDY_PLACEMENT_FLIGHT_INT_H

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
    OUR_TURN,    /* the owner could not serve, and this node is the next */
    NOBODY_ELSE, /* neither of them could */
    ASKED_FOR,   /* another node asks for it */
};

struct flight {
    struct chunk_key key;
    _Atomic unsigned refs; /* of the table, of each reader, of a question, of a read */
    struct shard *shard;   /* of the table */

    /* shard's lock */
    struct flight *next; /* shard's list */
    enum flight_state state;
    struct flight_reader *readers;
    struct flight_peer *peers;
    bool led;                     /* some reader was the leader */
    struct flight_reader *leader; /* for which the bytes come; NULL: for FETCHes, or it has gone */
    /* The leader, if it was there when the read began, and takes bytes without proof. */
    struct flight_reader *hasty;
    /* An answer is here; this reader was told, and has not begun to check it. */
    struct flight_reader *checker;
    struct file *file;   /* referenced, or NULL; does not change once it is set */
    char *path;          /* a peer's hint, or NULL; the same */
    struct chunk *spare; /* a buffer that nothing uses */
    struct chunk *asked; /* a question's: it is on its way, or its answer is not checked yet */
    struct chunk *read;  /* of the read that is under way */
    struct chunk *bytes; /* the chunk, from UNPROVEN or HERE on */
    enum source source;  /* from UNPROVEN or HERE on */

    /* the question's: of the thread that asks, checks */
    unsigned turn; /* the n-th node of the ring is asked; ASK_TURNS: no more */
    uint64_t node; /* which is this */
    int answer_err;
    bool failed;  /* one that was not suspected could not serve */
    bool replica; /* another node sent the bytes, and keeps them as the owner */

    /* the read's: of its thread */
    enum flight_why why;   /* shard's lock */
    bool owns;             /* this node owns the chunk, or stands in for its owner */
    struct file *by_file;  /* whose descriptor it tries first, or NULL */
    const char *by_path;   /* the peer's hint, or NULL */
    struct version before; /* the store's when it had not the chunk; known for FETCHes only */
    bool before_known;
    uint64_t former; /* the former owner, which is asked */
    int former_err;
    struct home_moment began; /* when the read of the PFS did */
    struct unproven proof;
    bool given; /* without proof */
};

/* ---- ask.c ---- */

/* Another node is asked, or the PFS is read here: what comes next in the flight.  The thread that began it, or
 * that has checked an answer. */
void flight_go(struct flight *fl);
/* Checks the answer that is here, and goes on.  A reader's thread or the filler's. */
void flight_check(void *fl);

/* ---- origin.c: pool_data ---- */

void flight_read(void *fl);
/* A filler: puts the bytes into the store. */
void flight_keep(void *fl);

/* ---- flight.c ---- */

void flight_lock(struct flight *fl);
void flight_unlock(struct flight *fl);
/* ENDED.  Shard locked; the caller drops the table's reference. */
void flight_leave_table(struct flight *fl);
void flight_drop(struct flight *fl);         /* a reference; never the network thread */
struct file *flight_file(struct flight *fl); /* or NULL; valid as long as the flight */
/* The flight takes over the reference; returns the file that it has. */
struct file *flight_give_file(struct flight *fl, struct file *f);

/* ---- flight_call.c: shard locked ---- */

void flight_add_reader(struct flight *fl, struct flight_reader *r);
/* It is told the end. */
void flight_end_reader(struct flight *fl, struct flight_reader *r, int err);
/* Those that take the bytes are, or all. */
void flight_end_readers(struct flight *fl, int err, bool all);
/* The bytes come for the leader: what it does not take now is ahead of the reads that come. */
void flight_credit(const struct flight *fl);
/* An answer is here: a reader is told to check it, or the filler does. */
void flight_find_checker(struct flight *fl);

/* ---- flight_step.c ---- */

/* That node is to be asked: ASKED; false: there is nobody to ask for (FETCHes do not wait for that), or the
 * flight has gone on without the question.  Takes a reference for the question. */
bool flight_asks(struct flight *fl, uint64_t node);
/* The question's answer is here, with or without an error.  Network thread. */
void flight_answered(struct flight *fl, int err);
/* The answer is no good.  The question's reference stays the caller's. */
void flight_unasked(struct flight *fl);
/* The PFS is to be read: READ, and its job is submitted, unless one is under way or nobody waits. */
void flight_reads(struct flight *fl, enum flight_why why);
/* The same where it is known to be so; the caller submits flight_read.  Shard locked. */
void flight_begin_read(struct flight *fl, enum flight_why why);
/* A job begins: sets by_file and by_path.  Does somebody take its bytes without proof? */
bool flight_read_begins(struct flight *fl);
/* The read's bytes are here without proof: UNPROVEN.  False: nobody takes them. */
bool flight_unproven(struct flight *fl);
/* The read has failed. */
void flight_read_failed(struct flight *fl, int err);
/* The bytes are in *buffer (asked, read or spare) and right: HERE.  False: they were already. */
bool flight_here(struct flight *fl, struct chunk **buffer, enum source source);
/* They are in the store, or are not because of kept: ENDED. */
void flight_kept(struct flight *fl, int kept);

#endif
