/* claim.h - this node's side of claims: which node has a file's latest bytes, and asking for the claim
 * (docs/protocol.md, 10-16).
 *
 * Blocking calls run in pool threads only.  They wait until the deadline that they are given (end_ms, by
 * boot_ms), or at most T_open (members_patience); -EIO afterwards.  Bytes that are lost until a node returns
 * are WHERE_LOST from claim_where (no error: a name can be looked up and removed), -EIO from
 * claim_open_writer (logged).  -EINTR is not given here: fs/ answers interrupted requests itself.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_H

#include "placement/claims/look.h"
#include "placement/store/file.h"
#include "transport/members.h"

/* Where a file's latest bytes are. */
enum where { WHERE_HERE, WHERE_PFS, WHERE_NODE, WHERE_LOST };
struct location {
    enum where where;
    uint64_t node; /* WHERE_NODE: the claimant; WHERE_LOST: a node that must return */
    /* WHERE_NODE (from the claimant) and WHERE_HERE (from this node): */
    uint64_t size, blocks;
    int64_t mtime_ns, ctime_ns;
    int64_t stands_ns; /* as in file_info: the PFS's ctimes up to this one do not count */
    uint64_t counter; /* the claimant's change counter: equal = same bytes as then */
    uint64_t begun;   /* version_mark of what the PFS had when the claim began; 0: not known */
    /* WHERE_PFS: what the home knows of the version.  0: nothing, and what the asker saw on the PFS
     * before is still right; 1: version, and what is told of it; 2: also same_as; 3: nothing any more, so the
     * PFS must be looked at again */
    unsigned known;
    struct version version, same_as;
    struct told told;
    uint64_t view; /* in which the home said so */
    /* May this node keep what it finds, until a BREAK comes?  If so, the home knows that it looks at the file
     * (or nobody else is in the session), and the ticket held when this was answered.  The user of the answer
     * asks look_answer_begin with the ticket.  Else: time-out 0, no pages, and located anew at each use.  Always
     * false for WHERE_LOST; true for WHERE_HERE.  WHERE_NODE: only if the claimant tells this node of changes. */
    bool keep;
    struct look_ticket ticket; /* taken before any node was asked */
};
/* Asks the home, and the claimant if there is one.  look: how long this node will look at the file: the home
 * enters it.  (LOOK_OPEN: after look_opened.)  fids: n <= 512, answers in order (each with its
 * own err in errs[i], may be NULL: then the first error is returned). */
int claim_where(struct fid fid, enum look look, struct location *out);
int claim_where_until(struct fid fid, enum look look, uint64_t end_ms, struct location *out);
int claim_where_many(const struct fid *fids, unsigned n, enum look look, struct location *out,
                     int *errs);
/* Without a message, for a file of which this node does not have the claim: true if this node is the home,
 * and no other node need be asked.  This node is entered, too. */
bool claim_told_here(struct fid fid, enum look look, struct location *out);
/* Without a message: does this node hold the claim? */
bool claim_is_held(struct file *f);
/* True: this node has the claim, or is about to get it, and an open writes, here or at another node
 * (carried). */
bool claim_has_writers(struct file *f);
/* Goes up with each write that was carried here from another node, and with some changes that this node made itself. */
uint64_t claim_carried(struct file *f);
/* The same without these, and with each part that is lent to another node; and: a write of another node has come, or will. */
uint64_t claim_others(struct file *f);
void claim_other_wrote(struct file *f);
/* Without a message: HERE if this node has the claim.  Size and times are the least if parts are lent. */
bool claim_here(struct fid fid, struct location *out);
bool claim_here_of(struct file *f, struct location *out);
/* The same; the file, referenced, or NULL. */
struct file *claim_file_here(struct fid fid, struct location *out);
/* The same without its size and times. */
bool claim_is_here(struct fid fid);
/* What an opener saw on the PFS. */
struct claim_seen {
    const struct version *version;
    uint64_t looked_ms; /* boot_ms, not after the look; 0: some time */
    bool named;         /* a file that has lost its last name since is -ESTALE: the opener looks its name up again */
};
/* An open for writing begins: counts a writer and asks for the claim, until end_ms.  out->where: HERE (granted, persisted in the record with the
 * PFS version that holds now) or NODE (writes are carried there).  On error no writer is counted. */
int claim_open_writer(struct file *f, const struct claim_seen *seen, uint64_t end_ms, struct location *out);
/* ... ends.  If this node has the claim and nothing is dirty, the claim is given back. */
void claim_close_writer(struct file *f);
/* Its data is put beside the file, and what is here of the file is dropped: from now on no open of it begins
 * here, and no carried change, until claim_aside_end.  False, and nothing happens: it is being written, or the
 * claim is being asked for.  The caller then looks whether it is open: an open that is counted later waits. */
bool claim_aside_begin(struct file *f);
void claim_aside_end(struct file *f);
/* To be called when an open is counted: waits while the file is aside.  -EIO: still so at end_ms. */
int claim_aside_wait(struct file *f, uint64_t end_ms);
/* A carried write begins/ends here at the claimant: -ENOENT "not mine". */
int claim_carry_begin(struct file *f);
void claim_carry_end(struct file *f);
/* The same for what changes the file: its watchers (claim_watch.h) are known when it has begun.  Once for a claim
 * that was taken up at the start, the home is asked for them, until end_ms: -EIO. */
int claim_change_begin(struct file *f, uint64_t end_ms);
/* The same for an open there, which writes nothing; claim_close_writer ends it. */
int claim_pin_begin(struct file *f);
/* Our own name operation moved ctime: tell the home that the data is the same. Does not wait. */
void claim_publish_same(struct fid fid, const struct version *before, const struct version *after);
/* A name of a file that another node has claimed changed here: tells the claimant (waits, <= 5 s).
 * path NULL: gone (nlink 0).  -errno, logged: the claimant did not hear it. */
int claim_named(struct fid fid, uint64_t claimant, const char *path);

#endif
