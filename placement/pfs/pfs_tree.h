/* pfs_tree.h - the nodes of the tree of names, for pfs_fds.c, pfs_tree.c and pfs_reach.c: each uses
 * those before it.  Other files use pfs_names.h and pfs_int.h.
 *
 * The tree's lock (RANK_PFS) must be held when any function below is called, except for pfs_fd_close.
 * It guards all parts of all nodes.
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_TREE_H
#define EDDY_PLACEMENT_PFS_PFS_TREE_H

#include "transport/fid.h"
#include "transport/lock.h"

struct pfs_node {
    struct pfs_node *parent; /* referenced; NULL: the root */
    char *name;
    unsigned refs;
    bool named; /* in the hash table: parent/name leads here as far as we know */
    bool known; /* fid is what it must be */
    bool drop;  /* the last user closes fd */
    struct fid fid;
    int fd; /* O_PATH, -1: none */
    unsigned users;
    _Atomic uint64_t tag; /* pfs_tag's; no lock */
    uint64_t looked_ms;   /* pfs_child_seen's and pfs_child_absent's, whichever is newer ... */
    bool seen;            /* ... and which of them that is */
    struct pfs_node *hash_next;
    struct pfs_node *lru_next, *lru_prev; /* when fd >= 0, but for the root */
};

extern struct lock pfs_tree_lock;

/* ---- pfs_fds.c ---- */
/* Takes the descriptor away from the node; the caller closes what is returned, without the lock.
 * -1: it has none, or its last user will close it, or it is the root's. */
int pfs_fd_take(struct pfs_node *n);
void pfs_fd_close(int fd); /* -1: nothing */
/* The descriptor belongs to the node from now on; the caller may have to close pfs_fd_surplus. */
void pfs_fd_keep(struct pfs_node *n, int fd);
int pfs_fd_surplus(void); /* one that is too much, taken away from its node, or -1 */
/* Count one user more, and one fewer: the second returns what the caller must close, or -1. */
void pfs_fd_used(struct pfs_node *n);
int pfs_fd_end_use(struct pfs_node *n);
void pfs_fds_limit(unsigned max_fds);
void pfs_fds_close(void); /* all of them, at the end */

/* ---- pfs_tree.c ---- */
/* Path from ancestor `top` (not included) down to n, malloc'd. */
char *pfs_path_from(struct pfs_node *top, struct pfs_node *n);

#endif
