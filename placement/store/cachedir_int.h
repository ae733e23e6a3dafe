/* cachedir_int.h - between cachedir.c and cachedir_place.c.  Each: 0 or -errno, with what is wrong and what to do in err. */
#ifndef EDDY_PLACEMENT_STORE_CACHEDIR_INT_H
#define EDDY_PLACEMENT_STORE_CACHEDIR_INT_H

#include "placement/store/cachedir.h"

/* Returns code. */
int cachedir_fail(int code, char *err, size_t errlen, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- cachedir_place.c ---- */

/* The error says that the disk, or the quota on it, is full. */
bool cachedir_is_full(int err);
/* Opens d->path, not by a link; make: it and the directories above it are made, if they are missing. */
int cachedir_open_place(struct cachedir *d, bool make, char *err, size_t errlen);
/* Is it this user's, on a disk?  Changes nothing. */
int cachedir_check_place(struct cachedir *d, bool is_default, char *err, size_t errlen);
/* After it was seen that it is a cache, or empty. */
int cachedir_close_to_others(struct cachedir *d, char *err, size_t errlen);

#endif
