/* option_choice.c - which value of each option counts, and where it comes from.
 *
 * In this order: the command line, the environment, the user's file, the site's file.  In a file, the section with the longest path
 * counts, and before the sections what is for all; of two in one place, the later one.  What the site has fixed, nobody else may set
 * to another value; that guards against mistakes and is no barrier: a user can run another program.
 */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/daemon/config_file.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options_int.h"
#include "fs/settings.h"

#define SITE_FILE   "/etc/eddyfs.conf"
#define USER_FILE   "eddyfs.conf"
#define OPTIONS_MAX 64
#define MANY        64
#define NOTES       16

static struct choice {
    const char *values[MANY]; /* of an option that may be given several times; else one */
    unsigned n;
    enum option_source from;
    size_t section;
    const char *where[MANY]; /* of each: "FILE:LINE", "$EDDY_...", or NULL: the command line */
    const char *fixed; /* the value that the site has fixed, and where */
    const char *fixed_where;
} chosen[OPTIONS_MAX];

static char *notes[NOTES];
static unsigned nnotes;

extern char **environ;

void choose_begin(void)
{
    memset(chosen, 0, sizeof(chosen));
    nnotes = 0;
}

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    va_list ap;
    char *text;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        die("out of memory");
    va_end(ap);
    if (nnotes < NOTES)
        notes[nnotes++] = options_keep(text);
    else
        free(text);
}

void options_say_notes(void)
{
    for (unsigned i = 0; i < nnotes; i++)
        log_warn("%s", notes[i]);
}

static struct choice *choice_of(const struct option_entry *o)
{
    size_t i = (size_t)(o - option_table);
    if (i >= OPTIONS_MAX)
        die("more than %d options", OPTIONS_MAX);
    return &chosen[i];
}

/* The positive form: its option and "yes" or "no"; else as it is. */
static int plain(const struct option_entry **o, const char **value)
{
    bool yes;
    if ((*o)->value)
        return 0;
    int err = option_yes_no(*value, &yes);
    if (err)
        return options_complain("--%s %s: give yes or no", (*o)->name, *value);
    if ((*o)->negates) {
        *o = option_find((*o)->negates, strlen((*o)->negates));
        yes = !yes;
    }
    *value = yes ? "yes" : "no";
    return 0;
}

static bool outranks(enum option_source from, size_t section, const struct choice *c)
{
    return !c->n || from > c->from || (from == c->from && section >= c->section);
}

/* What guards against a PFS that is not mounted is not set aside in silence. */
static void note_weakened(const struct choice *site, const struct option_entry *o, const char *value)
{
    if (o->code == OPT_REQUIRE_MOUNT && site->n && site->from == FROM_SITE && strcmp(site->values[0], value))
        note("require-mount %s is set in place of this site's %s (%s)", value, site->values[0], site->where[0]);
}

static int choose_in(const struct option_entry *o, const char *value, enum option_source from, const char *where, size_t section)
{
    int err = plain(&o, &value);
    if (err)
        return err;
    struct choice *c = choice_of(o);
    if (!outranks(from, section, c)) {
        if (from == FROM_SITE) {
            struct choice site = {.values = {value}, .n = 1, .from = from, .where = {where}};
            note_weakened(&site, o, c->values[0]);
        }
        return 0;
    }
    bool adds = o->flags & OPTION_MANY && c->n && c->from == from && c->section == section;
    if (from != FROM_SITE)
        note_weakened(c, o, value);
    if (!adds)
        c->n = 0;
    if (c->n == MANY)
        return options_complain("--%s: may be given %d times", o->name, MANY);
    c->where[c->n] = where;
    c->values[c->n++] = value;
    c->from = from;
    c->section = section;
    return 0;
}

int choose(const struct option_entry *o, const char *value, enum option_source from, const char *where)
{
    return choose_in(o, value, from, where, 0);
}

/* ---- the environment ---- */

/* Of tests, of the build and of the library; never options. */
static bool is_of_others(const char *name)
{
    static const char *const words[] = {"EDDY_BUILD", "EDDY_TEST_", "EDDY_QUEUE_", "EDDY_LIBRARY", "EDDY_DEBUG_", "EDDY_GOLDEN_"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strncmp(name, words[i], strlen(words[i])))
            return true;
    return false;
}

