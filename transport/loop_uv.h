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

#endif
