/* known.c - answers without the PFS: stats and opens of cached files, and everything below --immutable.
 *
 * The kernel asks for a file's attributes again after each read and write through it.  The answer is what
 * was seen less than the attribute time-out ago, by a look or at the end of a flush of this node, if the
 * home says that no node has changed the file since (fs/getattr.c).
 *
 * A file whose bytes are all in the store is opened for reading without a look at the PFS if there
 * was a look less than the attribute time-out ago, and the home says that no node has changed the file since
 * (placement/data_where.c has the rule).  Such an open has no descriptor on the PFS.  The file's bytes
 * stay in the store while it is open, so reads need no descriptor.  Operations that may need one (a lock, an
 * unlink by this node) open it then.  So do changes by other nodes, and what takes a name from it: its home tells
 * this node before (docs/protocol.md, rules 24 and 37).
 *
 * This is not done where the PFS reports no birth times.  There a new file can get the inode number of a file
 * that another node removes at once, and then it has the same fid; only a descriptor prevents that.
 *
 * Below --immutable the user has promised that nothing changes.  What was looked at once is known
 * for good; names and attributes stay in the kernel as well, and no home is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fs/known.h"
#include "fs/settings.h"
#include "placement/claims/claim.h"
#include "placement/claims/look.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_node.h"

#define FOR_GOOD 1e8 /* seconds: three years */

/* ---- immutable ---- */

static bool is_listed(const char *path)
{
    for (unsigned n = 0; n < settings.nimmutable; n++)
        if (!strcmp(path, settings.immutable[n]))
            return true;
    return false;
}

void known_set_immutable(struct inode *i, const struct inode *parent)
{
    if (!settings.nimmutable || i->fixed)
        return;
    char *path = pfs_path(i->node);
    i->fixed = (parent && parent->fixed) || is_listed(path);
    free(path);
}

double known_timeout(const struct inode *i)
{
    return i->fixed ? FOR_GOOD : settings.attr_timeout;
}

double known_negative_timeout(const struct inode *dir)
{
    return dir->fixed ? FOR_GOOD : settings.negative_timeout;
}

/* Not below --immutable, even a descriptor that only reads may not be closed without FLUSH.  By no other
 * message does the kernel say that a process closed one of its descriptors (it sends no unlock of its own).
 * Without it, the fcntl locks that POSIX ends there would stay until the last descriptor is closed.  Below
 * --immutable such locks do no harm: a file that is never written has only shared locks. */
bool known_closes_matter(const struct inode *i)
{
    return !i->fixed;
}

/* ---- opens ---- */

void known_note(struct inode *i, const struct statx *stx, const struct location *at,
                uint64_t looked_ms)
{
    struct data_known k = {0};
    struct version v = version_of(stx);
    if (at && stx->stx_nlink)
        k = data_known(&v, at, looked_ms);
    if (!(stx->stx_mask & STATX_BTIME))
        k.version.size = UINT64_MAX; /* no file's: only with claim and descriptor here */
    if (i->fixed)
        k = (struct data_known){.version = v, .looked_ms = looked_ms};
    lock_take(&i->lock);
    if (!k.looked_ms || k.looked_ms >= i->known.looked_ms) { /* not an answer that was overtaken */
        i->known = k;
        i->known_blocks = stx->stx_blocks;
        i->known_atim = (struct timespec){stx->stx_atime.tv_sec, stx->stx_atime.tv_nsec};
    }
    lock_drop(&i->lock);
}

/* With several users the PFS checks the rights of each.  It may have more rules than mode bits and
 * POSIX ACLs, which the kernel has checked. */
static bool may_know(const struct inode *i, const struct data_known *k)
{
    if (!k->looked_ms || i->gone)
        return false;
    if (i->fixed)
        return true;
    uint64_t age_ms = boot_ms() - k->looked_ms;
    return !settings.several_users && age_ms < attr_timeout_ms();
}

int known_open(struct inode *i, struct file *f, struct data_handle **out)
{
    lock_take(&i->lock);
    struct data_known k = i->known;
    lock_drop(&i->lock);
    if (!may_know(i, &k) || file_is_unlinked(f))
        return -EAGAIN;
    pfs_open_known(f); /* first: a descriptor that is there stays, and who removes a name sees this open */
    int err = look_name_goes(i->fid) && !pfs_has_descriptor(f) ? -EAGAIN : data_open_known(f, &k, i->fixed, out);
    if (!err && !may_know(i, &k)) { /* a name may be gone for longer than its home remembers */
        data_close(*out);
        err = -EAGAIN;
    }
    if (err)
        data_release(f);
    return err ? -EAGAIN : 0;
}

/* ---- descriptors after all ---- */

static struct file *open_file(const struct inode *i)
{
    struct file *f = S_ISREG(i->type) && !i->gone ? file_find_used(i->fid) : NULL;
    if (f && !pfs_is_open(f)) {
        file_put(f);
        f = NULL;
    }
    return f;
}

static struct file *with_descriptor(struct inode *i)
{
    struct file *f = open_file(i);
    if (f && pfs_open_late(f, i->node))
        log_debug("an open file can not be found on the PFS any more");
    return f;
}

void known_want_descriptor(struct inode *i)
{
    struct file *f = with_descriptor(i);
    if (f)
        file_put(f);
}

struct file *known_before_removal(struct inode *dir, const char *name)
{
    struct inode *i = inode_child(dir, name);
    struct file *f = i ? with_descriptor(i) : NULL;
    inode_put(i);
    return f;
}
