/* filler.c - the threads that write fetched chunks into the store. */
#include "placement/chunks/filler.h"

#include "transport/loop.h"

#define FILLERS 4

static struct pool *fillers[FILLERS];

void filler_start(void)
{
    for (unsigned i = 0; i < FILLERS; i++)
        fillers[i] = pool_new("eddy-fill", 1);
}

void filler_stop(void)
{
    for (unsigned i = 0; i < FILLERS; i++) {
        pool_free(fillers[i]);
        fillers[i] = NULL;
    }
}

void filler_submit(struct fid fid, void (*fn)(void *arg), void *arg)
{
    pool_submit(fillers[fid.lo % FILLERS], fn, arg);
}
