/* pfs_fds.c - the cached descriptors of directories in the tree: an LRU of at most max_fds.
 *
 * Only descriptors of directories are cached, because every operation on a name needs its parent.  A cached
 * O_PATH descriptor of a file would make an NFS client rename the file to .nfsXXXX when it is
 * unlinked.  A cached descriptor stays right, whatever happens to the directory's name.
 *
 * All is done under the tree's lock, but no PFS call.  A descriptor in use is counted (users).  If it was
 * dropped meanwhile, its last user closes it.
 */
#include "placement/pfs/pfs_tree.h"

#include <unistd.h>

static struct pfs_node lru = {.lru_next = &lru, .lru_prev = &lru}; /* next: the one used last */
static unsigned nfds, max_nfds;

static void lru_remove(struct pfs_node *n)
{
    n->lru_prev->lru_next = n->lru_next;
    n->lru_next->lru_prev = n->lru_prev;
    n->lru_next = n->lru_prev = NULL;
    nfds--;
}

static void lru_add(struct pfs_node *n)
{
    n->lru_next = lru.lru_next;
    n->lru_prev = &lru;
    lru.lru_next->lru_prev = n;
    lru.lru_next = n;
    nfds++;
}

int pfs_fd_take(struct pfs_node *n)
{
    int fd = n->fd;
    if (fd < 0 || !n->parent) /* the root's own descriptor stays */
        return -1;
    if (n->users) {
        n->drop = true;
        return -1;
    }
    lru_remove(n);
    n->fd = -1;
    n->drop = false;
    return fd;
}

int pfs_fd_surplus(void)
{
    if (nfds <= max_nfds)
        return -1;
    for (struct pfs_node *n = lru.lru_prev; n != &lru; n = n->lru_prev)
        if (!n->users)
            return pfs_fd_take(n);
    return -1;
}

void pfs_fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

void pfs_fd_keep(struct pfs_node *n, int fd)
{
    n->fd = fd;
    lru_add(n);
}

void pfs_fd_used(struct pfs_node *n)
{
    n->users++;
    if (!n->parent)
        return;
    lru_remove(n); /* to the front */
    lru_add(n);
}

int pfs_fd_end_use(struct pfs_node *n)
{
    n->users--;
    return !n->users && n->drop ? pfs_fd_take(n) : -1;
}

void pfs_fds_limit(unsigned max_fds)
{
    max_nfds = max_fds;
}

void pfs_fds_close(void)
{
    while (lru.lru_next != &lru) {
        struct pfs_node *n = lru.lru_next;
        lru_remove(n);
        close(n->fd);
        n->fd = -1;
        n->drop = false;
    }
}
