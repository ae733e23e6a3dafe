/* options.c - the daemon's command line: `eddyfs [options] PFS_DIR MOUNTPOINT`.
 *
 * Every long option is also taken as -o name=value, so that `mount -t fuse.eddyfs` and fstab work;
 * what is neither ours nor one of mount(8)'s own words is FUSE's.
 */
#include "fs/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/store.h"
#include "transport/times.h"

static struct options *out;

static int complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("eddyfs: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs(" (eddyfs -h lists the options)\n", stderr);
    va_end(ap);
    return -EINVAL;
}

/* Strings live as long as the program; here, so that a leak checker sees that they are meant to. */
static char *keep(char *text)
{
    static char **kept;
    static size_t n;
    kept = xrealloc(kept, (n + 1) * sizeof(*kept));
    return kept[n++] = text;
}

/* ---- values ---- */

static int take_size(const char *name, const char *text, uint64_t min, uint64_t max,
                     uint64_t *value)
{
    char lo[32], hi[32];
    int err = size_parse(text, value);
    if (err || *value < min || *value > max)
        return complain("--%s %s: give a size from %s to %s, like 64K, 256M or 2G", name, text,
                        size_format(min, lo, sizeof(lo)), size_format(max, hi, sizeof(hi)));
    return 0;
}

static int take_seconds(const char *name, const char *text, double max, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= 0) || *value > max)
        return complain("--%s %s: give seconds from 0 to %g", name, text, max);
    return 0;
}

static int take_number(const char *name, const char *text, unsigned min, unsigned max,
                       unsigned *value)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || n < min || n > max)
        return complain("--%s %s: give a number from %u to %u", name, text, min, max);
    *value = (unsigned)n;
    return 0;
}

static int take_name(const char *name, const char *text, const char **value)
{
    if (!name_is_plain(text))
        return complain("--%s %s: a name has 1 to 64 letters, digits, '.', '_' or '-', and does "
                        "not begin with '.'",
                        name, text);
    *value = text;
    return 0;
}

/* With or without a "%" behind it. */
static int take_percent(const char *name, const char *text, unsigned min, unsigned max,
                        unsigned *value)
{
    size_t len = strlen(text);
    char *digits = xstrdup(text);
    if (len && text[len - 1] == '%')
        digits[len - 1] = '\0';
    int err = take_number(name, digits, min, max, value);
    free(digits);
    return err;
}

static int take_cache_size(const char *name, const char *text)
{
    size_t len = strlen(text);
    if (len && text[len - 1] == '%')
        return take_percent(name, text, 1, 100, &settings.cache_percent);
    return take_size(name, text, 1 << 20, UINT64_MAX / 2, &settings.cache_size);
}

static int take_chunk_size(const char *name, const char *text)
{
    uint64_t n;
    int err = take_size(name, text, CHUNK_MIN, CHUNK_MAX, &n);
    if (!err && n & (n - 1))
        return complain("--%s %s: must be a power of two", name, text);
    if (!err)
        settings.chunk_size = (uint32_t)n;
    return err;
}

/* As it is written; complete() makes it relative to the PFS directory. */
static int take_immutable(const char *name, const char *text)
{
    if (!*text)
        return complain("--%s: give a path below the PFS directory", name);
    settings.immutable =
        xrealloc(settings.immutable, (settings.nimmutable + 1) * sizeof(*settings.immutable));
    settings.immutable[settings.nimmutable++] = text;
    return 0;
}

static int take_policy(const char *name, const char *text)
{
    if (!flush_policy_parse(text, strlen(text), &out->flush.policy))
        return 0;
    return complain("--%s %s: give idle, immediate, close or end", name, text);
}

static int take_wait(const char *name, const char *text)
{
    double s;
    out->flush.wait_auto = !strcmp(text, "auto");
    int err = out->flush.wait_auto ? 0 : take_seconds(name, text, 86400, &s);
    if (!err && !out->flush.wait_auto)
        out->flush.wait_ms = (uint64_t)(s * 1000);
    return err;
}

static int take_age(const char *name, const char *text)
{
    double s;
    int err = take_seconds(name, text, 1e9, &s);
    if (!err)
        out->flush.dirty_age_ms = (uint64_t)(s * 1000);
    return err;
}

