/*
 * The requests of the kernel, passed through to the directory below.
 *
 * Names and attributes are never cached by the kernel and file data neither (direct
 * I/O): several mounts of one directory then agree as the clients of a parallel file
 * system do, and each byte that a client reads is counted. Locks are left to the
 * kernel, so they hold within one mount only.
 */
#ifndef FAULTFS_OPS_H
#define FAULTFS_OPS_H

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <unistd.h>

/* Each part's requests are added to the table of all. */
void names_add(struct fuse_lowlevel_ops *ops);
void attrs_add(struct fuse_lowlevel_ops *ops);
void files_add(struct fuse_lowlevel_ops *ops);
void dirs_add(struct fuse_lowlevel_ops *ops);

/*
 * From names.c, for other files that make or find names. Between the first two calls, what
 * this thread creates belongs to the caller of the request, with the caller's groups and umask
 * (if faultfs runs as root; else it can serve only its own user).
 */
void become_caller(fuse_req_t req);
void become_self(void);
/* The same for a write to an open file, where only the set-id bits matter. */
void become_writer(fuse_req_t req);
/* Looks `name` up for the kernel, which gets a reference. Returns 0 or an errno. */
int find_entry(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry);

/* From statx.c: was this a request for birth times, which is answered now? */
bool statx_answered(struct fuse_session *session, const struct fuse_buf *buf);

/* From files.c: the descriptor below of an open file. */
int file_fd(struct fuse_file_info *fi);

/* For calls that return -1 and set errno: 0 or the errno. */
static inline int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static inline int sync_fd(int fd, int data_only)
{
    return error_of(data_only ? fdatasync(fd) : fsync(fd));
}

#endif
