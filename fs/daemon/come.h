/* come.h - how this node comes to its session, joins it, and leaves it: steps of steps.c.  Main thread only.  All block on the
 * PFS; 0, or -errno with what to say in err. */
#ifndef EDDY_FS_DAEMON_COME_H
#define EDDY_FS_DAEMON_COME_H

#include <stddef.h>

#include "transport/fid.h"

struct member;

/* Which directory settings.pfs_dir is. */
int come_pfs_identity(struct fid *out);
/* Has the session, if there is one, the settings of this node?  Opening the store may change it for them. */
int come_agrees(char *err, size_t len);
/* Opens the session; the store is open. */
int come_to_session(char *err, size_t len);
/* Closes it; if this node has left in order and was the last one, its directory goes. */
void come_away(void);
/* Takes up what the last daemon left, and joins; replaced: see steps_start.  A node that does not get in leaves again. */
int come_in(void (*replaced)(const struct member *by), char *err, size_t len);
/* Leaves, but with unflushed data. */
void come_out(void);

#endif
