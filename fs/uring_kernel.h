/* uring_kernel.h - what the kernel's FUSE says and hears over io_uring (Linux 6.14).
 *
 * The names and layouts are the kernel's (FUSE 7.42).  They are written here because the headers of most build machines
 * are older.
 */
#ifndef EDDY_FS_URING_KERNEL_H
#define EDDY_FS_URING_KERNEL_H

#include <stdint.h>

#define URING_INIT_FLAG2 (1u << 9) /* FUSE_OVER_IO_URING, in flags2 of INIT */

/* Of one request, in memory that eddyfs has given for it.  Its first argument is in op_in, the others and the bytes are in a
 * second memory, the payload.  Of an answer the header is in in_out, and all else in the payload. */
struct uring_head {
    char in_out[128]; /* struct fuse_in_header, or fuse_out_header */
    char op_in[128];
    struct {
        uint64_t flags;
        uint64_t commit_id; /* to be said with the answer */
        uint32_t payload_size;
        uint32_t padding;
        uint64_t reserved;
    } entry;
};

enum uring_command {
    URING_REGISTER = 1,       /* here is memory for a request: tell when one is in it */
    URING_COMMIT_AND_FETCH = 2, /* the answer is in it; and tell when the next request is */
};

/* In the submission entry's second half. */
struct uring_command_args {
    uint64_t flags;
    uint64_t commit_id;
    uint16_t queue;
    uint8_t padding[6];
};

#endif
