/* segments.h - the directory in which UCX has the shared memory of one daemon, and those that killed daemons have left.
 *
 *     /dev/shm/eddyfs-rdma-UID/NODE-ID      locked (flock) as long as the daemon lives
 */
#ifndef EDDY_TRANSPORT_SEGMENTS_H
#define EDDY_TRANSPORT_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#define SEGMENTS_PATH_MAX 96

/* Makes and locks the node's directory, empty.  path[SEGMENTS_PATH_MAX] gets its name, also after most errors.  Returns the descriptor
 * that has the lock; -EBUSY: another daemon of this node id lives; -EPERM: the directory is not this user's alone; -errno. */
int segments_begin(uint64_t node_id, char *path);
/* Removes it; for what segments_begin returned. */
void segments_end(int fd, const char *path);
/* Removes those of this user's daemons that do not live any more: their memory would stay taken until the host starts again.  How many. */
unsigned segments_clean(void);

#endif
