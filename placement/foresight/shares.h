/* shares.h - what stages have had this node bring: a stage's *share* here is the files that have
 * come for it (shares.c). Private to placement/foresight/.
 *
 * Their chunks stay hinted in the store while the stage goes on, so that its later files do not
 * evict its earlier ones; of a pinned share, until its time is over.  When a writer or a reader
 * needs room, files of shares that are not pinned are given up, the last one first.  A share whose
 * stage has ended is not known any more, unless it is pinned.
 *
 *     share (node, number of the stage)  -->  fid, bytes | fid, bytes | ...
 *                                             88 bytes a file, of hints_limit
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_SHARES_H
#define EDDY_PLACEMENT_FORESIGHT_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/fid.h"

#define SHARES_MAX 256

struct share;

/* ---- with hints_lock ---- */

/* The share of this stage of that node; pin_ms, owned: as in BRING.  NULL: there are too many, or the stage has ended. */
struct share *share_get(uint64_t node, uint64_t stage, uint64_t pin_ms, bool owned);
/* The store has been told that the file's chunks are hinted.  off: where the part of the file begins
 * that has come.  If another share has it already, it is in that which is pinned for longer.  False: there is no memory for it, and it
 * is not kept. */
bool share_keep(struct share *s, struct fid fid, uint64_t off, uint64_t bytes);
/* Bytes that the shares count for this part of the file. */
uint64_t shares_have(struct fid fid, uint64_t off);
/* What a pinned share has of the file: nothing, the chunks that this node owns, or others, too. */
enum pinned { PINNED_NONE, PINNED_OWNED, PINNED_ALL };
enum pinned shares_pin(struct fid fid);
void shares_end_all(void); /* the store is told nothing */

/* ---- without hints_lock; they tell the store ---- */

/* May be read at any time. */
bool shares_any(void);
/* The stage has ended: what it had here leaves as others do. */
void share_end(uint64_t node, uint64_t stage);
/* These files are wanted by no stage any more, and leave first; n 0: none of any share, which end.
 */
void shares_drop(const struct fid *fids, size_t n);
/* Shares whose pin is over leave as others do.  Returns when the next one is over (boot_ms); 0:
 * none is pinned for a time. */
uint64_t shares_expire(void);
/* One file that is not pinned may leave now.  False: there is none. */
bool shares_give_up(void);

#endif
