/* options.c - the daemon's command line: `eddyfs [options] PFS_DIR MOUNTPOINT`.
 *
 * Every long option may also be written as -o name=value, so that `mount -t fuse.eddyfs` and fstab work.
 * An option that is neither ours nor mount(8)'s is passed to FUSE.
 */
#include "fs/daemon/options_int.h"

#include "fs/daemon/option_choice.h"
#include "fs/daemon/metrics_address.h"
#include "fs/daemon/option_table.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/mount.h"
#include "fs/settings.h"
#include "transport/suggest.h"
#include "transport/times.h"
#include "transport/view.h"

void options_help(void)
{
    puts("usage: eddyfs [options] PFS_DIR MOUNTPOINT\n"
         "Mounts a cache of PFS_DIR at MOUNTPOINT, shared by the nodes of one session.\n");
    option_print_help();
    puts("  -o OPT[,OPT]                   every long option above as name=value, and FUSE's own: "
         "allow_other, ro, ...\n"
         "\nAn option that is not given is taken from the environment (EDDY_CACHE_DIR for --cache-dir), ~/.config/eddyfs.conf or "
         "/etc/eddyfs.conf;\neddyfs --show-config says what comes from where.\n"
         "\nExit codes: 0 mounted; with -f: unmounted, and everything is on the PFS. 1 failed. 2 wrong usage. 3 with -f: unmounted, and data is not "
         "on the PFS\n(it is kept in the cache directory). See eddyfs(1) and eddy(1).");
}

static int set_flag(int code, bool yes)
{
    if (code == 'f')
        settings.foreground = yes;
    else if (code == OPT_PASSTHROUGH)
        settings.passthrough = yes;
    else if (code == OPT_URING)
        settings.uring = yes;
    else if (code == OPT_SUPERVISE) {
        settings.supervise = yes;
        options_out->supervise_given = true;
    }
    return 0;
}

static int take_metrics(const char *v)
{
    union metrics_address a;
    socklen_t len;
    settings.metrics = v;
    return metrics_address(v, &a, &len) ? options_complain("--metrics %s: give PORT, ADDR:PORT or unix:PATH (absolute)", v) : 0;
}

