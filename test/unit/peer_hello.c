/* peer_hello.c - a hello that is spoken by hand: only the other side sees it succeed. */
#include "peer_nodes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/peer_int.h"
#include "transport/session.h"
#include "transport/ucx_peer.h"

int connect_from(const char *from, const char *addr)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
    to.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&own, sizeof(own)))
        die("bind to %s: %s", from, strerror(errno));
    if (connect(s, (struct sockaddr *)&to, sizeof(to)))
        die("connect to %s: %s", addr, strerror(errno));
    return s;
}

int connect_to(const char *addr)
{
    return connect_from(LISTEN, addr);
}

void read_frame(int s, uint8_t *buf, size_t *len)
{
    if (recv(s, buf, 4, MSG_WAITALL) != 4)
        die("no frame");
    size_t n = buf[0] | (size_t)buf[1] << 8;
    if (recv(s, buf + 4, n, MSG_WAITALL) != (ssize_t)n)
        die("no whole frame");
    *len = 4 + n;
}

static void send_frame(int s, void *out, size_t len, unsigned i, struct hello_sent *sent)
{
    (void)!send(s, out, len, MSG_NOSIGNAL);
    if (sent) {
        memcpy(sent->b[i], out, len);
        sent->n[i] = len;
    }
    free(out);
}

int begin_hello(const char *addr, uint64_t id, uint64_t incarnation, struct hello_sent *sent)
{
    uint8_t in[4 + HELLO_FRAME_MAX];
    void *out;
    size_t n, out_len;
    char settings[HELLO_SETTINGS_MAX + 1];
    peer_settings(settings, sizeof(settings));
    struct hello_self self = {.id = id,
                              .incarnation = incarnation,
                              .name = "half",
                              .chunk_size = CHUNK,
                              .settings = settings};
    self.worker_addr = ucx_address(&self.worker_addr_len);
    struct hello_proto *h = hello_proto_new(true, &self, session_secret(), session_name());
    int s = connect_to(addr);
    hello_proto_begin(h, &out, &out_len);
    send_frame(s, out, out_len, 0, sent);
    read_frame(s, in, &n);
    if (hello_proto_input(h, in, n, &out, &out_len))
        die("half hello: %s", hello_proto_reason(h));
    send_frame(s, out, out_len, 1, sent);
    read_frame(s, in, &n); /* HELLO4 was sent: they have an endpoint */
    hello_proto_free(h);
    return s;
}

void half_hello(const char *addr, uint64_t id, uint64_t incarnation)
{
    close(begin_hello(addr, id, incarnation, NULL));
}
