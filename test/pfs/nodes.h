/*
 * The files that the kernel knows, by node id, which is their st_ino below.
 *
 * A node holds a descriptor (O_PATH) of its file, so its inode number cannot be given
 * to another file while the node lives, and renames do not matter. The kernel's
 * references are counted; the last one that it forgets frees the node.
 * Every function may be called from any thread.
 */
#ifndef FAULTFS_NODES_H
#define FAULTFS_NODES_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Room for "/proc/self/fd/N". */
#define FD_PATH_SIZE 32

struct node {
    struct node *next;   /* in its bucket */
    uint64_t id;         /* st_ino; FUSE's own number for the root */
    uint64_t generation; /* from the birth time: the same in every mount */
    uint64_t references; /* the kernel's */
    dev_t device;
    int fd; /* O_PATH */
};

/* Opens the directory `path` as the root. Returns 0 or -errno. */
int nodes_start(const char *path);

/* That directory's own path. */
const char *nodes_root(void);

/* The node that the kernel names; it must hold a reference on it. */
struct node *node_get(uint64_t id);

/*
 * Finds `name` in `parent` and takes a reference on its node for the kernel. Fills
 * `attr`. Returns 0 or -errno.
 */
int node_lookup(struct node *parent, const char *name, struct node **result, struct stat *attr);

/* Drops `count` references. */
void node_forget(uint64_t id, uint64_t count);

/* A path that leads to the node's file, whatever its name is now. */
const char *node_fd_path(const struct node *node, char buffer[FD_PATH_SIZE]);

/* The node's present path relative to the root, in `buffer`. Returns 0 or -errno. */
int node_path(const struct node *node, char *buffer, size_t size);

#endif
