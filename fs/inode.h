/* inode.h - the files that the kernel knows, by node id: index into a table + generation, never a pointer.
 *
 * There is one inode per fid that look-ups find, while the kernel (nlookup > 0) or an open handle (refs) uses
 * it.  nodeid = generation << 32 | index; the root is FUSE_ROOT_ID.  A file whose last name is gone (or whose
 * number was used again for another type) is not found any more, so that a new file with the same
 * fid gets a new node id; nor is one that was retired.
 *
 * A file has as many names as were looked up; i->node is one that leads to it.  A name that is
 * taken from it (unlinked, or another file is found there) leaves the list at once.  But its
 * pfs_node lives on while the inode is referenced: a thread with a reference to the inode may use i->node
 * without a lock.  Locks: table shards RANK_INODES, inode RANK_INODE.
 */
#ifndef EDDY_FS_INODE_H
#define EDDY_FS_INODE_H

#include "placement/data.h"
#include "transport/lock.h"

#include <sys/stat.h>

enum policy_kind { POLICY_FLUSH, POLICY_SHARED, POLICY_KINDS }; /* of directories: fs/dir_policy.c */
#define XATTR_KINDS 4 /* extended attributes that are asked for often, and mostly are not there */

struct inode {
    uint64_t nodeid;
    uint64_t nlookup; /* shard's lock */
    unsigned refs;    /* shard's lock */
    struct fid fid;
    mode_t type;                   /* S_IFMT */
    _Atomic bool gone;             /* no name left */
    _Atomic bool retired;          /* a look-up of its file gives another node id */
    bool second;                   /* there was a retired one of its file when it was made */
    _Atomic bool fixed;            /* --immutable: below such a path */
    /* boot_ms of the last ESTALE: the kernel looks its name up again, and must not get the old answer */
    _Atomic uint64_t doubted_ms;
    _Atomic unsigned moves;        /* directories: names moved in or out by this node (fs/moves_rename.c) */
    /* directories: boot_ms of the last call that found the name of its file gone (fs/early.c) */
    _Atomic uint64_t missed_ms;
    _Atomic uint64_t ahead_ms;     /* directories: boot_ms of the last look ahead at one of its files; 0: none */
    _Atomic bool near;             /* it was looked up before its hinted reader opens it (fs/near.c) */
    _Atomic bool lost_said;        /* the log names it: its latest bytes are on a node that left */
    struct pfs_node *_Atomic node; /* never NULL; for PFS calls while the inode is referenced */
    struct inode_name *names;      /* shard's lock; the inode's own list of names */
    struct inode *fid_next;
    bool listed; /* shard's lock: look-ups by its fid find it; false: gone or retired */

    struct lock lock; /* below this line */
    /* the last answer to the kernel, or the PFS's attributes if the kernel was told to ask: the answer while
     * the PFS hangs, and while `known` says that it is as good as a look */
    struct stat attr;
    bool attr_known;
    uint64_t attr_ms; /* boot_ms */
    uint64_t told_ms; /* boot_ms: another node has changed it, or was about to; what was looked at before may be old */
    /* boot_ms of when this node last changed its mode, owner, names or extended attributes */
    uint64_t touched_ms;
    uint64_t born_ms; /* boot_ms of when this node created it; 0: it did not */
    /* boot_ms of when the kernel last got another size or mtime, other than by writes here, or got
     * something older than attr; 0 = never */
    uint64_t attr_moved_ms;
    /* attr's ctime when the PFS said that there is no access / default ACL; 0 = not known */
    int64_t no_acl_ctime_ns[2];
    /* the PFS's ctime, not young, when it said that there is no such attribute (fs/xattr.c); 0 = not known */
    int64_t absent_ctime_ns[XATTR_KINDS];
    /* directories: boot_ms of when an application asked for one of a file in it */
    uint64_t xattr_asked_ms[XATTR_KINDS];
    struct mode_machine {
        unsigned cached, direct, passthrough, beside; /* opens in each I/O mode (fs/io_mode.c) */
        unsigned promised; /* to tasks whose open comes next: no other open begins passthrough */
        unsigned appends; /* of those, but not in passthrough: with O_APPEND, for writing */
    } mode;
    /* of a regular file, for opens and stats without the PFS (fs/known.c); and what else that look saw
     * together with the version */
    struct data_known known;
    uint64_t known_blocks;
    struct timespec known_atim;
    /* of a regular file: the PFS's version that applications were told these times of */
    struct told_of {
        struct version version;
        struct told told;
        bool known;
    } told;
    int64_t moved_ns;      /* the PFS's ctime after this node's last change of an attribute or name: told since */
    struct stat word;      /* what a claimant said of it last, as told; st_nlink 0: nothing */
    int backing_id;        /* while mode_has_kernel_io: the kernel's for our data file ... */
    unsigned backing_life; /* ... which is this one (kernel_io_open) */
    struct kept_pages {
        struct data_tag tag; /* the bytes that cached opens of this turn are to see */
        unsigned turn;
        bool mixed; /* beside opens of other bytes */
        bool known; /* the kernel's pages have the bytes of tag, or newer ones (fs/kept.c) */
    } kept;
    _Atomic uint64_t given; /* of nlookup: those that were answered.  A request that waits has its own already */
    _Atomic unsigned opening; /* opens whose mode is not chosen yet: they may cache */
    /* another node has changed it, or was about to, since the kernel knows it; or there may be another node id */
    _Atomic bool others;
    _Atomic uint64_t told_size; /* the kernel's is not less, whichever of the answers it has dropped (belief_must_grow) */
    /* no page of the kernel has an end of the file, with zeros behind it, before this byte; UINT64_MAX: none has one
     * (page_cache_ends) */
    _Atomic uint64_t first_end;
    struct page_use *page_uses; /* requests that may wait, and hold pages of the kernel (fs/page_cache.c) */
    struct page_drop *page_drops; /* pages that are being dropped (fs/page_cache.c) */
    struct walks *walks;        /* or NULL: what the kernel is told of its pages (fs/page_walk.c) */
    /* claim_carried when the kernel's pages were looked at last (fs/lock.c) */
    uint64_t carried_seen;
    /* under fs/lock.c's lock: the kernel's pages are being dropped for a process that was granted a lock; and
     * the bytes that the pages have had, or newer ones, since the last drop */
    bool dropping;
    struct data_tag dropped;
    /* directories: ctime when the kernel's cached listing was begun (mtime can be set back), and
     * the PFS's clock then; 0 = none */
    int64_t listed_ctime_ns, listed_at_ns;
    /* directories: has a default ACL (then the umask does not count); 0 = not known */
    uint64_t default_acl_ms; /* boot_ms of when it was asked */
    bool default_acl;
    struct scan *scan; /* directories whose files are looked at (fs/ahead.c), or NULL */
    /* directories: its policies (fs/dir_policy.c) */
    struct dir_policy {
        uint64_t asked_ms; /* boot_ms; 0: not known */
        int64_t ctime_ns;  /* the directory's then; 0: too young to tell */
        uint8_t own;       /* the policy's number + 1; 0: none of its own */
    } policy[POLICY_KINDS];
    /* directories: has one of its files been written by several nodes at once, and how many in a row since by this one alone?
     * (fs/shared.c) */
    _Atomic bool several_wrote;
    _Atomic uint8_t alone_wrote;
};

