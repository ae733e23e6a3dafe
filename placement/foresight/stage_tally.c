/* stage_tally.c - what is counted of a stage while it goes on: its memory, its bytes, what could
 * not be brought. */
#include "placement/foresight/stage_int.h"

#include <errno.h>
#include <stdlib.h>

#define FAILURES_MAX 10000 /* of a stage, with their reasons */

int stage_charge(struct stage *s, uint64_t bytes)
{
    lock_take(&hints_lock);
    bool fits = hints_charge((int64_t)bytes);
    lock_drop(&hints_lock);
    if (fits)
        s->charged += bytes;
    return fits ? 0 : -ENOBUFS;
}

void stage_failed(struct stage *s, uint32_t file, uint64_t node, int err)
{
    struct staged_file *f = &s->files[file];
    lock_take(&s->lock);
    s->nfailed += !f->failed;
    if (!f->failed && s->nfailures < FAILURES_MAX) {
        s->failures = xrealloc(s->failures, (s->nfailures + 1) * sizeof(*s->failures));
        s->failures[s->nfailures++] = (struct stage_failure){xstrdup(f->path), node, err};
    }
    f->failed = true;
    lock_drop(&s->lock);
}

void stage_more(struct stage *s, uint64_t bytes)
{
    lock_take(&s->lock);
    s->bytes += bytes;
    lock_drop(&s->lock);
}
