/* made.h - is what the PFS has of a file this node's own doing? (made.c) */
#ifndef EDDY_FLUSH_MADE_H
#define EDDY_FLUSH_MADE_H

#include "placement/store/store_read.h"

enum made {
    MADE_HERE,      /* the bytes that the unflushed data is based on, or what this node's runs made of them */
    MADE_ELSEWHERE, /* somebody else has changed the file */
    MADE_BY_BYTES,  /* HERE if any page of the last change (info->trace) has this node's bytes on the PFS */
};
/* Of a file with unflushed data; now: the version that the PFS has; ahead_ns: how much its clock is ahead of this node's, or less
 * (session_clock_offset_ns).  Pure. */
enum made made_of(const struct file_info *info, const struct version *now, int64_t ahead_ns);

#endif