/* EDDY_CACHESIZE may be meant to be an option; what is near to none is somebody else's. */
static void note_unknown(const char *name, size_t len)
{
    char word[OPTION_ENV_MAX], env[OPTION_ENV_MAX];
    if (len >= sizeof(word) || is_of_others(name))
        return;
    size_t n = 0;
    for (const char *p = name + strlen("EDDY_"); p < name + len; p++)
        word[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    word[n] = 0;
    const char *meant = option_meant(word);
    if (meant)
        note("$%.*s: no such option: did you mean %s?  It is not used", (int)len, name,
             option_env(option_find(meant, strlen(meant)), env));
}

static const struct option_entry *find_env(const char *name, size_t len)
{
    char env[OPTION_ENV_MAX];
    for (size_t i = 0; i < option_count; i++) {
        option_env(&option_table[i], env);
        if (strlen(env) == len && !strncmp(env, name, len) && !(option_table[i].flags & OPTION_COMMAND_ONLY))
            return &option_table[i];
    }
    return NULL;
}

/* An empty one is as none. */
static int choose_from_env(void)
{
    int err = 0;
    for (char **p = environ; *p && !err; p++) {
        const char *equals = strchr(*p, '=');
        if (strncmp(*p, "EDDY_", 5) || !equals || !equals[1])
            continue;
        size_t len = (size_t)(equals - *p);
        const struct option_entry *o = find_env(*p, len);
        char *where;
        if (!o) {
            note_unknown(*p, len);
            continue;
        }
        if (asprintf(&where, "$%.*s", (int)len, *p) < 0)
            die("out of memory");
        options_where = options_keep(where);
        err = choose(o, equals + 1, FROM_ENVIRONMENT, where);
        options_where = NULL;
    }
    return err;
}

/* ---- files ---- */

struct reading {
    const char *path;
    enum option_source from;
};

static int refuse_line(const struct reading *r, unsigned line, const char *name, const char *why)
{
    return say_refused("\n", "%s:%u: %s%s%s", r->path, line, name, *name ? ": " : "", why);
}

static int take_line(void *arg, const struct config_line *l)
{
    const struct reading *r = arg;
    char why[160], *where;
    const struct option_entry *o = option_find(l->name, strlen(l->name));
    if (!o) {
        const char *meant = option_meant(l->name);
        snprintf(why, sizeof(why), "no such option%s%s%s", meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
        return refuse_line(r, l->line, l->name, why);
    }
    if (o->flags & OPTION_COMMAND_ONLY)
        return refuse_line(r, l->line, l->name, "can be given on the command line only");
    if (l->fixed && r->from != FROM_SITE)
        return refuse_line(r, l->line, l->name, "only the site's file, " SITE_FILE ", can fix an option");
    if (!l->applies)
        return 0;
    if (asprintf(&where, "%s:%u", r->path, l->line) < 0)
        die("out of memory");
    options_where = options_keep(where);
    const char *value = options_keep(xstrdup(l->value));
    int err = choose_in(o, value, r->from, where, l->section);
    if (!err && l->fixed)
        err = plain(&o, &value);
    options_where = NULL;
    if (!err && l->fixed) {
        choice_of(o)->fixed = value;
        choice_of(o)->fixed_where = where;
    }
    return err;
}

static int choose_from_file(const char *path, enum option_source from, const char *const *dirs)
{
    struct reading r = {path, from};
    struct config_error e = {0};
    char *text, why[160] = "";
    size_t len;
    int err = config_read(path, from == FROM_SITE ? 0 : geteuid(), &text, &len, why, sizeof(why));
    if (err == -ENOENT || err == -ENOTDIR)
        return 0;
    if (err == -EACCES && from == FROM_USER) { /* the variables may still be those of another user */
        note("%s: %s: it is not used", path, strerror(-err));
        return 0;
    }
    if (err)
        return say_refused("\n", "%s: %s", path, *why ? why : strerror(-err));
    err = config_parse(text, len, dirs, take_line, &r, &e);
    free(text);
    return err == -EPROTO ? refuse_line(&r, e.line, "", e.why) : err;
}

/* malloc'd; NULL: there is no such directory. */
static char *user_file(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const struct passwd *pw = home && *home == '/' ? NULL : getpwuid(geteuid());
    char *path = NULL;
    int n = 0;
    if (pw)
        home = pw->pw_dir;
    if (xdg && *xdg == '/')
        n = asprintf(&path, "%s/" USER_FILE, xdg);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/.config/" USER_FILE, home);
    return n < 0 ? NULL : path;
}

/* Root that mounts for a user takes nothing of anybody's home. */
static bool mounts_for_user(void)
{
    const struct option_entry *o = option_find("user", strlen("user"));
    return choice_of(o)->n;
}

int choose_from_elsewhere(const char *pfs_dir)
{
    char *real = pfs_dir ? realpath(pfs_dir, NULL) : NULL, *user = mounts_for_user() ? NULL : user_file();
    const char *dirs[3] = {NULL};
    size_t n = 0;
    if (pfs_dir && *pfs_dir == '/')
        dirs[n++] = pfs_dir;
    if (real)
        dirs[n++] = real;
    int err = choose_from_file(SITE_FILE, FROM_SITE, dirs);
    if (!err && user)
        err = choose_from_file(user, FROM_USER, dirs);
    if (!err)
        err = choose_from_env();
    free(real);
    free(user);
    return err;
}

/* ---- what counts ---- */

static int check_fixed(const struct option_entry *o, const struct choice *c)
{
    if (!c->fixed || (c->n == 1 && !strcmp(c->values[0], c->fixed)))
        return 0;
    return say_refused("\n", "%s%s--%s %s: this site has fixed %s = %s (%s)", c->where[0] ? c->where[0] : "", c->where[0] ? ": " : "", o->name,
                       c->values[0], o->name, c->fixed, c->fixed_where);
}

int choose_apply(int (*set)(int code, const char *name, const char *value))
{
    int err = 0;
    for (size_t i = 0; i < option_count && !err; i++) {
        const struct choice *c = &chosen[i];
        err = check_fixed(&option_table[i], c);
        for (unsigned k = 0; k < c->n && !err; k++) {
            options_where = c->where[k];
            err = set(option_table[i].code, option_table[i].name, c->values[k]);
        }
        options_where = NULL;
    }
    return err;
}

void options_show_config(void)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_entry *o = &option_table[i];
        const struct choice *c = &chosen[i];
        if (o->negates || (o->flags & OPTION_COMMAND_ONLY && !c->n))
            continue;
        if (!c->n)
            printf("%-17s = %-24s # default\n", o->name, o->def ? o->def : "");
        for (unsigned k = 0; k < c->n; k++)
            printf("%-17s = %-24s # %s%s\n", o->name, c->values[k], c->where[k] ? c->where[k] : "command line", c->fixed ? ", fixed" : "");
    }
    for (unsigned i = 0; i < nnotes; i++)
        printf("# %s\n", notes[i]);
}
