/* kernel_io.h - data files that the kernel itself reads and writes for applications (FUSE passthrough); see
 * kernel_io.c. */
#ifndef EDDY_PLACEMENT_STORE_KERNEL_IO_H
#define EDDY_PLACEMENT_STORE_KERNEL_IO_H

#include "placement/store/file.h"

/* The grain of the time stamps of a local file system, at the most: a sample this young proves nothing. */
#define STORE_GRAIN_NS INT64_C(10000000)
/* For an open that reads, or (with the claim held) writes, the data file itself: *fd is a read-only
 * descriptor of it, the caller's to close; "may be dirty" is in the record.  *life: for the close,
 * and to tell whether two opens have the same data file.  -ENODATA: not all of it is here, or the next
 * open fetches it again.
 * -ENOSPC: too much of the cache would be pinned, or too little is free for a writer. */
int kernel_io_open(struct file *f, bool write, int *fd, unsigned *life);
void kernel_io_close(struct file *f, unsigned life, bool write);
void kernel_io_direct(struct file *f); /* ... with O_DIRECT; right after kernel_io_open */
/* Before an open for writing, without a lock: makes the room that it asks for. */
void kernel_io_make_room(void);
/* Before a copy-out: what the kernel's writers changed is marked dirty.  gate (may be NULL) is
 * called before each chunk is read; it may wait, and ends it with an error. */
int kernel_io_mark(struct file *f, int (*gate)(void *arg), void *arg);
/* Between that and store_flushed, where writers go on: the len bytes of buf went to the PFS, at off
 * of a file of `size`.  So that they go there once, even if what was marked is not what was copied. */
void kernel_io_copied(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size);
/* Looks at each file that the kernel's writers may change, and keeps free what they may need.
 * Calls back, without a lock, for those that changed, and for those that nobody can change any more
 * and that are on the PFS.  Returns how many are left.  kernel_io_forget: at the end, looks no
 * more. */
unsigned kernel_io_sample(void (*changed)(struct file *f), void (*settled)(struct file *f));
void kernel_io_forget(void);
/* How long ago the kernel's writers stored into it last, as far as was seen; 0 if that is not known. */
uint64_t kernel_io_age_ms(struct file *f);
/* Called when one more is open, and when one changed before its close; no lock held. */
void store_on_kernel_io(void (*wake)(void), void (*changed)(struct file *f));
uint64_t kernel_io_pinned(void); /* bytes */
unsigned kernel_io_open_files(void);

#endif