static int take_time(const char *name, const char *text, uint32_t *ms)
{
    double s;
    int err = take_seconds(name, text, 3600, &s);
    if (!err)
        *ms = (uint32_t)(s * 1000);
    return err;
}

static int take_fsync(const char *name, const char *text)
{
    settings.fsync_pfs = !strcmp(text, "pfs");
    return settings.fsync_pfs || !strcmp(text, "local")
               ? 0
               : complain("--%s %s: give local or pfs", name, text);
}

static int take_log_level(const char *name, const char *text)
{
    if (log_level_parse(text, &out->log_level))
        return complain("--%s %s: give error, warn, info or debug", name, text);
    return 0;
}

/* ---- the table ---- */

enum {
    OPT_CACHE_DIR = 256,
    OPT_CACHE_SIZE,
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
    {"session", "NAME", OPT_SESSION,
     "nodes of one session share a cache ($EDDY_SESSION, else the Slurm job's number, else "
     "default)"},
    {"session-dir", "DIR", OPT_SESSION_DIR,
     "where sessions meet, on the PFS (PFS_DIR/.eddyfs-UID)"},
    {"node", "NAME", OPT_NODE, "this node's name (the host name)"},
    {"listen", "ADDR[:PORT]", OPT_LISTEN,
     "the address that other nodes reach (the host's first, else loopback)"},
    {"wait-nodes", "N", OPT_WAIT_NODES, "wait until N nodes have joined (1)"},
    {"wait-timeout", "SEC", OPT_WAIT_TIMEOUT, "... so long, then fail (60)"},
    {"suspect-after", "SEC", OPT_SUSPECT_AFTER,
     "a node that is silent for so long is asked twice more, and then served around (3)"},
    {"dead-after", "SEC", OPT_DEAD_AFTER, "... and after so long the others go on without it (10)"},
    {"lease", "SEC", OPT_LEASE,
     "so long a node decides after its last look at the session directory; longer for a PFS with "
     "slow look-ups (4)"},
    {"open-wait", "SEC", OPT_OPEN_WAIT,
     "an open or a lock waits so long for a decision, then it fails with EIO (30)"},
    {"chunk-size", "SIZE", OPT_CHUNK_SIZE,
     "unit of caching, 64K to 16M, a power of two, the same on all nodes (1M)"},
    {"flush", "POLICY", OPT_FLUSH, "when to write back: idle, immediate, close or end (idle)"},
    {"flush-wait", "SEC", OPT_FLUSH_WAIT,
     "a lull is so long without I/O; auto: learned from the application's pauses (1.0)"},
    {"flush-writers", "N", OPT_FLUSH_WRITERS, "files written back at a time (4)"},
    {"flush-limit", "RATE", OPT_FLUSH_LIMIT,
     "bytes per second written back at most, with K, M, G; 0: no limit (0)"},
    {"dirty-high", "N%", OPT_DIRTY_HIGH,
     "from so much of the cache on it is written back whatever happens (60%)"},
    {"dirty-low", "N%", OPT_DIRTY_LOW, "... down to so much (40%)"},
    {"dirty-age", "SEC", OPT_DIRTY_AGE,
     "older data is written back without a lull; 0: never (600)"},
    {"fsync", "MODE", OPT_FSYNC,
     "fsync returns when data is on the node's disk (local) or on the PFS (pfs) (local)"},
    {"attr-timeout", "SEC", OPT_ATTR_TIMEOUT,
     "names and attributes of other nodes are seen within (1.0)"},
    {"negative-timeout", "SEC", OPT_NEGATIVE_TIMEOUT,
     "... and \"no such file\" is remembered for (0)"},
    {"immutable", "PATH", OPT_IMMUTABLE,
     "nothing below it ever changes, nor does anybody make a name there (may be repeated)"},
    {"no-passthrough", NULL, OPT_NO_PASSTHROUGH,
     "read and write through the daemon also where the kernel could do it"},
    {"memory", "SIZE", OPT_MEMORY, "bound on buffers (256M)"},
    {"user", "USER", OPT_USER,
     "for root: mount for this user (name or number), and run as him with CAP_SYS_ADMIN alone"},
    {"on-failure", "WHAT", OPT_ON_FAILURE,
     "chunks of a node that left: recache (read from the PFS once and kept by the next node) or "
     "redirect (read from the PFS each time, for comparison) (recache)"},
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

/* A name is asked for first: one that is all digits is a name where there is such a user. */
static int take_user(const char *v)
{
    char *end;
    const struct passwd *pw = getpwnam(v);
    unsigned long uid = strtoul(v, &end, 10);
    if (!pw && (!isdigit((unsigned char)*v) || *end || uid >= UINT32_MAX))
        return complain("--user %s: there is no such user", v);
    settings.as_user = true;
    settings.user = pw ? pw->pw_uid : (uid_t)uid;
    if (geteuid())
        return complain("--user: only root can mount for another user");
    return settings.user ? 0 : complain("--user %s: is root: leave it away", v);
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
        out->version = true;
        return 0;
    case 'h':
        out->help = true;
        return 0;
    case OPT_NO_PASSTHROUGH:
        settings.passthrough = false;
        return 0;
    case OPT_ON_FAILURE:
        settings.redirect = !strcmp(v, "redirect");
        return settings.redirect || !strcmp(v, "recache")
                   ? 0
                   : complain("--%s %s: give recache or redirect", name, v);
    case OPT_SUPERVISE:
    case OPT_NO_SUPERVISE:
        settings.supervise = code == OPT_SUPERVISE;
        out->supervise_given = true;
        return 0;
    case OPT_CACHE_DIR:
        settings.cache_dir = v;
        return *v ? 0 : complain("--cache-dir: give a directory");
    case OPT_CACHE_SIZE:
        return take_cache_size(name, v);
    case OPT_SESSION:
        return take_name(name, v, &settings.session);
    case OPT_SESSION_DIR:
        out->session_dir = v;
        return *v ? 0 : complain("--session-dir: give a directory");
    case OPT_NODE:
        return take_name(name, v, &settings.node);
    case OPT_LISTEN:
        settings.listen = v;
        return *v ? 0 : complain("--listen: give an address");
    case OPT_WAIT_NODES:
        return take_number(name, v, 1, SESSION_MAX_MEMBERS, &settings.wait_nodes);
    case OPT_WAIT_TIMEOUT:
        return take_number(name, v, 1, 86400, &settings.wait_timeout);
    case OPT_SUSPECT_AFTER:
        return take_time(name, v, &times.suspect);
    case OPT_DEAD_AFTER:
        return take_time(name, v, &times.dead);
    case OPT_LEASE:
        return take_time(name, v, &times.lease);
    case OPT_OPEN_WAIT:
        return take_time(name, v, &times.open);
    case OPT_CHUNK_SIZE:
        return take_chunk_size(name, v);
    case OPT_FLUSH:
        return take_policy(name, v);
    case OPT_FLUSH_WAIT:
        return take_wait(name, v);
    case OPT_FLUSH_WRITERS:
        return take_number(name, v, 1, 64, &out->flush.writers);
    case OPT_FLUSH_LIMIT:
        return take_size(name, v, 0, UINT64_MAX / 2, &out->flush.limit);
    case OPT_DIRTY_HIGH:
        return take_percent(name, v, 2, 90, &out->flush.dirty_high);
    case OPT_DIRTY_LOW:
        return take_percent(name, v, 1, 89, &out->flush.dirty_low);
    case OPT_DIRTY_AGE:
        return take_age(name, v);
    case OPT_FSYNC:
        return take_fsync(name, v);
    case OPT_ATTR_TIMEOUT:
        return take_seconds(name, v, 3600, &settings.attr_timeout);
    case OPT_NEGATIVE_TIMEOUT:
        return take_seconds(name, v, 3600, &settings.negative_timeout);
    case OPT_IMMUTABLE:
        return take_immutable(name, v);
    case OPT_MEMORY:
        err = take_size(name, v, 32u << 20, 1ull << 50, &n);
        settings.memory = err ? 0 : n;
        return err;
    case OPT_USER:
        return take_user(v);
    case OPT_LOG:
        settings.log_file = v;
        return *v ? 0 : complain("--log: give a file");
    case OPT_LOG_LEVEL:
        return take_log_level(name, v);
    }
    return -EINVAL;
}

