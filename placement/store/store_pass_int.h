/* store_pass_int.h - what the store_pass*.c files share: store_pass.c (opening, closing, and the whole
 * told), store_pass_sample.c, store_pass_mark.c, store_pass_watch.c.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_PASS_INT_H
#define EDDY_PLACEMENT_STORE_STORE_PASS_INT_H

#include "placement/store/file.h"

/* ---- store_pass_watch.c: without f->lock ---- */
/* On the list of those that are sampled, until nobody can store into it any more. */
void pass_watch(struct file *f);
/* Off it: nobody can, as was found.  False: it stays, as it was opened meanwhile. */
bool pass_unwatch(struct file *f);
void pass_wake_sampler(void);
void pass_tell_changed(struct file *f); /* to whom store_on_pass named */

/* f->lock must be held when you call any function below this line. */

/* ---- store_pass_sample.c ---- */
bool pass_same_sample(const struct pass_sample *a, const struct pass_sample *b);
/* False: the cache's disk failed, which is logged. */
bool pass_take_sample(struct file *f, struct pass_sample *s);
/* F5: nobody can store any more, and nobody has since the flush. */
bool pass_nobody_stores(struct file *f);
/* The kernel's writers are all gone.  clean: and the PFS has what they wrote. */
void pass_end(struct file *f, bool clean);
/* Nothing came since the last flush that counted, and nothing more can come: no flush is owed. */
void pass_settle_unflushed(struct file *f);
/* The same for a file that has been looked at; where a flush is owed, it is noted ("closed") that
 * nothing more can come. */
void pass_prove_closed(struct file *f);
/* It need not be sampled: only an open that this daemon sees can change it, and the flush that is owed
 * looks at it again. */
bool pass_is_quiet(const struct file *f);

#endif
