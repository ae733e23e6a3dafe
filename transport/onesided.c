/* onesided.c - see onesided.h.
 *
 * All calls of UCX are made with the lock: the worker serves one thread at a time.  Shared memory is mapped here by UCX, and the thread
 * that asks copies from it: UCX's newer protocols, the only ones since 1.23, would have the other side's processor answer gets there.
 * Over RDMA the thread that asks polls for some microseconds.  A request that does not end is ended by closing its endpoint.
 */
#include "transport/onesided.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include <ucp/api/ucp.h>

#include "transport/limit.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/peer_int.h"
#include "transport/segments.h"
#include "transport/times.h"
#include "transport/ucx_peer.h"

#define PEERS_MAX   1024
#define BLOB_MAX    4096   /* a worker's address, a key */
#define AGAIN_MS    60000  /* after a refusal */
#define SOON_MS     1000   /* after no answer */
#define TURN_MS     20     /* progress for those that connect */
#define CONNECT_MS  10000  /* so long after an answer the other side may need that */
#define TRIAL_MS    2000   /* all trial gets */
#define TRIALS      3
#define QUICK_NS    5000000 /* each but the first: a peer that must help takes longer, TURN_MS / 2 on average */

enum state { ASKING, TRYING, CONNECTED, REFUSED };

struct node {
    struct node *next;
    uint64_t id, incarnation;
    enum state state;
    uint64_t again_ms; /* REFUSED */
    uint64_t base, len;
    ucp_ep_h ep; /* from TRYING on, but for REFUSED */
    ucp_rkey_h key;
    const uint8_t *mapped; /* its memory, if it is shared memory */
    bool failed;
    const char *why; /* failed: UCX's word for it, or NULL */
    /* TRYING */
    void *trial; /* the get under way */
    unsigned trials;
    uint64_t trial_ns, trial_end_ms;
    uint64_t bytes;
};

static struct {
    struct lock lock; /* RANK_LEAF: all below */
    bool runs, by_gets;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h memory;
    uint8_t *at;
    size_t len;
    ucp_address_t *address;
    size_t address_len;
    void *key;
    size_t key_len;
    struct node *nodes;
    unsigned n;
    char transports[64];
    int dir_fd; /* locked; -1: there is none */
    char dir[SEGMENTS_PATH_MAX];
    /* network thread */
    struct loop_timer *timer;
    uint64_t until_ms; /* it runs for others until then */
} own = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .dir_fd = -1};

/* ---- with the lock ---- */

static struct node *find(uint64_t id)
{
    struct node *n = own.nodes;
    while (n && n->id != id)
        n = n->next;
    return n;
}

static void close_endpoint(struct node *n);

/* The result of a request, when it has ended.  -ETIMEDOUT: the node's endpoint was closed at end_ms, so that it ends.  n NULL: it ends by
 * itself. */
static int wait_for(void *request, struct node *n, uint64_t end_ms)
{
    ucs_status_t s;
    bool late = false;
    if (!request)
        return 0;
    if (UCS_PTR_IS_ERR(request))
        return -EIO;
    while ((s = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(own.worker);
        if (n && !late && boot_ms() > end_ms) {
            late = true;
            close_endpoint(n);
        }
    }
    ucp_request_free(request);
    return late ? -ETIMEDOUT : s == UCS_OK ? 0 : -EIO;
}

/* What is under way on it ends with an error. */
static void close_endpoint(struct node *n)
{
    ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    if (!n->ep)
        return;
    if (n->key)
        ucp_rkey_destroy(n->key);
    n->key = NULL;
    n->mapped = NULL;
    void *request = ucp_ep_close_nbx(n->ep, &p);
    n->ep = NULL;
    wait_for(request, NULL, 0);
}

static void end_trial(struct node *n)
{
    void *trial = n->trial;
    n->trial = NULL;
    close_endpoint(n);
    wait_for(trial, NULL, 0);
}

static void say(uint64_t id, const char *what)
{
    log_info("one-sided reads from %s: %s", members_name(id), what);
}

static void refuse(struct node *n, uint64_t again_ms, const char *why)
{
    say(n->id, why);
    end_trial(n);
    n->state = REFUSED;
    n->again_ms = boot_ms() + again_ms;
}

static void forget(struct node *n)
{
    struct node **at = &own.nodes;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    own.n--;
    end_trial(n);
    free(n);
}

static void fail(struct node *n, ucs_status_t status)
{
    n->failed = true;
    n->why = ucs_status_string(status);
}

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    fail(arg, status);
}

