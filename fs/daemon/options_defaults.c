/* options_defaults.c - defaults of options that were not given, and checks of options that must fit together.
 * */
#include "fs/daemon/options_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/daemon/paths.h"
#include "fs/settings.h"
#include "transport/times.h"

/* systemd's way of writing a path as one name: '/' is '-', '-' is \x2d.  So two paths never give the same
 * name. */
static char *name_of_path(const char *path)
{
    char *name = xmalloc(4 * strlen(path) + 8), *p = name;
    while (*path == '/')
        path++;
    for (; *path; path++) {
        if (*path == '/')
            *p++ = '-';
        else if (*path == '-' || *path == '\\')
            p += sprintf(p, "\\x%02x", (unsigned char)*path);
        else
            *p++ = *path;
    }
    *p = '\0';
    if (!*name)
        strcpy(name, "-");
    return name;
}

static void default_cache_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir, *name;
    if (settings.cache_dir)
        return;
    name = name_of_path(settings.mountpoint);
    if (asprintf(&dir, "%s/eddyfs-%u/%s", tmp && *tmp ? tmp : "/tmp", (unsigned)settings.user,
                 name) < 0)
        die("out of memory");
    free(name);
    settings.cache_dir = dir;
    settings.cache_dir_is_default = true;
}

static int default_session(void)
{
    const char *job = getenv("SLURM_JOB_ID"),
               *restart = getenv("SLURM_RESTART_COUNT");
    char *name;
    if (settings.session)
        return 0;
    if (!job || !*job) {
        settings.session = "default";
        return 0;
    }
    if (asprintf(&name, "%s%s%s", job, restart && *restart && strcmp(restart, "0") ? "." : "",
                 restart && *restart && strcmp(restart, "0") ? restart : "") < 0)
        die("out of memory");
    return option_take_name("session ($SLURM_JOB_ID)", name, &settings.session);
}

static int default_node(void)
{
    char host[256];
    if (settings.node)
        return 0;
    if (gethostname(host, sizeof(host)))
        return options_complain("the host has no name: give one with --node");
    host[sizeof(host) - 1] = '\0';
    return option_take_name("node (host name)", xstrdup(host), &settings.node);
}

static void default_session_dir(void)
{
    char *dir;
    if (asprintf(&settings.hidden, ".eddyfs-%u", (unsigned)getuid()) < 0)
        die("out of memory");
    if (options_out->session_dir) {
        settings.session_dir = options_out->session_dir;
        return;
    }
    if (asprintf(&dir, "%s/%s", settings.pfs_dir, settings.hidden) < 0)
        die("out of memory");
    settings.session_dir = dir;
}

void options_set_defaults(void)
{
    settings = (struct settings){
        .user = geteuid(),
        .passthrough = true,
        .attr_timeout = 1.0,
        .chunk_size = 1u << 20,
        .memory = 256u << 20,
        .singlets = 50,
        .wait_nodes = 1,
        .wait_timeout = 60,
    };
    times = TIMES_DEFAULT;
    *options_out = (struct options){
        .flush = {.policy = FLUSH_IDLE, .wait_ms = 1000, .writers = 4, .dirty_age_ms = 600000},
        .log_level = LOG_LEVEL_INFO};
}

/* Paths must hold when the daemon's working directory is "/".  A mount point may be a dead mount:
 * only its parent is looked at. */
static char *absolute(const char *path)
{
    char *full;
    if (*path == '/')
        return options_keep(xstrdup(path));
    char *cwd = getcwd(NULL, 0);
    if (!cwd || asprintf(&full, "%s/%s", cwd, path) < 0)
        die("the working directory: %s", strerror(errno));
    free(cwd);
    return options_keep(full);
}

/* What is behind dir, or NULL: path is not in it. */
static const char *path_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    while (len && dir[len - 1] == '/')
        len--;
    return !strncmp(path, dir, len) && (!path[len] || path[len] == '/') ? path + len : NULL;
}

/* NULL: it has "..". */
static const char *plain_path(const char *path)
{
    char *plain = options_keep(xstrdup(path));
    return path_make_plain(plain) ? plain : NULL;
}

/* given: absolute.  What of it is in dir, as a path from there on; "": all of dir; NULL: nothing. */
static const char *part_in(const char *given, const char *dir)
{
    const char *path = path_in(given, dir), *plain = plain_path(dir);
    return path ? path + strspn(path, "/") : plain && path_in(plain, given) ? "" : NULL;
}

static int complete_immutable(void)
{
    char *real = realpath(settings.pfs_dir, NULL);
    for (unsigned n = 0; n < settings.nimmutable; n++) {
        const char *given = settings.immutable[n], *path = given;
        if (*given == '/')
            path = part_in(given, settings.pfs_dir);
        if (!path && real)
            path = part_in(given, real);
        if (path)
            path = plain_path(path);
        if (!path) {
            free(real);
            return options_complain(
                "--immutable %s: is not below the PFS directory %s, or has \"..\"", given,
                settings.pfs_dir);
        }
        settings.immutable[n] = path;
    }
    free(real);
    return 0;
}

/* If one of the two is given, the other's default is moved so that both fit. */
static int complete_marks(void)
{
    unsigned *high = &options_out->flush.dirty_high, *low = &options_out->flush.dirty_low;
    if (!*high)
        *high = MAX(60u, *low + 1);
    if (!*low)
        *low = MIN(40u, *high - 1);
    return *low < *high
               ? 0
               : options_complain("--dirty-low %u%% must be below --dirty-high %u%%", *low, *high);
}

static int complete_times(void)
{
    char why[256];
    return times_check(&times, why, sizeof(why)) ? options_complain("%s", why) : 0;
}

int options_complete(void)
{
    int err;
    settings.pfs_dir = absolute(settings.pfs_dir);
    settings.mountpoint = absolute(settings.mountpoint);
    default_cache_dir();
    settings.cache_dir = absolute(settings.cache_dir);
    err = default_session();
    if (!err)
        err = default_node();
    if (!err)
        err = complete_immutable();
    if (err)
        return err;
    if (options_out->session_dir)
        options_out->session_dir = absolute(options_out->session_dir);
    if (settings.log_file)
        settings.log_file = absolute(settings.log_file);
    settings.several_users = settings.allow_other && !settings.user;
    if (!options_out->supervise_given)
        settings.supervise = !settings.foreground;
    err = complete_times();
    return err ? err : complete_marks();
}

/* To be called after main has resolved the paths. */
void options_session_dir(void)
{
    default_session_dir();
}
