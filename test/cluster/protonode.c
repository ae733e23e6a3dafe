/* protonode.c - a node without a mount: for tests of views, claims and locks.
 *
 *   protonode --pfs DIR --session-dir DIR --cache-dir DIR --node NAME [--session NAME] [--wait-timeout SEC]
 *             [--listen ADDR] [--lie]
 *
 * With --lie it answers FETCH, all wrong (protolie.h), and KEEP, as it was told.
 *
 * Reads commands from standard input, a line each: TAG COMMAND ARGUMENT...  Each is answered by one
 * line, those that wait when they are done, so not in order:
 *
 *   TAG ANSWER... @FROM-TO
 *
 * FROM: when the command was taken up, TO: when it was done (CLOCK_BOOTTIME, ns, the same for all
 * nodes of a host).  An error is answered as its name (EIO).  PATH is below the PFS directory.
 *
 *   where PATH|FID                            HERE | PFS | NODE name size | LOST name
 *   open-writer PATH                          HERE | NODE name
 *   close-writer PATH                         OK
 *   write PATH OFFSET TEXT                    OK: into the store; the claim must be here.  The file is dirty from then on
 *   read PATH                                 "TEXT": of a file that is HERE
 *   lock PATH fcntl|flock r|w START END OWNER [wait]     OK | EAGAIN | EINTR | EIO
 *   unlock PATH fcntl|flock START END OWNER   OK
 *   test PATH fcntl|flock r|w START END OWNER free | r START END | w START END
 *   drop PATH fcntl|flock OWNER               OK: all locks of this owner on the file
 *   cancel TAG                                OK: the lock command of that tag does not wait any more
 *   number                                    the number that a lock request would have now
 *   late PATH fcntl|flock r|w START END OWNER NUMBER [unlock]     what the home says to a request of that number: sent as it is,
 *                                             and what it does is not known to this node
 *   look PATH stat|open                       PFS keep | PFS - | HERE keep | NODE name | LOST name: - if nothing may be kept;
 *                                             open: it is open from now on
 *   closed PATH                               OK: it is not any more
 *   holds PATH                                yes | no: has no BREAK come since the last look?
 *   looks                                     sent N received N (BREAKs) open N (files) lookers N (that this home knows)
 *                                             ended N (files, since the first "left")
 *   lookers PATH                              lookers NAME:stat NAME:open NAME:quiet any:open ...: that this node, its home, knows
 *   left BITS                                 OK: what it says to each BREAK from now on (LOOKER_...)
 *   watchers PATH                             watchers NAME:BITS ... [all]: of a claim of this node
 *   break NAME PATH                           OK | ask again: what that node says to a BREAK of this one
 *   pretend-looks N                           OK: N more files are open here
 *   has PATH N                                said N: it says to owners of the file's first N chunks that it has them
 *   says yes|silent|error|other|die           OK: what it answers to KEEP from now on (yes, at the start), and keeps nothing
 *   asked                                     N: KEEPs that it got
 *   keep NAME PATH N M                        yes N lies N at once N: M KEEPs of the file's first N chunks, which are not its own, and of such that
 *                                             nobody has, at once to that node; to how many chunks it says yes
 *   ring PATH                                 home next (names)
 *   view                                      NUMBER NAME,NAME absent NAME,... lease 0|1 settled 0|1
 *   status                                    claims N records N locks N lost N
 *   pretend N                                 OK: it says from the next view on that it has claims on N files more
 *   leave                                     OK | ETIMEDOUT: gives back its clean claims and leaves the session
 *   quit                                      OK: ends, without leaving
 *
 * The end of the input is a quit.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_open.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/view.h"

#include "proto/commands.h"
#include "protolie.h"

#define CHUNK_SIZE (1u << 20)

static struct {
    const char *pfs, *session_dir, *session, *cache_dir, *node, *listen;
    unsigned wait_timeout;
    bool lie;
} settings = {.session = "test", .listen = "127.0.0.1", .wait_timeout = 60};

int pfs_fd;

/* ---- start and end, in the order of fs/daemon/steps.c ---- */

