/* option_values.c - the values that each option may have, and the messages about other ones. */
#include "fs/daemon/options_int.h"
#include "fs/settings.h"
#include "placement/store/store_open.h"
#include "transport/hello.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct options *options_out;
const char *options_where;

int say_refused(const char *end, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("eddyfs: ", stderr);
    if (options_where)
        fprintf(stderr, "%s: ", options_where);
    vfprintf(stderr, fmt, ap);
    fputs(end, stderr);
    va_end(ap);
    return -EINVAL;
}

/* In one table, so that a leak checker sees that they are still in use. */
char *options_keep(char *text)
{
    static char **kept;
    static size_t n;
    kept = xrealloc(kept, (n + 1) * sizeof(*kept));
    return kept[n++] = text;
}

/* A size within these. */
static const char *example_of(uint64_t min, uint64_t max)
{
    return max >= 2ull << 30 ? "256M or 2G" : min <= 256u << 10 && max >= 1u << 20 ? "256K or 1M" : "64M";
}

int option_take_size(const char *name, const char *text, uint64_t min, uint64_t max,
                     uint64_t *value)
{
    char lo[32], hi[32];
    int err = size_parse(text, value);
    if (err || *value < min || *value > max)
        return options_complain("--%s %s: give a size from %s to %s, like %s%s", name, text, size_format(min, lo, sizeof(lo)),
                                size_format(max, hi, sizeof(hi)), example_of(min, max),
                                strcmp(name, "cache-size") ? "" : ", or a part of the disk, like 80%");
    return 0;
}

int option_check_listen(const char *text)
{
    struct sockaddr_storage address;
    return hello_parse_addr(text, &address)
               ? options_complain("--listen %s: give ADDR, ADDR:PORT or [ADDR]:PORT with a numeric address and a port up to 65535", text)
               : 0;
}

int option_take_seconds(const char *name, const char *text, double max, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (errno || end == text || *end || !(*value >= 0) || *value > max)
        return options_complain("--%s %s: give seconds from 0 to %g", name, text, max);
    return 0;
}

int option_take_number(const char *name, const char *text, unsigned min, unsigned max,
                       unsigned *value)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || n < min || n > max)
        return options_complain("--%s %s: give a number from %u to %u", name, text, min, max);
    *value = (unsigned)n;
    return 0;
}

int option_take_name(const char *name, const char *text, const char **value)
{
    if (!name_is_plain(text))
        return options_complain(
            "--%s %s: a name has 1 to 64 letters, digits, '.', '_' or '-', and does "
            "not begin with '.'",
            name, text);
    *value = text;
    return 0;
}

/* With or without a "%" behind it. */
int option_take_percent(const char *name, const char *text, unsigned min, unsigned max,
                        unsigned *value)
{
    size_t len = strlen(text);
    char *digits = xstrdup(text);
    if (len && text[len - 1] == '%')
        digits[len - 1] = '\0';
    int err = option_take_number(name, digits, min, max, value);
    free(digits);
    return err;
}

int option_take_cache_size(const char *name, const char *text)
{
    size_t len = strlen(text);
    settings.cache_size = 0;
    if (len && text[len - 1] == '%')
        return option_take_percent(name, text, 1, 100, &settings.cache_percent);
    return option_take_size(name, text, 1 << 20, UINT64_MAX / 2, &settings.cache_size);
}

int option_take_chunk_size(const char *name, const char *text)
{
    uint64_t n;
    int err = option_take_size(name, text, CHUNK_MIN, CHUNK_MAX, &n);
    if (!err && n & (n - 1))
        return options_complain("--%s %s: must be a power of two", name, text);
    if (!err)
        settings.chunk_size = (uint32_t)n;
    return err;
}

/* As it is written; complete() makes it relative to the PFS directory. */
int option_take_immutable(const char *name, const char *text)
{
    if (!*text)
        return options_complain("--%s: give a path below the PFS directory", name);
    settings.immutable =
        xrealloc(settings.immutable, (settings.nimmutable + 1) * sizeof(*settings.immutable));
    settings.immutable[settings.nimmutable++] = text;
    return 0;
}

int option_take_policy(const char *name, const char *text)
{
    if (!flush_policy_parse(text, strlen(text), &options_out->flush.policy))
        return 0;
    return options_complain("--%s %s: give idle, immediate, close or end", name, text);
}

int option_take_wait(const char *name, const char *text)
{
    double s;
    options_out->flush.wait_auto = !strcmp(text, "auto");
    int err = options_out->flush.wait_auto ? 0 : option_take_seconds(name, text, 86400, &s);
    if (!err && !options_out->flush.wait_auto)
        options_out->flush.wait_ms = (uint64_t)(s * 1000);
    return err;
}

int option_take_age(const char *name, const char *text)
{
    double s;
    int err = option_take_seconds(name, text, 1e9, &s);
    if (!err)
        options_out->flush.dirty_age_ms = (uint64_t)(s * 1000);
    return err;
}

int option_take_time(const char *name, const char *text, uint32_t *ms)
{
    double s;
    int err = option_take_seconds(name, text, 3600, &s);
    if (!err)
        *ms = (uint32_t)(s * 1000);
    return err;
}

int option_take_fsync(const char *name, const char *text)
{
    settings.fsync_pfs = !strcmp(text, "pfs");
    return settings.fsync_pfs || !strcmp(text, "local")
               ? 0
               : options_complain("--%s %s: give local or pfs", name, text);
}

int option_take_log_level(const char *name, const char *text)
{
    if (log_level_parse(text, &options_out->log_level))
        return options_complain("--%s %s: give error, warn, info or debug", name, text);
    return 0;
}

/* Looks for a name first: digits alone are a name if there is a user with this name. */
int option_take_user(const char *v)
{
    char *end;
    const struct passwd *pw = getpwnam(v);
    unsigned long uid = strtoul(v, &end, 10);
    if (!pw && (!isdigit((unsigned char)*v) || *end || uid >= UINT32_MAX))
        return options_complain("--user %s: there is no such user", v);
    settings.as_user = true;
    settings.user = pw ? pw->pw_uid : (uid_t)uid;
    if (geteuid())
        return options_complain("--user: only root can mount for another user");
    return settings.user ? 0 : options_complain("--user %s: is root: leave the option out", v);
}
