/* eddy_sessions.h - the directories in which a PFS has the sessions of its users: PFS_DIR/.eddyfs-UID. */
#ifndef EDDY_TOOLS_EDDY_SESSIONS_H
#define EDDY_TOOLS_EDDY_SESSIONS_H

#include <stdbool.h>

struct users_sessions {
    int pfs_fd;        /* PFS_DIR, open */
    const char *below; /* the directory's name in it */
    const char *path;  /* leads to the directory that was looked at, whatever becomes of its name */
    const char *name;  /* as people know it */
};
/* Calls fn for each of them that is what its name says, and that no other user can change; complains of others.  all: of all
 * users, else the caller's alone.  Returns 0 or the last -errno, fn's too (fn has complained then); *found: how many there are. */
int each_users_sessions(const char *pfs_dir, bool all, int (*fn)(void *arg, const struct users_sessions *s), void *arg, int *found);

#endif
