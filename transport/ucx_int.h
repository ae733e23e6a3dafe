/* ucx_int.h - what peer_ucx.c (endpoints, messages) and ucx_loop.c (the worker in the loop) share; beside
 * onesided.c the only files that include UCX.  Network thread only.
 */
#ifndef EDDY_TRANSPORT_UCX_INT_H
#define EDDY_TRANSPORT_UCX_INT_H

#include <ucp/api/ucp.h>

#define AM_ID 1 /* of all active messages */

struct ucx_worker {
    ucp_worker_h worker;
    size_t inline_max;                     /* what an AM header may have */
    bool failures, leavers;                /* there is something to do after progress */
    unsigned sending, receiving, settling; /* without a callback yet */
};
extern struct ucx_worker ucx;

void endpoints_start(void);
/* To be called outside UCX's callbacks, after progress: peers whose endpoint failed go down; disconnected
 * endpoints are closed as soon as that is possible. */
void endpoints_report_failures(void);
void endpoints_close_leavers(void);
/* The worker's handler of AM_ID. */
ucs_status_t endpoints_on_message(void *arg, const void *header, size_t header_len, void *data,
                                  size_t len, const ucp_am_recv_param_t *param);

#endif
