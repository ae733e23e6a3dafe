/* session_leave.c - the open session is over, or ends with this node (session_end.h). */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "transport/session.h"
#include "transport/session_end.h"
#include "transport/session_int.h"

bool session_is_over(const struct view *newest, int err)
{
    return (newest && newest->closed) || err == -ESTALE || (err == -ENOENT && !session_has_settings(session_dirfd()));
}

int session_end(uint64_t self)
{
    session_remove_node(self);
    int base = open(session_base(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return -errno;
    int err = session_end_dir(base, session_name(), session_dirfd());
    close(base);
    if (!err && session_base_is_default())
        (void)rmdir(session_base()); /* there may be other sessions */
    return err;
}
