/* kernel_io_int.h - what the kernel_io*.c files share: kernel_io.c (opening and closing; its head tells how
 * kernel I/O works), kernel_io_sample.c, kernel_io_mark.c, kernel_io_watch.c.
 */
#ifndef EDDY_PLACEMENT_STORE_KERNEL_IO_INT_H
#define EDDY_PLACEMENT_STORE_KERNEL_IO_INT_H

#include "placement/store/file.h"

/* ---- kernel_io_watch.c: without f->lock ---- */
/* Puts the file on the list of files that are sampled, until no process can store into it any more. */
void kernel_io_watch(struct file *f);
/* Takes it off the list, after a proof that no process can store.  False: it was opened meanwhile, and
 * stays. */
bool kernel_io_unwatch(struct file *f);
void kernel_io_wake_sampler(void);
void kernel_io_tell_changed(struct file *f); /* calls store_on_kernel_io's `changed` */

/* f->lock must be held when you call any function below this line. */

/* ---- kernel_io_sample.c ---- */
bool kernel_io_same_sample(const struct kernel_io_sample *a, const struct kernel_io_sample *b);
/* False: the cache's disk failed, which is logged. */
bool kernel_io_take_sample(struct file *f, struct kernel_io_sample *s);
/* F5: is it proved that no process can store any more, and that none has since the flush? */
bool kernel_io_nobody_stores(struct file *f);
/* The kernel's writers are all gone.  clean: and the PFS has what they wrote. */
void kernel_io_end(struct file *f, bool clean);
/* Ends it if nothing came since the last flush that counted, and nothing more can come: no flush is owed. */
void kernel_io_conclude_unflushed(struct file *f);
/* The same for a file that was sampled just now.  If a flush is owed, it notes ("closed") that nothing more
 * can come. */
void kernel_io_prove_closed(struct file *f);
/* True: the file need not be sampled.  Only an open that this daemon sees can change it, and the flush that
 * is owed looks at it again. */
bool kernel_io_is_quiet(const struct file *f);

#endif
