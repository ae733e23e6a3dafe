/* metrics_address.h - where --metrics serves: "PORT" (of loopback), "ADDR:PORT" (numbers; [ADDR]:PORT of IPv6), "unix:PATH" (absolute). */
#ifndef EDDY_FS_DAEMON_METRICS_ADDRESS_H
#define EDDY_FS_DAEMON_METRICS_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

union metrics_address {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

/* 0, or -EINVAL: it is none of these. */
int metrics_address(const char *text, union metrics_address *out, socklen_t *len);

#endif
