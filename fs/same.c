/* same.c - see same.h. */
#include "fs/same.h"

#include "fs/attr_last.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/store_version.h"

/* Something has been changed, and what is told of the ctime moves on to ctime_ns at once, also if the
 * claimant does not see it because it flushes the file just now. */
static void touched(struct fid fid, int64_t ctime_ns)
{
    struct inode *i = inode_known(fid);
    if (!i)
        return;
    attr_touched(i);
    lock_take(&i->lock);
    i->moved_ns = MAX(i->moved_ns, ctime_ns);
    lock_drop(&i->lock);
    inode_put(i);
}

void same_begin(struct same *s, const struct statx *before)
{
    s->on = S_ISREG(before->stx_mode);
    s->times = s->own = false;
    s->fid = fid_of(before);
    s->before = version_of(before);
}

/* If size or mtime changed, somebody wrote in between, and the data is not the same. */
void same_end(struct same *s, const struct statx *after)
{
    if (!s->on || !fid_eq(s->fid, fid_of(after)))
        return;
    struct version v = version_of(after);
    bool written = v.size != s->before.size || (!s->times && v.mtime_ns != s->before.mtime_ns);
    touched(s->fid, written || v.ctime_ns == s->before.ctime_ns ? INT64_MIN : v.ctime_ns);
    if (written || version_eq(&v, &s->before))
        return;
    struct file *f = file_find(s->fid);
    bool moved = f && store_same_data(f, &s->before, &v);
    if (f)
        file_put(f);
    if (moved || !s->own)
        claim_publish_same(s->fid, &s->before, &v);
}
