/* collect_int.h - what the files of collect.c (rule 7) share.  Each uses those before it:
 *
 *     collect_self.c    what this node says of itself
 *     collect_report.c  what the members have said
 *     collect_stamp.c   the newest that is known of a file
 *     collect.c         records are made of that
 *
 * home_lock must be held when any function below is called.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_COLLECT_INT_H
#define EDDY_PLACEMENT_CLAIMS_COLLECT_INT_H

#include "placement/claims/record.h"
#include "transport/view.h"

/* ---- collect_self.c ---- */

/* View v is adopted (NULL: none): what no later view can need is dropped, and what this node says of itself in v is kept as
 * it is now. */
void collect_self_begin(const struct view *v);
/* This home has all its records of view v. */
void collect_self_complete(const struct view *v);
bool collect_self_is_complete(const struct view *v);
/* Files may be blind by this pair of views, unless no node that was absent then is absent in v. */
void collect_add_blind(const struct view *v, struct item_blind b);
void collect_self_stop(void);

/* ---- collect_report.c ---- */

/* What a node said, in all pieces together. */
struct report {
    struct report *next;
    uint64_t id, incarnation, last;
    uint32_t nnextof, nrecords, nlocks, nclaims;
    struct item_nextof *nextof;
    struct item_record *records;
    uint32_t *index;         /* a hash table of records: their places + 1, 0: free */
    uint32_t nindex;         /* a power of two */
    struct item_lock *locks; /* sorted by fid when all are here */
    struct item_claim *claims;
};

extern struct report *collect_reports; /* the list of them */
void collect_drop_reports(void);
void collect_sort_locks(void); /* when all pieces are here, for collect_locks_of */
/* The report of a node that was in `before` and is the same one now. */
const struct report *collect_report_of(const struct view *before, uint64_t id);
/* Had it all records of this home in this view?  (For the home itself: was it complete?) */
bool collect_had_all(const struct report *r, uint64_t home, uint64_t view);
/* Its record of the file, if that is stamped with this view; else NULL. */
const struct item_record *collect_record_of(const struct report *r, struct fid fid, uint64_t view);
/* The first of a report's locks on this file, or on one behind it. */
uint32_t collect_locks_of(const struct report *r, struct fid fid);

/* ---- collect_stamp.c ---- */

/* The newest stamp known of one file: its record, or NULL for "nothing". *from: whose it is. */
const struct item_record *collect_newest_stamp(const struct view *v, struct fid fid,
                                               const struct report **from);
/* Finds the pairs (u, v) for which some file's walk would end in "both gone".  A file whose walk ended in a
 * later view may be among them: it waits for the absent nodes without need, but nothing is lost. */
void collect_find_blinds(const struct view *v);

#endif
