/* pfs_moves.h - where a path leads after the moves of the session's log (transport/moves.h). */
#ifndef EDDY_PLACEMENT_PFS_PFS_MOVES_H
#define EDDY_PLACEMENT_PFS_PFS_MOVES_H

#include "transport/fid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the entries that are new since the last call.  Returns the number of the newest one that is known.
 * Blocks on the PFS; errors are logged, and leave what was known. */
uint64_t moves_read(void);
/* Has the session other nodes, present or absent?  If not, no other node writes or needs entries in this
 * view, whose number is *view (0: none). */
bool moves_are_shared(uint64_t *view);
/* A path to which the file at `path` may have been moved by entries after `since`: the n-th guess, malloc'd;
 * NULL: there are no more.  The fid decides which one is right.  Any thread, no PFS call. */
char *moves_guess(const char *path, struct fid fid, uint64_t since, size_t n);
/* Does the log say that this name of the file was removed, and that the file has others? */
bool moves_say_removed(const char *path, struct fid fid);
/* Does it say that the file has lost its last name?  MAY_BE_OPEN: only nodes that may still run had it open then, and
 * have not said that they closed it. */
enum moves_gone { MOVES_NOT_GONE, MOVES_GONE_MAY_BE_OPEN, MOVES_GONE };
enum moves_gone moves_say_gone(struct fid fid);
/* Writes that, after it was done: path was the last name (NULL: not known); open: this node has the file open.
 * Nothing happens where no other node needs it.  Errors are logged.  Blocking. */
void moves_log_gone(struct fid fid, const char *path, bool open);

#endif
