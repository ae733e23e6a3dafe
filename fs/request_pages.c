/* request_pages.c - how many pages one request of the kernel may have.
 *
 * FUSE_IO_MAX bytes in memory that does not begin at a page's beginning lie in one page more than in memory
 * that does.  The kernel makes two requests of a write that lies in too many pages.  Of an append both are
 * appended, and another node's append may come in between.  So the kernel is asked for that one page more.
 * libfuse derives the number from max_write and has no way to say it, so it is put into libfuse's answer, as is io_uring (fs/uring.h).
 *
 * The kernel allows 256 pages, if fs.fuse.max_pages_limit (Linux 6.13) does not say more.  It looks at this
 * when the mount is made.
 */
#include "fs/request_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/ops.h"
#include "fs/uring.h"
#include "transport/base.h"

#define LIMIT "/proc/sys/fs/fuse/max_pages_limit"
#define PAGES (FUSE_IO_MAX / 4096 + 1)

/* Only raises the value: a higher one that an administrator has set stays. */
static int raise_limit(void)
{
    char text[32] = "";
    int fd = open(LIMIT, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = read(fd, text, sizeof(text) - 1) < 0 ? -errno : 0;
    if (!err && strtoul(text, NULL, 10) < PAGES) {
        int n = snprintf(text, sizeof(text), "%u", PAGES);
        if (pwrite(fd, text, (size_t)n, 0) != n)
            err = -errno;
    }
    close(fd);
    return err;
}

void request_pages_raise(void)
{
    int err = raise_limit();
    if (err)
        log_debug("%s stays as it is: %s", LIMIT, strerror(-err));
}

ssize_t request_pages_answer(int fd, const struct iovec *iov, int n)
{
    struct fuse_init_out out;
    if (n != 2 || iov[1].iov_len > sizeof(out) ||
        iov[1].iov_len < offsetof(struct fuse_init_out, max_pages) + sizeof(out.max_pages))
        return writev(fd, iov, n);
    memcpy(&out, iov[1].iov_base, iov[1].iov_len);
    if (out.flags & FUSE_MAX_PAGES)
        out.max_pages = PAGES;
    uring_answer_init(&out);
    struct iovec with[2] = {iov[0], {.iov_base = &out, .iov_len = iov[1].iov_len}};
    return writev(fd, with, 2);
}
