/* metrics_address.c - see metrics_address.h. */
#include "fs/daemon/metrics_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_port(const char *text, in_port_t *out)
{
    char *end;
    errno = 0;
    unsigned long port = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9' || port > 65535)
        return -EINVAL;
    *out = htons((uint16_t)port);
    return 0;
}

static int parse_unix(const char *path, union metrics_address *a, socklen_t *len)
{
    if (*path != '/' || strlen(path) >= sizeof(a->un.sun_path))
        return -EINVAL;
    a->un.sun_family = AF_UNIX;
    strcpy(a->un.sun_path, path);
    *len = sizeof(a->un);
    return 0;
}

static int parse_inet(const char *host, size_t n, const char *port, union metrics_address *a, socklen_t *len)
{
    char text[INET6_ADDRSTRLEN];
    bool bracket = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (n - 2 * bracket >= sizeof(text))
        return -EINVAL;
    snprintf(text, sizeof(text), "%.*s", (int)(n - 2 * bracket), host + bracket);
    if (bracket) {
        a->v6.sin6_family = AF_INET6;
        *len = sizeof(a->v6);
        return inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1 ? parse_port(port, &a->v6.sin6_port) : -EINVAL;
    }
    a->v4.sin_family = AF_INET;
    *len = sizeof(a->v4);
    return inet_pton(AF_INET, text, &a->v4.sin_addr) == 1 ? parse_port(port, &a->v4.sin_port) : -EINVAL;
}

int metrics_address(const char *text, union metrics_address *a, socklen_t *len)
{
    static const char loopback[] = "127.0.0.1";
    memset(a, 0, sizeof(*a));
    if (!strncmp(text, "unix:", 5))
        return parse_unix(text + 5, a, len);
    const char *colon = strrchr(text, ':');
    return colon ? parse_inet(text, (size_t)(colon - text), colon + 1, a, len)
                 : parse_inet(loopback, strlen(loopback), text, a, len);
}
