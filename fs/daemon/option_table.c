/* option_table.c - see option_table.h. */
#include "fs/daemon/option_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "transport/suggest.h"

const struct option_entry option_table[] = {
    {"foreground", NULL, 'f', NULL,
     "stay in the foreground and log to standard error", .flags = 0},
    {"cache-dir", "DIR", OPT_CACHE_DIR, "${TMPDIR:-/tmp}/eddyfs-UID/NAME-of-mount",
     "node-local cache", .flags = 0},
    {"cache-size", "SIZE", OPT_CACHE_SIZE, "80 % of what is free, shared by its daemons",
     "bytes with K, M, G, T, or N% of its file system", .flags = 0},
    {"singlets", "N%", OPT_SINGLETS, "50%",
     "so much of the clean part of the cache at most is kept for nodes that need their room; 0: nothing", .flags = 0},
    {"require-mount", "DIR", OPT_REQUIRE_MOUNT, NULL,
     "do not start unless something is mounted at DIR, which is PFS_DIR or above it", .flags = 0},
    {"session", "NAME", OPT_SESSION, "the Slurm job's number, else default",
     "nodes of one session share a cache", .flags = 0},
    {"session-dir", "DIR", OPT_SESSION_DIR, "PFS_DIR/.eddyfs-UID",
     "where sessions meet, on the PFS", .flags = 0},
    {"node", "NAME", OPT_NODE, "the host name",
     "this node's name", .flags = 0},
    {"listen", "ADDR[:PORT]", OPT_LISTEN, "the host's first, else loopback",
     "the address at which other nodes reach this one", .flags = 0},
    {"wait-nodes", "N", OPT_WAIT_NODES, "1",
     "wait until N nodes have joined", .flags = 0},
    {"wait-timeout", "SEC", OPT_WAIT_TIMEOUT, "60",
     "... for at most this long, then fail", .flags = 0},
    {"suspect-after", "SEC", OPT_SUSPECT_AFTER, "3",
     "after this silence a node is asked twice more, and then others serve in its place", .flags = 0},
    {"dead-after", "SEC", OPT_DEAD_AFTER, "10",
     "after this silence the others go on without it", .flags = 0},
    {"lease", "SEC", OPT_LEASE, "4",
     "how long a node may decide which node writes to a file, after its last look at the session directory; longer for a PFS with slow look-ups", .flags = 0},
    {"open-wait", "SEC", OPT_OPEN_WAIT, "30",
     "how long an open or a lock waits for a decision; then it fails with EIO", .flags = 0},
    {"chunk-size", "SIZE", OPT_CHUNK_SIZE, "1M",
     "unit of caching, 64K to 16M, a power of two, the same on all nodes", .flags = 0},
    {"flush", "POLICY", OPT_FLUSH, "idle",
     "when to write back: idle, immediate, close or end", .flags = 0},
    {"flush-wait", "SEC", OPT_FLUSH_WAIT, "1.0",
     "this long without I/O is a lull; auto: learned from the application's pauses", .flags = 0},
    {"flush-writers", "N", OPT_FLUSH_WRITERS, "4",
     "files written back at a time", .flags = 0},
    {"flush-limit", "RATE", OPT_FLUSH_LIMIT, "0",
     "bytes per second written back at most, with K, M, G; 0: no limit", .flags = 0},
    {"dirty-high", "N%", OPT_DIRTY_HIGH, "60%",
     "when this much of the cache is dirty, it is written back whatever happens", .flags = 0},
    {"dirty-low", "N%", OPT_DIRTY_LOW, "40%",
     "... down to this much", .flags = 0},
    {"dirty-age", "SEC", OPT_DIRTY_AGE, "600",
     "data that is dirty for longer is written back without a lull; 0: never", .flags = 0},
    {"fsync", "MODE", OPT_FSYNC, "local",
     "fsync returns when data is on the node's disk (local) or on the PFS (pfs)", .flags = 0},
    {"attr-timeout", "SEC", OPT_ATTR_TIMEOUT, "1.0",
     "names and attributes that other nodes change are seen within this time", .flags = 0},
    {"negative-timeout", "SEC", OPT_NEGATIVE_TIMEOUT, "0",
     "how long \"no such file\" is remembered", .flags = 0},
    {"immutable", "PATH", OPT_IMMUTABLE, NULL,
     "nothing below PATH ever changes, and no name is made there (may be repeated)", .flags = OPTION_MANY},
    {"passthrough", NULL, OPT_PASSTHROUGH, NULL,
     "the kernel reads and writes cached files by itself where it can (the default)", .flags = 0},
    {"no-passthrough", NULL, OPT_NO_PASSTHROUGH, NULL,
     "read and write through the daemon also where the kernel could do it", .negates = "passthrough", .flags = 0},
    {"uring", NULL, OPT_URING, NULL,
     "take requests over io_uring, where root has let the kernel do so (Linux 6.14)", .flags = 0},
    {"no-uring", NULL, OPT_NO_URING, NULL,
     "... do not (the default)", .negates = "uring", .flags = 0},
    {"memory", "SIZE", OPT_MEMORY, "256M",
     "bound on buffers", .flags = 0},
    {"rdma-memory", "SIZE", OPT_RDMA_MEMORY, "0",
     "so much memory of this node has chunks that other nodes read one-sided, without its processor; 0: none", .flags = 0},
    {"rdma-transports", "LIST", OPT_RDMA_TRANSPORTS, "rc,dc,posix on hosts with RDMA, else posix",
     "UCX's transports for that, of those whose peers may die", .flags = 0},
    {"user", "USER", OPT_USER, NULL,
     "for root: mount for this user (name or number), and run as this user with CAP_SYS_ADMIN alone", .flags = OPTION_COMMAND_ONLY},
    {"on-failure", "WHAT", OPT_ON_FAILURE, "recache",
     "chunks of a node that left: recache (the next node reads them from the PFS once and stores them) or redirect "
     "(they are read from the PFS each time, for comparison)", .flags = 0},
    {"supervise", NULL, OPT_SUPERVISE, NULL,
     "start the daemon again when it dies by a signal (the default in the background)", .flags = 0},
    {"no-supervise", NULL, OPT_NO_SUPERVISE, NULL,
     "... do not (the default in the foreground)", .negates = "supervise", .flags = 0},
    {"log", "FILE", OPT_LOG, "standard error in the foreground, else CACHE_DIR/eddyfs.log",
     "", .flags = 0},
    {"log-level", "LEVEL", OPT_LOG_LEVEL, "info",
     "error, warn, info or debug", .flags = 0},
    {"slow", "MS", OPT_SLOW, "0",
     "log each operation that takes this many milliseconds, and where it waited; 0: none", .flags = 0},
    {"metrics", "ADDR", OPT_METRICS, NULL,
     "serve Prometheus's metrics at PORT (of loopback), ADDR:PORT or unix:PATH", .flags = 0},
    {"report", "DIR", OPT_REPORT, NULL,
     "write a report of this mount to a new file in DIR when it ends; \"eddy report\" shows it", .flags = 0},
    {"show-config", NULL, OPT_SHOW_CONFIG, NULL,
     "print each option, its value, and where that comes from; then leave", .flags = OPTION_COMMAND_ONLY},
    {"json", NULL, OPT_JSON, NULL,
     "with --show-config: as JSON", .flags = OPTION_COMMAND_ONLY},
    {"list-options", NULL, OPT_LIST_OPTIONS, NULL,
     "print the table of options for scripts: name, value, variable, default, help, with tabs between them", .flags = OPTION_COMMAND_ONLY},
    {"version", NULL, 'V', NULL,
     "print the version", .flags = OPTION_COMMAND_ONLY},
    {"help", NULL, 'h', NULL,
     "print this", .flags = OPTION_COMMAND_ONLY},
};
const size_t option_count = ARRAY_LEN(option_table);

