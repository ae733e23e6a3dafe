/* eddy_talk.h - asking a daemon on its control socket (eddy_talk.c). */
#ifndef EDDY_TOOLS_EDDY_TALK_H
#define EDDY_TOOLS_EDDY_TALK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/daemon/control.h"

struct talk;
/* Asks the daemon of this mount; args are dropped (may be NULL).  -ECONNREFUSED: no daemon answers
 * there; -EPERM: the cache directory, or the process that listens there, is not the mount's owner's. */
int talk_begin(const struct mount_entry *e, const char *what, json_t *args, struct talk **out);
/* Another line of a request that has several; args are dropped. */
int talk_more(struct talk *t, json_t *args);
/* The process that listens, as the kernel says. */
pid_t talk_pid(const struct talk *t);
/* The next line, all of its texts printable; *last: no other comes.  0; -ETIMEDOUT; -ECONNRESET: the daemon
 * has gone; -EPROTO. /
 */
int talk_next(struct talk *t, uint64_t deadline, json_t **line, bool *last);
void talk_end(struct talk *t);
/* A request whose answer is one line.  0; -EREMOTEIO: *answer's "error" says why the daemon refused;
 * -errno. */
int talk_once(const struct mount_entry *e, const char *what, json_t *args, uint64_t timeout_ms,
              json_t **answer);
/* The text of the answer's "error", else that of err. */
const char *talk_error(const json_t *answer, int err);

/* A copy, in which all texts are printable (control_printable): what others wrote may be shown on a terminal. */
json_t *json_printable(json_t *o);
uint64_t json_u64(const json_t *o, const char *key);     /* 0 if there is none */
const char *json_text(const json_t *o, const char *key); /* "" */

#endif
