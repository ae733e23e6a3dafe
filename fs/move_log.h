/* move_log.h - what this node writes into the session's log of moves (move_log.c). */
#ifndef EDDY_FS_MOVE_LOG_H
#define EDDY_FS_MOVE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* *what is about to get the path `to` instead of `from`; exchange: and what is there gets `from`.  to "": the
 * name goes, and the file has others.  Returns the entry's number; 0: there is none, since no other node
 * needs it, or since it could not be written (logged).  Blocking. */
uint64_t move_log_write(const struct statx *what, const char *from, const char *to, bool exchange);
/* It was not done. */
void move_log_drop(uint64_t number);

#endif
