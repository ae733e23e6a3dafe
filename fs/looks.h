/* looks.h - many looks at the PFS, several at a time. */
#ifndef EDDY_FS_LOOKS_H
#define EDDY_FS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls look(arg, k) for each k below n: in this thread, and in up to seven threads of pool_names, in more of
 * them the longer looks have taken.  Then it calls done(arg), once, in the thread that ends the last look (in
 * this one, if n is 0).  It does not wait for the other threads.  It may block as look and done do. */
void looks_run(unsigned n, void (*look)(void *arg, unsigned k), void (*done)(void *arg), void *arg);

/* Notes how long one look took, us.  Any thread. */
void looks_took(uint64_t us);
/* Is it worth another thread to have two of them at once?  Any thread. */
bool looks_are_slow(void);

#endif
