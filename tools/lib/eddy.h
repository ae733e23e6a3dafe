/* eddy.h - libeddy: telling an eddyfs on this node what will be read next.
 *
 * A queue has the hints of one reader, in the order in which it will read.  What is hinted is fetched ahead, and
 * kept until it was read.  A hint is never needed and never wrong: what is read in another order, or not at all,
 * costs room in the cache for a while.  Hints end with their queue, and a queue with its process.
 *
 *     eddy_queue *q;
 *     if (!eddy_queue_open("/mnt/data", 0, &q)) {
 *         for (int i = n - 1; i >= 0; i--)
 *             eddy_queue_append(q, name[i], 0, 0);
 *         eddy_queue_start(q);
 *     }
 *     ... read the files, in this order ...
 *     eddy_queue_close(q);
 *
 * Any thread may call any function, but eddy_queue_close is the last call with a queue.  Functions return 0 or
 * more, or a negative errno (Linux numbers); none sets errno, raises a signal or prints.  All may return
 *   -ENOTCONN   the mount has ended, or its daemon was started again: the hints are gone (open another queue)
 *   -ECHILD     the queue was opened before a fork, by the parent: only the parent has it
 *   -ENOMEM
 * and NULL for a queue is -EINVAL (eddy_queue_close(NULL) does nothing).
 *
 * Nothing but libc is needed.  The queue has one descriptor, which is closed in a program that is started (CLOEXEC)
 * and in a forked child.
 */
#ifndef EDDY_H
#define EDDY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_queue eddy_queue;

/* Hints are used up by opens of any process on this node, not only of the one that has the queue and its
 * descendants.  (In this version they are so without the flag, too.) */
#define EDDY_QUEUE_ANY_READER 1u

/* "This will be read."  The path is as for open(2): absolute, or relative to the working directory at the call.  It need
 * not exist yet, nor need its directory. */
struct eddy_hint {
    const char *path;
    uint64_t off, len; /* bytes; len 0: to the end of the file */
};

/* What has become of the hints.  Grows at its end in later versions. */
struct eddy_queue_stats {
    uint64_t hints;         /* appended */
    uint64_t cancelled;     /* of these: cancelled */
    uint64_t consumed;      /* of these: read, or said to be, or left out by the reader */
    uint64_t admitted;      /* of the rest: taken up by the prefetcher */
    uint64_t ahead;         /* of the admitted ones: all of it is here */
    uint64_t absent;        /* of the admitted ones: nothing can be read by that name now */
    uint64_t ahead_bytes;   /* that the hints keep in this node's cache now */
    uint64_t fetched_bytes; /* that were brought here because of the hints, since the queue was opened */
};

/* Opens a queue at the mount that this path is in (or will be in, when it exists).
 * -ENODEV: that is no eddyfs, or one without queues; -EACCES: another user's; -EINVAL: unknown flags; -EMFILE; -EAGAIN: too
 * many queues are open (1024 on a mount). */
int eddy_queue_open(const char *path_in_mount, unsigned flags, eddy_queue **out);

/* Appends one hint.  Its sequence number (the first one is 0, each next one 1 more), or
 * -EXDEV: the path is not in the queue's mount; -ENOBUFS: the mount keeps no more hints now (--memory); -EINVAL: an empty
 * path, one that ends in "." or "..", or off + len is beyond 2^63 - 1; -ENAMETOOLONG; or the error of looking for the
 * path's directory. */
int64_t eddy_queue_append(eddy_queue *q, const char *path, uint64_t off, uint64_t len);
/* Appends n hints, all or none.  The sequence number of the first of them; errors as above, of the first hint that has
 * one.  n 0: -EINVAL. */
int64_t eddy_queue_append_many(eddy_queue *q, const struct eddy_hint *hints, size_t n);

/* Fetching begins; may come before or after the hints.  Hints of a queue that is not started only tell the cache what to
 * keep. */
int eddy_queue_start(eddy_queue *q);
/* Fetching ends (what is on its way comes); the hints stay. */
int eddy_queue_stop(eddy_queue *q);

/* This hint's bytes were read, and need not be kept for it.  Else they count as read when the file is closed that was
 * opened after the hint, or when 64 later hints of the queue have been opened.  -ENOENT: no such hint; a hint that is
 * consumed or cancelled already is no error. */
int eddy_queue_consumed(eddy_queue *q, int64_t seq);

/* Waits until all that a hint names is on this node, or it is consumed or cancelled.  With a queue that is not started,
 * only what others do can bring it.
 * 0; -ETIMEDOUT: not within timeout_ms (< 0: no time-out); -ENOENT: no such hint. */
int eddy_queue_wait(eddy_queue *q, int64_t seq, int timeout_ms);
/* As seq for eddy_queue_wait: waits until all hints that were appended so far are consumed or cancelled. */
#define EDDY_QUEUE_ALL_CONSUMED ((int64_t)-1)

/* Takes back all hints with this sequence number or a higher one that are not consumed.  The numbers are not used again. */
int eddy_queue_cancel(eddy_queue *q, int64_t from_seq);

/* Fills in the first `size` bytes of *out, as far as this library knows them, and zeros behind them. */
int eddy_queue_stats(eddy_queue *q, struct eddy_queue_stats *out, size_t size);

/* Ends the queue and its hints. */
void eddy_queue_close(eddy_queue *q);

#ifdef __cplusplus
}
#endif

#endif
