/* last_view.h - the view that is shown. */
#ifndef EDDY_FS_DAEMON_LAST_VIEW_H
#define EDDY_FS_DAEMON_LAST_VIEW_H

#include "transport/view.h"

/* The view this node is in, else the last one it was in; NULL: none yet.  Any thread. */
const struct view *last_view(void);

#endif
