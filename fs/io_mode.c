/* io_mode.c - the I/O mode of an open, decided in one place under the inode's lock.
 *
 * An open descriptor never changes its mode.  The kernel allows cached and direct opens of one
 * inode beside each other, and opens with one backing file beside each other.  If we break these rules, the
 * application gets EIO.  A direct open may be mapped, which
 * makes it a cached one, and the kernel does not tell us: so passthrough never begins beside any other
 * open.
 *
 *   opens now      mode of the new open
 *   none           passthrough if possible; else direct for a writer that appends, or if another
 *                  node has the bytes, or this one is not told of changes; else cached
 *   cached         cached; direct in such cases
 *   direct         direct: a cached read beside such a writer could bring older bytes back
 *   passthrough,   passthrough, or beside, if possible with the same data file; else stale: this node id
 *   beside         is retired (inode_retire), and the kernel looks the name up again and gets another one
 *
 *        none --> cached <--> cached+direct --> direct --> none
 *          '----> passthrough <--> passthrough+beside ------^
 *
 * Beside: the kernel sends reads and writes to the daemon, as by a direct open, but maps the data file itself.
 * So it is for what the kernel must not read or write by itself while others have passthrough.  An open for
 * reading and writing whose stores other nodes must hear of is none, as nobody hears of stores to a data
 * file; but where no other node id can be had, and the data file is a shadow, stores are looked for (fs/stores.h).
 *
 * Promised: a task's open comes next, for the second time (fs/early.c), and the kernel would not ask a third
 * time.  So no other open begins passthrough until then, and the promise is not given where there is
 * passthrough.
 *
 * A writer that appends is not cached: of a cached write the kernel makes a request for each page that it has
 * not, and another node's append could come in between.  A direct write is one request, up to FUSE_IO_MAX.
 */
#include <fcntl.h>

#include "fs/handle.h"
#include "fs/io_mode.h"

static bool appends(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY && flags & O_APPEND;
}

static unsigned *count_of(struct mode_machine *m, enum io_mode mode)
{
    switch (mode) {
    case IO_PROMISED:
        return &m->promised;
    case IO_CACHED:
        return &m->cached;
    case IO_DIRECT:
        return &m->direct;
    case IO_BESIDE:
        return &m->beside;
    default:
        return &m->passthrough;
    }
}

/* Passthrough appends to the data file, at the end that this has. */
bool mode_appends(int flags, enum io_mode m)
{
    return appends(flags) && (m == IO_DIRECT || m == IO_BESIDE);
}

bool mode_has_kernel_io(const struct inode *i)
{
    return i->mode.passthrough || i->mode.beside;
}

bool mode_may_kernel_io(const struct inode *i, enum kernel_part part, bool promised)
{
    lock_assert_held(&i->lock);
    if (i->mode.cached || i->mode.direct || part == KERNEL_NOTHING)
        return false;
    if (mode_has_kernel_io(i))
        return true;
    return part == KERNEL_ALL && i->mode.promised <= promised;
}

bool mode_promise(struct inode *i)
{
    lock_assert_held(&i->lock);
    if (mode_has_kernel_io(i))
        return false;
    i->mode.promised++;
    return true;
}

enum io_mode mode_enter(struct inode *i, int flags, bool may_cache, enum kernel_part part,
                        bool promised)
{
    lock_assert_held(&i->lock);
    struct mode_machine *m = &i->mode;
    enum io_mode mode = appends(flags) || !may_cache ? IO_DIRECT : IO_CACHED;
    if (mode_may_kernel_io(i, part, promised))
        mode = part == KERNEL_ALL ? IO_PASSTHROUGH : IO_BESIDE;
    else if (mode_has_kernel_io(i))
        return IO_STALE;
    else if (m->direct)
        mode = IO_DIRECT;
    ++*count_of(m, mode);
    m->appends += mode_appends(flags, mode);
    return mode;
}

void mode_leave(struct inode *i, int flags, enum io_mode m)
{
    lock_assert_held(&i->lock);
    unsigned *n = count_of(&i->mode, m);
    if (!*n)
        die("an open of an inode ended that was never counted");
    --*n;
    i->mode.appends -= mode_appends(flags, m);
}
