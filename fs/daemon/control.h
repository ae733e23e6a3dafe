/* control.h - the requests and answers of `eddy` and the daemon on CACHE_DIR/control (a Unix stream
 * socket, mode 0600).
 *
 * One request per connection: a line of JSON {"do": WHAT, ...} (flush_paths: and others after it), then answer lines of JSON; the last
 * one has "end": true, and "error": TEXT if the request could not be carried out.  The peer's uid
 * is checked (SO_PEERCRED: the daemon's own, or root).
 *
 *   status              one line, all that `eddy status --json` shows
 *   flush               {"done_bytes","total_bytes","files_left"} about 5 times a second, then
 *                       {"file": {...}} for each file that could not be flushed
 *   flush {"retry"}     true: only the failed files are tried again
 *   flush_paths {"paths", "wait", "more"}
 *                       files, and all below directories, on whichever node their latest bytes are; paths: escaped
 *                       (control_escape), relative to the PFS directory.  "more": true: another line {"paths", "more"}
 *                       follows.  The answer: progress as for flush (files that are on the PFS already do not count);
 *                       {"link": PATH} for each symbolic link that was met, which is not followed; {"file": {"path",
 *                       "error"}} for each path that could not be flushed or is not there; at the end "files", "bytes",
 *                       "failed", how many of each.  "wait": false: it ends when the flush has begun
 *   stage {"paths", "more", "spread", "pin_ms", "wait"}
 *                       brings files, and all below directories, to this node, or (spread) each chunk to its owner; paths as for
 *                       flush_paths.  pin_ms: 0: none; -1: without end.  {"link"} and {"file"} as there; {"round": true}: the
 *                       tool says further paths, or where the links lead, {"paths", "more"}, until it says none; at most 65536
 *                       in one round; {"id"}; {"done_bytes",
 *                       "total_bytes"}; at the end "id", "files", "bytes", "here", "fits", "node", "needed", "room" (of the node
 *                       that has the least left), "failed", "cancelled".  If it does not fit: "error", and "fits": false.
 *                       "wait": true: the end comes when it has ended; who goes away before ends it
 *   stage_check         the same paths: {"has": {"path", "bytes", "nodes": [{"node", "bytes"}]}} for each file; the same end
 *   stage_status {"id" | "path"}, stage_cancel
 *                       "stages": [{"id", "state", "spread", "pinned", "files", "total_bytes", "done_bytes", "failed",
 *                       "failed_files": [{"path", "error"}], when it has ended}]
 *   unstage {"paths", "more" | "all"}
 *                       "files", "bytes", "failed"
 *   stats {"session"}   "nodes": [{"node", "figures": {NAME: NUMBER} | "error"}] (fs/daemon/figures.h), this one first, and
 *                       with "session" all others, which are waited for for a second; "boot_ns"; "operations": {NAME: {"count",
 *                       "sum_ns", "buckets": [[NUMBER, COUNT]]}} of this node (transport/latency.h)
 *   metrics             "lines" of Prometheus's text format
 *   umount              as flush; the tool unmounts after the answer
 *   unflushed           {"file": {...}} for each file that is not on the PFS now
 *   abort               ends the connection to the kernel: processes that wait for the mount get an error
 *   where {"path"}      where a file (relative to the PFS directory; "": none) is: "fid", "size",
 *                       "latest", and the members
 *   forget {"path"}     gives up absent nodes' data of a file (path as for where): {"node","waiting_ms"}
 *                       once a second; "node" at the end
 *   forget {"node"}     the same for all that an absent node (name or id) has, and its locks
 *   check               {"unflushed": {...}} for each file in the dirty lists of the session
 *                       directory, of all nodes
 *
 * status, unflushed and abort touch neither the PFS nor the network: they answer while both hang.
 *
 * Finding the cache directory of a mount: RUN_DIR/eddyfs/ has a file per mount, named by the hash
 * of the mount path, with lines: mountpoint, cache directory, PFS directory, session, session
 * directory, node, address.  RUN_DIR: $XDG_RUNTIME_DIR or /run/user/UID if it exists and is ours, else
 * ${TMPDIR:-/tmp}/eddyfs-run-UID, checked: ours, 0700, no link; and besides, without the two variables.  The
 * file outlives the mount, so that `eddy wait` finds it.  The next mount at that path replaces it.  It is
 * removed when its cache directory is gone.
 */
#ifndef EDDY_FS_DAEMON_CONTROL_H
#define EDDY_FS_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* ---- mount_map.c ---- */

struct mount_entry {
    char *mountpoint, *cache_dir, *pfs_dir, *session, *session_dir, *node;
    char *listen; /* as it was given; NULL or "": the default */
    char *pfs_fid; /* which directory pfs_dir was (fid_text); NULL or "": not known */
    char *ended;   /* "clean": its daemon ended with everything on the PFS and removed cache_dir; else NULL or "" */
    uid_t owner;  /* whose mount it is; not looked at by mount_map_write */
};
/* All paths absolute.  -errno */
int mount_map_write(const struct mount_entry *e);
/* The same in the cache directory itself (CACHE_DIR/mount), for tools that know only that directory. */
int mount_entry_write(int cache_dirfd, const struct mount_entry *e);
/* -ENOENT: none was ever mounted with it. */
int mount_entry_read(int cache_dirfd, struct mount_entry *out);
/* mountpoint: absolute or relative; never looked up through the mount itself, which may be dead or
 * hang.  -ENOENT; -EPERM: there is an entry, but not of a user whose mount it is (or was, for all that can be
 * known).  Root finds every user's mounts. */
int mount_map_find(const char *mountpoint, struct mount_entry *out);
/* The newest entry for each mount point; stops when cb returns something other than 0, and returns
 * that. */
int mount_map_each(int (*cb)(void *arg, const struct mount_entry *e), void *arg);
bool mount_entry_ended(const struct mount_entry *e); /* see ended */
void mount_entry_free(struct mount_entry *e);

/* ---- mount_path.c ---- */

/* The absolute path of what is or was mounted at `path`.  Its directory is resolved; its own name is not
 * looked at, unless it is a link.  malloc'd; NULL with errno. */
char *mount_path(const char *path);
/* The same without a look at anything: links and ".." stay as they are. */
char *mount_path_as_written(const char *path);

/* ---- control_wire.c: what both sides need ---- */

#define CONTROL_NAME     "control"
#define CONTROL_LINE_MAX 16384 /* of a request, with its newline */
#define CONTROL_FILES_MAX 100000 /* so many are named in an answer at most */

/* The address of the socket in the directory that dirfd refers to, whatever the length of its path.
 * Valid as long as dirfd is open. */
socklen_t control_address(int dirfd, struct sockaddr_un *out);
/* A path in printable UTF-8, on one line: backslashes, control characters and bytes that are no
 * UTF-8 become \\, \n, \xHH.  malloc'd. */
char *control_escape(const char *path);
/* The reverse, malloc'd; NULL: it is not what control_escape makes. */
char *control_unescape(const char *text);
/* A text in which paths may be escaped already, so backslashes stay: \xHH in place of what a terminal could
 * take for a command.  malloc'd. */
char *control_printable(const char *text);

#endif