static bool connect_to(struct node *n, const void *address, const void *key)
{
    ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                       UCP_EP_PARAM_FIELD_ERR_HANDLER,
                         .address = address,
                         .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                         .err_handler = {on_failure, n}};
    void *at;
    n->failed = false;
    n->why = NULL;
    if (ucp_ep_create(own.worker, &p, &n->ep) != UCS_OK) {
        n->ep = NULL;
        return false;
    }
    if (ucp_ep_rkey_unpack(n->ep, key, &n->key) != UCS_OK) {
        n->key = NULL;
        close_endpoint(n);
        return false;
    }
    if (!own.by_gets && ucp_rkey_ptr(n->key, n->base, &at) == UCS_OK)
        n->mapped = at;
    return true;
}

/* NULL: buf has the bytes.  Else a request, or an error. */
static void *begin_get(struct node *n, uint64_t off, void *buf, size_t len)
{
    static const ucp_request_param_t none;
    if (!n->mapped)
        return ucp_get_nbx(n->ep, buf, len, n->base + off, n->key, &none);
    memcpy(buf, n->mapped + off, len);
    return NULL;
}

static void begin_trial(struct node *n)
{
    n->trial_ns = boot_ns();
    n->trial = begin_get(n, 0, &n->bytes, sizeof(n->bytes));
    if (UCS_PTR_IS_ERR(n->trial)) {
        fail(n, UCS_PTR_STATUS(n->trial));
        n->trial = NULL;
    }
}

/* As far as it can be tried now. */
static void try_on(struct node *n)
{
    while (n->state == TRYING && !n->failed) {
        ucs_status_t s = n->trial ? ucp_request_check_status(n->trial) : UCS_OK;
        if (s == UCS_INPROGRESS)
            return;
        if (n->trial)
            ucp_request_free(n->trial);
        n->trial = NULL;
        if (s != UCS_OK)
            fail(n, s);
        else if (!n->mapped && n->trials && boot_ns() - n->trial_ns > QUICK_NS)
            n->failed = true;
        else if (++n->trials < TRIALS)
            begin_trial(n);
        else
            n->state = CONNECTED;
    }
    if (n->state == CONNECTED)
        say(n->id, "on");
}

/* ---- connecting: network thread ---- */

static void turn(void *arg)
{
    bool more = boot_ms() < own.until_ms;
    (void)arg;
    lock_take(&own.lock);
    while (own.worker && ucp_worker_progress(own.worker))
        ;
    for (struct node *n = own.nodes; n; n = n->next) {
        if (n->state == TRYING)
            try_on(n);
        if (n->state == TRYING && (n->failed || boot_ms() > n->trial_end_ms))
            refuse(n, AGAIN_MS, n->why ? n->why : "a trial get took as long as one with which its processor helps");
        more |= n->state == TRYING;
    }
    lock_drop(&own.lock);
    if (!more)
        loop_timer_stop(own.timer);
}

static void arm(void)
{
    if (!own.timer)
        own.timer = loop_timer_new(turn, NULL);
    loop_timer_set(own.timer, 1, TURN_MS);
}

/* 0: its memory is being tried. */
static int take_memory(struct node *n, const struct msg *m)
{
    const struct body_memory_is *b = &m->memory_is;
    const uint8_t *data = m->data;
    if (!b->address_len || !b->key_len || b->address_len > BLOB_MAX || b->key_len > BLOB_MAX ||
        m->head.data_len != (uint64_t)b->address_len + b->key_len || b->length < sizeof(n->bytes) ||
        b->base + b->length < b->base)
        return -EPROTO;
    n->incarnation = m->head.incarnation;
    n->base = b->base;
    n->len = b->length;
    if (!connect_to(n, data, data + b->address_len))
        return -EIO;
    n->state = TRYING;
    n->trials = 0;
    n->trial_end_ms = boot_ms() + TRIAL_MS;
    begin_trial(n);
    try_on(n);
    return 0;
}

static void on_memory_is(void *arg, int err, struct msg *m, bool *keep)
{
    uint64_t *id = arg;
    (void)keep;
    lock_take(&own.lock);
    struct node *n = own.runs ? find(*id) : NULL;
    if (n && n->state == ASKING) {
        if (!err)
            err = take_memory(n, m);
        if (err)
            refuse(n, m ? AGAIN_MS : SOON_MS, strerror(-err));
    }
    bool tried = n && n->state == TRYING;
    lock_drop(&own.lock);
    if (tried)
        arm();
    free(id);
}

static void ask(void *arg)
{
    uint64_t *id = arg;
    struct msg *m = msg_new(MSG_MEMORY);
    m->memory.length = own.len;
    peer_request(*id, m, T_SUSPECT, NULL, 0, on_memory_is, id);
}

