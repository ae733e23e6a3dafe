/* metrics.h - the figures and latencies as Prometheus's text format (version 0.0.4). */
#ifndef EDDY_FS_DAEMON_METRICS_H
#define EDDY_FS_DAEMON_METRICS_H

/* malloc'd.  Without any path: node, session and version only.  From memory. */
char *metrics_text(void);

/* For --metrics: "PORT" (loopback), "ADDR:PORT" (numbers, [ADDR]:PORT of IPv6), "unix:PATH".  0, or -EINVAL. */
int metrics_check_address(const char *text);

#endif
