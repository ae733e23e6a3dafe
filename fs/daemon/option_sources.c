/* option_sources.c - values of options that are not on the command line: the site's file, the user's file, the environment. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/daemon/config_file.h"
#include "fs/daemon/option_choice.h"
#include "fs/daemon/option_notes.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options_int.h"
#include "fs/daemon/paths.h"

#define USER_FILE "eddyfs.conf"

const char *option_site_file = "/etc/eddyfs.conf";

extern char **environ;

/* ---- the environment ---- */

/* EDDY_CACHESIZE may be meant to be an option; what is near to none is somebody else's. */
static void note_unknown(const char *name, size_t len)
{
    char word[OPTION_ENV_MAX], env[OPTION_ENV_MAX];
    size_t n = 0;
    if (len >= sizeof(word))
        return;
    for (const char *p = name + strlen("EDDY_"); p < name + len; p++)
        word[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    word[n] = 0;
    const struct option_entry *o = option_find(word, n);
    const char *meant = option_meant(word);
    if (o && o->flags & OPTION_COMMAND_ONLY)
        options_note("$%.*s: --%s can be given on the command line only: it is not used", (int)len, name, o->name);
    else if (meant)
        options_note("$%.*s: no such option: did you mean %s?  It is not used", (int)len, name,
                     option_env(option_find(meant, strlen(meant)), env));
}

static bool is_of_option(const char *name, size_t len)
{
    char env[OPTION_ENV_MAX];
    for (size_t i = 0; i < option_count; i++) {
        option_env(&option_table[i], env);
        if (!(option_table[i].flags & OPTION_COMMAND_ONLY) && strlen(env) == len && !strncmp(env, name, len))
            return true;
    }
    return false;
}

static void note_unknown_ones(void)
{
    for (char **p = environ; *p; p++) {
        size_t len = strcspn(*p, "=");
        if (!strncmp(*p, "EDDY_", strlen("EDDY_")) && !is_of_option(*p, len))
            note_unknown(*p, len);
    }
}

/* An empty one is as none. */
static int choose_from_env(void)
{
    int err = 0;
    for (size_t i = 0; i < option_count && !err; i++) {
        const struct option_entry *o = &option_table[i];
        char env[OPTION_ENV_MAX], *where;
        const char *value = o->flags & OPTION_COMMAND_ONLY ? NULL : getenv(option_env(o, env));
        if (!value || !*value)
            continue;
        if (asprintf(&where, "$%s", env) < 0)
            die("out of memory");
        options_where = options_keep(where);
        err = choose(o, (struct option_given){.value = value, .where = where, .from = FROM_ENVIRONMENT});
        options_where = NULL;
    }
    return err;
}

/* ---- files ---- */

struct reading {
    const char *path;
    enum option_source from;
    const char *const *dirs; /* of the PFS; NULL at the end */
};

static int refuse_line(const struct reading *r, unsigned line, const char *name, const char *why)
{
    return say_refused("\n", "%s:%u: %s%s%s", r->path, line, name, *name ? ": " : "", why);
}

static int refuse_name(const struct reading *r, const struct config_line *l)
{
    char why[96];
    const char *meant = option_meant(l->name);
    snprintf(why, sizeof(why), "no such option%s%s%s", meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
    return refuse_line(r, l->line, l->name, why);
}

/* A file is read in any directory, by whom and for whatever mount: a path that is right in all of them is absolute.  So a "~", a
 * variable or quotes are not taken for a directory of that name either. */
static bool is_path(const struct option_entry *o)
{
    return o->value && (!strcmp(o->value, "DIR") || !strcmp(o->value, "FILE"));
}

/* A file is for several mounts: what is not in this one's PFS directory is not meant. */
static bool is_elsewhere(const struct reading *r, const struct option_entry *o, const char *value)
{
    const char *const one[] = {value, NULL};
    if (o->code != OPT_IMMUTABLE || *value != '/' || !*r->dirs)
        return false;
    for (const char *const *dir = r->dirs; *dir; dir++)
        if (config_is_in_one(*dir, one))
            return false;
    return !config_is_in_one(value, r->dirs);
}

static int take_value(const struct reading *r, const struct option_entry *o, const struct config_line *l)
{
    char *where, *value = options_keep(xstrdup(l->value));
    if (is_elsewhere(r, o, value))
        return 0;
    if (asprintf(&where, "%s:%u", r->path, l->line) < 0)
        die("out of memory");
    options_where = options_keep(where);
    int err = choose(o, (struct option_given){value, where, r->from, l->section, l->fixed});
    options_where = NULL;
    return err;
}

static int take_line(void *arg, const struct config_line *l)
{
    const struct reading *r = arg;
    const struct option_entry *o = option_find(l->name, strlen(l->name));
    if (!o)
        return refuse_name(r, l);
    if (o->flags & OPTION_COMMAND_ONLY)
        return refuse_line(r, l->line, l->name, "can be given on the command line only");
    if (l->fixed && r->from != FROM_SITE)
        return refuse_line(r, l->line, l->name, "only the site's file, /etc/eddyfs.conf, can fix an option");
    if (is_path(o) && *l->value != '/')
        return refuse_line(r, l->line, l->name, "give an absolute path, as it is: quotes, ~ and variables are not replaced");
    return l->applies ? take_value(r, o, l) : 0;
}

/* A file of another user in the user's place: variables that another one left, after `su` or `sudo`.  In the site's place, in a user
 * namespace: a container that gives the overflow user's number to a user of its own, so that nobody can tell whose it is. */
static int choose_from_file(const char *path, enum option_source from, const char *const *dirs)
{
    struct reading r = {path, from, dirs};
    struct config_error e = {0};
    char *text, why[160] = "";
    size_t len;
    int err = config_read(path, from == FROM_SITE ? 0 : geteuid(), &text, &len, why, sizeof(why));
    if (err == -ENOENT || err == -ENOTDIR)
        return 0;
    if (err && !*why)
        snprintf(why, sizeof(why), "%s", strerror(-err));
    if (err == -EACCES && *why && (from == FROM_USER || config_in_user_namespace())) {
        options_note("%s: %s: it is not used", path, why);
        return 0;
    }
    if (err)
        return say_refused("\n", "%s: %s", path, why);
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
    if (n < 0)
        die("out of memory");
    return path;
}

/* Both: what a section is named by may be a link to it. */
static void name_dirs(const char *pfs_dir, const char *dirs[3])
{
    char *real = realpath(pfs_dir, NULL), *given = options_keep(xstrdup(pfs_dir));
    size_t n = 0;
    if (*given == '/' && path_make_plain(given))
        dirs[n++] = given;
    if (real)
        dirs[n++] = options_keep(real);
}

int choose_from_elsewhere(const char *pfs_dir, bool for_user)
{
    const char *dirs[3] = {NULL};
    char *user = for_user ? NULL : user_file();
    if (pfs_dir)
        name_dirs(pfs_dir, dirs);
    int err = choose_from_file(option_site_file, FROM_SITE, dirs);
    if (!err && user)
        err = choose_from_file(options_keep(user), FROM_USER, dirs);
    else
        free(user);
    if (!err)
        err = choose_from_env();
    note_unknown_ones();
    return err;
}
