/* peer_env.c - UCX's settings.  UCX reads them when the program is loaded, so they must be in the
 * environment before exec.
 *
 * Each setting has a reason that was measured or seen (docs/transport.md).  What the user has set stays.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "transport/hello.h"
#include "transport/peer_int.h"
#include "transport/ucx_peer.h"

#define GUARD "EDDY_UCX_ENV" /* set: this program was exec'ed with the settings below */

static const struct {
    const char *name, *value;
} settings[] = {
    {"UCX_ERROR_SIGNALS", ""},         /* else it takes SEGV, BUS, FPE */
    {"UCX_DEBUG_SIGNO", "0"},          /* else it takes SIGHUP */
    {"UCX_VFS_ENABLE", "n"},           /* else a thread and a socket of its own */
    {"UCX_ASYNC_MAX_EVENTS", "16384"}, /* else 1.13 dies at endpoint 1021 */
    {"UCX_WARN_UNUSED_ENV_VARS", "n"},
    {"UCX_LOG_FILE", "stderr"}, /* else its lines are in the standard output that a program reads */
    {"UCX_TCP_CONN_NB", "y"},   /* else connect() to a silent host blocks the network thread */
    /* Else a node that was given up, and goes on, still writes to the addresses that it got before.  A
     * forced close leaves the socket half open, and UCX's TCP does not check whether a receive waits
     * for these bytes. */
    {"UCX_TCP_PUT_ENABLE", "n"},
    /* One event at a time.  UCX takes up to 16 events from the kernel, and then uses each one's endpoint,
     * even if an event before it has just closed that endpoint. */
    {"UCX_TCP_MAX_POLL", "1"},
    /* This turns off UCX's question whether an endpoint still exists.  If it does not, the asked side makes
     * another one in the middle of its receive.  If that is on the question's own connection, the rest of
     * the receive is freed, and the process dies.  The members' heartbeat notices silent nodes. */
    {"UCX_KEEPALIVE_INTERVAL", "inf"},
    /* Instead of 8 KiB and 64 KiB: this makes up for the copies that the settings around it cost.  All
     * nodes must have the same sizes (the hello compares them): UCX writes a frame that is larger than the
     * receiver's segment past the segment's end. */
    {"UCX_TCP_TX_SEG_SIZE", "256K"},
    {"UCX_TCP_RX_SEG_SIZE", "256K"},
};

/* Sets *changed if the variable was not there. */
static int set_default(const char *name, const char *value, bool *changed)
{
    if (getenv(name))
        return 0;
    *changed = true;
    return setenv(name, value, 1) ? -errno : 0;
}

bool ucx_has_rdma(void)
{
    DIR *d = opendir("/sys/class/infiniband");
    struct dirent *e = NULL;
    while (d && (e = readdir(d)) && e->d_name[0] == '.')
        ;
    if (d)
        closedir(d);
    return e != NULL;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (!a || a->sa_family != b->ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                   &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* The interface that holds the address; "" if none does. */
static void interface_of(const struct sockaddr_storage *a, char name[IF_NAMESIZE])
{
    struct ifaddrs *all = NULL;
    name[0] = 0;
    if (getifaddrs(&all))
        return;
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        bool lo =
            is_loopback(a) &&
            i->ifa_flags & IFF_LOOPBACK; /* 127.x: lo holds all of them, 127.0.0.1 is listed */
        if (lo || same_address(i->ifa_addr, a)) {
            snprintf(name, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, i->ifa_name);
            break;
        }
    }
    freeifaddrs(all);
}

/* Without its hooks in malloc and mmap of the whole process, UCX has no registration cache.  1.13
 * works without it.  Later versions look into the cache when a rendezvous is given up, even if there is none,
 * and die (openucx/ucx, issue 11467). */
static int set_memory_hooks(bool *changed)
{
    return ucx_is_before(1, 14) ? set_default("UCX_MEM_EVENTS", "n", changed) : 0;
}

/* Without RDMA: TCP on the interface whose address the other nodes have, and on no other. */
static int set_network(const char *listen, bool *changed)
{
    struct sockaddr_storage a;
    char name[IF_NAMESIZE];
    if (ucx_has_rdma() || hello_listen_addr(listen, &a))
        return 0; /* a bad address: peer_start says so */
    int err = set_default("UCX_TLS", "tcp", changed);
    /* If the peer dies during a zero-copy send, UCX's TCP ends the send twice and aborts the survivor (1.13
     * and 1.18).  The newer protocols, the default since 1.16, send without a copy whatever the
     * threshold is. */
    if (!err)
        err = set_default("UCX_ZCOPY_THRESH", "inf", changed);
    if (!err)
        err = set_default("UCX_PROTO_ENABLE", "n", changed);
    if (!err && a.ss_family == AF_INET6)
        err = set_default("UCX_TCP_AF_PRIO", "inet6,inet", changed);
    interface_of(&a, name);
    if (!err && name[0])
        err = set_default("UCX_NET_DEVICES", name, changed);
    return err;
}

void peer_settings(char *out, size_t len)
{
    static const char *const same[] = {"UCX_TCP_RX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE",
                                       "UCX_TCP_PUT_ENABLE"};
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(same) && n < len; i++) {
        const char *v = getenv(same[i]);
        n += (size_t)snprintf(out + n, len - n, "%s%s=%s", i ? " " : "", same[i], v ? v : "");
    }
}

int peer_reexec(const char *listen, char **argv)
{
    bool changed = false;
    if (getenv(GUARD)) {
        unsetenv(GUARD); /* what this process starts may be another eddyfs with another --listen */
        prctl(PR_SET_NAME, program_invocation_short_name); /* for ps: it was executed as "exe" */
        return 0;
    }
    int err = 0;
    for (size_t i = 0; !err && i < ARRAY_LEN(settings); i++)
        err = set_default(settings[i].name, settings[i].value, &changed);
    if (!err)
        err = set_memory_hooks(&changed);
    if (!err)
        err = set_network(listen, &changed);
    if (err || !changed)
        return err;
    if (setenv(GUARD, "1", 1))
        return -errno;
    execv("/proc/self/exe", argv);
    err = -errno;
    unsetenv(GUARD);
    return err;
}
