/* siblings.h - the other daemons of this user on this host, for sharing a disk fairly.
 *
 * Each daemon has a file in /run/user/UID/eddyfs/caches (or ${TMPDIR:-/tmp}/eddyfs-UID/.caches),
 * named by its node id and flock'ed while it runs: "DEVICE USED\n".  A file without a lock belongs to a
 * dead daemon; any daemon that finds it removes it.  Called with space.c's lock.  If no such directory
 * can be made, this is no error: this daemon counts as alone.
 */
#ifndef EDDY_PLACEMENT_STORE_SIBLINGS_H
#define EDDY_PLACEMENT_STORE_SIBLINGS_H

#include <stdint.h>
#include <sys/types.h>

void siblings_join(uint64_t node_id, dev_t dev);
void siblings_leave(void);
/* How many daemons, this one included, cache on the device of siblings_join; *others_used: bytes of the
 * others. */
unsigned siblings_count(uint64_t our_used, uint64_t *others_used);

#endif
