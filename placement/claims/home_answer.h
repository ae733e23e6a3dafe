/* home_answer.h - may the home answer, and with what (home_answer.c, home_hint.c)?  The home's lock is
 * held. */
#ifndef EDDY_PLACEMENT_CLAIMS_HOME_ANSWER_H
#define EDDY_PLACEMENT_CLAIMS_HOME_ANSWER_H

#include "placement/claims/home_int.h"

/* ---- home_hint.c ---- */
/* The PFS has version v, of which applications are told `told`.  v NULL: the file was given back, and the
 * version is not known. */
void hint_set(struct fid fid, const struct version *v, const struct told *told);
/* The version moved without a change of the data. */
void hint_same(const struct body_same *s);
/* AT.known: there was a version, the home does not have it any more: look at the PFS. */
#define KNOWN_LOST 3
/* For AT.  known stays 0 only if no node gave this file back in this view: then what the asker saw
 * is still right. */
struct hinted {
    uint8_t known;
    struct version version, same_as;
    struct told told;
};
struct hinted hint_get(struct fid fid);
void hints_drop(void);

/* ---- home_answer.c ---- */
/* May it answer a node that asks in that view: is it complete and under a lease? */
bool home_may_tell(uint64_t view, struct fid fid);
/* For WHERE (rule 8): also as next, with a copy of all records that the home has in this view. */
bool home_may_tell_where(uint64_t view, struct fid fid);
/* For grants: also settled, and next has this view's records (rule 9). */
bool home_may_grant(uint64_t view, struct fid fid);
void home_refuse(struct msg *m, int err);
void home_ask_again(struct msg *m);
void home_ask_again_list(struct pending **list);
/* Puts it at the end of the list; count: the stamp that next must have before it is answered. */
void home_queue(struct pending **list, struct msg *m, uint64_t count);
void home_reply_grant(struct msg *m, enum at_where where, uint64_t node);
/* AT_GRANTED, with n watchers. */
void home_reply_granted(struct msg *m, const struct item_watcher *v, uint32_t n);
/* found: the lock in the way, NULL: none. */
void home_reply_locked(struct msg *m, const struct held_lock *found);
/* Next has the record up to this stamp: grants the requests that waited for it, if this home still may. */
void home_answer_pending(struct record *r, uint64_t copied);

#endif
