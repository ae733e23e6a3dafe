/* options.c - the daemon's command line: `eddyfs [options] PFS_DIR MOUNTPOINT`.
 *
 * Every long option may also be written as -o name=value, so that `mount -t fuse.eddyfs` and fstab work.
 * An option that is neither ours nor mount(8)'s is passed to FUSE.
 */
#include "fs/daemon/options_int.h"

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

/* ---- the table ---- */

enum {
    OPT_CACHE_DIR = 256,
    OPT_CACHE_SIZE,
    OPT_REQUIRE_MOUNT,
    OPT_SINGLETS,
    OPT_SESSION,
    OPT_SESSION_DIR,
    OPT_NODE,
    OPT_LISTEN,
    OPT_WAIT_NODES,
    OPT_WAIT_TIMEOUT,
    OPT_SUSPECT_AFTER,
    OPT_DEAD_AFTER,
    OPT_LEASE,
    OPT_OPEN_WAIT,
    OPT_CHUNK_SIZE,
    OPT_FLUSH,
    OPT_FLUSH_WAIT,
    OPT_FLUSH_WRITERS,
    OPT_FLUSH_LIMIT,
    OPT_DIRTY_HIGH,
    OPT_DIRTY_LOW,
    OPT_DIRTY_AGE,
    OPT_FSYNC,
    OPT_ATTR_TIMEOUT,
    OPT_NEGATIVE_TIMEOUT,
    OPT_IMMUTABLE,
    OPT_NO_PASSTHROUGH,
    OPT_MEMORY,
    OPT_USER,
    OPT_ON_FAILURE,
    OPT_SUPERVISE,
    OPT_NO_SUPERVISE,
    OPT_LOG,
    OPT_LOG_LEVEL,
};

static const struct option_help {
    const char *name, *value;
    int code;
    const char *help;
} table[] = {
    {"foreground", NULL, 'f', "stay in the foreground and log to standard error"},
    {"cache-dir", "DIR", OPT_CACHE_DIR,
     "node-local cache ($EDDY_CACHE_DIR, else ${TMPDIR:-/tmp}/eddyfs-UID/NAME-of-mount)"},
    {"cache-size", "SIZE", OPT_CACHE_SIZE,
     "bytes with K, M, G, T, or N% of its file system (80 % of what is free, shared by its "
     "daemons)"},
    {"singlets", "N%", OPT_SINGLETS,
     "so much of the clean part of the cache at most is kept for nodes that need their room; 0: nothing (50%)"},
    {"require-mount", "DIR", OPT_REQUIRE_MOUNT,
     "do not start unless something is mounted at DIR, which is PFS_DIR or above it"},
    {"session", "NAME", OPT_SESSION,
     "nodes of one session share a cache ($EDDY_SESSION, else the Slurm job's number, else "
     "default)"},
    {"session-dir", "DIR", OPT_SESSION_DIR,
     "where sessions meet, on the PFS (PFS_DIR/.eddyfs-UID)"},
    {"node", "NAME", OPT_NODE, "this node's name (the host name)"},
    {"listen", "ADDR[:PORT]", OPT_LISTEN,
     "the address at which other nodes reach this one (the host's first, else loopback)"},
    {"wait-nodes", "N", OPT_WAIT_NODES, "wait until N nodes have joined (1)"},
    {"wait-timeout", "SEC", OPT_WAIT_TIMEOUT, "... for at most this long, then fail (60)"},
    {"suspect-after", "SEC", OPT_SUSPECT_AFTER,
     "after this silence a node is asked twice more, and then others serve in its place (3)"},
    {"dead-after", "SEC", OPT_DEAD_AFTER, "after this silence the others go on without it (10)"},
    {"lease", "SEC", OPT_LEASE,
     "how long a node may decide after its last look at the session directory; longer for a PFS "
     "with slow look-ups (4)"},
    {"open-wait", "SEC", OPT_OPEN_WAIT,
     "how long an open or a lock waits for a decision; then it fails with EIO (30)"},
    {"chunk-size", "SIZE", OPT_CHUNK_SIZE,
     "unit of caching, 64K to 16M, a power of two, the same on all nodes (1M)"},
    {"flush", "POLICY", OPT_FLUSH, "when to write back: idle, immediate, close or end (idle)"},
    {"flush-wait", "SEC", OPT_FLUSH_WAIT,
     "this long without I/O is a lull; auto: learned from the application's pauses (1.0)"},
    {"flush-writers", "N", OPT_FLUSH_WRITERS, "files written back at a time (4)"},
    {"flush-limit", "RATE", OPT_FLUSH_LIMIT,
     "bytes per second written back at most, with K, M, G; 0: no limit (0)"},
    {"dirty-high", "N%", OPT_DIRTY_HIGH,
     "when this much of the cache is dirty, it is written back whatever happens (60%)"},
    {"dirty-low", "N%", OPT_DIRTY_LOW, "... down to this much (40%)"},
    {"dirty-age", "SEC", OPT_DIRTY_AGE,
     "data that is dirty for longer is written back without a lull; 0: never (600)"},
    {"fsync", "MODE", OPT_FSYNC,
     "fsync returns when data is on the node's disk (local) or on the PFS (pfs) (local)"},
    {"attr-timeout", "SEC", OPT_ATTR_TIMEOUT,
     "names and attributes that other nodes change are seen within this time (1.0)"},
    {"negative-timeout", "SEC", OPT_NEGATIVE_TIMEOUT,
     "how long \"no such file\" is remembered (0)"},
    {"immutable", "PATH", OPT_IMMUTABLE,
     "nothing below PATH ever changes, and no name is made there (may be repeated)"},
    {"no-passthrough", NULL, OPT_NO_PASSTHROUGH,
     "read and write through the daemon also where the kernel could do it"},
    {"memory", "SIZE", OPT_MEMORY, "bound on buffers (256M)"},
    {"user", "USER", OPT_USER,
     "for root: mount for this user (name or number), and run as this user with CAP_SYS_ADMIN "
     "alone"},
    {"on-failure", "WHAT", OPT_ON_FAILURE,
     "chunks of a node that left: recache (the next node reads them from the PFS once and stores "
     "them) or redirect (they are read from the PFS each time, for comparison) (recache)"},
    {"supervise", NULL, OPT_SUPERVISE,
     "start the daemon again when it dies by a signal (the default in the background)"},
    {"no-supervise", NULL, OPT_NO_SUPERVISE, "... do not (the default in the foreground)"},
    {"log", "FILE", OPT_LOG, "(standard error in the foreground, else CACHE_DIR/eddyfs.log)"},
    {"log-level", "LEVEL", OPT_LOG_LEVEL, "error, warn, info or debug (info)"},
    {"version", NULL, 'V', "print the version"},
    {"help", NULL, 'h', "print this"},
};

