/* uring_none.c - in place of uring.c and uring_entry.c where eddyfs is built without liburing. */
#include "fs/uring.h"

#include "fs/settings.h"
#include "transport/base.h"

bool uring_is_built(void)
{
    return false;
}

void uring_make(void)
{
    if (settings.uring)
        log_warn("--uring: %s: requests come by /dev/fuse", uring_why_not());
}

void uring_look_at_init(const void *request, size_t n)
{
    (void)request;
    (void)n;
}

void uring_answer_init(struct fuse_init_out *out)
{
    (void)out;
}

int uring_begin(struct fuse_session *session, void (*serve)(struct fuse_buf *request, char *bytes))
{
    (void)session;
    (void)serve;
    return 0;
}

bool uring_answer(const struct iovec *iov, int n, ssize_t *sent)
{
    (void)iov;
    (void)n;
    (void)sent;
    return false;
}

void uring_settle(void)
{
}

void uring_end(void)
{
}

void uring_free(void)
{
}

const char *uring_why_not(void)
{
    return "this eddyfs was built without liburing";
}
