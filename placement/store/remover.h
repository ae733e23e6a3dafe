/* remover.h - what the cache has of removed files goes when their removals pause.
 *
 * Who removes many small files (rm -r) waits for each of them, and to remove a data file takes as long
 * as to remove the name on the PFS, or longer: the disk may discard its blocks there and then.  So small
 * files are taken down (file.c) by a thread, once no other one was removed for a moment.  Bounded in
 * number and bytes: who removes more takes down what is beyond.
 *
 * Until then the file is "going", as while it is taken down: its bytes count as used, its record says
 * that it is deleted (a daemon that dies leaves it to the next start), and who asks for its fid takes
 * it down first.
 *
 * Any thread.  store_close ends it.
 */
#ifndef EDDY_PLACEMENT_STORE_REMOVER_H
#define EDDY_PLACEMENT_STORE_REMOVER_H

#include "placement/store/file.h"

#define REMOVER_FILE_MAX                                                                           \
    (256u << 10) /* bytes: those of a source tree, not those that fill a disk */

/* Starts the thread, if there is none; no lock held. */
void remover_ready(void);
/* Takes over a file that is going.  False: it does not.  The table's lock may be held. */
bool remover_take(struct file *f);
/* The opposite.  False: it never took it, or takes it down now.  As remover_take. */
bool remover_give_back(struct file *f);
/* None is left when it returns. */
void remover_stop(void);

extern unsigned remover_pause_ms; /* for tests */

#endif
