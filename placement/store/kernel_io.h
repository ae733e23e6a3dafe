/* kernel_io.h - kernel I/O: data files that the kernel itself reads and writes for applications.  How it
 * works is told in kernel_io.c. */
#ifndef EDDY_PLACEMENT_STORE_KERNEL_IO_H
#define EDDY_PLACEMENT_STORE_KERNEL_IO_H

#include "placement/store/file.h"

/* The grain of the time stamps of a local file system, at the most: a sample this young proves nothing, and what is written
 * after an instant of this clock may be stamped this much before it. */
#define STORE_GRAIN_NS INT64_C(10000000)
/* For an open that reads, or (with the claim held) writes, the data file itself.  *fd is a read-only
 * descriptor of it, which the caller closes.  After an open for writing "may be dirty" is in the record.
 * *life is for the close, and tells whether two opens have the same data file.
 * -ENODATA: not all of the file is here, or the next open fetches it again.
 * -ENOSPC: too much of the cache would be anchored, or too little is free for a writer. */
int kernel_io_open(struct file *f, bool write, int *fd, unsigned *life);
void kernel_io_close(struct file *f, unsigned life, bool write);
/* Has it an open that is not closed yet, of whichever data file?  Any thread, no lock. */
bool kernel_io_is_open(struct file *f);
/* May the kernel write it now without the daemon?  Any thread, no lock. */
bool kernel_io_writes(struct file *f);
/* Before an open for writing, without a lock: makes the room that it asks for. */
void kernel_io_make_room(void);
/* Before a copy-out: what the kernel's writers changed is marked dirty.  gate (may be NULL) is
 * called before each chunk is read; it may wait, and ends it with an error. */
int kernel_io_mark(struct file *f, int (*gate)(void *arg), void *arg);
/* Called between kernel_io_mark and store_flushed, while writers go on: the len bytes of buf went to the PFS,
 * at off of a file of `size`.  So they go there only once, even if they differ from the bytes that were
 * marked. */
void kernel_io_copied(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size);
/* Looks at each file that the kernel's writers may change, and keeps the room free that they may need.
 * Without a lock, calls `changed` for files that changed, and `concluded` for files that are on the PFS and
 * that no process can change any more.  Returns how many are left to look at.  kernel_io_forget, at the end:
 * looks at none any more. */
unsigned kernel_io_sample(void (*changed)(struct file *f), void (*concluded)(struct file *f));
void kernel_io_forget(void);
/* How long ago the kernel's writers stored into it last, as far as was seen; 0 if that is not known. */
uint64_t kernel_io_age_ms(struct file *f);
/* Registers what is called when one more file is open for kernel I/O (wake), and when such a file changed
 * before its close (changed); no lock held. */
void store_on_kernel_io(void (*wake)(void), void (*changed)(struct file *f));
uint64_t kernel_io_anchored(void); /* bytes */
unsigned kernel_io_open_files(void);

#endif
