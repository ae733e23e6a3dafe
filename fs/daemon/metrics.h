/* metrics.h - the figures and latencies as Prometheus's text format (version 0.0.4). */
#ifndef EDDY_FS_DAEMON_METRICS_H
#define EDDY_FS_DAEMON_METRICS_H

/* malloc'd.  Without any path: node, session and version only.  From memory. */
char *metrics_text(void);

#endif
