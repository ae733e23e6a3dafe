/* hello_addr.c - addresses as text: of --listen, of the other nodes, and which one is ours by
 * default. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/hello.h"
#include "transport/loop_uv.h"
#include "transport/view.h"

static int parse_port(const char *s, uint16_t *port)
{
    char *end;
    if (*s < '0' || *s > '9')
        return -EINVAL;
    unsigned long v = strtoul(s, &end, 10);
    if (*end || v > 65535)
        return -EINVAL;
    *port = (uint16_t)v;
    return 0;
}

int hello_parse_addr(const char *text, struct sockaddr_storage *out)
{
    char host[NODE_ADDR_MAX];
    uint16_t port = 0;
    const char *end = text + strlen(text), *colon = strrchr(text, ':');
    const char *start = text;
    if (*text == '[') {
        start++;
        end = strchr(text, ']');
        if (!end || (end[1] && (end[1] != ':' || parse_port(end + 2, &port))))
            return -EINVAL;
    } else if (colon && strchr(text, ':') ==
                            colon) { /* one colon: IPv4 and a port; more: IPv6 without one */
        end = colon;
        if (parse_port(colon + 1, &port))
            return -EINVAL;
    }
    if ((size_t)(end - start) >= sizeof(host))
        return -EINVAL;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = 0;
    memset(out, 0, sizeof(*out));
    if (!uv_ip4_addr(host, port, (struct sockaddr_in *)out))
        return *text == '[' ? -EINVAL : 0;
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)out) ? -EINVAL : 0;
}

static bool usable(const struct ifaddrs *i, int family)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || i->ifa_flags & IFF_LOOPBACK ||
        !(i->ifa_flags & IFF_UP))
        return false;
    return family == AF_INET ||
           !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr);
}

/* IPv4 before IPv6, in the system's order of interfaces. */
static void first_address(struct sockaddr_storage *out)
{
    struct ifaddrs *all = NULL;
    uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in *)out);
    if (getifaddrs(&all))
        return;
    for (int pass = 0; pass < 2; pass++) {
        int family = pass ? AF_INET6 : AF_INET;
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (!usable(i, family))
                continue;
            memcpy(out, i->ifa_addr,
                   pass ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
            freeifaddrs(all);
            return;
        }
    }
    freeifaddrs(all);
}

int hello_listen_addr(const char *listen, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    if (listen)
        return hello_parse_addr(listen, out);
    first_address(out);
    return 0;
}

bool hello_addr_is_wildcard(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

void hello_print_addr(const struct sockaddr_storage *a, bool with_port, char *out, size_t len)
{
    char host[INET6_ADDRSTRLEN] = "?";
    uv_ip_name((const struct sockaddr *)a, host, sizeof(host));
    unsigned port = ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
                                                  : ((const struct sockaddr_in6 *)a)->sin6_port);
    if (!with_port)
        snprintf(out, len, "%s", host);
    else
        snprintf(out, len, a->ss_family == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
}
