/* name_goes.h - a name of a file is about to go: it is removed, replaced or renamed by this node.
 *
 * A node may have a file open without a descriptor on the PFS (fs/known.c), as long as a name leads to it.  So before a name
 * goes, the file's home tells the others that have it open (docs/protocol.md, "Looking").
 *
 *     name_goes_begin --> the name goes on the PFS --> name_goes_unclaimed, name_goes_end
 */
#ifndef EDDY_PLACEMENT_CLAIMS_NAME_GOES_H
#define EDDY_PLACEMENT_CLAIMS_NAME_GOES_H

#include "placement/claims/claim.h"

struct name_goes {
    struct fid fid;
    struct location at; /* what the home said, if it was heard */
    bool begun, heard;
};

/* For n files, at most NAMES_GO: v is set.  Blocks until those that have them open have descriptors; without a view, or
 * when nobody answers within T_open, it goes on without.  Nobody on this node opens the files without a descriptor from now on. */
#define NAMES_GO 2
void name_goes_begin(struct name_goes *v, const struct fid *fids, unsigned n);
/* Did no node have the claim, and has none got it since?  Then nobody need hear where the file is now.  False: it is not
 * known. */
bool name_goes_unclaimed(const struct name_goes *g);
/* Whether the name went or not; of one that was not begun, too. */
void name_goes_end(struct name_goes *g);

#endif
