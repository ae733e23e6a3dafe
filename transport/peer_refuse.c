/* peer_refuse.c - what a handler does with a message that is well formed, but says what cannot be (peer.h). */
#include <errno.h>

#include "transport/complaint.h"
#include "transport/members.h"
#include "transport/peer.h"

void peer_refuse(struct msg *m)
{
    count(bad_messages, 1);
    complain_of_node(members_name(m->head.sender), "a %s out of bounds", msg_name(m->head.type));
    if (m->head.flags & MSG_F_WANTS)
        peer_reply_error(m, -EINVAL);
    msg_free(m);
}
