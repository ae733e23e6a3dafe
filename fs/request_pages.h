/* request_pages.h - how many pages one request of the kernel may have (request_pages.c). */
#ifndef EDDY_FS_REQUEST_PAGES_H
#define EDDY_FS_REQUEST_PAGES_H

#include <sys/types.h>
#include <sys/uio.h>

/* Raises the kernel's limit where this process may.  As root, if it ever is, before the mount. */
void request_pages_raise(void);
/* writev of libfuse's answer to INIT, with the number of pages that is wanted.  As writev(2). */
ssize_t request_pages_answer(int fd, const struct iovec *iov, int n);

#endif