/* ---- -o ---- */

/* mount(8) and fstab pass these; they are for mount(8) itself, or say what is so anyway. */
static bool of_mount(const char *word)
{
    static const char *const words[] = {"defaults",
                                        "rw",
                                        "auto",
                                        "noauto",
                                        "user",
                                        "nouser",
                                        "users",
                                        "_netdev",
                                        "nofail",
                                        "exec",
                                        "suid",
                                        "dev",
                                        "relatime",
                                        "async",
                                        "atime",
                                        "diratime",
                                        "default_permissions"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return !strncmp(word, "x-", 2) || !strncmp(word, "comment=", 8) || !strncmp(word, "user=", 5);
}

/* Those of libfuse and fusermount3 that do no harm to what eddyfs promises. */
static bool of_fuse(const char *word)
{
    static const char *const words[] = {"nodev", "nosuid",  "noexec",     "noatime", "nodiratime",
                                        "sync",  "dirsync", "allow_root", "debug"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return !strncmp(word, "context=", 8) || !strncmp(word, "fscontext=", 10);
}

/* user=NAME is mount(8)'s: who may unmount. */
static int take_word(char *word)
{
    char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : strlen(word);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strlen(table[i].name) != len || strncmp(table[i].name, word, len) ||
            table[i].code == 'h' || table[i].code == 'V' || table[i].code == OPT_USER)
            continue;
        if (!table[i].value != !value)
            return complain("-o %s: %s", word,
                            value ? "takes no value" : "needs a value: -o name=value");
        return set_option(table[i].code, table[i].name, value ? value + 1 : NULL);
    }
    if (!strcmp(word, "allow_other")) {
        settings.allow_other = true;
    } else if (!strcmp(word, "ro")) {
        settings.read_only = true;
    } else if (of_fuse(word)) {
        mount_option(word);
    } else if (*word && !of_mount(word)) {
        return complain("-o %s: neither an option of eddyfs nor one of FUSE that it takes", word);
    }
    return 0;
}