void options_help(void)
{
    puts("usage: eddyfs [options] PFS_DIR MOUNTPOINT\n"
         "Mounts a cache of PFS_DIR at MOUNTPOINT, shared by the nodes of one session.\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s--%s%s%s",
                 table[i].code < 256 ? (char[]){'-', (char)table[i].code, ',', ' ', 0} : "    ",
                 table[i].name, table[i].value ? " " : "", table[i].value ? table[i].value : "");
        printf("  %-30s %s\n", left, table[i].help);
    }
    puts("  -o OPT[,OPT]                   every long option above as name=value, and FUSE's own: "
         "allow_other, ro, ...\n"
         "\nExit codes: 0 unmounted with everything on the PFS, 1 failed, 2 wrong usage, 3 data is "
         "not on the PFS (it is kept\n"
         "in the cache directory). See eddyfs(1) and eddy(1).");
}

static int set_option(int code, const char *name, const char *v)
{
    uint64_t n;
    int err = 0;
    switch (code) {
    case 'f':
        settings.foreground = true;
        return 0;
    case 'V':
        options_out->version = true;
        return 0;
    case 'h':
        options_out->help = true;
        return 0;
    case OPT_NO_PASSTHROUGH:
        settings.passthrough = false;
        return 0;
    case OPT_ON_FAILURE:
        settings.redirect = !strcmp(v, "redirect");
        return settings.redirect || !strcmp(v, "recache")
                   ? 0
                   : options_complain("--%s %s: give recache or redirect", name, v);
    case OPT_SUPERVISE:
    case OPT_NO_SUPERVISE:
        settings.supervise = code == OPT_SUPERVISE;
        options_out->supervise_given = true;
        return 0;
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
        return *v ? 0 : options_complain("--listen: give an address");
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
    case OPT_USER:
        return option_take_user(v);
    case OPT_LOG:
        settings.log_file = v;
        return *v ? 0 : options_complain("--log: give a file");
    case OPT_LOG_LEVEL:
        return option_take_log_level(name, v);
    }
    return -EINVAL;
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
    const char *names[ARRAY_LEN(table)];
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)len, word);
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        names[i] = table[i].name;
    const char *meant = suggest(name, names, ARRAY_LEN(names));
    return options_complain("-o %s: neither an option of eddyfs nor one of FUSE that it takes%s%s%s", word,
                            meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* user=NAME is mount(8)'s: the user that may unmount. */
static int take_word(char *word)
{
    char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : strlen(word);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strlen(table[i].name) != len || strncmp(table[i].name, word, len) ||
            table[i].code == 'h' || table[i].code == 'V' || table[i].code == OPT_USER)
            continue;
        if (!table[i].value != !value)
            return options_complain("-o %s: %s", word,
                                    value ? "takes no value" : "needs a value: -o name=value");
        return set_option(table[i].code, table[i].name, value ? value + 1 : NULL);
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

static int take_arguments(int argc, char **argv)
{
    struct option longs[ARRAY_LEN(table) + 1];
    char why[SUGGEST_WHY];
    int c, err = 0;
    memset(longs, 0, sizeof(longs));
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        longs[i] = (struct option){table[i].name, table[i].value ? required_argument : no_argument,
                                   NULL, table[i].code};
    while (!err && (c = option_next(argc, argv, "fo:Vh", longs, why)) != -1) {
        if (c == '?')
            err = options_complain("%s", why);
        else if (c == 'o')
            err = take_words(optarg);
        else
            for (size_t i = 0; i < ARRAY_LEN(table); i++)
                if (table[i].code == c)
                    err = set_option(c, table[i].name, optarg);
    }
    return err;
}

int options_parse(int argc, char **argv, struct options *o)
{
    options_out = o;
    options_set_defaults();
    int err = take_arguments(argc, argv);
    if (err || o->help || o->version)
        return err;
    if (argc - optind != 2)
        return options_complain("give two directories: eddyfs [options] PFS_DIR MOUNTPOINT");
    settings.pfs_dir = argv[optind];
    settings.mountpoint = argv[optind + 1];
    return options_complete();
}
