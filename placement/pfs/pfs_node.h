/* pfs_node.h - a name in the tree: parent and name, with a cached O_PATH descriptor (LRU, bounded by the
 * descriptor limit).
 *
 * When the tree changed behind our back a path leads nowhere or to another fid: -ESTALE, and the kernel looks up
 * again.  Nothing here asks the PFS.
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_NODE_H
#define EDDY_PLACEMENT_PFS_PFS_NODE_H

#include "transport/fid.h"

struct pfs_node;
struct pfs_node *pfs_root(void);
/* The child of parent by this name, referenced: only an object, without a PFS call. */
struct pfs_node *pfs_child(struct pfs_node *parent, const char *name);
/* Its directory, referenced; NULL: it is the root, or has no name.  Any thread, no PFS call. */
struct pfs_node *pfs_parent(struct pfs_node *n);
/* The directory in which it has its name, or had its last one, referenced; NULL: it is the root. */
struct pfs_node *pfs_directory(struct pfs_node *n);
/* As pfs_child after a lookup said that the name leads to fid.  If the object by that name expects another fid
 * (the name was used again), the old object loses the name (-ESTALE from then on, as after pfs_gone),
 * and a new one is made.  Use it after every statx.  *other (may be NULL): the old object in this case,
 * referenced; else NULL. */
struct pfs_node *pfs_child_as(struct pfs_node *parent, const char *name, struct fid fid,
                              struct pfs_node **other);
struct pfs_node *pfs_ref(struct pfs_node *n);
/* A number that the caller stores with it, 0 at first; it is cleared only if it is still that number.  Any
 * thread. */
uint64_t pfs_tag(const struct pfs_node *n);
void pfs_tag_set(struct pfs_node *n, uint64_t tag);
void pfs_tag_clear(struct pfs_node *n, uint64_t tag);
/* The tag of the known child by this name, and in *seen_ms the last time from pfs_child_seen (0: none);
 * returns 0 if there is no such child.  Any thread, no PFS call. */
uint64_t pfs_child_tag(struct pfs_node *parent, const char *name, uint64_t *seen_ms);
/* A look that began at ms (boot_ms) found the file with this tag under this name. */
void pfs_child_seen(struct pfs_node *parent, const char *name, uint64_t tag, uint64_t ms);
/* A look found nothing under this name: earlier looks do not count any more. */
void pfs_child_absent(struct pfs_node *parent, const char *name);
/* The kernel got this answer.  If it asks again while the answer is valid, it needs an exact one, as for
 * O_EXCL. */
void pfs_child_told(struct pfs_node *parent, const char *name);
void pfs_unref(struct pfs_node *n);
/* It has another name now (rename done). Any thread, no PFS call. */
void pfs_moved(struct pfs_node *n, struct pfs_node *parent, const char *name);
/* Relative path, malloc'd ("" for the root). Any thread, no PFS call. */
char *pfs_path(struct pfs_node *n);
size_t pfs_path_len(struct pfs_node *n); /* its length in bytes; the same threads */
/* The fid that the node must have; pfs functions return -ESTALE if it has another one.  Set after the
 * first statx. */
void pfs_expect(struct pfs_node *n, struct fid fid);
/* The name is gone (unlinked, or replaced by a rename).  Its descriptor is dropped from the cache
 * now (else .nfs files stay), and the object loses its name: functions return -ESTALE, and pfs_child
 * makes a new object.  pfs_moved gives it a name again. */
void pfs_gone(struct pfs_node *n);

#endif
