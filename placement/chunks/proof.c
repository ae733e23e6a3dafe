/* proof.c - proofs that are under way, and the version that is in doubt since one failed.
 *
 * Lock: f->lock.  Without it proofs_now sees that there is nothing: `doubt` is set before the count
 * of proofs goes down, and read after it.
 */
#include "placement/chunks/proof.h"

#include <errno.h>

#include "placement/store/store.h"
#include "transport/loop.h"

#define PROOF_MS 2000 /* a PFS that is silent so long hangs */

void proof_begin(struct file *f, struct unproven *u)
{
    lock_take(&f->lock);
    struct unproven **p = &f->unproven;
    while (*p) /* few: no more than pool_data has threads */
        p = &(*p)->next;
    *u = (struct unproven){.no = ++f->unproven_no, .ms = boot_ms()};
    *p = u;
    f->nunproven++;
    lock_drop(&f->lock);
}

/* With the lock.  Of two versions the older one is gone anyway: the store left it, or will. */
static void doubt(struct file *f, const struct version *v)
{
    f->doubts++;
    if (f->doubt && f->doubtful.ctime_ns > v->ctime_ns)
        return;
    f->doubtful = *v;
    f->doubt = true;
}

void proof_end(struct file *f, struct unproven *u, const struct version *v, int err)
{
    lock_take(&f->lock);
    struct unproven **p = &f->unproven;
    while (*p != u)
        p = &(*p)->next;
    *p = u->next;
    if (err)
        doubt(f, v);
    f->nunproven--;
    pthread_cond_broadcast(&f->changed);
    lock_drop(&f->lock);
}

struct proofs proofs_now(struct file *f)
{
    struct proofs now = {0};
    if (!f->nunproven && !f->doubt)
        return now;
    lock_take(&f->lock);
    now.upto = f->unproven_no;
    now.any = f->unproven || f->doubt;
    lock_drop(&f->lock);
    return now;
}

/* With the lock: so long the proofs up to that number may still take, ms.  The last of them has
 * most time left. */
static uint64_t patience(const struct file *f, uint64_t upto)
{
    uint64_t waited = PROOF_MS;
    for (const struct unproven *u = f->unproven; u && u->no <= upto; u = u->next)
        waited = boot_ms() - u->ms;
    return waited < PROOF_MS ? PROOF_MS - waited : 0;
}

int proofs_hold(struct file *f, const struct proofs *then, const struct version *base, bool wait)
{
    if (!then->any)
        return 0;
    lock_take(&f->lock);
    for (uint64_t ms; wait && (ms = patience(f, then->upto));)
        lock_wait(&f->lock, &f->changed, ms);
    bool waits = patience(f, then->upto);
    bool doubtful = f->doubt && version_eq(base, &f->doubtful);
    lock_drop(&f->lock);
    if (waits)
        return -EAGAIN;
    struct file_info info;
    store_info(f, &info); /* another base: its doubt may have been forgotten since */
    bool same = info.base_known && version_eq(&info.base, base);
    return doubtful || !same ? -ESTALE : 0;
}

uint64_t proofs_before_look(struct file *f)
{
    lock_take(&f->lock);
    uint64_t doubts = f->doubts;
    lock_drop(&f->lock);
    return doubts;
}

void proofs_looked(struct file *f, uint64_t before)
{
    lock_take(&f->lock);
    if (f->doubts == before)
        f->doubt = false;
    lock_drop(&f->lock);
}