/* With the lock.  Its entry is ASKING from now on; the caller posts `ask`. */
static bool may_ask(uint64_t id)
{
    struct node *n = find(id);
    if (!own.runs || (n && (n->state != REFUSED || boot_ms() < n->again_ms)) || (!n && own.n == PEERS_MAX))
        return false;
    if (!n) {
        n = xcalloc(1, sizeof(*n));
        n->id = id;
        n->next = own.nodes;
        own.nodes = n;
        own.n++;
    }
    n->state = ASKING;
    return true;
}

static void ask_for(uint64_t id)
{
    uint64_t *arg = xmalloc(sizeof(*arg));
    *arg = id;
    loop_post(ask, arg);
}

static void free_data(void *arg, void *data)
{
    (void)arg;
    free(data);
}

/* MEMORY: here is this node's. */
static void on_memory(struct msg *m)
{
    if (!own.runs) {
        peer_reply_error(m, -ENOTSUP);
        msg_free(m);
        return;
    }
    struct msg *r = msg_new(MSG_MEMORY_IS);
    r->memory_is.base = (uintptr_t)own.at;
    r->memory_is.length = own.len;
    r->memory_is.address_len = (uint32_t)own.address_len;
    r->memory_is.key_len = (uint32_t)own.key_len;
    uint8_t *data = xmalloc(own.address_len + own.key_len);
    memcpy(data, own.address, own.address_len);
    memcpy(data + own.address_len, own.key, own.key_len);
    r->data = data;
    r->head.data_len = own.address_len + own.key_len;
    r->free_data = free_data;
    peer_reply(m, r);
    msg_free(m);
    own.until_ms = boot_ms() + CONNECT_MS;
    arm();
}

/* ---- reading ---- */

/* With the lock. */
static int get(struct node *n, uint64_t off, void *buf, size_t len)
{
    if (off > n->len || len > n->len - off)
        return -EINVAL;
    void *request = begin_get(n, off, buf, len);
    int err = wait_for(request, n, boot_ms() + ONESIDED_MS);
    if (err || n->failed)
        refuse(n, AGAIN_MS, err ? strerror(-err) : "it has gone");
    return err;
}

int onesided_get(uint64_t node, uint64_t off, void *buf, size_t len)
{
    lock_take(&own.lock);
    struct node *n = find(node);
    bool connected = own.runs && n && n->state == CONNECTED, asks = !connected && may_ask(node);
    int err = connected ? get(n, off, buf, len) : -ENOTCONN;
    lock_drop(&own.lock);
    if (asks)
        ask_for(node);
    return err;
}

uint64_t onesided_len(uint64_t node)
{
    lock_take(&own.lock);
    struct node *n = find(node);
    bool connected = own.runs && n && n->state == CONNECTED, asks = !connected && may_ask(node);
    uint64_t len = connected ? n->len : 0;
    lock_drop(&own.lock);
    if (asks)
        ask_for(node);
    return len;
}

void onesided_adopted(const struct view *v)
{
    lock_take(&own.lock);
    for (struct node *n = own.nodes, *next; n; n = next) {
        const struct member *m = v ? view_member(v, n->id) : NULL;
        next = n->next;
        if (n->state != ASKING && (!m || (n->incarnation && m->incarnation != n->incarnation)))
            forget(n);
    }
    lock_drop(&own.lock);
}

void onesided_each(void (*fn)(void *arg, uint64_t node), void *arg)
{
    lock_take(&own.lock);
    for (const struct node *n = own.nodes; n; n = n->next)
        if (n->state == CONNECTED)
            fn(arg, n->id);
    lock_drop(&own.lock);
}

static void add_one(void *arg, uint64_t node)
{
    (void)node;
    ++*(unsigned *)arg;
}

unsigned onesided_connected(void)
{
    unsigned n = 0;
    onesided_each(add_one, &n);
    return n;
}

const char *onesided_transports(void)
{
    return own.transports;
}

void *onesided_memory(size_t *len)
{
    *len = own.len;
    return own.at;
}

/* ---- start and end ---- */

/* UCX's posix transport: by names in a directory of this node, as /proc/PID/fd of a process that keeps a secret
 * (PR_SET_DUMPABLE) is closed to others.  And it must take a peer's death for an error. */
static int set_posix(uint64_t id)
{
    segments_clean();
    own.dir_fd = segments_begin(id, own.dir);
    if (own.dir_fd < 0)
        return own.dir_fd;
    bool failed = setenv("UCX_POSIX_DIR", own.dir, 1) || setenv("UCX_POSIX_USE_PROC_LINK", "n", 1) ||
                  setenv("UCX_POSIX_ERROR_HANDLING", "y", 1);
    return failed ? -errno : 0;
}