static void check(int code, const char *what, const char *err)
{
    if (!code)
        return;
    fprintf(stderr, "protonode: %s: %s\n", what, err && err[0] ? err : strerror(-code));
    exit(1);
}

static void handle_fetch(struct msg *m)
{
    lie_about(m, pfs_fd, CHUNK_SIZE);
}

static void start(void)
{
    char err[1024] = "";
    struct store_config store = {
        .dir = settings.cache_dir, .size = 64u << 20, .chunk_size = CHUNK_SIZE};
    struct session_config session = {
        .dir = settings.session_dir, .name = settings.session, .chunk_size = CHUNK_SIZE};
    struct peer_config peer = {.listen = settings.listen,
                               .name = settings.node,
                               .chunk_size = CHUNK_SIZE,
                               .memory = 64u << 20};
    struct members_config members = {.ops = claim_members_ops};

    check(store_open(&store, err, sizeof(err)), "store", err);
    claim_start();
    check(loop_start(), "loop", NULL);
    check(session_open(&session, err, sizeof(err)), "session", err);
    check(pfs_open(settings.pfs, ".hidden", 256, err, sizeof(err)), "pfs", err);
    home_start(1000);
    check(pools_start(), "pools", NULL);
    peer.id = store_node_id();
    peer.incarnation = store_incarnation();
    if (settings.lie) {
        peer_handle(MSG_FETCH, handle_fetch);
        keeps_start();
    }
    check(peer_start(&peer, err, sizeof(err)), "peer", err);
    members.former = store_former_incarnation();
    members.self = (struct member){.id = peer.id, .incarnation = peer.incarnation, .weight = 100};
    snprintf(members.self.name, sizeof(members.self.name), "%s", settings.node);
    snprintf(members.self.addr, sizeof(members.self.addr), "%s", peer_address());
    members_start(&members);
    check(members_look_for_twin(settings.wait_timeout, err, sizeof(err)), "twin", err);
    check(claim_recover(), "recover", NULL);
    check(members_join(1, settings.wait_timeout, err, sizeof(err)), "join", err);
}

static void stop(void)
{
    peer_stop();
    members_stop();
    home_stop();
    pools_stop();
    pfs_data_stop();
    pfs_close();
    session_close();
    loop_stop();
    claim_stop();
    store_close(true);
}

static void options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"pfs", required_argument, NULL, 'p'},
        {"session-dir", required_argument, NULL, 'd'},
        {"session", required_argument, NULL, 's'},
        {"cache-dir", required_argument, NULL, 'c'},
        {"node", required_argument, NULL, 'n'},
        {"wait-timeout", required_argument, NULL, 't'},
        {"listen", required_argument, NULL, 'a'},
        {"lie", no_argument, NULL, 'l'},
        {0},
    };
    int o;

    while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (o) {
        case 'p':
            settings.pfs = optarg;
            break;
        case 'd':
            settings.session_dir = optarg;
            break;
        case 's':
            settings.session = optarg;
            break;
        case 'c':
            settings.cache_dir = optarg;
            break;
        case 'n':
            settings.node = optarg;
            break;
        case 'a':
            settings.listen = optarg;
            break;
        case 't':
            settings.wait_timeout = (unsigned)atoi(optarg);
            break;
        case 'l':
            settings.lie = true;
            break;
        default:
            exit(2);
        }
    }
    if (!settings.pfs || !settings.session_dir || !settings.cache_dir || !settings.node) {
        fprintf(stderr, "protonode: an option is missing\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    options(argc, argv);
    check(peer_reexec(settings.listen, argv), "exec", NULL);
    log_open(NULL, LOG_LEVEL_INFO, settings.node);
    pfs_fd = open(settings.pfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    check(pfs_fd < 0 ? -errno : 0, settings.pfs, NULL);
    start();
    printf("ready\n");
    fflush(stdout);
    serve();
    stop();
    close(pfs_fd);
    return 0;
}
