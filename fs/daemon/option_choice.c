/* option_choice.c - see option_choice.h. */
#include "fs/daemon/option_choice.h"

#include <stdio.h>
#include <string.h>

#include "fs/daemon/option_notes.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options_int.h"

#define OPTIONS_MAX 64

static struct choice chosen[OPTIONS_MAX][OPTION_SOURCES];

void choose_begin(void)
{
    for (size_t i = 0; i < OPTIONS_MAX; i++)
        for (size_t k = 0; k < OPTION_SOURCES; k++)
            chosen[i][k].n = 0;
    options_forget_notes();
}

static struct choice *choices_of(const struct option_entry *o)
{
    size_t i = (size_t)(o - option_table);
    if (i >= OPTIONS_MAX)
        die("more than %d options", OPTIONS_MAX);
    return chosen[i];
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

int choose(const struct option_entry *o, struct option_given g)
{
    int err = plain(&o, &g.value);
    if (err)
        return err;
    struct choice *c = &choices_of(o)[g.from];
    const struct option_given *last = c->n ? &c->given[c->n - 1] : NULL;
    if (last && g.section < last->section)
        return 0;
    /* Variables have no order: EDDY_SUPERVISE and EDDY_NO_SUPERVISE. */
    if (last && g.from == FROM_ENVIRONMENT && strcmp(last->value, g.value))
        return options_complain("says another thing than %s: leave one out", last->where);
    if (!(o->flags & OPTION_MANY) || (last && g.section > last->section))
        c->n = 0;
    if (c->n == c->room) {
        c->room = 2 * c->room + 1;
        c->given = xrealloc(c->given, c->room * sizeof(*c->given));
    }
    c->given[c->n++] = g;
    return 0;
}

const struct choice *choice_of(const struct option_entry *o)
{
    const struct choice *c = choices_of(o);
    for (size_t from = OPTION_SOURCES; from--;)
        if (c[from].n)
            return &c[from];
    return NULL;
}

bool choice_is_fixed(const struct option_entry *o)
{
    const struct choice *site = &choices_of(o)[FROM_SITE];
    for (unsigned k = 0; k < site->n; k++)
        if (site->given[k].fixed)
            return true;
    return false;
}

static bool same_values(const struct choice *a, const struct choice *b)
{
    bool same = a->n == b->n;
    for (unsigned k = 0; same && k < a->n; k++)
        same = !strcmp(a->given[k].value, b->given[k].value);
    return same;
}

/* What the site has fixed stays; what guards against a PFS that is not mounted is not set aside in silence. */
static int compare_with_site(const struct option_entry *o, const struct choice *c)
{
    const struct choice *site = &choices_of(o)[FROM_SITE];
    if (!site->n || same_values(c, site))
        return 0;
    const struct option_given *given = c->given, *wanted = site->given;
    if (choice_is_fixed(o)) {
        options_where = given->where;
        return say_refused("\n", "--%s %s: this site has fixed %s = %s (%s)", o->name, given->value, o->name, wanted->value,
                           wanted->where);
    }
    if (o->code == OPT_REQUIRE_MOUNT)
        options_note("require-mount %s is set in place of this site's %s (%s)", given->value, wanted->value, wanted->where);
    return 0;
}

/* What has no effect is looked at, too, before what has one replaces it: else a mistake in a file is found when somebody leaves the
 * other value out.  It is said; who cannot change the file can go on. */
static void look_at_lower(const struct option_entry *o, const struct choice *best, int (*set)(int code, const char *name, const char *value))
{
    for (const struct choice *c = choices_of(o); c < best && !(o->flags & OPTION_MANY); c++)
        for (unsigned k = 0; k < c->n; k++) {
            options_where = c->given[k].where;
            if (set(o->code, o->name, c->given[k].value))
                options_note("%s: %s %s is wrong; it is not used, as %s gives another value", c->given[k].where, o->name, c->given[k].value,
                             best->given->where ? best->given->where : "the command line");
        }
}

int choose_apply(int (*set)(int code, const char *name, const char *value))
{
    int err = 0;
    for (size_t i = 0; i < option_count && !err; i++) {
        const struct option_entry *o = &option_table[i];
        const struct choice *c = choice_of(o);
        if (!c)
            continue;
        err = compare_with_site(o, c);
        if (!err)
            look_at_lower(o, c, set);
        for (unsigned k = 0; k < c->n && !err; k++) {
            options_where = c->given[k].where;
            err = set(o->code, o->name, c->given[k].value);
        }
        options_where = NULL;
    }
    return err;
}
