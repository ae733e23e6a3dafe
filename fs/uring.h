/* uring.h - requests and answers over io_uring in place of /dev/fuse (Linux 6.14; --uring).
 *
 * The kernel has a queue for each processor, and puts a request into that of the processor on which its process runs.  Each
 * queue has a thread here, on the same processor, so that no other processor is woken for a request or its answer:
 *
 *     INIT by /dev/fuse --> uring_answer_init --> uring_begin: each thread gives the kernel its entries
 *     entry --request--> thread of the queue --> libfuse --> uring_answer --> entry goes back with the answer
 *                                                '--> a pool, whose thread answers later: the queue's thread gives it back
 *
 * FORGET, INTERRUPT and notifications go by /dev/fuse as ever, and so the workers (fs/workers.c) read it beside.
 *
 * An entry is its request's until that is answered.  A queue whose entries all wait would serve nobody, so a thread of a queue
 * hands all that may wait for the PFS to a pool, and there are many entries: those that wait use little memory.
 */
#ifndef EDDY_FS_URING_H
#define EDDY_FS_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct fuse_buf;
struct fuse_init_out;
struct fuse_session;

bool uring_is_built(void); /* this program has it */
/* Before the mount: makes the rings and their threads, if settings.uring is true and the kernel can.  The first thread. */
void uring_make(void);
/* A worker has read INIT (n bytes with its header). */
void uring_look_at_init(const void *request, size_t n);
/* The answer to INIT: says that requests are to come over io_uring, if they can. */
void uring_answer_init(struct fuse_init_out *out);
/* INIT was answered: from now on requests come, and serve is called with each; bytes: where those of an answer may be put.  Without rings does nothing.  0, or -errno: the mount must end, since the kernel
 * waits for the rings. */
int uring_begin(struct fuse_session *session, void (*serve)(struct fuse_buf *request, char *bytes));
/* All that is answered goes through here; any thread that holds no lock.  False: it is no answer to a request that came over
 * io_uring.  Else *sent is what writev would return, with errno. */
bool uring_answer(const struct iovec *iov, int n, ssize_t *sent);
/* Returns when the kernel has taken all answers that this thread has given: then it does with its pages what they say. */
void uring_settle(void);
/* Ends the threads.  What they serve is served first, what is answered later is dropped, and the kernel's connection has no
 * user here but /dev/fuse.  Not a thread of a queue; may be called twice. */
void uring_end(void);
void uring_free(void); /* when nothing will be answered any more */
/* NULL: it is on.  Else why it is not.  After mount_start. */
const char *uring_why_not(void);

#endif