static char letter(char c)
{
    return c == '_' ? '-' : c;
}

const struct option_entry *option_find(const char *name, size_t len)
{
    for (size_t i = 0; i < option_count; i++) {
        const char *n = option_table[i].name;
        size_t k = 0;
        while (k < len && n[k] && letter(name[k]) == n[k])
            k++;
        if (k == len && !n[k])
            return &option_table[i];
    }
    return NULL;
}

const char *option_meant(const char *name)
{
    const char *names[ARRAY_LEN(option_table)];
    size_t n = 0;
    for (size_t i = 0; i < option_count; i++)
        if (!(option_table[i].flags & OPTION_COMMAND_ONLY))
            names[n++] = option_table[i].name;
    return suggest(name, names, n);
}

char *option_env(const struct option_entry *o, char name[OPTION_ENV_MAX])
{
    snprintf(name, OPTION_ENV_MAX, "EDDY_%s", o->name);
    for (char *p = name; *p; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    return name;
}

int option_yes_no(const char *text, bool *yes)
{
    static const char *const words[] = {"no", "off", "false", "0", "yes", "on", "true", "1"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcasecmp(text, words[i])) {
            *yes = i >= 4;
            return 0;
        }
    return -EINVAL;
}

void option_print_help(void)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_entry *o = &option_table[i];
        char left[64];
        snprintf(left, sizeof(left), "%s--%s%s%s", o->code < 256 ? (char[]){'-', (char)o->code, ',', ' ', 0} : "    ", o->name,
                 o->value ? " " : "", o->value ? o->value : "");
        printf("  %-30s %s%s%s%s\n", left, o->help, o->def ? *o->help ? " (" : "(" : "", o->def ? o->def : "", o->def ? ")" : "");
    }
}

void option_print_list(void)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_entry *o = &option_table[i];
        char env[OPTION_ENV_MAX];
        printf("%s\t%s\t%s\t%s\t%s\n", o->name, o->value ? o->value : "",
               o->flags & OPTION_COMMAND_ONLY ? "" : option_env(o, env), o->def ? o->def : "", o->help);
    }
}
