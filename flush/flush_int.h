/* flush_int.h - what the files of flush/ share.  Private to them.
 *
 * decide.c   whether a file is written now: pure, of all that is known
 * lull.c     activity, and the bell that wakes the threads that sleep here
 * gaps.c     the wait interval from the application's pauses: pure
 * marks.c    dirty bytes against the marks: pure
 * limit.c    bytes per second: pure
 * room.c     dirty bytes as they are now; writers are slowed, and wait for room
 * queue.c    the lists of dirty files
 * order.c    which of them is first when room is needed
 * flusher.c  the thread that begins runs; start and stop
 * gate.c     may a run go on?  its turn before each piece
 * run.c      one run of one file: how it begins and ends
 * copyout.c  what a run does
 * piece.c    how large its writes are: pure
 * ask.c      asking for a flush and waiting for it
 * asked.c    asking for a list of files, some of them at other nodes
 * retry.c    failed files: when they are tried again, what is logged
 * status.c   for `eddy status`
 * names.c    the dirty list in the session directory: when it is due; names_write.c writes it
 * priority.c idle CPU and I/O priority
 * recover.c  what a dead daemon left
 * conflict.c a file that somebody else has changed on the PFS
 * made.c     is what the PFS has this node's own doing?  pure
 * rescue.c   ... copied elsewhere: what a dead daemon left
 * sample.c   files that applications read and write through the kernel
 * disk.c     the cache disk's counters
 */
#ifndef EDDY_FLUSH_FLUSH_INT_H
#define EDDY_FLUSH_FLUSH_INT_H

#include "flush/marks.h"
#include "flush/piece.h"

/* ---- room.c ---- */
/* Dirty bytes against the marks now; takes the rates too. flush.lock held. */
enum mark_level room_level(void);
/* Writers, and the sampler: tells the flusher when the high mark is reached. */
void room_look(void);
uint64_t room_batch(void); /* between two fsyncs of one file, bytes */

/* ---- sample.c ---- */
int sample_start(void);
void sample_stop(void);

/* ---- disk.c ---- */
#define DISK_BUSY (512u << 10) /* bytes between two looks */
struct disk_counts {
    bool known;         /* no counters: the file system has no block device of its own */
    uint64_t read, own; /* bytes, by all; by this process */
};
void disk_look(struct disk_counts *now);
/* Did other processes read since the last look?  *last becomes *now. */
bool disk_busy(struct disk_counts *last, const struct disk_counts *now);

/* ---- priority.c ---- */
void priority_idle(void); /* this thread, from now on */
void priority_normal(void);

#endif
