/* pfs_file.h - what the pfs_*.c files that open, read and write a file share.  Private to them. */
#ifndef EDDY_PLACEMENT_PFS_PFS_FILE_H
#define EDDY_PLACEMENT_PFS_PFS_FILE_H

#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_keep.h"
#include "placement/pfs/pfs_names.h"

/* What this room knows of a file (FILE_PFS). */
struct pfs_file {
    struct file_part part;
    struct file *f;
    struct lock lock; /* RANK_PFS_FILE: all that follows; `opens` is also read without it */
    int fd;           /* -1: none */
    bool writable;
    bool drop_wanted; /* the last call that returns it closes fd */
    unsigned borrowed;/* calls that use fd now */
    bool ended; /* pfs_open_ends */
    unsigned turns; /* how often it was opened */
    _Atomic unsigned opens; /* open handles of the mount: while > 0 fd is kept */
    struct version seen; /* what the PFS's client on this node told last */
    uint64_t unit;       /* of writes, for the flush that runs: it alone looks */
    bool is_program;     /* it may have capabilities; for the flush, too */
    struct pfs_file *kept_next, **kept_prev; /* pfs_keep.c's list of closed, dirty files; its lock */
};
extern const struct file_part_ops pfs_file_ops; /* pfs_keep.c */
static inline struct pfs_file *pfs_of(struct file *f)
{
    return (struct pfs_file *)file_part(f, FILE_PFS, &pfs_file_ops);
}
/* NULL: it was never open here, and never had a descriptor. */
static inline struct pfs_file *pfs_if(const struct file *f)
{
    return (struct pfs_file *)file_part_if(f, FILE_PFS);
}

/* ---- pfs_mode.c ---- */
struct mode_entry;
/* Changes of a file's mode take turns.  The entry is made if there is none. */
struct mode_entry *pfs_mode_take(struct fid fid);
void pfs_mode_drop(struct mode_entry *e);
/* Between take and drop, after a change by the application: fd is the file (O_PATH is enough).  all:
 * the application has set every bit (chmod, ACL); else only setuid and setgid have changed (chown,
 * stripping). */
void pfs_mode_changed(struct mode_entry *e, int fd, bool all);
/* The mode that the application knows in place of a raised one. */
void pfs_mode_patch(struct statx *stx);
/* The write-back's side, around its changes; fd any descriptor of the file. */
int pfs_mode_begin(struct file *f, int fd, bool raise);
void pfs_mode_end(struct file *f, int fd);

/* ---- pfs_open.c ---- */
/* Opens by path, checks type and fid: -ENOENT, -ESTALE ("not that file"). */
int pfs_open_path(struct fid fid, const char *path, int flags, int *fd, struct statx *stx);
/* The same, O_PATH only. */
int pfs_find_path(struct fid fid, const char *path, int *fd, struct statx *stx);
/* The same by the file's path; if this node owes bytes of it to the PFS, and the path does not lead to it, by
 * the log of moves: then that is its path from now on. */
int pfs_find_file(struct file *f, int *fd, struct statx *stx);
int pfs_open_hint(struct file *f, int flags, int *fd, struct statx *stx); /* and opens it, as pfs_open_path */

/* ---- pfs_read.c ---- */
/* This node's PFS client has returned this as the file's version. */
void pfs_note_seen(struct file *f, const struct version *v);
bool pfs_is_seen(struct file *f, const struct version *v);
/* Reads a chunk by this descriptor, as pfs_read_chunk.  seen: this node's PFS client has already
 * returned r->version as the file's version. */
int pfs_read_version(int fd, bool seen, struct pfs_chunk_read *r, struct pfs_unproven *u);
int pfs_read_full(int fd, void *buf, size_t len, uint64_t off, size_t *got);

/* ---- pfs_write.c ---- */
/* Writes all of it, by PFS calls, and counts the bytes: 0 or -errno. */
int pfs_write_fd(int fd, const void *buf, size_t len, uint64_t off);

/* ---- pfs_kind.c ---- */
/* fd: any of the PFS's files. */
bool pfs_is_lustre(int fd);
/* Is the PFS a local file system of this node?  There a descriptor with O_PATH costs no request, and keeps
 * the inode, and unlink does the same as without it (NFS would rename the file instead). */
bool pfs_is_local(int fd);

/* ---- pfs_layout.c ---- */
/* The largest stripe of a lustre.lov attribute's value, bytes; 0: the value has an unknown form. */
uint64_t pfs_lustre_stripe(const void *layout, size_t len);
/* The unit, bytes; a PFS call on Lustre. */
uint64_t pfs_unit_of(int fd, uint32_t blksize);

#endif
