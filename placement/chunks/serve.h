/* serve.h - the owner's side of clean chunks: answers FETCH.  For fetch.c, which starts and stops it. */
#ifndef EDDY_PLACEMENT_CHUNKS_SERVE_H
#define EDDY_PLACEMENT_CHUNKS_SERVE_H

void serve_start(void);
void serve_stop(void);

#endif
