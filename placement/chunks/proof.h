/* proof.h - what a reader may get of a file while it is not yet proved of which version other bytes are that
 * a reader was given.
 *
 *   origin.c: gives bytes of the PFS to their reader; then a look shows whether they were of the
 *             version that was asked for:  proof_begin --> proof_end
 *   readers:  proofs_now --> bytes from the store, or from another node --> proofs_stand
 *
 * If the given bytes were of a newer version, a later reader must not get older ones.  So a call that began
 * while proofs were under way waits for them, and takes no bytes of a version that is in doubt.  Bytes that a
 * call reads from the PFS itself are as new as the call, and need no proof.
 *
 * Any thread; no function here asks the PFS.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_PROOF_H
#define EDDY_PLACEMENT_CHUNKS_PROOF_H

#include "placement/store/file.h"

struct unproven {
    struct unproven *next;
    uint64_t no, ms; /* ms: boot_ms when its bytes were given */
};

/* Bytes are about to be given.  u belongs to the caller and must stay until proof_end. */
void proof_begin(struct file *f, struct unproven *u);
/* err 0: the bytes were of version v.  Else they were of another one, or it is not known: v is in doubt. */
void proof_end(struct file *f, struct unproven *u, const struct version *v, int err);

/* The proofs that were under way, or failed, when a call began. */
struct proofs {
    uint64_t upto;
    bool any;
};
struct proofs proofs_now(struct file *f);

/* Says whether a call that began at *then may have bytes that were the store's while its version was `base`.
 * 0: yes; -ESTALE: no: the caller asks the home and the PFS again; -EAGAIN: it is not known yet.  wait: waits
 * until it is known, but for no proof longer than 2 s: a PFS that hangs must not stop reads of cached
 * data. */
int proofs_stand(struct file *f, const struct proofs *then, const struct version *base, bool wait);

/* To be called before and after a look at the file's version on the PFS, if the store has followed the look:
 * a version that was in doubt before it is not any more.  proofs_looked gets what proofs_before_look
 * returned. */
uint64_t proofs_before_look(struct file *f);
void proofs_looked(struct file *f, uint64_t before);

#endif
