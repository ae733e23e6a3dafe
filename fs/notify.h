/* notify.h - telling the kernel what it may not believe any more: no locks held (notify.c). */
#ifndef EDDY_FS_NOTIFY_H
#define EDDY_FS_NOTIFY_H

#include <stdint.h>

void notify_start(void);
void notify_stop(void);
/* The pages of [off, off + len), len 0: to the end, and the attributes, are dropped when it returns.  It waits for pages
 * that requests hold (fs/page_cache.c).  -ENOENT: the kernel does not know this node id (yet). */
int notify_pages_now(uint64_t nodeid, int64_t off, int64_t len);
/* The file has this byte at off, and so off + 1 bytes at least. */
void notify_byte_now(uint64_t nodeid, uint64_t off, char byte);
int notify_attr_now(uint64_t nodeid); /* attributes only: safe inside OPEN.  As above. */
/* Not waited for: one thread does it. */
void notify_entry(uint64_t parent, const char *name);

#endif
