/* served.h - the files that FETCH was answered from lately, kept open for the network thread.
 *
 * That thread may neither look into the table of files nor open a file.  With the files that are kept here it
 * answers at once from the page cache (serve.c).  And a file that other nodes read chunk by chunk is not
 * closed and opened again for each chunk.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_SERVED_H
#define EDDY_PLACEMENT_CHUNKS_SERVED_H

#include "placement/store/file.h"

/* Network thread.  The file is valid until the caller returns to the loop; NULL: not kept. */
struct file *served_find(struct fid fid);
/* Any thread.  Takes over the reference; it is dropped 1 to 2 s after the file's last use. */
void served_keep(struct file *f);
void served_start(void);
void served_stop(void); /* while the loop runs */

#endif
