/* control_int.h - private to fs/daemon/control*.c: a connection of `eddy`, and the function for each request.
 */
#ifndef EDDY_FS_DAEMON_CONTROL_INT_H
#define EDDY_FS_DAEMON_CONTROL_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fs/daemon/control.h"
#include "fs/daemon/control_json.h"
#include "transport/view.h"

struct connection;

/* Sends one line and drops the caller's reference of it.  0; -EPIPE and the like: the tool has
 * ended, or does not read.  Locks: none held. */
int control_say(struct connection *c, json_t *line);
/* Has the tool ended, or does the daemon end?  Then stop working for it. */
bool control_unwanted(struct connection *c);
/* The next line of a request that has more than one, parsed; the caller drops it.  NULL: none came in time, or it is
 * none. */
json_t *control_next(struct connection *c);

/* Each answers a request and returns its last line (without "end"); runs in the connection's own
 * thread. */
json_t *control_status(struct connection *c, const json_t *request);
json_t *control_flush(struct connection *c, const json_t *request);
json_t *control_umount(struct connection *c, const json_t *request);
json_t *control_unflushed(struct connection *c, const json_t *request);
json_t *control_abort(struct connection *c, const json_t *request);
json_t *control_where(struct connection *c, const json_t *request);
json_t *control_check(struct connection *c, const json_t *request);
json_t *control_forget(struct connection *c, const json_t *request);
json_t *control_flush_paths(struct connection *c, const json_t *request);
json_t *control_stage(struct connection *c, const json_t *request);
json_t *control_stage_check(struct connection *c, const json_t *request);
json_t *control_stages(struct connection *c, const json_t *request); /* stage_status, stage_cancel */
json_t *control_unstage(struct connection *c, const json_t *request);
json_t *control_stats(struct connection *c, const json_t *request);
json_t *control_metrics(struct connection *c, const json_t *request);

/* The file by its path below the PFS directory.  Blocks on the PFS.  -errno */
int control_find_file(const char *path, struct statx *stx);
/* The same of whatever is there; *out is referenced. */
struct pfs_node;
int control_find(const char *path, struct statx *stx, struct pfs_node **out);

/* The files that are not on the PFS as JSON objects {path, bytes, since, tries, error, suspect}, at
 * most CONTROL_FILES_MAX. */
json_t *control_files(bool only_failed, uint64_t *total);
/* [{id, name, address, weight, state, self}] */
json_t *control_members(const struct view *v);

#endif