static int take_words(const char *list)
{
    char *copy = keep(xstrdup(list)), *rest = copy, *word; /* values point into it */
    int err = 0;
    while (!err && (word = strsep(&rest, ",")))
        err = take_word(word);
    return err;
}

/* ---- what was not given ---- */

/* systemd's way of writing a path as one name: '/' is '-', '-' is \x2d: no two paths give one
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
    const char *env = getenv("EDDY_CACHE_DIR"), *tmp = getenv("TMPDIR");
    char *dir, *name;
    if (settings.cache_dir)
        return;
    if (env && *env) {
        settings.cache_dir = env;
        return;
    }
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
    const char *env = getenv("EDDY_SESSION"), *job = getenv("SLURM_JOB_ID"),
               *restart = getenv("SLURM_RESTART_COUNT");
    char *name;
    if (settings.session)
        return 0;
    if (env && *env)
        return take_name("session ($EDDY_SESSION)", env, &settings.session);
    if (!job || !*job) {
        settings.session = "default";
        return 0;
    }
    if (asprintf(&name, "%s%s%s", job, restart && *restart && strcmp(restart, "0") ? "." : "",
                 restart && *restart && strcmp(restart, "0") ? restart : "") < 0)
        die("out of memory");
    return take_name("session ($SLURM_JOB_ID)", name, &settings.session);
}

static int default_node(void)
{
    char host[256];
    if (settings.node)
        return 0;
    if (gethostname(host, sizeof(host)))
        return complain("the host has no name: give one with --node");
    host[sizeof(host) - 1] = '\0';
    return take_name("node (host name)", xstrdup(host), &settings.node);
}

static void default_session_dir(void)
{
    char *dir;
    if (asprintf(&settings.hidden, ".eddyfs-%u", (unsigned)getuid()) < 0)
        die("out of memory");
    if (out->session_dir) {
        settings.session_dir = out->session_dir;
        return;
    }
    if (asprintf(&dir, "%s/%s", settings.pfs_dir, settings.hidden) < 0)
        die("out of memory");
    settings.session_dir = dir;
}

static void set_defaults(void)
{
    settings = (struct settings){
        .user = geteuid(),
        .passthrough = true,
        .attr_timeout = 1.0,
        .chunk_size = 1u << 20,
        .memory = 256u << 20,
        .wait_nodes = 1,
        .wait_timeout = 60,
    };
    times = TIMES_DEFAULT;
    *out = (struct options){
        .flush = {.policy = FLUSH_IDLE, .wait_ms = 1000, .writers = 4, .dirty_age_ms = 600000},
        .log_level = LOG_LEVEL_INFO};
}

/* Paths must hold when the daemon's working directory is "/".  A mount point may be a dead mount:
 * only its parent is looked at. */
