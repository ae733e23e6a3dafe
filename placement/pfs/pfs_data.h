/* pfs_data.h - file data on the PFS: the only place where the user's files are read and written.
 *
 * Blocking: pool threads only.  0 or -errno.  Descriptors are kept on struct file while it is open
 * or dirty (within a budget; LRU beyond), and re-made by path: opened below the root, fid checked,
 * else -ESTALE ("not that file").
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_DATA_H
#define EDDY_PLACEMENT_PFS_PFS_DATA_H

#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_names.h"
#include "placement/store/file.h"

#include <sys/types.h>

/* Takes over a descriptor that pfs_create made; counts as an open. */
void pfs_adopt_fd(struct file *f, int fd, bool writable);
/* Opens the file for the mount (counts as open here until pfs_release) with the permission checks of
 * the PFS.  write: a descriptor that can write (O_RDWR, else O_WRONLY).  Fills stx fresh.  cred as
 * in pfs_names.h. */
int pfs_open_file(struct file *f, struct pfs_node *n, bool write, const struct cred *c,
                  struct statx *stx);
/* Counts an open as pfs_open_file does, without asking the PFS: of a file whose bytes are all here.
 * It may stay without a descriptor. */
void pfs_open_known(struct file *f);
/* Gives a file that is open without a descriptor one, by the name n, or by its path where n is
 * NULL; 0 if it has one. */
int pfs_open_late(struct file *f, struct pfs_node *n);
bool pfs_has_descriptor(struct file *f);
/* Has this mount a handle of it? */
bool pfs_is_open(struct file *f);
/* Keeps the file's descriptor open, if it has one: until it is given up the PFS has no other file of
 * the same inode number.  False: there is none. */
bool pfs_hold_number(struct file *f);
void pfs_unhold_number(struct file *f);
/* one open less; the descriptor stays while the file is dirty and the budget allows */
void pfs_release(struct file *f);
/* Drops the descriptor (unlinked and closed, or clean and closed). */
void pfs_drop(struct file *f);

/* Fresh attributes by descriptor or path (AT_STATX_FORCE_SYNC). nlink 0 = unlinked. */
int pfs_file_stat(struct file *f, struct statx *stx);
/* The same: the PFS says that a name is left. */
bool pfs_has_a_name(struct file *f);

/* Who has use for a chunk's bytes before the look that proves of which version they are; the buffer is
 * not changed after the call.  NULL: nobody. */
struct pfs_unproven {
    void (*here)(void *arg);
    void *arg;
    bool told; /* here was called: at most once */
};
/* Reads chunk `index` of version *v: checks the version afterwards, and before if this node has not
 * seen it yet; -ESTALE if it is not
 * (with *v = what it is now; *v unchanged: not that file any more at its path).
 * buf: chunk size; *len: bytes (short at the end).  *racy: the version is racy now.  FADV_RANDOM
 * (no read-ahead into others' chunks), and the PFS client's pages are dropped afterwards. */
int pfs_read_chunk(struct file *f, uint64_t index, struct version *v, void *buf, size_t *len,
                   bool *racy, struct pfs_unproven *u);
/* The same for an owner that has only fid and path. */
int pfs_read_chunk_at(struct fid fid, const char *path, uint64_t index, struct version *v,
                      void *buf, size_t *len, bool *racy);
/* Plain range of the file as it is now (claimant: nobody else changes it). Full or short at the end
 * of file: *got. */
int pfs_read(struct file *f, void *buf, size_t len, uint64_t off, size_t *got);

/* A file that is not at its path any more, looked for in that directory, and by the rest of its path beside
 * the directories above it; found: its path is that one now.  -ENOENT. */
int pfs_find_near(struct file *f, struct statx *stx);

/* ---- writing back (flush/copyout.c) ---- */

void pfs_data_stop(void); /* closes what the readers by path keep; pfs_close calls it */
/* clears setuid/setgid (and capabilities) before data of another is kept */
int pfs_strip_suid(struct file *f);
int pfs_file_seek(struct file *f, uint64_t off, bool hole, uint64_t *out);

#endif