static int set_option(int code, const char *name, const char *v)
{
    uint64_t n;
    int err = 0;
    switch (code) {
    case 'f':
    case OPT_PASSTHROUGH:
    case OPT_URING:
    case OPT_SUPERVISE:
        return set_flag(code, !strcmp(v, "yes"));
    case OPT_ON_FAILURE:
        settings.redirect = !strcmp(v, "redirect");
        return settings.redirect || !strcmp(v, "recache")
                   ? 0
                   : options_complain("--%s %s: give recache or redirect", name, v);
    case OPT_CACHE_DIR:
        settings.cache_dir = v;
        return *v ? 0 : options_complain("--cache-dir: give a directory");
    case OPT_CACHE_SIZE:
        return option_take_cache_size(name, v);
    case OPT_REQUIRE_MOUNT:
        settings.require_mount = v;
        return *v == '/' ? 0 : options_complain("--require-mount: give an absolute path");
    case OPT_SESSION:
        return option_take_name(name, v, &settings.session);
    case OPT_SESSION_DIR:
        options_out->session_dir = v;
        return *v ? 0 : options_complain("--session-dir: give a directory");
    case OPT_NODE:
        return option_take_name(name, v, &settings.node);
    case OPT_LISTEN:
        settings.listen = v;
        return option_check_listen(v);
    case OPT_WAIT_NODES:
        return option_take_number(name, v, 1, SESSION_MAX_MEMBERS, &settings.wait_nodes);
    case OPT_WAIT_TIMEOUT:
        return option_take_number(name, v, 1, 86400, &settings.wait_timeout);
    case OPT_SUSPECT_AFTER:
        return option_take_time(name, v, &times.suspect);
    case OPT_DEAD_AFTER:
        return option_take_time(name, v, &times.dead);
    case OPT_LEASE:
        return option_take_time(name, v, &times.lease);
    case OPT_OPEN_WAIT:
        return option_take_time(name, v, &times.open);
    case OPT_CHUNK_SIZE:
        return option_take_chunk_size(name, v);
    case OPT_FLUSH:
        return option_take_policy(name, v);
    case OPT_FLUSH_WAIT:
        return option_take_wait(name, v);
    case OPT_FLUSH_WRITERS:
        return option_take_number(name, v, 1, 64, &options_out->flush.writers);
    case OPT_FLUSH_LIMIT:
        return option_take_size(name, v, 0, UINT64_MAX / 2, &options_out->flush.limit);
    case OPT_DIRTY_HIGH:
        return option_take_percent(name, v, 2, 90, &options_out->flush.dirty_high);
    case OPT_DIRTY_LOW:
        return option_take_percent(name, v, 1, 89, &options_out->flush.dirty_low);
    case OPT_SINGLETS:
        return option_take_percent(name, v, 0, 90, &settings.singlets);
    case OPT_DIRTY_AGE:
        return option_take_age(name, v);
    case OPT_FSYNC:
        return option_take_fsync(name, v);
    case OPT_ATTR_TIMEOUT:
        return option_take_seconds(name, v, 3600, &settings.attr_timeout);
    case OPT_NEGATIVE_TIMEOUT:
        return option_take_seconds(name, v, 3600, &settings.negative_timeout);
    case OPT_IMMUTABLE:
        return option_take_immutable(name, v);
    case OPT_MEMORY:
        err = option_take_size(name, v, 32u << 20, 1ull << 50, &n);
        settings.memory = err ? 0 : n;
        return err;
    case OPT_RDMA_MEMORY:
        err = option_take_size(name, v, 0, 1ull << 50, &n);
        settings.rdma_memory = err ? 0 : n;
        return err;
    case OPT_RDMA_TRANSPORTS:
        settings.rdma_transports = v;
        return *v ? 0 : options_complain("--rdma-transports: give names of UCX's transports, with commas between");
    case OPT_USER:
        return option_take_user(v);
    case OPT_LOG:
        settings.log_file = v;
        return *v ? 0 : options_complain("--log: give a file");
    case OPT_LOG_LEVEL:
        return option_take_log_level(name, v);
    case OPT_SLOW:
        return option_take_number(name, v, 0, 86400000, &settings.slow_ms);
    case OPT_REPORT:
        settings.report = v;
        return *v == '/' ? 0 : options_complain("--report %s: give an absolute path of a directory", v);
    case OPT_METRICS:
        return take_metrics(v);
    }
    return -EINVAL;
}

/* value: NULL if it has none. */
static int choose_on_command_line(const struct option_entry *o, const char *value)
{
    return choose(o, (struct option_given){.value = value ? value : "yes", .from = FROM_COMMAND});
}

/* ---- -o ---- */

