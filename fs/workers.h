/* workers.h - the threads that read /dev/fuse. */
#ifndef EDDY_FS_WORKERS_H
#define EDDY_FS_WORKERS_H

#define FUSE_USE_VERSION 317
#include <fuse_lowlevel.h>

/* Starts them, once in a process.  on_answer is called after each request, on_gone by each worker
 * that ends: the mount is gone, or workers_end_reading was called.  0 or -errno. */
int workers_start(struct fuse_session *session, void (*on_answer)(void), void (*on_gone)(void));
/* When it returns, no thread reads the device, or will.  Any thread but a worker; may be called twice. */
void workers_end_reading(void);
/* Memory for FUSE_IO_MAX bytes of an answer, until the next request; in a worker.  The bytes of a write are
 * in the same place. */
void *workers_data(void);
/* Serves a request, of which the kernel has put all into memory; bytes: workers_data while it does.  The workers, and the threads
 * of fs/uring.c. */
void workers_serve(struct fuse_buf *request, char *bytes);
/* ... and all requests that were begun have been served by their worker.  One thread. */
void workers_join(void);

#endif
