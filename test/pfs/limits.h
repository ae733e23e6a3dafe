/*
 * How slow the file system is made to be.
 *
 * The bandwidth is that of the file system below, not of one mount: mounts that are
 * given the same shared file take turns. Every function may be called from any thread.
 */
#ifndef FAULTFS_LIMITS_H
#define FAULTFS_LIMITS_H

#include "counts.h"

#include <stdint.h>

/* The file that mounts of one directory share. Returns 0 or -errno. */
int limits_share(const char *path);

/* Delays a request of that kind by its delay. */
void limits_delay(enum op op);

/* From now on; 0: no limit. */
void limits_set_bandwidth(uint64_t bytes_per_second); /* read and written */
void limits_set_delay_us(uint64_t us);                /* added to every request */
void limits_set_delay_meta_us(uint64_t us);           /* to requests that move no file data */

/* Waits until `bytes` more may have gone through the file system. */
void limits_take(uint64_t bytes);

#endif
