/* page_walk.h - the kernel drops pages of a file, or takes a larger size of it, and no caller waits for a request of
 * this mount.
 *
 * The kernel drops pages one after the other.  It waits for a page that a request of its own holds.  A page that was
 * stored into through a mapping it writes back first, and waits for that WRITE.  Such a request may wait, at this node
 * or another one, for the very change that drops the page.
 *
 * So a thread of a pool makes these calls (walks), for each inode one at a time and in order.  A walk leaves out the
 * pages of requests that the daemon has.  A request that comes later, for pages of the walk under way, ends the wait
 * for that walk: its thread is left to itself, and walks of the pages before and behind those of the request take its
 * place.
 *
 *     walk_pages --> [ walk of all pages ]
 *     request    --> [ walk ] pages of the request [ walk ]
 *
 * While a truncation is under way the kernel sends no WRITE of a page that was stored into.  So until it is answered
 * nobody waits for walks, and no size is told.  Its end drops all pages.
 */
#ifndef EDDY_FS_PAGE_WALK_H
#define EDDY_FS_PAGE_WALK_H

#include <stdbool.h>
#include <stdint.h>

struct inode;
struct page_use;

struct span {
    uint64_t off, end; /* bytes, whole pages; end UINT64_MAX: to the end of the file */
};

void walk_start(void);
/* After the unmount: a walk that waits for the kernel ends then. */
void walk_stop(void);

/* Lets the kernel drop the attributes and the pages of s, but for pages of requests under way: these requests are told
 * so (page_use.left; .stale for a WRITE).  Waits for the kernel; no lock held; not a FUSE worker. */
void walk_pages(struct inode *i, struct span s);
/* Raises the kernel's size to `size` > 0, by the last byte, and then told_size.  If a request under way holds that
 * byte's page, or may bring one with an older end, its end does so.  False: the kernel does not have the size yet.  As walk_pages. */
bool walk_byte(struct inode *i, uint64_t size, char last);

/* Its answer may have an end of the file from before this size, and its page goes after the answer.  Inode's lock held. */
bool walk_brings_end(const struct page_use *u, uint64_t size);

/* The request u comes (page_use_begin).  Inode's lock held.  True: walk_go is to be called, without the lock. */
bool walk_meet(struct inode *i, struct page_use *u);
/* The request has been answered: its pages are dropped.  If it has a size to tell, the kernel is told that, and the
 * pages are dropped again.  Then `over` is called, with the inode's lock.  Inode's lock held.  True: as walk_meet. */
bool walk_after(struct inode *i, struct page_use *u, void (*over)(struct page_use *u));
void walk_go(struct inode *i);

#endif
