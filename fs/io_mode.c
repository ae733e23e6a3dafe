/* io_mode.c - the I/O mode of an open, decided in one place under the inode's lock.
 *
 * An open descriptor never changes its mode.  The kernel allows cached and direct opens of one
 * inode beside each other, and passthrough opens beside each other if they have the same backing
 * file.  If we break these rules, the application gets EIO.  A direct open may be mapped, which
 * makes it a cached one, and the kernel does not tell us: so passthrough never begins beside any other
 * open.
 *
 *   opens now      mode of the new open
 *   none           passthrough if possible; else direct for a writer, if another node has
 *                  the bytes; else cached
 *   cached         cached; direct for such a writer: no stale page may be written over
 *   direct         direct: a cached read beside such a writer could bring older bytes back
 *   passthrough    passthrough, if possible with the same data file; else stale: this node id is
 *                  given up, and the kernel looks the name up again and gets another one
 *
 *        none --> cached <--> cached+direct --> direct --> none
 *          '----> passthrough ----------------------------^
 */
#include <fcntl.h>

#include "fs/handle.h"
#include "fs/io_mode.h"

static bool writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

static unsigned *count_of(struct mode_machine *m, enum io_mode mode)
{
    return mode == IO_CACHED ? &m->cached : mode == IO_DIRECT ? &m->direct : &m->passthrough;
}

bool mode_may_passthrough(const struct inode *i)
{
    lock_assert_held(&i->lock);
    return !i->mode.cached && !i->mode.direct;
}

enum io_mode mode_enter(struct inode *i, int flags, bool here, bool can_passthrough)
{
    lock_assert_held(&i->lock);
    struct mode_machine *m = &i->mode;
    enum io_mode mode = writes(flags) && !here ? IO_DIRECT : IO_CACHED;
    if (mode_may_passthrough(i) && can_passthrough)
        mode = IO_PASSTHROUGH;
    else if (m->passthrough)
        return IO_STALE;
    else if (m->direct)
        mode = IO_DIRECT;
    ++*count_of(m, mode);
    return mode;
}

void mode_leave(struct inode *i, enum io_mode m)
{
    lock_assert_held(&i->lock);
    unsigned *n = count_of(&i->mode, m);
    if (!*n)
        die("an open of an inode ended that was never counted");
    --*n;
}
