/* move_log.c - moves of directories are written into the session's log before they are made.
 *
 * Other nodes may have unflushed files below the directory, and know them by the old path, and nodes that are
 * away may have such, too.  A node that is alone, without absent ones, needs no log: the paths in its own
 * records follow.
 */
#include "fs/move_log.h"

#include <string.h>

#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_moves.h"
#include "transport/moves.h"

uint64_t move_log_write(const struct statx *what, const char *from, const char *to, bool exchange)
{
    uint64_t view;
    if (!moves_are_shared(&view))
        return 0;
    struct session_move m = {
        .fid = fid_of(what), .exchange = exchange, .from = (char *)from, .to = (char *)to};
    int err = session_write_move(&m);
    if (err) {
        log_warn("the session's log of moves cannot be written: %s: other nodes may not find their unflushed files "
                 "below %s",
                 strerror(-err), from);
        return 0;
    }
    if (m.number % MOVES_TRIM_EVERY == 0)
        session_trim_moves(); /* what is left is trimmed with a later entry */
    return m.number;
}

void move_log_drop(uint64_t number)
{
    if (number)
        session_drop_move(number); /* an entry that is left costs a look: the fid decides */
}
