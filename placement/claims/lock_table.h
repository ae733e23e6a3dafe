/* lock_table.h - the locks on one file: conflicts, splitting, joining.  Pure: no threads, no
 * messages.
 *
 * fcntl locks follow POSIX (a holder's new lock replaces its old ones where they overlap;
 * neighbours of one type join).  flock locks cover the whole file, and are converted as in Linux
 * (the old one is removed first).
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOCK_TABLE_H
#define EDDY_PLACEMENT_CLAIMS_LOCK_TABLE_H

#include "transport/base.h"
#include "transport/message.h"

/* LOCK.op.  A request for an fcntl lock (SET, SET_WAIT) adds to what its holder has.  It weakens
 * nothing, since its asker may have given it up.  If the asker has not, WEAKEN follows: write locks of the
 * range become read locks. */
enum lock_op {
    LOCK_SET,
    LOCK_SET_WAIT,
    LOCK_UNLOCK,
    LOCK_TEST,
    LOCK_CANCEL,
    LOCK_DROP_OWNER,
    LOCK_WEAKEN,
};
enum lock_kind { LOCK_FCNTL = 0, LOCK_FLOCK = 1 };
enum lock_type { HELD_READ = 0, HELD_WRITE = 1, HELD_NONE = 2 };

struct held_lock {
    struct held_lock *next;
    uint64_t node, incarnation, owner; /* the holder */
    uint8_t kind, type;                /* enum lock_kind, enum lock_type */
    uint64_t start, end;               /* inclusive */
    uint32_t pid;
    uint64_t number; /* at the home: of the request that set it in this view; 0: not known */
};

/* As it stands in a message, and back (next is NULL). */
struct item_lock lock_item(struct fid fid, const struct held_lock *l);
struct held_lock lock_of_item(const struct item_lock *l);
/* Appends a file's locks to *v of *n, but for those of node `except` (0: all).  A list that is made by this
 * alone, from *n 0 on; it is realloc'd whenever it has doubled. */
void lock_items_add(struct fid fid, const struct held_lock *list, uint64_t except, uint32_t *n,
                    struct item_lock **v);

static inline bool same_holder(const struct held_lock *a, const struct held_lock *b)
{
    return a->node == b->node && a->incarnation == b->incarnation && a->owner == b->owner &&
           a->kind == b->kind;
}

/* The first lock in list, by its start, that conflicts with `want`, as F_GETLK must return it; NULL: none
 * does. */
const struct held_lock *lock_conflict(const struct held_lock *list, const struct held_lock *want);
/* Sets or (type HELD_NONE) removes want's range for its holder.  Returns whether anything changed.
 * A request to remove (number not 0) does not remove what a later request of the holder has set: then it is a
 * copy that was on its way for long. */
bool lock_apply(struct held_lock **list, const struct held_lock *want);
/* Sets want where its holder has no stronger lock yet.  Returns whether anything changed. */
bool lock_strengthen(struct held_lock **list, const struct held_lock *want);
/* Its holder's write locks in want's range become read locks, except for those that a later request has
 * set.  Returns whether anything changed. */
bool lock_weaken(struct held_lock **list, const struct held_lock *want);
/* Adds a copy as it is (to rebuild a list that is known to be right). */
void lock_add(struct held_lock **list, const struct held_lock *l);
void lock_list_free(struct held_lock **list);

#endif
