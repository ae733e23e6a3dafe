/* remover.h - removes the data of small removed files from the cache, when removals pause.
 *
 * A program that removes many small files (rm -r) waits for each of them.  Removing a data file takes as long
 * as removing the name on the PFS, or longer, because the disk may discard its blocks at once.  So a thread
 * takes small files down (file.c), when no other one was removed for a moment.  Their number and bytes are
 * bounded; beyond that, the thread that removes a file takes it down itself.
 *
 * Until then the file is "going", as while it is taken down.  Its bytes count as used.  Its record says
 * that it is deleted (if the daemon dies, the next start removes it).  A thread that asks for its fid takes
 * it down first.
 *
 * Any thread.  store_close ends it.
 */
#ifndef EDDY_PLACEMENT_STORE_REMOVER_H
#define EDDY_PLACEMENT_STORE_REMOVER_H

#include "placement/store/file.h"

#define REMOVER_FILE_MAX                                                                           \
    (256u << 10) /* bytes: those of a source tree, not those that fill a disk */

/* Starts the thread, if there is none; no lock held.  end takes a file down. */
void remover_ready(void (*end)(struct file *f));
/* Takes over a file that is going.  False: it does not take it.  The table's lock may be held. */
bool remover_take(struct file *f);
/* Gives the file back.  False: it never took it, or is taking it down now.  Locks as for remover_take. */
bool remover_give_back(struct file *f);
/* Takes down all files that are left. */
void remover_stop(void);

extern unsigned remover_pause_ms; /* for tests */

#endif
