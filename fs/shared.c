/* shared.c - will several nodes write this file at the same time?  The answer is needed when it is opened: the kernel
 * cannot be kept from a data file that it was given (passthrough), nor from pages that an open may cache, and while it has
 * either, no part of the file is lent.
 *
 *   user.eddy.shared   always, or never: as the directory says
 *   auto               yes, if it may be: the session has several nodes, and the open neither replaces the file (O_TRUNC)
 *                      nor makes a new one for itself (O_EXCL), nor appends.  MPI programs open so; cp, tar, editors and
 *                      compilers do not.
 *                      But not in a directory whose last such file was written by this node alone.
 */
#include <fcntl.h>

#include "fs/dir_policy.h"
#include "fs/shared.h"
#include "placement/borrow.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/unit_map.h"
#include "transport/members.h"
#include "transport/view.h"

/* inode.written_by, of a directory. */
enum { BY_NOBODY_YET, BY_ONE, BY_SEVERAL };

/* Referenced; NULL: the kernel does not know it any more. */
static struct inode *directory_of(const struct inode *i)
{
    struct pfs_node *dir = pfs_parent(i->node);
    struct inode *found = dir ? inode_of_node(dir) : NULL;
    if (dir)
        pfs_unref(dir);
    return found;
}

static bool may_be(int flags)
{
    const struct view *v = members_view();
    return v && v->nmembers > 1 && !(flags & (O_TRUNC | O_EXCL | O_APPEND));
}

bool shared_expected(struct handle *h)
{
    bool writes = (h->flags & O_ACCMODE) != O_RDONLY;
    h->guessed = false;
    /* where a descriptor by which it is opened is passthrough, this open must go beside it */
    if (!writes || !may_be(h->flags) || !h->by_name)
        return false;
    int policy = dir_policy_of(h->inode, POLICY_SHARED);
    borrow_set_policy(h->data->f, policy == SHARED_ALWAYS, policy == SHARED_NEVER);
    if (policy == SHARED_ALWAYS || policy == SHARED_NEVER)
        return policy == SHARED_ALWAYS;
    struct inode *dir = directory_of(h->inode);
    h->guessed = !dir || dir->written_by != BY_ONE;
    h->carried = claim_carried(h->data->f);
    inode_put(dir);
    return h->guessed;
}

void shared_learn(struct handle *h)
{
    bool writes = (h->flags & O_ACCMODE) != O_RDONLY;
    bool several = h->data->borrows || claim_carried(h->data->f) != h->carried;
    bool alone = h->guessed && h->wrote >= LOAN_UNIT; /* MPI_File_open: one rank makes the file, and closes it */
    if (!writes || (!several && !alone))
        return;
    struct inode *dir = directory_of(h->inode);
    if (dir)
        dir->written_by = several ? BY_SEVERAL : BY_ONE;
    inode_put(dir);
}
