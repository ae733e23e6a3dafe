/* option_show.c - `eddyfs --show-config`: each option, its value, and where that comes from. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/daemon/control.h"
#include "fs/daemon/option_choice.h"
#include "fs/daemon/option_notes.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/options_int.h"
#include "fs/settings.h"

/* The marks go with each other (options_complete); not known before. */
static const char *percent(char text[8], unsigned n, const char *def)
{
    snprintf(text, 8, "%u%%", n);
    return n ? text : def;
}

/* What the option is, since nothing sets it; NULL: it has no value then.  Valid until the next call. */
static const char *default_of(const struct option_entry *o)
{
    static char text[8];
    switch (o->code) {
    case OPT_DIRTY_HIGH:
        return percent(text, options_out->flush.dirty_high, o->def);
    case OPT_DIRTY_LOW:
        return percent(text, options_out->flush.dirty_low, o->def);
    case 'f':
        return settings.foreground ? "yes" : "no";
    case OPT_PASSTHROUGH:
        return settings.passthrough ? "yes" : "no";
    case OPT_URING:
        return settings.uring ? "yes" : "no";
    case OPT_SUPERVISE:
        return settings.foreground ? "no" : "yes";
    case OPT_CACHE_DIR:
        return settings.cache_dir ? settings.cache_dir : o->def;
    case OPT_SESSION:
        return settings.session ? settings.session : o->def;
    case OPT_NODE:
        return settings.node ? settings.node : o->def;
    }
    return o->def;
}

/* Calls fn for each option and value: where is a place, "command line" or "default"; value: NULL if it has none. */
static void each_value(void (*fn)(void *arg, const char *name, const char *value, const char *where, bool fixed), void *arg)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_entry *o = &option_table[i];
        const struct choice *c = choice_of(o);
        if (c)
            for (unsigned k = 0; k < c->n; k++)
                fn(arg, o->name, c->given[k].value, c->given[k].where ? c->given[k].where : "command line", choice_is_fixed(o));
        else if (!o->negates && !(o->flags & OPTION_COMMAND_ONLY))
            fn(arg, o->name, default_of(o), "default", false);
    }
}

static void print_value(void *arg, const char *name, const char *value, const char *where, bool fixed)
{
    (void)arg;
    char *printable = control_escape(value ? value : "");
    printf("%-17s = %-24s # %s%s\n", name, printable, where, fixed ? ", fixed" : "");
    free(printable);
}

static void put_text(json_t *o, const char *key, const char *text)
{
    char *printable = control_escape(text);
    json_object_set_new(o, key, json_string(printable));
    free(printable);
}

static void add_value(void *arg, const char *name, const char *value, const char *where, bool fixed)
{
    json_t *o = json_object();
    put_text(o, "name", name);
    if (value)
        put_text(o, "value", value);
    else
        json_object_set_new(o, "value", json_null());
    put_text(o, "from", where);
    json_object_set_new(o, "fixed", json_boolean(fixed));
    json_array_append_new(arg, o);
}

static void add_note(void *arg, const char *text)
{
    char *printable = control_escape(text);
    json_array_append_new(arg, json_string(printable));
    free(printable);
}

static void show_json(void)
{
    json_t *all = json_object(), *values = json_array(), *told = json_array();
    each_value(add_value, values);
    options_each_note(add_note, told);
    json_object_set_new(all, "options", values);
    json_object_set_new(all, "notes", told);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}

static void print_note(void *arg, const char *text)
{
    (void)arg;
    printf("# %s\n", text);
}

void options_show_config(void)
{
    if (options_out->json) {
        show_json();
        return;
    }
    each_value(print_value, NULL);
    options_each_note(print_note, NULL);
}
