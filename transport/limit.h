/* limit.h - how much memory this process may have. */
#ifndef EDDY_TRANSPORT_LIMIT_H
#define EDDY_TRANSPORT_LIMIT_H

#include <stdint.h>

/* The smallest of the host's memory and the limits (memory.max) of the process's cgroup and those above it, in bytes.  Only cgroups of
 * version 2 count; what cannot be read is no limit. */
uint64_t limit_memory(void);

#endif
