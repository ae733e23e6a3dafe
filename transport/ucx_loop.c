/* ucx_loop.c - the UCX worker in libuv's loop: its turns, start and end.
 *
 * Every turn of the loop, before it blocks: progress until nothing is left, then arm the worker's
 * descriptor.  If arming says BUSY, progress again.  After something moved, the loop polls for LINGER_NS
 * without blocking (a linger), because the next event usually comes within that time, and sleeping and
 * being woken costs more.  In these moments it looks only at UCX and at the queue of calls, and a thread
 * that posts a call need not wake it.  If nothing came in the last lingers, more and more of them are left
 * out (1, 3, 7 ...): on few cores they are another thread's time.  There is no sched_yield, because on busy
 * cores it gives away milliseconds each time.  An idle daemon blocks in epoll.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/peer_int.h"
#include "transport/ucx_int.h"
/* after base.h: uv.h brings a MIN of its own */
#include "transport/loop_uv.h"
#include "transport/ucx_peer.h"

#define ROUNDS       64    /* progress calls before the loop's other handles get a turn */
#define LINGER_NS    20000 /* not more than a wake-up costs */
#define IN_VAIN_MAX  5     /* at least every 32nd linger is tried, whatever the last ones brought */
#define STOP_WAIT_MS 5000  /* for callbacks of closed endpoints */

struct ucx_worker ucx;

static struct {
    ucp_context_h context;
    ucp_address_t *address;
    size_t address_len;
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_idle_t idle;
    unsigned handles;
    void (*closed)(void);
    uint64_t moved_ns;           /* when something last came, went or was posted */
    unsigned in_vain, leave_out; /* lingers: how many without success in a row; how many to leave out */
} own;

/* ---- its turns ---- */

static void on_idle(uv_idle_t *h)
{
    (void)h; /* while it is active, the loop does not block; on_prepare does the work */
}

/* The only place where UCX's transports run.  peer_calls.c says what they are told of a socket. */
static unsigned progress_once(void)
{
    calls_are_ucx(true);
    unsigned n = ucp_worker_progress(ucx.worker);
    calls_are_ucx(false);
    return n;
}

/* Until nothing is left, or its turn is over.  True if it moved anything. */
static bool progress(void)
{
    bool moved = false;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = progress_once();
        if (ucx.failures)
            endpoints_report_failures();
        if (ucx.leavers)
            endpoints_close_leavers();
        else if (!n)
            break;
        moved = true;
    }
    return moved;
}

/* Polls for LINGER_NS after something moved.  True: more came, or was posted. */
static bool linger(void)
{
    uint64_t until = own.moved_ns + LINGER_NS;
    if (boot_ns() >= until)
        return false;
    if (own.leave_out) {
        own.leave_out--;
        return false;
    }
    bool more;
    loop_poll_begin();
    while (!(more = progress() || loop_posted()) && boot_ns() < until)
        ;
    loop_poll_end();
    own.in_vain = more ? 0 : MIN(own.in_vain + 1, IN_VAIN_MAX);
    own.leave_out = (1u << own.in_vain) - 1;
    return more;
}

static void on_prepare(uv_prepare_t *h)
{
    (void)h;
    bool busy = progress() || linger();
    if (uv_is_closing((uv_handle_t *)&own.idle))
        return; /* what was posted ended us */
    if (busy)
        own.moved_ns = boot_ns();
    if (busy || ucp_worker_arm(ucx.worker) != UCS_OK)
        uv_idle_start(&own.idle, on_idle);
    else
        uv_idle_stop(&own.idle);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
    (void)h;
    (void)events; /* it woke the loop: on_prepare comes before it blocks again */
    if (status < 0)
        die("UCX's event descriptor: %s", uv_strerror(status));
}

