/* main.c - the daemon: options, checks, daemonising, the parts, the end.
 */
#include <stdio.h>

#include "config.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options.h"
#include "fs/daemon/signals.h"
#include "fs/daemon/supervise.h"
#include "fs/mount.h"
#include "fs/settings.h"
#include "fs/uring.h"
#include "placement/store/cachedir.h"
#include "transport/message.h"
#include "transport/peer.h"

static struct options options;

static int run(enum start how)
{
    signals_start(leave_now);
    if (set_up_process())
        return EXIT_FAILED;
    if (how != START_FIRST && check_directories_again(how == START_AGAIN))
        return EXIT_FAILED;
    if (steps_start(&options, how == START_RECOVERY ? "flush" : NULL, leave_to_other)) {
        steps_stop(NULL);
        return EXIT_FAILED;
    }
    if (how == START_RECOVERY)
        return recover();
    say_ready();
    supervise_ready();
    return serve();
}

static void print_version(void)
{
    printf("eddyfs %s (libfuse %s, cache format %u, protocol %d%s)\n", EDDY_VERSION, fuse_pkgversion(),
           CACHE_FORMAT, MSG_VERSION >> 8, uring_is_built() ? ", io_uring" : "");
}

/* Nothing is mounted. */
static bool print_instead(void)
{
    if (options.help)
        options_help();
    else if (options.version)
        print_version();
    else if (options.list_options)
        option_print_list();
    else if (options.show_config)
        options_show_config();
    else
        return false;
    return true;
}

/* A script must not take a part for all of it. */
static int end_of_output(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_OK;
    perror("eddyfs: standard output");
    return EXIT_FAILED;
}

int main(int argc, char **argv)
{
    if (options_parse(argc, argv, &options))
        return EXIT_USAGE;
    if (print_instead())
        return end_of_output();
    if (peer_reexec(settings.listen, argv))
        return EXIT_FAILED;
    if (settings.as_user && mount_user_begin())
        return EXIT_FAILED;
    log_open(NULL, options.log_level, settings.node);
    options_say_notes();
    if (check_directories())
        return EXIT_FAILED;
    daemonise();
    return run(settings.supervise ? supervise(options.log_level) : START_FIRST);
}
