/* figures_ask.h - the figures of all nodes of the session. */
#ifndef EDDY_FS_DAEMON_FIGURES_ASK_H
#define EDDY_FS_DAEMON_FIGURES_ASK_H

#include "transport/message.h"

/* Answers other nodes from now on; before peer_start. */
void figures_serve(void);
/* The parts that know the figures run, or are about to stop: meanwhile the answer is "ask again". */
void figures_ready(bool ready);

/* Asks the n nodes of these ids at once.  replies[i]: the caller's to msg_free, or NULL with errs[i] (-errno; -ENOTSUP: it is
 * of an older eddyfs).  Waits a second for a silent node.  Not in the network thread. */
void figures_ask(const uint64_t *ids, size_t n, struct msg **replies, int *errs);

#endif