static char *absolute(const char *path)
{
    char *full;
    if (*path == '/')
        return keep(xstrdup(path));
    char *cwd = getcwd(NULL, 0);
    if (!cwd || asprintf(&full, "%s/%s", cwd, path) < 0)
        die("the working directory: %s", strerror(errno));
    free(cwd);
    return keep(full);
}

/* What is behind dir, or NULL: path is not in it. */
static const char *path_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    while (len && dir[len - 1] == '/')
        len--;
    return !strncmp(path, dir, len) && (!path[len] || path[len] == '/') ? path + len : NULL;
}

/* The names of a path joined by single '/', without "."; NULL: it has "..". */
static char *plain_path(const char *path)
{
    char *words = keep(xstrdup(path)), *plain = keep(xcalloc(1, strlen(path) + 1)), *end = plain,
         *word;
    while ((word = strsep(&words, "/"))) {
        if (!strcmp(word, ".."))
            return NULL;
        if (*word && strcmp(word, "."))
            end += sprintf(end, "%s%s", end > plain ? "/" : "", word);
    }
    return plain;
}

static int complete_immutable(void)
{
    char *real = realpath(settings.pfs_dir, NULL);
    for (unsigned n = 0; n < settings.nimmutable; n++) {
        const char *given = settings.immutable[n], *path = given;
        if (*given == '/')
            path = path_in(given, settings.pfs_dir);
        if (!path && real)
            path = path_in(given, real);
        if (path)
            path = plain_path(path);
        if (!path) {
            free(real);
            return complain("--immutable %s: is not below the PFS directory %s, or has \"..\"",
                            given, settings.pfs_dir);
        }
        settings.immutable[n] = path;
    }
    free(real);
    return 0;
}

/* One that is given moves the other's default out of its way. */
static int complete_marks(void)
{
    unsigned *high = &out->flush.dirty_high, *low = &out->flush.dirty_low;
    if (!*high)
        *high = MAX(60u, *low + 1);
    if (!*low)
        *low = MIN(40u, *high - 1);
    return *low < *high ? 0
                        : complain("--dirty-low %u%% must be below --dirty-high %u%%", *low, *high);
}

static int complete_times(void)
{
    char why[256];
    return times_check(&times, why, sizeof(why)) ? complain("%s", why) : 0;
}

static int complete(void)
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
    if (out->session_dir)
        out->session_dir = absolute(out->session_dir);
    if (settings.log_file)
        settings.log_file = absolute(settings.log_file);
    settings.several_users = settings.allow_other && !settings.user;
    if (!out->supervise_given)
        settings.supervise = !settings.foreground;
    err = complete_times();
    return err ? err : complete_marks();
}

static int take_arguments(int argc, char **argv)
{
    struct option longs[ARRAY_LEN(table) + 1];
    int c, err = 0;
    memset(longs, 0, sizeof(longs));
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        longs[i] = (struct option){table[i].name, table[i].value ? required_argument : no_argument,
                                   NULL, table[i].code};
    opterr = 1;
    while (!err && (c = getopt_long(argc, argv, "fo:Vh", longs, NULL)) != -1) {
        if (c == '?')
            err = complain("unknown option");
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
    out = o;
    set_defaults();
    int err = take_arguments(argc, argv);
    if (err || o->help || o->version)
        return err;
    if (argc - optind != 2)
        return complain("give two directories: eddyfs [options] PFS_DIR MOUNTPOINT");
    settings.pfs_dir = argv[optind];
    settings.mountpoint = argv[optind + 1];
    return complete();
}

/* After main has resolved the paths. */
void options_session_dir(void)
{
    default_session_dir();
}
