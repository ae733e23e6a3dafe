/* pfs_data.h - file data on the PFS: the only place where the user's files are read and written.
 *
 * The functions block: pool threads only.  They return 0 or -errno.  A struct file has its descriptor while
 * it is open or dirty (within a budget; the least recently used are closed beyond it).  A closed one is
 * opened again by path, below the root, and the fid is checked; else -ESTALE ("not that file").
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
 * in pfs_names.h.  n NULL: by the descriptor that it has; -ESTALE: it has none. */
int pfs_open_file(struct file *f, struct pfs_node *n, bool write, const struct cred *c,
                  struct statx *stx);
/* Counts an open as pfs_open_file does, without asking the PFS: for a file whose bytes are all here.
 * The file may stay without a descriptor. */
void pfs_open_known(struct file *f);
/* Opens a descriptor for a file that is open without one: by the name n, or by its path if n is
 * NULL.  0 if it has one already. */
int pfs_open_late(struct file *f, struct pfs_node *n);
bool pfs_has_descriptor(struct file *f);
/* Has this mount a handle of it? */
bool pfs_is_open(struct file *f);
/* Its last name is gone.  True: it is not open here, and from now on pfs_open_file does not open it
 * (-ESTALE): what was not flushed of it may be dropped.  False: it is open, and may be opened again by a
 * descriptor. */
bool pfs_open_ends(struct file *f);
/* Keeps the file's descriptor open, if it has one.  Until that ends, the PFS has no other file with
 * the same inode number.  False: there is none. */
bool pfs_keep_number(struct file *f);
void pfs_unhold_number(struct file *f);
/* one open less; the descriptor stays while the file is dirty and the budget allows */
void pfs_release(struct file *f);
/* Opens the descriptor of a dirty file that is not open here, and keeps it until the file is flushed, so that
 * no rename matters any more.  An error is left for the flush to find.  False: so many are kept already. */
bool pfs_keep_found(struct file *f);
/* Drops the descriptor of a file that is not open: of an unlinked one; and of one that was flushed, unless it
 * was written again meanwhile, or is claimed and unlinked: nothing else leads to the bytes that are not here, and other
 * nodes may have it open. */
void pfs_drop(struct file *f);
void pfs_drop_clean(struct file *f);

/* Fresh attributes by descriptor or path (AT_STATX_FORCE_SYNC). nlink 0 = unlinked. */
int pfs_file_stat(struct file *f, struct statx *stx);
/* The same: the PFS says that a name is left. */
bool pfs_has_a_name(struct file *f);

/* A chunk that is read in one version. */
struct pfs_chunk_read {
    uint64_t index;
    struct version version; /* the wanted one; after -ESTALE: the one that the file has now */
    void *buf;              /* chunk size */
    size_t len;             /* set by the read: bytes (short at the end) */
    bool racy;              /* set by the read: the version is racy now */
};
/* The reader that can use a chunk's bytes before the look that proves their version; the buffer is
 * not changed after the call.  NULL: none. */
struct pfs_unproven {
    void (*here)(void *arg, const struct pfs_chunk_read *r); /* len and racy are set */
    void *arg;
    bool told; /* here was called: at most once */
};
/* Reads a chunk.  It checks the version after the read, and also before if this node has not seen the version
 * yet.  -ESTALE: the version is another one; if r->version is unchanged, another file is at the path.  Uses
 * FADV_RANDOM (no read-ahead into chunks of other owners), and drops the PFS client's pages afterwards. */
int pfs_read_chunk(struct file *f, struct pfs_chunk_read *r, struct pfs_unproven *u);
/* The same for an owner that has only fid and path. */
int pfs_read_chunk_at(struct fid fid, const char *path, struct pfs_chunk_read *r);
/* Reads a range of the file as it is now (at the claimant: no other node changes it).  *got is less than len
 * only at the end of the file. */
int pfs_read(struct file *f, void *buf, size_t len, uint64_t off, size_t *got);

/* The paths of these files follow the moves of the session's log since the last call. */
void pfs_pass_moves(struct file **files, size_t n);
/* Does the log say that the file's path was removed?  It may have other names then, or be open elsewhere without one. */
bool pfs_name_was_removed(struct file *f);
/* Does it say that the session removed the file, which is not at its path, and that no node has it open?  Only if it is not at
 * its path does this count. */
bool pfs_was_removed(struct file *f);
/* Looks for a file that is not at its path any more, nor where the log of moves says: in that directory, and
 * by the rest of its path beside the directories above it.  If it is found, that is its path now.  -ENOENT.
 */
int pfs_find_near(struct file *f, struct statx *stx);

/* ---- writing back (flush/copyout.c) ---- */

void pfs_data_stop(void); /* closes the descriptors of the readers by path; pfs_close calls it */
/* Clears these bits of S_ISUID and S_ISGID, and capabilities, before data of another user is stored. */
int pfs_strip_suid(struct file *f, mode_t bits);
int pfs_file_seek(struct file *f, uint64_t off, bool hole, uint64_t *out);

#endif