/* mount(8) and fstab pass these; they are for mount(8) itself, or say what is true anyway. */
static bool of_mount(const char *word)
{
    static const char *const words[] = {
        "defaults", "rw",    "auto",    "noauto",   "user",
        "nouser",   "users", "_netdev", "nofail",   "exec",
        "relatime", "async", "atime",   "diratime", "default_permissions"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return !strncmp(word, "x-", 2) || !strncmp(word, "comment=", 8) || !strncmp(word, "user=", 5);
}

/* The options of libfuse and fusermount3 that do not break eddyfs's promises. */
static bool of_fuse(const char *word)
{
    static const char *const words[] = {"noexec",  "noatime",    "nodiratime", "sync",
                                        "dirsync", "allow_root", "debug"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return !strncmp(word, "context=", 8) || !strncmp(word, "fscontext=", 10);
}

/* The last one counts, as with mount(8); without any, neither is trusted. */
static bool take_trust(const char *word)
{
    if (!strcmp(word, "suid") || !strcmp(word, "nosuid"))
        settings.suid = *word == 's';
    else if (!strcmp(word, "dev") || !strcmp(word, "nodev"))
        settings.dev = *word == 'd';
    else
        return false;
    return true;
}

static int complain_of_word(const char *word, size_t len)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)len, word);
    const char *meant = option_meant(name);
    return options_complain("-o %s: neither an option of eddyfs nor one of FUSE that it takes%s%s%s", word,
                            meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* user=NAME is mount(8)'s: the user that may unmount. */
static int take_word(char *word)
{
    char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : strlen(word);
    const struct option_entry *o = option_find(word, len);
    if (o && !(o->flags & OPTION_COMMAND_ONLY) && !memchr(word, '_', len)) {
        if (!o->value != !value)
            return options_complain("-o %s: %s", word,
                                    value ? "takes no value" : "needs a value: -o name=value");
        return choose_on_command_line(o, value ? value + 1 : NULL);
    }
    if (take_trust(word))
        return 0;
    if (!strcmp(word, "allow_other")) {
        settings.allow_other = true;
    } else if (!strcmp(word, "ro")) {
        settings.read_only = true;
    } else if (of_fuse(word)) {
        mount_option(word);
    } else if (*word && !of_mount(word)) {
        return complain_of_word(word, len);
    }
    return 0;
}

static int take_words(const char *list)
{
    char *copy = options_keep(xstrdup(list)), *rest = copy, *word; /* values point into it */
    int err = 0;
    while (!err && (word = strsep(&rest, ",")))
        err = take_word(word);
    return err;
}

/* What is done instead of a mount, and how. */
static bool take_instead(int code)
{
    bool *wanted = code == 'V'                ? &options_out->version
                   : code == 'h'              ? &options_out->help
                   : code == OPT_SHOW_CONFIG  ? &options_out->show_config
                   : code == OPT_LIST_OPTIONS ? &options_out->list_options
                   : code == OPT_JSON         ? &options_out->json
                                              : NULL;
    if (wanted)
        *wanted = true;
    return wanted;
}

static int take_arguments(int argc, char **argv)
{
    struct option longs[64];
    char why[SUGGEST_WHY];
    int c, err = 0;
    memset(longs, 0, sizeof(longs));
    for (size_t i = 0; i < option_count && i < ARRAY_LEN(longs) - 1; i++)
        longs[i] = (struct option){option_table[i].name, option_table[i].value ? required_argument : no_argument,
                                   NULL, option_table[i].code};
    while (!err && (c = option_next(argc, argv, "fo:Vh", longs, why)) != -1) {
        if (c == '?')
            err = options_complain("%s", why);
        else if (c == 'o')
            err = take_words(optarg);
        else if (!take_instead(c))
            for (size_t i = 0; i < option_count; i++)
                if (option_table[i].code == c)
                    err = choose_on_command_line(&option_table[i], optarg);
    }
    return err;
}

static bool was_given(const char *name)
{
    return choice_of(option_find(name, strlen(name)));
}

/* What is wrong with an option is said before what is missing. */
static int complain_of_directories(void)
{
    int err = choose_apply(set_option);
    return err ? err : options_complain("give two directories: eddyfs [options] PFS_DIR MOUNTPOINT");
}

int options_parse(int argc, char **argv, struct options *o)
{
    options_out = o;
    options_set_defaults();
    choose_begin();
    int err = take_arguments(argc, argv), left = argc - optind;
    if (err || o->help || o->version || o->list_options)
        return err;
    if (o->json && !o->show_config)
        return options_complain("--json: goes with --show-config");
    if (left != 2 && !(o->show_config && !left))
        return complain_of_directories();
    settings.pfs_dir = left ? argv[optind] : NULL;
    settings.mountpoint = left ? argv[optind + 1] : NULL;
    err = choose_from_elsewhere(settings.pfs_dir, was_given("user"));
    if (!err)
        err = choose_apply(set_option);
    if (err || !left)
        return err;
    err = options_complete();
    if (err && o->show_config) /* which does not fit together, and where it comes from */
        options_show_config();
    return err;
}
