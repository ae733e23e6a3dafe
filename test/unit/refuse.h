/* refuse.h - makes a system call fail in this process from now on, to stand for a file system or a
 * kernel without it. */
#ifndef EDDY_TEST_REFUSE_H
#define EDDY_TEST_REFUSE_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls nr whose argument `arg` (low 32 bits) is not 0 fail with err; arg < 0: all calls.  false:
 * no seccomp here. */
static bool refuse(int nr, int arg, int err)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 arg < 0 ? (unsigned)offsetof(struct seccomp_data, nr)
                         : (unsigned)(offsetof(struct seccomp_data, args) + 8u * (unsigned)arg)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {sizeof(f) / sizeof(f[0]), f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p) == 0;
}

#endif
