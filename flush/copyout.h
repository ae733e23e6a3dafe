/* copyout.h - what a run does (copyout.c), and what it does for a file that the PFS has differently now
 * (conflict.c). */
#ifndef EDDY_FLUSH_COPYOUT_H
#define EDDY_FLUSH_COPYOUT_H

#include "flush/gate.h"

/* One run over the file: everything that was dirty when it began is brought to the PFS.  *clean: nothing
 * became dirty after that.  0, -ECANCELED, or the PFS's error (nothing is lost). */
int copyout_file(struct gate *g, bool *clean);

/* ---- conflict.c ---- */
/* Must the PFS's file be looked at before a run?  A dead daemon left it, or its last run has not ended in
 * order. */
bool conflict_is_due(struct file *f);
/* Of such a file.  *settled: the PFS's file stays as it is, and nothing is left to flush.  Else 0: it has not
 * changed; -EBUSY: it has, and is open here; -errno: not known. */
int conflict_check(struct file *f, bool *settled);
/* Of a loan whose claim is void: what is here goes into a file beside, or nowhere if its file was removed and is not open here. */
int conflict_loan(struct file *loan);

#endif
