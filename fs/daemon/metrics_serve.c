/* metrics_serve.c - --metrics: the text of metrics.h over HTTP, by libmicrohttpd.
 *
 * Anybody who reaches the address may read it, so it is the loopback's, or a socket of this user alone, unless an address is
 * given.  One thread serves all; it holds CONNECTIONS at most, and gives up who is slow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/metrics.h"
#include "fs/daemon/metrics_address.h"
#include "fs/settings.h"

#ifdef EDDY_WITH_METRICS

#include <microhttpd.h>

#define CONNECTIONS 16
#define TIMEOUT_S   10

static struct MHD_Daemon *server;

/* A socket that nobody listens at is of a daemon that died. */
static int remove_dead(const union metrics_address *a, socklen_t len)
{
    struct stat st;
    if (lstat(a->un.sun_path, &st) || !S_ISSOCK(st.st_mode))
        return 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool dead = fd >= 0 && connect(fd, &a->sa, len) && errno == ECONNREFUSED;
    close(fd);
    return dead && unlink(a->un.sun_path) ? -errno : 0;
}

static int listen_at(const union metrics_address *a, socklen_t len, int *out)
{
    int one = 1, fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
    if (fd < 0)
        return -errno;
    if (a->sa.sa_family == AF_UNIX)
        err = remove_dead(a, len);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (!err && bind(fd, &a->sa, len))
        err = -errno;
    if (!err && a->sa.sa_family == AF_UNIX && chmod(a->un.sun_path, 0600)) /* nobody can connect before listen */
        err = -errno;
    if (!err && listen(fd, CONNECTIONS))
        err = -errno;
    if (err)
        close(fd);
    *out = err ? -1 : fd;
    return err;
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned code, const char *type, char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result done = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **request)
{
    static const char plain[] = "text/plain; charset=utf-8";
    (void)arg;
    (void)version;
    (void)upload;
    (void)request;
    if (*upload_size || (strcmp(method, "GET") && strcmp(method, "HEAD")))
        return MHD_NO;
    if (strcmp(url, "/metrics"))
        return answer(c, MHD_HTTP_NOT_FOUND, plain, xstrdup("the metrics are at /metrics\n"));
    return answer(c, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", metrics_text());
}

int metrics_start(char *err, size_t errlen)
{
    union metrics_address a;
    socklen_t len;
    int fd = -1, e;
    if (!settings.metrics)
        return 0;
    e = metrics_address(settings.metrics, &a, &len);
    if (!e)
        e = listen_at(&a, len, &fd);
    if (e) {
        snprintf(err, errlen, "--metrics %s: nothing can listen there: %s: name another address", settings.metrics, strerror(-e));
        return e;
    }
    server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
                              MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                              (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
    if (server)
        return 0;
    close(fd);
    snprintf(err, errlen, "--metrics %s: the server does not start", settings.metrics);
    return -EIO;
}

void metrics_stop(void)
{
    if (!server)
        return;
    MHD_stop_daemon(server);
    server = NULL;
    if (!strncmp(settings.metrics, "unix:", 5))
        unlink(settings.metrics + 5);
}

#else

int metrics_start(char *err, size_t errlen)
{
    if (!settings.metrics)
        return 0;
    snprintf(err, errlen, "--metrics: this eddyfs was built without libmicrohttpd: build it with that, or use \"eddy metrics\"");
    return -ENOTSUP;
}

void metrics_stop(void)
{
}

#endif