void inode_start(struct pfs_node *root, const struct statx *root_stx);
void inode_stop(void);
/* By node id, referenced; NULL: not one of ours (answer ESTALE). */
struct inode *inode_get(uint64_t nodeid);
struct inode *inode_ref(struct inode *i);
void inode_put(struct inode *i);
/* After a lookup or create: finds the inode of the fid, or makes one of the mode's type.  node (its
 * reference is taken over) becomes its name.  nlookup + 1, and referenced. */
struct inode *inode_found(struct pfs_node *node, struct fid fid, mode_t mode);
/* The same without nlookup (readdir's look at known ones): NULL if not known.  Referenced. */
struct inode *inode_known(struct fid fid);
/* The one that has taken this one's place, also if its file has lost its last name since; referenced.  NULL:
 * this one is not retired, or the kernel knows no other. */
struct inode *inode_beside_retired(struct inode *i);
/* All that may be in use, also those that are gone or retired: referenced, NULL after the last; to be freed. */
struct inode **inode_all_of(struct fid fid);
void inode_forget(uint64_t nodeid, uint64_t nlookup);
/* Counts one lookup more of a known inode (for answers without the PFS).  False: it is gone or retired; do
 * not give it to the kernel. */
bool inode_look_again(struct inode *i);
/* Its node id is about to be given to the kernel with this size, in an answer that is written next; it was not; the kernel
 * forgets it. */
void inode_give(struct inode *i, uint64_t size);
void inode_not_given(struct inode *i); /* and counts the lookup back, as inode_forget */
void inode_forgotten(uint64_t nodeid, uint64_t nlookup);
/* Has the kernel been given its node id, and not forgotten it? */
bool inode_is_given(const struct inode *i);
void inode_gone(struct inode *i); /* its last name is gone */
/* The next lookup of its file gives another node id; this one stays for processes that have it open.  By a
 * retired node id of a regular file the kernel keeps nothing from then on: neither attributes nor pages.  So
 * there is one node id at most by which it keeps something, and a change through any other ends that
 * (belief_changed_by).  Of what the kernel writes by itself nobody hears: meanwhile it keeps nothing at all
 * (belief_unheard). */
void inode_retire(struct inode *i);
/* This name does not lead to it any more; another known one takes its place. False: there is none
 * (i->node stays, and leads nowhere). */
bool inode_lost_name(struct inode *i, struct pfs_node *node);
/* Its known names, referenced, `max` at most; returns how many. */
unsigned inode_names(struct inode *i, struct pfs_node **out, unsigned max);
bool inode_has_name(struct inode *i); /* is any known? */
/* A known name of it other than node, referenced; NULL: there is none. */
struct pfs_node *inode_other_name(struct inode *i, const struct pfs_node *node);
/* Known child by name, from the path tree, for answers while the PFS hangs; NULL.  Referenced. */
struct inode *inode_child(struct inode *parent, const char *name);
struct inode *inode_of_node(struct pfs_node *n); /* NULL; referenced */

#endif
