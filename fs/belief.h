/* belief.h - may the kernel believe attributes of a file for some time, or must it ask again each time?
 *
 * It may, if this node is told before they change: by the file's home, which has entered it as a looker, or by itself,
 * if it has the claim (placement/claims/look.h).  What was asked before such a word came is void, also if the answer
 * is on its way to the kernel just now: the word waits for answers that are being given, and then lets the kernel drop
 * what they said.
 */
#ifndef EDDY_FS_BELIEF_H
#define EDDY_FS_BELIEF_H

#include "fs/inode.h"
#include "placement/claims/look.h"
#include "placement/tell.h"

struct belief {
    bool keep;    /* for some time */
    bool told;    /* a word may come: of a regular file that may change */
    bool begun;   /* between belief_begin and belief_end, and kept */
    struct fid fid;
    struct look_ticket ticket;
    enum where where; /* of its bytes; told alone */
    uint64_t node;    /* NODE */
};

/* No time at all. */
static inline struct belief belief_none(void)
{
    return (struct belief){0};
}
/* Processes that have the file open by a node id that was retired since may write it by the kernel alone.  Nothing may be kept by
 * this one: neither attributes nor pages. */
bool belief_unheard(const struct inode *i);
/* at: where its bytes are (regular files alone). */
struct belief belief_of(const struct inode *i, const struct location *at);
/* The same of something that no node changes: of a directory, or below --immutable. */
struct belief belief_fixed(void);
/* The answer of i, with this size, is given next.  How long it may be believed: timeout (seconds), or less; 0: not at all. */
double belief_begin(struct belief *b, struct inode *i, uint64_t size, double timeout);
/* It has been given. */
void belief_end(struct belief *b);

/* Before an answer with this size is given: the kernel goes on with the size that it had if it drops the answer, as it does when
 * it was told something meanwhile, be it an older answer to somebody else.  So it is told a larger size first, by the file's
 * last byte.  True: it must be told; then belief_grow does it, which may ask another node or the PFS.  Not of a file that was
 * changed by this node alone: the kernel counts its size itself. */
bool belief_must_grow(const struct inode *i, const struct belief *b, uint64_t size);
/* False: the byte is not where the look had found it: the file was changed or has moved since, and who can looks again.  If no
 * node can be asked for it the answer is given as it is. */
bool belief_grow(struct inode *i, const struct belief *b, uint64_t size);

/* The claimant is away, and the PFS has `size`: what the kernel is told, which goes on counting by it when that node is back. */
uint64_t belief_size_if_lost(struct inode *i, uint64_t size);
/* An open that appends has found the file like *at, and the kernel may have an older size: raises it.  Blocking. */
void belief_appends(struct inode *i, const struct location *at);

/* ---- the end ---- */

/* Ends what this mount believes of the file: attributes, pages, where the bytes are.  Returns LOOKER_... of the
 * descriptors that are left and cache.  Waits for the kernel (fs/page_cache.h); look_break was called before.  A pool
 * thread that is there for this alone. */
unsigned belief_break(struct fid fid);
/* The same of what a change touched. */
unsigned belief_changed(struct fid fid, const struct told_change *c);
/* A change of [off, off + len), len 0: to the end, or of the attributes alone, was made through i, before it
 * is answered.  The kernel may know the file by several node ids (inode_retire): what it keeps by another one
 * ends.  Waits for the kernel; a pool thread that holds no lock. */
void belief_changed_by(struct inode *i, uint64_t off, uint64_t len);
void belief_changed_attr_by(struct inode *i);
/* Is the file open by another one of its node ids, to append?  Then a change through i that may have made it longer goes on with
 * belief_grown_by before it is answered, as the kernel counts the place of an append by the size that it has of that node id.
 * at: where the file is after the change, and its size.  Blocking. */
bool belief_appended_beside(struct inode *i);
void belief_grown_by(struct inode *i, const struct location *at);

#endif
