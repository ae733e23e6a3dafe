/* loop_uv.h - the libuv loop itself, for the files of transport/ that put handles into it (hello.c,
 * peer.c).
 *
 * Network thread only, between loop_start and loop_stop.  Handles must be closed before loop_stop,
 * which closes what is left without a callback.
 */
#ifndef EDDY_TRANSPORT_LOOP_UV_H
#define EDDY_TRANSPORT_LOOP_UV_H

#include <uv.h>

uv_loop_t *loop_uv(void);

/* Network thread, in a handle's callback (not in a posted call), when it polls without blocking for a
 * moment.  Between these two calls it looks at loop_posted itself, so a thread that posts need not wake it.
 * The end runs the posted calls. */
void loop_poll_begin(void);
bool loop_posted(void);
void loop_poll_end(void);

#endif
