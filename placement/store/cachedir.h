/* cachedir.h - the cache directory itself: opened safely, locked, of eddyfs's format, with the node's
 * identity in it.
 *
 *   lock      flock'ed while the daemon runs; the pid is in it
 *   format    "eddyfs-cache 2" and the chunk size
 *   node      id and incarnation, and which file the lock was then
 *   slabs/    records (slab.h)
 *   data/XX/  data files
 *   ballast   room set aside (ballast.h)
 *   suspect/  what a power loss left in doubt
 *
 * All access is by descriptors below it.  Only store_open and store_close call this, but other files read
 * its fields.
 */
#ifndef EDDY_PLACEMENT_STORE_CACHEDIR_H
#define EDDY_PLACEMENT_STORE_CACHEDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CACHE_FORMAT 3u

struct cachedir {
    char *path; /* as given, absolute if the caller made it so */
    int fd, lock_fd, slabs_fd, data_fd;
    dev_t dev;
    bool memory;  /* on tmpfs or ramfs */
    bool is_default, made, is_new; /* the place; made by this start: the directory, what is in it */
    bool stacked; /* on a file system that is stacked on another one */
    uint64_t node_id, incarnation;
    uint64_t former;     /* the incarnation before, which had this very lock; 0: not known */
    uint32_t chunk_size; /* in the format file; 0: the directory was empty */
    char boot_id[40];
};

/* Opens or makes it: directory, lock, format.  chunk_size is written to a new one.  err: what is
 * wrong and what to do. */
int cachedir_open(struct cachedir *d, const char *path, bool is_default, uint32_t chunk_size,
                  char *err, size_t errlen);
/* The same for a directory that exists, for reading: takes a shared lock, makes and changes nothing.
 * -EWOULDBLOCK: it is in use. */
int cachedir_open_readonly(struct cachedir *d, const char *path);
/* Another chunk size: removes slabs and data files and writes the format anew. */
int cachedir_empty(struct cachedir *d, uint32_t chunk_size);
/* Node id (made at the first start) and the next incarnation, synced; to be called with the lock. */
int cachedir_begin_incarnation(struct cachedir *d, char *err, size_t errlen);
/* Removes what is in it, and it if it was made by this start or is the default's; the lock last.  Closes it. */
void cachedir_remove(struct cachedir *d);
void cachedir_close(struct cachedir *d);
/* What to do about an error of the cache's disk, to be put behind strerror(-err); "" if nothing is known. */
const char *cachedir_hint(int err);
void cachedir_boot_id(char out[40]); /* "unknown" where there is none */

#endif
