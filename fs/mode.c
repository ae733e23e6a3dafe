/* mode.c - the I/O mode of an open, decided in one place under the inode's lock.
 *
 * The kernel allows cached and direct opens of one inode beside each other; passthrough opens only beside passthrough and
 * direct ones.  An open descriptor never changes its mode.
 *
 *   opens now      wanted       given
 *   any            direct       direct: its data is at another node and it writes: no stale page may be written over
 *   direct         cached       direct: a cached read beside such a writer could bring older bytes back behind its write
 *   passthrough    cached       (passthrough, with the same backing file; its place, not in this version)
 *   else           cached       cached
 */
#include "fs/fs.h"

#include <fcntl.h>

static enum io_mode wanted(int flags, bool here)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
    return writes && !here ? IO_DIRECT : IO_CACHED;
}

/* Given what is open: [what counts of it][wanted]. */
enum { NONE_OR_CACHED, DIRECT_OPEN, PASSTHROUGH_OPEN };
static const enum io_mode given[][3] = {
    [NONE_OR_CACHED] = {[IO_CACHED] = IO_CACHED, [IO_DIRECT] = IO_DIRECT, [IO_PASSTHROUGH] = IO_PASSTHROUGH},
    [DIRECT_OPEN] = {[IO_CACHED] = IO_DIRECT, [IO_DIRECT] = IO_DIRECT, [IO_PASSTHROUGH] = IO_PASSTHROUGH},
    [PASSTHROUGH_OPEN] = {[IO_CACHED] = IO_PASSTHROUGH, [IO_DIRECT] = IO_DIRECT, [IO_PASSTHROUGH] = IO_PASSTHROUGH},
};

static unsigned *count_of(struct mode_machine *m, enum io_mode mode)
{
    return mode == IO_CACHED ? &m->cached : mode == IO_DIRECT ? &m->direct : &m->passthrough;
}

enum io_mode mode_enter(struct inode *i, int flags, bool here)
{
    lock_assert_held(&i->lock);
    enum io_mode mode = given[i->mode.passthrough ? PASSTHROUGH_OPEN : i->mode.direct ? DIRECT_OPEN : NONE_OR_CACHED][wanted(flags, here)];
    ++*count_of(&i->mode, mode);
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
