/* claim_int.h - what only the parts of claim.h share.  Each part uses those above it:
 *
 * claim_own.c     the list of this node's claims, as ADOPTED has it (claim_own.h)
 * claim_free.c    FREE: telling the home
 * claim_where.c   asking where files' latest bytes are
 * claim_watch.c   watchers: nodes that must be told of changes (claim_watch.h)
 * claim.c         the claim of one file: taken and kept
 * claim_give.c    ... and given back (claim_give.h)
 * claim_serve.c   ASK: other nodes ask the claimant
 * claim_named.c   NAMED, SAME: names that change
 * claim_forgotten.c   claims that an operator has forgotten
 * claim_views.c   start, views, end
 */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_INT_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_INT_H

#include "placement/claims/claim.h"
#include "placement/claims/claim_watch.h"
#include "transport/view.h"

enum claim_state {
    CLAIM_NONE,   /* this node does not have it */
    CLAIM_ASKING, /* a WANT is under way */
    CLAIM_HELD,   /* this node has it: its bytes are the latest */
};

/* Those of one claim.  any: what any member but this node may have left, besides those in v; 0: nothing.  more: what
 * those have answered that found no room in v. */
struct watchers {
    unsigned any, more; /* LOOKER_... bits */
    unsigned n;
    struct claim_watcher v[CLAIM_WATCHERS_MAX];
};

/* What this room keeps of a file (FILE_CLAIM). */
struct file_claim {
    struct file_part part;
    struct lock lock; /* RANK_CLAIM: all that follows but `forgotten`; `carried` is read without it */
    pthread_cond_t changed;
    enum claim_state state;
    uint64_t inc, number; /* request number of the claim (also in the record) */
    _Atomic uint64_t begun; /* as in struct location */
    unsigned writers;     /* opens for writing on this node, plus carried writes in progress */
    _Atomic uint64_t carried; /* goes up with each write carried here from another node */
    _Atomic uint64_t others;  /* the same, and with nothing else */
    bool aside;            /* claim_aside_begin: opens and carried changes wait */
    struct watchers *watchers; /* NULL: none */
    bool drop_told; /* the nodes that have the file open were told (claim_on_drop) */
    bool gone_told; /* those that have borrowed of it find in the session's log that it has lost its last name */
    /* These change with the lock.  There are some that are told of changes; and: taken up at the start, so that the
     * home is to be asked for them before the next change. */
    _Atomic unsigned char watched; /* LOOKER_... bits of those that are */
    _Atomic bool watchers_unknown;
    bool watchers_asked; /* the home is being asked */
    /* The claim is void (claim_forgotten.c): what is here is not flushed into the file. */
    _Atomic bool forgotten;
};
extern const struct file_part_ops file_claim_ops; /* claim.c */
static inline struct file_claim *claim_of(struct file *f)
{
    return (struct file_claim *)file_part(f, FILE_CLAIM, &file_claim_ops);
}
/* NULL: the file was never claimed here. */
static inline struct file_claim *claim_if(const struct file *f)
{
    return (struct file_claim *)file_part_if(f, FILE_CLAIM);
}

#define ASK_BATCH 512 /* fids in one WHERE or ASK */

enum claim_mine {
    MINE_NOT,
    MINE,
    MINE_VAGUE, /* and a borrower of it does not answer (store_lend.h): `away`, if that is absent; else soon */
};

/* ---- claim_free.c ---- */
/* The sender's requests up to this number have no claim any more.  v: what the PFS has, of which applications
 * are told `told`; NULL: not known.  had: the watchers of the claim that was held; NULL: none was.  The home enters
 * this node as a looker.  Does not wait; any thread that holds no lock. */
void claim_tell_free(struct fid fid, uint64_t inc, uint64_t number, const struct version *v,
                     const struct told *told, const struct watchers *had);

/* ---- claim_where.c ---- */
void claim_where_start(void);
/* Waits for a new view, or for a home to become ready; at most ms. */
void claim_wait(unsigned ms);
void claim_wake(void);
/* This node's answer about a file that it has claimed. */
void claim_own_word(struct file *f, struct location *out);

/* As claim_here, with what the borrowers of lent parts say; one that does not answer until end_ms: LOST.  Blocking. */
bool claim_here_exactly(struct fid fid, uint64_t end_ms, struct location *out); /* LOST: .node */

/* ---- claim_watch.c ---- */
/* The claim's lock is held, for these two. */
void watchers_set(struct file_claim *c, const struct watchers *w);
struct watchers watchers_of(const struct file_claim *c);
/* As they stand in GRANT. */
struct watchers watchers_granted(const struct body_grant *g);
/* One more that has the file open. */
void watchers_add_open(struct watchers *w, uint64_t node, uint64_t incarnation);
/* This node has the claim.  The home is asked for its watchers if they are not known, until end_ms.  -EIO. */
int claim_know_watchers(struct file *f, uint64_t end_ms);

/* ---- claim.c ---- */
struct granted {
    struct body_grant body; /* but for its list */
    struct watchers watchers;
    uint64_t view; /* in which it was answered */
};
/* Sends one WANT of the file's claim.  held: this node has it already.  0: *out is the answer. */
int claim_want(struct file *f, const struct view *v, bool held, struct granted *out);
/* Request numbers of this incarnation; the last one that was given out. */
uint64_t claim_next_number(void);
uint64_t claim_last_number(void);

/* ---- claim_forgotten.c ---- */
/* Reads the session's marks of this node again.  Blocks on the PFS. */
int claim_marks_read(void);
bool claim_is_marked(struct fid fid, uint64_t inc, uint64_t number);
void claim_set_forgotten(struct file *f);
/* This node is fenced, and about to join: makes its marked claims void.  Blocks on the PFS. */
void claim_marks_void(void);
/* Network thread: a view was adopted (NULL: none), and by all. */
void claim_marks_adopted(const struct view *v);
void claim_marks_all_adopted(void);

/* ---- claim_serve.c, claim_named.c ---- */
void claim_serve_start(void);
void claim_serve_stop(void);
void claim_named_start(void);

#endif
