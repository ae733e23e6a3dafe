/* page_cache.h - the kernel's pages of a file: the requests that hold or bring some, and dropping them.
 *
 * When bytes of a file have changed past the kernel (at another node, or by a descriptor that goes past its pages),
 * the change is acknowledged when no page has the older bytes any more:
 *
 *     change made --> page_cache_drop: marks the requests under way, waits for answers that are being given,
 *                     and lets the kernel drop the other pages --> acknowledged
 *
 * The pages of READs and WRITEs under way are left out (fs/page_walk.h says why):
 *   - a READ that was marked looks for its bytes again before it is answered, also one that goes past the pages;
 *   - a WRITE that was marked drops its pages when it is answered (the kernel has put the application's bytes among
 *     older ones).  It may wait for the very change that drops them; until it is answered, a reader of this node
 *     may get such a page as it was before both.
 * So a drop waits for no request, no node and no disk.
 *
 * Requests that never wait (a hit in the store) are not marked: a drop waits until they are answered.
 */
#ifndef EDDY_FS_PAGE_CACHE_H
#define EDDY_FS_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inode;

/* ---- requests that never wait; a FUSE worker, around the look at the store and the answer (uring_settle) ---- */
void page_quick_begin(void);
void page_quick_end(void);

/* ---- requests that may wait ---- */
enum page_use_kind {
    PAGE_READ,      /* the kernel has made its pages for it */
    PAGE_READ_PAST, /* it goes past the kernel's pages: no drop leaves any out for it, and it leaves none */
    PAGE_WRITE,
    PAGE_TRUNCATE, /* of all pages */
};
struct page_use {
    struct page_use *next, **prev; /* the inode's list; all under its lock */
    uint64_t off, end;
    enum page_use_kind kind;
    bool left;      /* a drop has left pages out because of it */
    bool stale;     /* its pages, or the bytes that it has, are older than a change */
    bool passing;   /* it leaves no page: nothing would tell of a change */
    bool answering; /* from page_use_answer on */
    bool ending;    /* it has been answered */
    uint64_t brings; /* by a READ that is to leave its pages: as page_cache_ends, before page_use_answer; UINT64_MAX: none */
    bool last_try;  /* it looks for its bytes for the last time: they may be older than a change when it is answered */
    bool awaited;   /* a drop waits for its end */
    uint64_t size;  /* > 0: the kernel is told this size then, by the last byte */
    char last;
};
/* When the request comes, before bytes are looked for.  len > 0.  Does not wait. */
void page_use_begin(struct inode *i, struct page_use *u, uint64_t off, size_t len, enum page_use_kind kind);
/* Just before the answer.  False, for a READ: its bytes may be older than a change that was made since page_use_begin
 * or the last call; it looks for them again, and then calls this again; not if no tries are left.  passing:
 * page_use_end drops the pages that the answer leaves, as no node would tell this one of changes. */
bool page_use_answer(struct inode *i, struct page_use *u, unsigned tries, bool passing);
/* After the answer, which the kernel has (uring_settle), or without one.  Does not wait: another thread lets the kernel drop pages, or tells it a size.
 * *u is not used any more. */
void page_use_end(struct inode *i, struct page_use *u);

/* ---- dropping ---- */
/* One under way, in the inode's list; under its lock.  end: the least end of its pages, as page_cache_ends was told; UINT64_MAX: none
 * has one, or others have a lesser one. */
struct page_drop {
    struct page_drop *next;
    uint64_t end;
};
/* Drops the pages with bytes of [off, off + len), len 0: to the end, and the kernel's attributes.  Waits for the kernel
 * (see above); no lock held; not a FUSE worker. */
void page_cache_drop(struct inode *i, uint64_t off, uint64_t len);
/* The kernel's attributes alone. */
void page_cache_drop_attr(struct inode *i);

/* ---- a larger size ---- */
/* The kernel is about to get pages of which the last one has this end of the file, and has zeros behind it; UINT64_MAX: none
 * has.  Before the answer, between page_quick_begin and _end.  Any thread. */
void page_cache_ends(struct inode *i, uint64_t end);
/* Raises the size that the kernel believes: the file has `size` bytes, and `last` is the last one (size > 0).  Pages with an
 * older end are dropped before: their zeros would be read as bytes of the file.  A change is seen by who looks before this node
 * is told of it, and so before its pages go.  The kernel drops an answer with attributes if it was told something while
 * the answer was under way, and then goes on with the size that it had.
 * Waits for READs that look for their bytes for the last time. */
void page_cache_grow(struct inode *i, uint64_t size, char last);
/* Raises it for who may not wait for a request: if one under way holds the last byte's page, or may bring a page with an older
 * end, the size is raised when that has been answered.  The last byte's page is dropped: no page is left of a file of
 * which this node is told the size alone. */
void page_cache_grow_beside(struct inode *i, uint64_t size, char last);

#endif
