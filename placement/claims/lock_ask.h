/* lock_ask.h - fcntl and flock locks that applications on this node ask for; a lock is kept by its file's home
 * (docs/protocol.md, 19 on). */
#ifndef EDDY_PLACEMENT_CLAIMS_LOCK_ASK_H
#define EDDY_PLACEMENT_CLAIMS_LOCK_ASK_H

#include "transport/base.h"

struct lock_ask {
    struct fid fid;
    bool flock;     /* else fcntl */
    short type;     /* F_RDLCK, F_WRLCK, F_UNLCK */
    uint64_t owner; /* the kernel's lock owner */
    uint64_t start, end;
    uint32_t pid;
};
/* Asynchronous: done(arg, err, found) once, from the network thread: 0; -EAGAIN (would block);
 * -EINTR (cancelled); -EIO (held by a node that left); -ENOLCK (the file has too many locks). wait: until granted.  type F_UNLCK: gives
 * the range back. */
typedef void (*lock_done)(void *arg, int err, const struct lock_ask *found);
void lock_request(const struct lock_ask *a, bool wait, lock_done done, void *arg);
/* The same under an id made before, for lock_cancel. */
uint64_t lock_new_id(void);
void lock_request_as(uint64_t id, const struct lock_ask *a, bool wait, lock_done done, void *arg);
/* Any fcntl lock on the file, by any descriptor?  Any thread, no message. */
bool lock_owner_has_any(struct fid fid, uint64_t owner);
/* found: the conflicting one, or type F_UNLCK.  id: as there. */
void lock_test(uint64_t id, const struct lock_ask *a, lock_done done, void *arg);
void lock_cancel(uint64_t id);
/* All locks of this owner on this file go (FLUSH: fcntl; RELEASE: flock).  No message if it holds
 * none. */
void lock_drop_owner(struct fid fid, bool flock, uint64_t owner, lock_done done, void *arg);

/* The parts of its range on which its owner has no fcntl lock now, of whatever type: *v, malloc'd, and how many.  flock: all of it.
 * Any thread that holds no lock. */
unsigned lock_missing(const struct lock_ask *a, struct lock_ask **v);

#endif
