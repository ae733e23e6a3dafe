/* looks.h - many looks at the PFS, several at a time. */
#ifndef EDDY_FS_LOOKS_H
#define EDDY_FS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls look(arg, k) for each k below n, in this thread and, the longer a look has been taking, in up to seven
 * of pool_names beside it; then done(arg), once, in the thread that ends the last one (this one, if n is 0).
 * Not waited for.  May block as look and done do. */
void looks_run(unsigned n, void (*look)(void *arg, unsigned k), void (*done)(void *arg), void *arg);

/* One look took so long, us.  Any thread. */
void looks_took(uint64_t us);
/* Is it worth another thread to have two of them at once?  Any thread. */
bool looks_are_slow(void);

#endif
