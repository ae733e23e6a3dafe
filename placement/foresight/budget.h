/* budget.h - the PFS's bandwidth, shared by what is fetched ahead and what is flushed (budget.c).
 *
 * What is read soon comes before all that is flushed, unless somebody waits for that.  While dirty bytes are at the high mark, the flush
 * comes before what is read later: it makes the room for that.  Below it both go on, and in a lull the flush comes last.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_BUDGET_H
#define EDDY_PLACEMENT_FORESIGHT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/fid.h"

/* ---- for the flusher; any thread, leaf locks are taken ---- */

/* Dirty bytes are at the high mark, or not any more. */
void budget_flush_presses(bool presses);
/* Is something being fetched that is read soon?  Then a flush in a lull waits. */
bool budget_is_soon(void);
/* fn is called, without locks, when that ends; it is not to wait.  Before the first queue. */
void budget_on_calm(void (*fn)(void));
/* ms until the file is read, as far as it was told; UINT64_MAX: nobody has said so. */
uint64_t budget_distance(struct fid fid);

/* For stream_on_fetch: what a reader will want next, as its reads tell, is fetched; that has ended. */
void budget_guess_begins(void);
void budget_guess_ends(void);

/* ---- for the prefetcher ---- */

struct target;
/* wake: called when dirty bytes are at the high mark no longer. */
void budget_start(void (*wake)(void));
/* May it be fetched now?  With hints_lock. */
bool budget_may_fetch(const struct target *t);
/* Work on it begins: what budget_ends needs to know.  With hints_lock. */
bool budget_begins(const struct target *t);
/* Without hints_lock. */
void budget_ends(bool was_soon);

#endif
