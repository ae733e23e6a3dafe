/* history.h - what a report shows over time: some figures, once a second, of the whole time of a mount in bounded memory. */
#ifndef EDDY_FS_DAEMON_HISTORY_H
#define EDDY_FS_DAEMON_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

/* Looks once a second from now on, until it is stopped.  Without a thread for it, which is logged, there are only the first and
 * the last row. */
void history_start(void);
void history_stop(void);
bool history_began(void); /* was it ever started? */
/* {"interval_s", "began": seconds since 1970, "series": {NAME: [NUMBER at the end of each interval]}}; the last row is of now. */
json_t *history_json(void);

#endif
