/* borrow.h - the borrower's side of loans (lend.h): this node writes parts of another node's file into its own store.
 *
 * What it has borrowed is in a store file of its own (FID_LOAN).  Its dirty pages go to the PFS as those of any file;
 * when none is left, and no descriptor of this node writes the file, all is returned at once.  So no part goes
 * back and forth while the application runs.
 *
 * All functions block: pool threads only, but for borrow_write_own_now.
 */
#ifndef EDDY_PLACEMENT_BORROW_H
#define EDDY_PLACEMENT_BORROW_H

#include "placement/carry.h"
#include "placement/loan.h"
#include "placement/store/file.h"

void borrow_start(void); /* before peer_start (borrow_serve.c) */
/* This node is about to leave: brings all to the PFS, and returns it.  -EIO: not all (logged). */
int borrow_leave(void);
void borrow_stop(void);
/* At the start, before any request is served: takes up what a dead daemon has left.  -errno. */
int borrow_recover(void);
/* Files of which borrowed parts are not on the PFS. */
unsigned borrow_dirty(void);

/* Each file of which parts are borrowed. */
void borrow_each(loan_status_fn *fn, void *arg);

/* What the directory says of sharing (user.eddy.shared): parts are lent and borrowed whatever is written, or never. */
void borrow_set_policy(struct file *f, bool always, bool never);
bool borrow_is_refused(const struct file *f); /* never */

/* A handle of this node that writes is open, while another node is the claimant; its end. */
void borrow_opened(struct file *f);
void borrow_closed(struct file *f);

/* What the claimant said of its file, if it made a part of a change, or gave a part of the bytes. */
struct borrow_heard {
    bool carried;  /* a part went to another node */
    bool claimant; /* ... to the claimant */
    struct carry_result result;
};
/* Where a handle has written last; all zeros at first. */
struct borrow_pattern {
    uint64_t off, len, distance;
    unsigned runs; /* how often in a row the distance was the same */
};
void borrow_follow(struct borrow_pattern *p, uint64_t off, uint64_t len);
/* A WRITE or STORE of an application of this node: the parts go where they belong, and new ones are borrowed if that is
 * worth it.  -ENOENT: that node is not the claimant. */
int borrow_change(struct file *f, uint64_t claimant, struct change *c, const struct borrow_pattern *pattern,
                  struct borrow_heard *heard);
/* The same for a write or read of parts that are all borrowed here: the claimant need not be known for that, it may be away.
 * -EREMOTE, and nothing is done: they are not, or (of a read) the file may end in them. */
int borrow_change_own(struct file *f, struct change *c);
/* A WRITE as borrow_change_own, without waiting: -EAGAIN, and nothing counts of it, when it has to, or not all is borrowed here.
 * Any thread that holds no lock. */
int borrow_write_own_now(struct file *f, struct change *c);
int borrow_read_own(struct file *f, void *buf, size_t len, uint64_t off);
/* A read by an application of this node. */
int borrow_read(struct file *f, uint64_t claimant, struct carry_range *r, struct borrow_heard *heard);

/* For what another node sends to this one as the borrower.  The store's file if all of [off, off + len) is borrowed here,
 * until borrow_use_end; NULL: "not mine".  *len: up to where it is. */
struct file *borrow_use_begin(struct file *f, uint64_t off, uint64_t *len);
void borrow_use_end(struct file *f);
/* Between them: as local_change.  -ENOENT: the loan has become void, so the change does not count; other errors that have a
 * meaning for who asked (carry.h) are -EIO. */
int borrow_use_change(struct file *f, struct file *loan, struct change *c);

#endif
