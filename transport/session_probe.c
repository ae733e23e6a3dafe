/* session_probe.c - has a file the same identity on every node?  The first node makes probe files, and all look at them.
 *
 *     probes/fids eddyfs probes 1
 *                 p0 9a1be0a7734c0d12 00c4f2e91d0a7b35       hi and lo of the fid of probes/p0
 *                 p1 ...
 *                 p2 ...
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/session.h"
#include "transport/session_int.h"
#include "transport/textfile.h"

#define PROBES 3

static void probe_name(int i, char name[16])
{
    snprintf(name, 16, "p%d", i);
}

static int probe_fid(int dirfd, int i, session_fid_fn fid_of, struct fid *out)
{
    char name[16];
    probe_name(i, name);
    int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fid_of(fd, out);
    close(fd);
    return err;
}

static int make_probes(int dirfd)
{
    for (int i = 0; i < PROBES; i++) {
        char name[16];
        probe_name(i, name);
        int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        close(fd);
    }
    return 0;
}

static int record_probes(int dirfd, session_fid_fn fid_of)
{
    char text[256];
    size_t len = (size_t)snprintf(text, sizeof(text), "eddyfs probes 1\n");
    int err = make_probes(dirfd);
    for (int i = 0; i < PROBES && !err; i++) {
        struct fid fid;
        err = probe_fid(dirfd, i, fid_of, &fid);
        if (!err)
            len += (size_t)snprintf(text + len, sizeof(text) - len,
                                    "p%d %016" PRIx64 " %016" PRIx64 "\n", i, fid.hi, fid.lo);
    }
    if (!err)
        err = textfile_create(dirfd, "fids", text, len);
    return err == -EEXIST ? 0 : err;
}

static int read_probes(int dirfd, struct fid fids[PROBES])
{
    char *text;
    size_t len;
    int err = textfile_read(dirfd, "fids", 4096, &text, &len);
    if (err)
        return err;
    struct words w = words_of(text, len);
    words_match(&w, "eddyfs probes 1\n");
    for (int i = 0; i < PROBES; i++) {
        char name[16];
        probe_name(i, name);
        words_match(&w, name);
        words_match(&w, " ");
        fids[i].hi = words_hex(&w);
        words_match(&w, " ");
        fids[i].lo = words_hex(&w);
        words_match(&w, "\n");
    }
    words_end(&w);
    free(text);
    return w.bad ? -EPROTO : 0;
}

/* Opens the files in another order than they were made, each twice.  This detects a file system that numbers
 * files as they are looked up. */
static int compare_probes(const struct session_report *r, int dirfd, session_fid_fn fid_of,
                          const struct fid fids[PROBES])
{
    static const int order[] = {2, 0, 1, 1, 2, 0};
    for (size_t k = 0; k < ARRAY_LEN(order); k++) {
        int i = order[k];
        struct fid fid;
        int err = probe_fid(dirfd, i, fid_of, &fid);
        if (err)
            return session_fail(r, err, "session %s: probes/p%d: %s: choose another name with --session",
                                session_name(), i, strerror(-err));
        if (!fid_eq(fid, fids[i]))
            return session_fail(r, -EXDEV,
                                "session %s: this node sees file probes/p%d as another file than the first "
                                "node did: the PFS does not give a file the same inode number on all "
                                "nodes, or --session-dir is not the same directory everywhere: "
                                "mount the PFS so that inode numbers are stable",
                                session_name(), i);
    }
    for (int i = 0; i < PROBES; i++)
        if (fid_eq(fids[i], fids[(i + 1) % PROBES]))
            return session_fail(r, -EXDEV,
                                "session %s: two files, probes/p%d and p%d, look like one: "
                                "eddyfs needs a PFS with stable, unique inode numbers",
                                session_name(), i, (i + 1) % PROBES);
    return 0;
}

int session_probe(session_fid_fn fid_of, char *err_text, size_t err_len)
{
    struct session_report r = {.text = err_text, .len = err_len};
    struct fid fids[PROBES];
    int fd = openat(session_dirfd(), "probes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && session_dirfd() >= 0 && !session_has_settings(session_dirfd()))
        return -ESTALE;
    if (fd < 0)
        return session_fail(&r, -errno, "session %s: probes: %s", session_name(), strerror(errno));
    int err = read_probes(fd, fids);
    for (int tries = 0; err == -ENOENT && tries < 100; tries++) { /* a client may remember "no such file" for some seconds */
        if (tries)
            poll(NULL, 0, 100);
        err = record_probes(fd, fid_of);
        if (!err)
            err = read_probes(fd, fids);
        else
            break;
    }
    if (err && !session_has_settings(session_dirfd()))
        err = session_fail(&r, -ESTALE, "session %s ended while this node came to it", session_name());
    else if (err)
        err = session_fail(&r, err,
                           "session %s: probe files: %s: "
                           "choose another name with --session, or another directory with --session-dir",
                           session_name(), strerror(-err));
    else
        err = compare_probes(&r, fd, fid_of, fids);
    close(fd);
    return err;
}
