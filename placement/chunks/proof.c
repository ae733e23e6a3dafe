/* proof.c - proofs that are under way, and the version that is in doubt since one failed.
 *
 * All this is in the file's part FILE_PROOF, which a file gets with its first unproven bytes.  proofs_now
 * sees without the lock that no proof is under way and no version in doubt: `doubt` is set before nunproven
 * goes down, and is read after it.
 */
#include "placement/chunks/proof.h"

#include <errno.h>

#include "placement/store/store_read.h"
#include "transport/loop.h"

#define PROOF_MS 2000 /* if the PFS is silent for longer, it hangs */

struct file_proof {
    struct file_part part;
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    _Atomic unsigned nunproven; /* reads whose bytes were given, and whose proof is under way */
    struct unproven *unproven;  /* these reads, the oldest first */
    uint64_t last_no;           /* the number of the last such read */
    _Atomic bool doubt;         /* a proof has failed, and no look has followed */
    struct version doubtful;    /* the newest version for which this is so */
    uint64_t doubts;            /* how many proofs have failed */
};

static void part_begin(struct file *f, struct file_part *part)
{
    struct file_proof *p = (struct file_proof *)part;
    (void)f;
    lock_init(&p->lock, RANK_LEAF);
    lock_cond_init(&p->changed);
}

static void part_end(struct file_part *part)
{
    struct file_proof *p = (struct file_proof *)part;
    lock_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

static const struct file_part_ops ops = {
    .size = sizeof(struct file_proof), .begin = part_begin, .end = part_end};

/* NULL: there were never unproven bytes. */
static struct file_proof *proof_if(const struct file *f)
{
    return (struct file_proof *)file_part_if(f, FILE_PROOF);
}

void proof_begin(struct file *f, struct unproven *u)
{
    struct file_proof *p = (struct file_proof *)file_part(f, FILE_PROOF, &ops);
    lock_take(&p->lock);
    struct unproven **at = &p->unproven;
    while (*at) /* the list is short: at most one for each thread of pool_data */
        at = &(*at)->next;
    *u = (struct unproven){.no = ++p->last_no, .ms = boot_ms()};
    *at = u;
    p->nunproven++;
    lock_drop(&p->lock);
}

/* With the lock.  Of two versions in doubt only the newer one is kept: the store has left the older one, or
 * will. */
static void doubt(struct file_proof *p, const struct version *v)
{
    p->doubts++;
    if (p->doubt && p->doubtful.ctime_ns > v->ctime_ns)
        return;
    p->doubtful = *v;
    p->doubt = true;
}

void proof_end(struct file *f, struct unproven *u, const struct version *v, int err)
{
    struct file_proof *p = proof_if(f);
    lock_take(&p->lock);
    struct unproven **at = &p->unproven;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    if (err)
        doubt(p, v);
    p->nunproven--;
    pthread_cond_broadcast(&p->changed);
    lock_drop(&p->lock);
}

struct proofs proofs_now(struct file *f)
{
    struct proofs now = {0};
    struct file_proof *p = proof_if(f);
    if (!p || (!p->nunproven && !p->doubt))
        return now;
    lock_take(&p->lock);
    now.upto = p->last_no;
    now.any = p->unproven || p->doubt;
    lock_drop(&p->lock);
    return now;
}

/* With the lock: how long the proofs up to that number may still take, ms.  The last of them has the most
 * time left. */
static uint64_t patience(const struct file_proof *p, uint64_t upto)
{
    uint64_t waited = PROOF_MS;
    for (const struct unproven *u = p->unproven; u && u->no <= upto; u = u->next)
        waited = boot_ms() - u->ms;
    return waited < PROOF_MS ? PROOF_MS - waited : 0;
}

int proofs_stand(struct file *f, const struct proofs *then, const struct version *base, bool wait)
{
    if (!then->any)
        return 0;
    struct file_proof *p = proof_if(f);
    lock_take(&p->lock);
    for (uint64_t ms; wait && (ms = patience(p, then->upto));)
        lock_wait(&p->lock, &p->changed, ms);
    bool waits = patience(p, then->upto);
    bool doubtful = p->doubt && version_eq(base, &p->doubtful);
    lock_drop(&p->lock);
    if (waits)
        return -EAGAIN;
    struct file_info info;
    store_info(f, &info); /* if the base has changed since, the doubt about this one may be forgotten */
    bool same = info.base_known && version_eq(&info.base, base);
    return doubtful || !same ? -ESTALE : 0;
}

uint64_t proofs_before_look(struct file *f)
{
    struct file_proof *p = proof_if(f);
    if (!p)
        return 0;
    lock_take(&p->lock);
    uint64_t doubts = p->doubts;
    lock_drop(&p->lock);
    return doubts;
}

void proofs_looked(struct file *f, uint64_t before)
{
    struct file_proof *p = proof_if(f);
    if (!p)
        return;
    lock_take(&p->lock);
    if (p->doubts == before)
        p->doubt = false;
    lock_drop(&p->lock);
}
