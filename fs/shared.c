/* shared.c - will several nodes write this file at the same time?  The answer is needed when it is opened: the kernel
 * cannot be kept from a data file that it was given (passthrough), nor from pages that an open may cache, and while it has
 * either, no part of the file is lent.
 *
 *   user.eddy.shared   always, or never: as the directory says
 *   auto               yes, if it may be: the session has several nodes, and the open neither replaces the file (O_TRUNC)
 *                      nor makes a new one for itself (O_EXCL), nor appends.  MPI programs open so; cp, tar, editors and
 *                      compilers do not.
 *                      But not in a directory where this node has written such files alone: the last one, or, after one that
 *                      several wrote, so many in a row (a program that writes logs beside the file of all its ranks).
 */
#include <fcntl.h>

#include "fs/dir_policy.h"
#include "fs/shared.h"
#include "placement/borrow.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_lend.h"
#include "placement/store/unit_map.h"
#include "transport/members.h"
#include "transport/view.h"

#define MIXED_ROW 16 /* files of this node alone, in a directory where several nodes have written one */

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
    h->others = claim_others(h->data->f);
    /* where a descriptor by which it is opened is passthrough, this open must go beside it */
    if (!writes || !may_be(h->flags) || !h->by_name)
        return false;
    int policy = dir_policy_of(h->inode, POLICY_SHARED);
    borrow_set_policy(h->data->f, policy == SHARED_ALWAYS, policy == SHARED_NEVER);
    if (policy == SHARED_ALWAYS || policy == SHARED_NEVER)
        return policy == SHARED_ALWAYS;
    struct inode *dir = directory_of(h->inode);
    h->guessed = !dir || dir->alone_wrote < (dir->several_wrote ? MIXED_ROW : 1);
    inode_put(dir);
    return h->guessed;
}

/* Another node has the claim: what this one wrote went there. */
static bool carries(const struct handle *h)
{
    struct location at;
    if (!h->wrote)
        return false;
    data_attr(h->data, &at);
    return at.where == WHERE_NODE;
}

void shared_learn(struct handle *h)
{
    bool writes = (h->flags & O_ACCMODE) != O_RDONLY;
    bool several = writes && (h->data->borrows || claim_others(h->data->f) != h->others || store_is_lent(h->data->f) || carries(h));
    bool alone = h->guessed && h->wrote >= LOAN_UNIT; /* MPI_File_open: one rank makes the file, and closes it */
    if (!writes || (!several && !alone))
        return;
    struct inode *dir = directory_of(h->inode);
    if (dir && several)
        dir->several_wrote = true;
    if (dir)
        dir->alone_wrote = several ? 0 : (uint8_t)MIN(dir->alone_wrote + 1, MIXED_ROW);
    inode_put(dir);
}
