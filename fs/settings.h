/* settings.h - what the mount was told: set by main before the mount, never changed after. */
#ifndef EDDY_FS_SETTINGS_H
#define EDDY_FS_SETTINGS_H

#include "transport/base.h"

#include <sys/types.h>

struct settings {
    const char *pfs_dir, *mountpoint, *cache_dir, *session, *session_dir, *node;
    const char *listen;
    const char *require_mount; /* a mount point; NULL: --require-mount was not given */
    const char *log_file;
    const char *metrics; /* ADDR:PORT or unix:PATH; NULL: none are served */
    const char *report;  /* the directory of reports; NULL: none is written */
    unsigned slow_ms;    /* operations that take as long are logged; 0: none are */
    bool foreground, read_only, allow_other;
    bool suid, dev;     /* -o: setuid programs and devices in the mount are what they say */
    bool redirect;      /* chunks of an owner that left are read from the PFS each time */
    bool supervise;     /* a daemon that dies by a signal is started again */
    bool as_user;       /* --user: root mounts, and becomes this user */
    uid_t user;         /* the daemon's, once it runs */
    bool several_users; /* root with allow_other: fsuid, fsgid and groups per request */
    double attr_timeout, negative_timeout; /* seconds */
    bool fsync_pfs;                        /* fsync waits until the bytes are on the PFS */
    uint64_t cache_size;
    unsigned cache_percent;
    bool cache_dir_is_default;
    uint32_t chunk_size;
    uint64_t memory;
    uint64_t rdma_memory;        /* bytes that other nodes may read one-sided; 0: none */
    const char *rdma_transports; /* UCX's names; NULL: the host's */
    unsigned singlets; /* percent of the cache that is kept for other nodes at most */
    unsigned wait_nodes, wait_timeout;
    const char **immutable; /* relative to the PFS directory, "" is that itself */
    unsigned nimmutable;
    char *hidden;                /* name in the root that is never shown: ".eddyfs-UID" */
    bool passthrough;            /* wanted; from backing_try on: possible */
    const char *passthrough_why; /* why not */
    bool uring;                  /* wanted */
};
extern struct settings settings;

static inline uint64_t attr_timeout_ms(void)
{
    return (uint64_t)(settings.attr_timeout * 1000);
}
/* Seconds for which what was looked at then (boot_ms) may still be told. */
static inline double attr_left(uint64_t looked_ms)
{
    return settings.attr_timeout - (double)(boot_ms() - looked_ms) / 1000;
}

#endif
