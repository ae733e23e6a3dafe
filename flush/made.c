/* made.c - is what the PFS has of a file this node's own doing?  Pure; docs/flush.md ("Edits by somebody
 * else") has the rule and what it can not see.
 *
 *   size and mtime are the base's                     -> nobody has changed the bytes.  ctime does not count:
 *                                                        chmod, chown, link, setxattr and rename move it
 *   the size is the base's, and a utimens of this     -> nobody, either
 *     session has set, or was about to set, the mtime
 *   a run has failed, and left this size and mtime    -> this node
 *   a run has failed, or was cut off: it may have
 *     made this size, and nothing has changed the
 *     file since the run's last note                  -> this node
 *     and a change was under way when the daemon died -> if the bytes of that change may be gone here, or
 *                                                        the PFS has some of them: this node
 *   else                                              -> somebody else
 */
#include "flush/made.h"

#include "placement/store/kernel_io.h"
#include "transport/base.h"

static bool was_told(const struct file_info *info, int64_t mtime_ns)
{
    for (unsigned i = 0; i < MIN(info->trace.ntold, ARRAY_LEN(info->trace.told)); i++)
        if (time_is_kept(mtime_ns, info->trace.told[i]))
            return true;
    return info->mtime_set && time_is_kept(mtime_ns, info->mtime_ns);
}

static bool is_like(const struct file_info *info, const struct version *v, const struct version *now)
{
    return now->size == v->size && (now->mtime_ns == v->mtime_ns || was_told(info, now->mtime_ns));
}

/* Sizes that a run can have made: it truncates, and then makes the file longer. */
static bool may_have_size(const struct file_info *info, uint64_t size)
{
    uint64_t shortest = MIN(MIN(info->base_end, info->cut), info->size),
             longest = MAX(MAX(info->base.size, info->size), info->trace.v.size);
    return shortest <= size && size <= longest;
}

/* A run was cut off by the daemon's death; or it has failed, and the daemon could not see how it left the file.  In the second case
 * nothing was under way any more.  A later mtime is then this node's only if the clocks are not as they were measured: the bytes tell. */
static enum made made_by_run(const struct file_info *info, const struct version *now, int64_t ahead_ns)
{
    const struct file_trace *t = &info->trace;
    if (!may_have_size(info, now->size))
        return MADE_ELSEWHERE;
    bool ended = time_is_kept(now->mtime_ns, t->v.mtime_ns) || was_told(info, now->mtime_ns);
    /* Servers stamp by the PFS's clock; the clients of some PFSs stamp by their own. */
    if (ended || now->mtime_ns <= t->v.ctime_ns + MAX(ahead_ns, INT64_C(0)))
        return MADE_HERE;
    /* Changed here since: the bytes of that change may be gone.  The kernel stamps what it writes by its last tick. */
    if (t->under_way && info->ctime_ns > t->v.ctime_ns - STORE_GRAIN_NS)
        return MADE_HERE;
    return MADE_BY_BYTES;
}

enum made made_of(const struct file_info *info, const struct version *now, int64_t ahead_ns)
{
    const struct file_trace *t = &info->trace;
    if (!info->base_known || is_like(info, &info->base, now))
        return MADE_HERE;
    if (!info->flushing)
        return MADE_ELSEWHERE;
    if (t->kind == TRACE_RUN)
        return made_by_run(info, now, ahead_ns);
    return t->kind == TRACE_ANY || is_like(info, &t->v, now) ? MADE_HERE : MADE_ELSEWHERE;
}
