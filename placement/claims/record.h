/* record.h - the home's and next's records, and what rule 7 makes of them when a view changes.
 *
 * Private to the home: record.c (the table), placement/claims/home_*.c (requests) and
 * placement/claims/collect.c (view changes).  home_lock must be held: the network thread uses the records,
 * and so do threads that ask this node's own home (home_here.c).
 */
#ifndef EDDY_PLACEMENT_CLAIMS_RECORD_H
#define EDDY_PLACEMENT_CLAIMS_RECORD_H

#include "placement/claims/lock_table.h"
#include "transport/members.h"
#include "transport/view.h"

/* What a record does not know: it was made from members' own lists alone, and absent nodes may
 * have more (rule 7). */
#define RECORD_CLAIM_UNKNOWN 1u
#define RECORD_LOCKS_UNKNOWN 2u

/* A request that is answered when next has the record. */
struct pending {
    struct pending *next;
    struct msg *m;
    uint64_t count; /* the stamp that next must have */
};

struct record {
    struct record *hash_next;
    struct fid fid;
    uint64_t claimant, number_inc, number; /* claimant 0 = none */
    uint64_t stamp_view, stamp_count;
    uint64_t freed_by, freed_inc, freed_number; /* requests up to this one are finished */
    struct held_lock *locks;
    uint8_t unknown;         /* RECORD_... */
    struct pending *pending; /* wait for COPIED */
    struct pending *waiting; /* blocking locks, in order of arrival */
    struct breaks *breaks;   /* BREAKs before the claim is granted (home_break.c), or NULL */
    /* The claimant has asked for the claim, has not been granted it, and has nothing of the file: the PFS has the
     * latest bytes until then.  At the home alone. */
    bool granting;
    bool opened; /* ... and meanwhile a node has opened the file, and was not entered */
    /* COPIED of the claim has come, or of the last one: next's lookers of before are known.  At the home alone. */
    bool heard;
    uint64_t touched_ms;
};

struct record *record_find(struct fid fid); /* or NULL */
struct record *record_make(struct fid fid);
void record_each(void (*fn)(struct record *r, void *arg), void *arg);
/* Removes the records for which drop() returns true.  some: looks only at a few thousand, and at the next
 * ones in the next call; true: it has reached the end of the table. */
void record_sweep(bool (*drop)(const struct record *r, void *arg), void *arg);
bool record_sweep_some(bool (*drop)(const struct record *r, void *arg), void *arg);
/* Calls fn for a few thousand records from *at on, which begins at 0; false: there are no more. */
bool record_some(unsigned *at, void (*fn)(struct record *r, void *arg), void *arg);
unsigned record_count(void);
static inline bool record_empty(const struct record *r)
{
    return !r->claimant && !r->locks && !r->pending && !r->waiting && !r->breaks;
}
/* As it stands in a message. */
struct item_record record_item(const struct record *r);

/* ---- collect.c: rule 7 (collect_int.h lists the files) ---- */
void collect_begin(const struct view *v);
/* A piece of ADOPTED(v), each once and in their order. */
void collect_report(const struct view *v, uint64_t from, uint64_t incarnation,
                    const struct body_adopted *b);
/* All members' reports are here: makes the records of this home's files, stamped (v, 0).  Some of them
 * at a time: a thread that makes millions at once answers no node meanwhile.  True: all are made. */
bool collect_some(const struct view *v);
/* All that are left, if that was begun and has not ended.  Until then what this node can say of itself
 * is not whole. */
void collect_finish(void);
/* A file without a record: 0 if nothing is claimed, else an absent node that may have its latest
 * bytes. */
uint64_t collect_blind(const struct view *v, struct fid fid);
/* What this node reports of itself in ADOPTED. */
void collect_note_next(uint64_t home, uint64_t view); /* COPY(view, 0) came from home */
bool collect_is_next(uint64_t home, uint64_t view);   /* ... and was noted */
/* home_view, nextof, blinds: malloc'd */
void collect_fill(const struct view *v, struct body_adopted *b);
void collect_stop(void);

#endif
