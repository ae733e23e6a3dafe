/* times.h - how long nodes wait for each other, in ms (docs/protocol.md, "Times").
 *
 * Set before the session is opened and not changed afterwards: any thread reads them.  All nodes of
 * a session have the same ones: the session's settings say which (session.c).
 */
#ifndef EDDY_TRANSPORT_TIMES_H
#define EDDY_TRANSPORT_TIMES_H

#include <stddef.h>
#include <stdint.h>

/* What a site may tune. */
struct times {
    uint32_t suspect; /* of silence: then a node is tried twice, and then it is suspected */
    uint32_t dead;    /* of silence: then a view is made without the node */
    uint32_t lease;   /* L: how long a node acts after it saw that its view is the newest */
    uint32_t open;    /* how long an open or a lock waits for a decision */
};
#define TIMES_DEFAULT ((struct times){3000, 10000, 4000, 30000})
extern struct times times;

#define T_PING    1000u        /* also the keeper's read and touch */
#define T_TRIES   (2 * T_PING) /* the two tries before a silent node is suspected */
#define T_SUSPECT (times.suspect)
#define T_DEAD    (times.dead)
#define T_LEASE   (times.lease)
#define T_OPEN    (times.open)
#define T_PIECE   30000u /* the longest write of one piece of a flush that somebody waits for */
/* W > L (1 + 2 rho), rho <= 10^-3: with room for clocks that are much worse */
#define T_WAIT (T_LEASE + T_LEASE / 4)
/* wait of the smaller side of a partition: > tries + the time in which the larger one makes a view on the PFS
 * */
#define T_MINOR (T_SUSPECT + T_TRIES + 5000)
/* age of a view's file that no node touches any more: > suspect + tries + 2 touches, > W */
#define T_STALE (T_SUSPECT + T_WAIT + 7000)

/* 0; -EINVAL with what is wrong, and what to do, in err: the relations that must hold. */
int times_check(const struct times *t, char *err, size_t errlen);
/* "--suspect-after 3 --dead-after 10 ...", as a user gives them; returns buf. */
char *times_print(const struct times *t, char *buf, size_t len);

#endif
