/* proof.h - of a file whose bytes were given before it was proved of which version they are: what
 * else may a reader have?
 *
 *   origin.c: bytes of the PFS go to their reader, then a look tells whether they were of the
 *             version that was asked for:  proof_begin --> proof_end
 *   readers:  proofs_now --> bytes from the store, or from another node --> proofs_hold
 *
 * If they were of a newer version, a reader that comes later must not have older ones.  So a call
 * that began when proofs were under way waits for them, and has nothing of a version that is in
 * doubt.  What a call reads from the PFS itself is as new as the call, and needs no proof.
 *
 * Any thread; nothing here asks the PFS.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_PROOF_H
#define EDDY_PLACEMENT_CHUNKS_PROOF_H

#include "placement/store/file.h"

struct unproven {
    struct unproven *next;
    uint64_t no, ms; /* ms: boot_ms when its bytes were given */
};

/* The bytes are about to be given.  u: the caller's until proof_end. */
void proof_begin(struct file *f, struct unproven *u);
/* err: 0: they were of version v; else of another one, or it is not known.  Then v is in doubt. */
void proof_end(struct file *f, struct unproven *u, const struct version *v, int err);

/* What was under way, or in doubt, when a call began. */
struct proofs {
    uint64_t upto;
    bool any;
};
struct proofs proofs_now(struct file *f);

/* May a call that began at *then have bytes of the version that was the store's base before they
 * were taken?  0; -ESTALE: no, the home and the PFS are to be asked again; -EAGAIN: it is not known
 * yet.  wait: until it is, but for no proof longer than 2 s: a PFS that hangs must not stop what is
 * cached. */
int proofs_hold(struct file *f, const struct proofs *then, const struct version *base, bool wait);

/* Around a look at the file's version on the PFS which the store followed: what was in doubt before
 * the look is no more.  The first returns what the second is to be told. */
uint64_t proofs_before_look(struct file *f);
void proofs_looked(struct file *f, uint64_t before);

#endif
