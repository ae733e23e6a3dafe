/* dir_policy.c - the policies of a directory, which are extended attributes of it: user.eddy.flush, and user.eddy.shared
 * (fs/shared.c).  Each holds for the files below the directory, except for those below a directory with one of its own.
 *
 * A file gets its policies when it is opened for writing.  Then its directories are asked, from the
 * nearest one up to the first that has the attribute.  The answer for each directory is stored beside its
 * attributes, and is good
 *
 *     for --attr-timeout, whatever happens (other nodes' changes are seen within that time)
 *
 *     longer, as long as the kernel asks for its attributes and its ctime is the one it had, which
 *     was not young then: setting an extended attribute moves ctime
 *
 * So opens cost the PFS nothing in directories that do not change, and one GETXATTR per
 * time-out and directory where files are made.  A PFS without extended attributes has no policies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flush/flush.h"
#include "fs/dir_policy.h"
#include "fs/settings.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "transport/marks.h"

#define LONGEST  16                  /* of a value, with room to see that it is too long */
#define YOUNG_NS INT64_C(2000000000) /* a PFS may keep whole seconds */

/* The number of a value, from 0 on; -EINVAL. */
static int parse_flush(const char *value, size_t len)
{
    enum flush_policy p;
    int err = flush_policy_parse(value, len, &p);
    return err ? err : (int)p;
}

static int parse_shared(const char *value, size_t len)
{
    static const char *const names[] = {[SHARED_AUTO] = "auto", [SHARED_ALWAYS] = "always", [SHARED_NEVER] = "never"};
    for (size_t n = 0; n < ARRAY_LEN(names); n++)
        if (strlen(names[n]) == len && !memcmp(names[n], value, len))
            return (int)n;
    return -EINVAL;
}

static const struct {
    const char *name;
    int (*parse)(const char *value, size_t len);
} kinds[POLICY_KINDS] = {
    [POLICY_FLUSH] = {"user.eddy.flush", parse_flush},
    [POLICY_SHARED] = {"user.eddy.shared", parse_shared},
};

static int kind_of(const char *xattr)
{
    for (int k = 0; k < POLICY_KINDS; k++)
        if (!strcmp(xattr, kinds[k].name))
            return k;
    return -1;
}

bool dir_policy_is_name(const char *xattr)
{
    return kind_of(xattr) >= 0;
}

int dir_policy_check(const struct inode *i, const char *xattr, const char *value, size_t len)
{
    return S_ISDIR(i->type) && kinds[kind_of(xattr)].parse(value, len) >= 0 ? 0 : -EINVAL;
}

void dir_policy_changed(struct inode *i)
{
    lock_take(&i->lock);
    for (int k = 0; k < POLICY_KINDS; k++)
        i->policy[k].asked_ms = 0;
    lock_drop(&i->lock);
}

/* ---- asking ---- */

static void say_unknown(const struct pfs_node *n, enum policy_kind k, const char *value, size_t len)
{
    static _Atomic uint64_t last;
    if (!log_every(&last, 60000))
        return;
    char *path = pfs_path((struct pfs_node *)(uintptr_t)n);
    log_warn("%s: its %s is \"%.*s\", which is no such policy: ignored", path, kinds[k].name, (int)len, value);
    free(path);
}

/* *own: policy + 1, 0: it has none. */
static int ask(struct pfs_node *n, enum policy_kind k, uint8_t *own)
{
    char value[LONGEST];
    size_t len = 0;
    *own = 0;
    int err = pfs_getxattr(n, kinds[k].name, value, sizeof(value), &len);
    int p = err ? -1 : kinds[k].parse(value, len);
    if (err == -ERANGE)
        say_unknown(n, k, "...", 3);
    else if (!err && p < 0)
        say_unknown(n, k, value, len);
    else if (!err)
        *own = (uint8_t)(p + 1);
    return err == -ENODATA || err == -EOPNOTSUPP || err == -ERANGE ? 0 : err;
}

static int64_t ctime_of(const struct inode *i)
{
    return i->attr_known ? ns_of_time(i->attr.st_ctim.tv_sec, i->attr.st_ctim.tv_nsec) : 0;
}

/* Inode locked. */
static bool is_good(const struct inode *i, enum policy_kind k, uint64_t now)
{
    const struct dir_policy *p = &i->policy[k];
    uint64_t timeout = attr_timeout_ms();
    if (!p->asked_ms)
        return false;
    return now - p->asked_ms < timeout ||
           (p->ctime_ns && p->ctime_ns == ctime_of(i) && now - i->attr_ms <= timeout);
}

static uint8_t own_policy(struct inode *i, struct pfs_node *n, enum policy_kind k)
{
    struct dir_policy p = {.asked_ms = boot_ms()};
    lock_take(&i->lock);
    bool good = is_good(i, k, p.asked_ms);
    uint8_t own = i->policy[k].own;
    int64_t ctime = ctime_of(i);
    lock_drop(&i->lock);
    if (good)
        return own;
    if (ask(n, k, &p.own)) /* not known: asked again next time */
        return 0;
    if (ctime && real_ns() + session_clock_offset_ns() - ctime > YOUNG_NS)
        p.ctime_ns = ctime;
    lock_take(&i->lock);
    if (i->policy[k].asked_ms <= p.asked_ms)
        i->policy[k] = p;
    lock_drop(&i->lock);
    return p.own;
}

/* A directory that the kernel has forgotten is asked each time. */
static uint8_t policy_at(struct pfs_node *dir, enum policy_kind k)
{
    uint8_t own = 0;
    struct inode *i = inode_of_node(dir);
    if (i)
        own = own_policy(i, dir, k);
    else
        ask(dir, k, &own);
    inode_put(i);
    return own;
}

int dir_policy_of(const struct inode *i, enum policy_kind k)
{
    uint8_t own = 0;
    struct pfs_node *dir = pfs_parent(i->node);
    while (dir && !own) {
        own = policy_at(dir, k);
        struct pfs_node *up = pfs_parent(dir);
        pfs_unref(dir);
        dir = up;
    }
    if (dir)
        pfs_unref(dir);
    return own - 1;
}

void dir_policy_apply(const struct inode *i, struct file *f)
{
    flush_set_policy(f, dir_policy_of(i, POLICY_FLUSH));
}
