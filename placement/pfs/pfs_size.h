/* pfs_size.h - how large a file of the PFS can be (pfs_size.c).
 *
 * No call tells that: pathconf's answer is the width of a number.  So it is tried, on a file of the session
 * directory that has no name and no bytes.  Most file sizes never need a try: a common one is proved at the
 * start, once.
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_SIZE_H
#define EDDY_PLACEMENT_PFS_PFS_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define PFS_SIZE_COMMON (UINT64_C(8) << 40)

/* Proves PFS_SIZE_COMMON, or finds the largest size below it.  dirfd: of the session directory; if that is not
 * on the PFS directory's file system, or cannot be written, nothing is known, and each size counts as possible.
 * Blocks on the PFS.  name: for the file while it has a name; no other node has this one. */
void pfs_size_start(int dirfd, const char *name);
void pfs_size_stop(void);
/* True: pfs_size_check will return 0 without a PFS call.  Any thread. */
bool pfs_size_is_proved(uint64_t size);
/* Can a file have this size?  0, or -EFBIG.  Beyond what is proved it blocks on the PFS. */
int pfs_size_check(uint64_t size);
/* The smallest size that was refused; UINT64_MAX: none.  Any thread. */
uint64_t pfs_size_refused(void);

#endif
