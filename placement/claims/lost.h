/* lost.h - the files whose latest bytes are on nodes that left, by name: for status.
 *
 * They are in the dirty lists of the absent nodes in the session directory, except for forgotten files.
 * pool_session reads the lists when a view is adopted and when somebody asks, at most every 2 s.  The answer
 * is what was read last.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOST_H
#define EDDY_PLACEMENT_CLAIMS_LOST_H

#include "transport/members.h"
#include "transport/view.h"

/* So many are kept by name, some 10 MiB; of more the number is. */
#define LOST_FILES_MAX 100000u

struct lost_file {
    struct fid fid;
    uint64_t node;
    char node_name[NODE_NAME_MAX + 1];
    int64_t since_s; /* real time: when this node heard that the other one is away */
    char *path;      /* relative to the PFS directory */
};

/* A view was adopted (NULL: none).  Network thread. */
void lost_look(const struct view *v);
/* Any thread; stops when cb returns something other than 0, and returns that. */
int lost_each(int (*cb)(void *arg, const struct lost_file *l), void *arg);
/* How many more there were when they were read last.  Any thread. */
uint64_t lost_left_out(void);
void lost_stop(void); /* after pools_stop */

#endif