static int add_to_loop(void)
{
    int fd;
    ucs_status_t s = ucp_worker_get_efd(ucx.worker, &fd);
    if (s != UCS_OK)
        return -EIO;
    int err = uv_poll_init(loop_uv(), &own.poll, fd);
    if (err)
        return err;
    uv_prepare_init(loop_uv(), &own.prepare);
    uv_idle_init(loop_uv(), &own.idle);
    own.handles = 3;
    uv_poll_start(&own.poll, UV_READABLE, on_readable);
    uv_prepare_start(&own.prepare, on_prepare);
    return 0;
}

/* ---- start and end ---- */

static ucs_status_t make_worker(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucs_status_t s = ucp_init(&params, NULL, &own.context);
    if (s != UCS_OK)
        return s;
    ucp_worker_params_t wp = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                              .thread_mode = UCS_THREAD_MODE_SINGLE};
    s = ucp_worker_create(own.context, &wp, &ucx.worker);
    if (s != UCS_OK)
        return s;
    ucp_am_handler_param_t am = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .cb = endpoints_on_message,
    };
    s = ucp_worker_set_am_recv_handler(ucx.worker, &am);
    if (s != UCS_OK)
        return s;
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    s = ucp_worker_query(ucx.worker, &attr);
    if (s != UCS_OK)
        return s;
    ucx.inline_max = MIN((size_t)MSG_INLINE_MAX, attr.max_am_header);
    return ucp_worker_get_address(ucx.worker, &own.address, &own.address_len);
}

static void destroy_worker(void)
{
    if (own.address)
        ucp_worker_release_address(ucx.worker, own.address);
    if (ucx.worker)
        ucp_worker_destroy(ucx.worker);
    if (own.context)
        ucp_cleanup(own.context);
    own.address = NULL;
    ucx.worker = NULL;
    own.context = NULL;
}

bool ucx_is_before(unsigned major, unsigned minor)
{
    unsigned has_major, has_minor, release;
    ucp_get_version(&has_major, &has_minor, &release);
    return has_major < major || (has_major == major && has_minor < minor);
}

int ucx_start(char *err, size_t errlen)
{
    memset(&ucx, 0, sizeof(ucx));
    memset(&own, 0, sizeof(own));
    endpoints_start();
    ucs_status_t s = make_worker();
    if (s != UCS_OK) {
        snprintf(err, errlen,
                 "UCX cannot be started: %s (see UCX_TLS and UCX_NET_DEVICES in the environment, "
                 "and ucx_info -d)",
                 ucs_status_string(s));
        destroy_worker();
        return -EIO;
    }
    if (ucx.inline_max < MSG_HEAD_SIZE || add_to_loop()) {
        snprintf(err, errlen,
                 "UCX's transports cannot wake up an event loop: set UCX_TLS to others, for "
                 "example tcp");
        destroy_worker();
        return -EIO;
    }
    return 0;
}

const void *ucx_address(size_t *len)
{
    *len = own.address_len;
    return own.address;
}

/* Progress until every send and receive has had its callback: their buffers are the callers'. */
void ucx_stop(void)
{
    uint64_t end = boot_ms() + STOP_WAIT_MS;
    if (!ucx.worker)
        return;
    endpoints_close_leavers();
    while ((ucx.sending || ucx.receiving || ucx.settling) && boot_ms() < end) {
        progress_once();
        endpoints_close_leavers();
    }
    while (progress_once() && boot_ms() < end)
        ;
    if (ucx.sending || ucx.receiving)
        log_warn("UCX still holds %u sends and %u receives at the end", ucx.sending, ucx.receiving);
}

static void on_closed(uv_handle_t *h)
{
    (void)h;
    if (--own.handles)
        return;
    destroy_worker(); /* not before its descriptor is out of the loop */
    own.closed();
}

void ucx_close_handles(void (*done)(void))
{
    own.closed = done;
    uv_close((uv_handle_t *)&own.poll, on_closed);
    uv_close((uv_handle_t *)&own.prepare, on_closed);
    uv_close((uv_handle_t *)&own.idle, on_closed);
}