/* UCX touches all of the memory, and who has too little of it is killed (SIGBUS; the cgroup's limit). */
static int has_room(uint64_t size, char *err, size_t errlen)
{
    struct statvfs s;
    uint64_t limit = limit_memory();
    uint64_t free = statvfs(own.dir, &s) ? 0 : (uint64_t)s.f_bavail * s.f_frsize;
    if (size <= free && size <= limit / 2)
        return 0;
    snprintf(err, errlen, "--rdma-memory: %llu MiB are not there: /dev/shm has %llu MiB free, and half of the memory that this process may have is %llu MiB: give less",
             (unsigned long long)(size >> 20), (unsigned long long)(free >> 20), (unsigned long long)(limit >> 21));
    return -ENOMEM;
}

static ucs_status_t make_context(void)
{
    ucp_config_t *config;
    ucp_params_t p = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
    ucs_status_t s = ucp_config_read(NULL, NULL, &config);
    if (s != UCS_OK)
        return s;
    s = ucp_config_modify(config, "TLS", own.transports);
    if (s == UCS_OK)
        s = ucp_config_modify(config, "NET_DEVICES", "all");
    /* The newer protocols, UCX's default since 1.16, have the other side's processor answer each get of an endpoint whose peer may
     * die.  1.23 has no others. */
    if (ucx_is_before(1, 23) && !getenv("UCX_PROTO_ENABLE"))
        ucp_config_modify(config, "PROTO_ENABLE", "n");
    if (s == UCS_OK)
        s = ucp_init(&p, config, &own.context);
    ucp_config_release(config);
    return s;
}

static ucs_status_t make_worker(void)
{
    ucp_worker_params_t p = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t s = ucp_worker_create(own.context, &p, &own.worker);
    return s == UCS_OK ? ucp_worker_get_address(own.worker, &own.address, &own.address_len) : s;
}

static ucs_status_t make_memory(size_t len)
{
    ucp_mem_map_params_t p = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_PROT,
        .length = len,
        .flags = UCP_MEM_MAP_ALLOCATE,
        .prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE | UCP_MEM_MAP_PROT_REMOTE_READ};
    ucp_mem_attr_t a = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH};
    ucs_status_t s = ucp_mem_map(own.context, &p, &own.memory);
    if (s == UCS_OK)
        s = ucp_mem_query(own.memory, &a);
    if (s != UCS_OK)
        return s;
    own.at = a.address;
    own.len = len;
    memset(own.at, 0, len);
    return ucp_rkey_pack(own.context, own.memory, &own.key, &own.key_len);
}

static void destroy(void)
{
    if (own.key)
        ucp_rkey_buffer_release(own.key);
    if (own.memory)
        ucp_mem_unmap(own.context, own.memory);
    if (own.address)
        ucp_worker_release_address(own.worker, own.address);
    if (own.worker)
        ucp_worker_destroy(own.worker);
    if (own.context)
        ucp_cleanup(own.context);
    if (own.dir_fd >= 0)
        segments_end(own.dir_fd, own.dir);
    own.dir_fd = -1;
    own.key = own.at = NULL;
    own.memory = NULL;
    own.address = NULL;
    own.worker = NULL;
    own.context = NULL;
    own.len = 0;
    own.transports[0] = 0;
}

int onesided_start(const struct onesided_config *c, char *err, size_t errlen)
{
    snprintf(own.transports, sizeof(own.transports), "%s",
             c->transports ? c->transports : ucx_has_rdma() ? ONESIDED_RDMA : ONESIDED_HOST);
    own.by_gets = c->by_gets;
    int e = set_posix(c->id);
    if (e)
        snprintf(err, errlen, "--rdma-memory: a directory for shared memory, %s: %s", own.dir, strerror(-e));
    else
        e = has_room(c->size, err, errlen);
    if (e) {
        destroy();
        return e;
    }
    ucs_status_t s = make_context();
    if (s == UCS_OK)
        s = make_worker();
    if (s == UCS_OK)
        s = make_memory(c->size);
    if (s != UCS_OK) {
        snprintf(err, errlen, "--rdma-memory: UCX has no such memory over %s: %s (see ucx_info -d, ulimit -l, and the room in /dev/shm)",
                 own.transports, ucs_status_string(s));
        destroy();
        return -EIO;
    }
    peer_handle(MSG_MEMORY, on_memory);
    own.runs = true;
    return 0;
}

static void stop_timer(void *arg)
{
    (void)arg;
    if (own.timer)
        loop_timer_free(own.timer);
    own.timer = NULL;
}

void onesided_stop(void)
{
    loop_call(stop_timer, NULL);
    lock_take(&own.lock);
    own.runs = false;
    while (own.nodes)
        forget(own.nodes);
    destroy();
    lock_drop(&own.lock);
}
