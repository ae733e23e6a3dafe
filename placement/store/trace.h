/* trace.h - what this node, and the session's utimens, have made of a PFS file since its base version was
 * set. It is in the file's record, and tells an edit by somebody else from this node's own flush
 * (flush/made.c has the rule; store_trace.c keeps the trace).
 */
#ifndef EDDY_PLACEMENT_STORE_TRACE_H
#define EDDY_PLACEMENT_STORE_TRACE_H

#include "transport/fid.h"

enum trace_kind {
    TRACE_ANY,  /* nothing is known: the PFS file may be anything by this node's own doing */
    TRACE_RUN,  /* a run was changing the PFS file when this was noted, and has not ended in order */
    TRACE_LEFT, /* a run has failed, and left the PFS file in version v */
};

/* kind, off, len and v count while CORE_FLUSHING is set; told counts always. */
struct file_trace {
    uint8_t kind; /* enum trace_kind */
    uint8_t ntold;
    uint8_t under_way; /* RUN: 1: it has begun a change, and its daemon has not seen it fail: a change may be on its way to the PFS */
    uint8_t pad;
    uint32_t len; /* RUN: of the last change of the PFS file's bytes; 0: of its size */
    uint64_t off; /* ... where it began, or the new size; UINT64_MAX: there was none yet */
    /* RUN: size: the largest that a run has made it, or is about to; mtime_ns: what the run sets at its end;
     * ctime_ns: when this was noted, by this node's clock */
    struct version v;
    int64_t told[2]; /* mtimes that utimens has set since the base, or was about to: the last ntold ones */
};

#endif
