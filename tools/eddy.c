/* eddy.c - the commands of `eddy`, and how they are used. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "transport/suggest.h"

struct command {
    const char *name, *args, *brief, *help;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"status", "[--json] MNT | --all", "what a mount does",
     "Shows the state of the eddyfs mounted at MNT: its cache, what is not on the PFS yet, where "
     "the bytes\n"
     "that were read came from, and the other nodes.  It answers also while the PFS hangs.\n\n"
     "      --all     all of your mounts; of all users for root\n"
     "      --json    as JSON (with --all: an array), for scripts\n",
     status_main},
    {"stats", "[-i SEC] [-n COUNT] [--session] [--json] MNT", "what a mount does now: rates, and how long calls take",
     "Shows, again and again, what MNT reads (from its own cache, other nodes and the PFS), writes, flushes, and asks of the PFS\n"
     "and of other nodes, in a second.  On a terminal it paints a screen, with what operations take; into a pipe it writes lines.\n"
     "It answers also while the PFS hangs, and ends with Ctrl-C (exit code 0).  With passthrough, what the kernel reads and writes by\n"
     "itself is not counted.\n\n"
     "  -i, --interval SEC    so often (default: 1)\n"
     "  -n, --count COUNT     ends after so many intervals\n"
     "      --session         of all nodes of the session, and their sum\n"
     "      --json            a line of JSON for each interval, for scripts\n",
     stats_main},
    {"metrics", "MNT", "the counters in Prometheus's text format",
     "Prints all counters and gauges of MNT, and how long operations took, as Prometheus reads them.  There are no paths in it.\n",
     metrics_main},
    {"report", "[--html FILE] [--session NAME] FILE|DIR...", "what a session did, from its nodes' reports",
     "Reads the reports that the nodes of a session wrote when their mounts ended (eddyfs --report DIR), and tells what was read and\n"
     "written where, whether everything is on the PFS, and what to change.  Of a directory: all reports in it of one session.\n\n"
     "      --html FILE       one page with pictures, complete in itself: open it in a browser; -: standard output\n"
     "      --session NAME    of this session (default: the one that ended last)\n",
     report_main},
    {"flush", "[--retry] MNT | [--wait] PATH...", "writes everything, or these files, to the PFS now",
     "For a mount (MNT alone): writes all that this node has and the PFS has not, and returns when "
     "it is there.\n"
     "The files that could not be written are listed on standard output (exit code 3); their data "
     "stays in the\n"
     "cache and is tried again.\n\n"
     "For files and directories in a mount: the files, and all files below the directories, on "
     "whichever node\n"
     "their latest bytes are.  Symbolic links are followed if they lead into the mount.  Returns "
     "when the nodes\n"
     "have begun.  Each path that failed is listed with the reason: exit code 5, or 1 if all of "
     "them failed.\n\n"
     "      --retry          MNT: only the files that could not be written so far, without waiting "
     "for their time\n"
     "      --wait           returns when it is on the PFS (of MNT always)\n"
     "      --timeout SEC    --wait, but no longer than SEC seconds: exit code 124\n"
     "      --json           the result as JSON, for scripts\n",
     flush_main},
    {"umount", "[--timeout SEC] MNT", "flushes, unmounts, and says whether all is on the PFS",
     "Flushes and unmounts MNT and waits for the daemon's end.  Exit code 0: everything is on the "
     "PFS.  Exit\n"
     "code 3: it is unmounted, but the files listed on standard output are not on the PFS; their "
     "data stays in\n"
     "the cache directory, and the next eddyfs started there writes it.\n\n"
     "      --timeout SEC    end within SEC seconds: then a busy mount is removed, the processes "
     "that use it\n"
     "                       get errors, and a PFS that hangs is not waited for\n",
     umount_main},
    {"wait", "[--timeout SEC] MNT",
     "waits for the end of a mount, and says whether all is on the PFS",
     "After \"fusermount3 -u MNT\", which returns at once, this waits until the daemon has written "
     "everything\n"
     "and ended.  The exit codes are those of \"eddy umount\".\n\n"
     "      --timeout SEC    wait no longer than SEC seconds\n",
     wait_main},
    {"check", "PFS_DIR [--session-dir DIR]",
     "names files that some node has not written to the PFS",
     "Lists the files below PFS_DIR whose latest bytes are only in the cache of a node, with the "
     "node's name.\n"
     "The nodes write these lists into the session directory; no daemon needs to run.  Exit code 3 "
     "if there are\n"
     "such files: start eddyfs on these nodes again, with the same cache directory.\n\n"
     "      --session-dir DIR    the daemons' --session-dir (default: PFS_DIR/.eddyfs-UID)\n",
     check_main},
    {"clean", "[--dry-run] [--dead DAYS] [--json] PFS_DIR | --session-dir DIR", "removes what old sessions left on the PFS",
     "Removes the directories of your sessions below PFS_DIR/.eddyfs-UID (for root: of all users') that no node is in, and that\n"
     "nothing needs any more.  Each that stays is named with the reason: it is in use, or its nodes may have data that is not on\n"
     "the PFS (exit code 3).\n\n"
     "  -n, --dry-run            only say what would be done\n"
     "      --dead DAYS          also sessions whose nodes did not end in order, if none has given a sign of life for so many\n"
     "                           days, none answers at its address, and no unflushed file is listed\n"
     "      --session-dir DIR    the daemons' --session-dir, instead of PFS_DIR\n"
     "      --json               as JSON, for scripts\n",
     clean_main},
    {"forget", "FILE | --node NAME MNT", "gives up unflushed data of a node that left",
     "Gives up the unflushed data of FILE that nodes have which left the session.  Then FILE can "
     "be opened again,\n"
     "as the PFS has it.  When such a node is back, its data is not flushed into FILE, but put "
     "beside it, as\n"
     "FILE.eddy-conflict-NODE.  Takes about 35 seconds, in which a node that is only cut off ends "
     "its writes.\n\n"
     "      --node NAME    gives up all data and locks of this node (a name or id), in the session "
     "of MNT\n",
     forget_main},
    {"recover", "[--list | --to PFS_DIR] [--json] [--timeout SEC] CACHE_DIR",
     "flushes what a dead daemon left",
     "Does, without a mount, what a start of eddyfs on CACHE_DIR does: takes up what a dead daemon "
     "left\n"
     "there, and writes it to the PFS.  A file that changed on the PFS meanwhile is not "
     "overwritten: the\n"
     "cache's data is written beside it, as NAME.eddy-conflict-NODE (exit code 4).  Refused while "
     "a daemon\n"
     "uses CACHE_DIR.  If root runs it, it works as the owner of CACHE_DIR.\n\n"
     "      --list           only list the files; nothing is changed\n"
     "      --to PFS_DIR     copy the files below PFS_DIR instead, where nothing is overwritten; "
     "CACHE_DIR\n"
     "                       stays as it is\n"
     "      --json           as JSON, for scripts\n"
     "      --timeout SEC    end within SEC seconds (exit code 3); what is left stays in "
     "CACHE_DIR\n",
     recover_main},
    {"hint", "[-f LIST|-] [-0] [--range OFF:LEN] [--no-start] PATH...",
     "tells a mount what will be read next",
     "Tells the mount that the files PATH will be read, in this order: they are fetched ahead, and "
     "kept until they\n"
     "were read.  They need not exist yet.  Stays until all were read; when it ends, its hints "
     "end.\n\n"
     "      -f LIST            also the paths in this file, one a line; -: standard input\n"
     "      -0                 they end with a NUL\n"
     "      --range OFF:LEN    only these bytes of each file; no LEN: to the end\n"
     "      --no-start         nothing is fetched; what is here already is kept\n",
     hint_main},
    {"stage", "[--here|--spread] [--pin[=DURATION]] [--wait] PATH... | --check|--status|--cancel ...",
     "brings files from the PFS before they are read",
     "Brings the files PATH, and all files below the directories PATH, into the cache.  They must "
     "be in one mount.\n"
     "Symbolic links are followed if they lead into the mount.  What is in the cache already costs "
     "nothing, so it can\n"
     "be done again, and goes on where it was interrupted.  Without --wait it prints a number, and "
     "the daemon goes on.\n"
     "Each path that failed is listed with the reason: exit code 5, or 1 if all of them failed.  "
     "If not all of it has\n"
     "room, nothing is fetched: exit code 6.\n\n"
     "      --here             on this node (the default)\n"
     "      --spread           once in the session, each chunk at the node that owns it\n"
     "      --pin[=DURATION]   it is not evicted before this time is over (90, 30m, 2h, 1d), or "
     "\"eddy unstage\"\n"
     "      -f LIST            also the paths in this file, one a line; -: standard input\n"
     "      -0                 they end with a NUL\n"
     "      --wait             returns when all is there; if it is interrupted, the rest is not "
     "brought\n"
     "      --timeout SEC      --wait, but no longer than SEC seconds: exit code 124\n"
     "      --quiet            no progress, and no number\n"
     "      --json             the result as JSON, for scripts\n"
     "      --check            fetches nothing: what of these files is at which nodes, and does it "
     "fit?\n"
     "      --status           of this number, or of what has these paths: how far it is\n"
     "      --cancel           the same, and ends it; what is in the cache already stays there\n",
     stage_main},
    {"unstage", "PATH... | --all [MNT]", "gives up what was staged",
     "These files, and those below these directories, are not kept any more, on no node: they "
     "leave the cache when room\n"
     "is needed, before all others.\n\n"
     "      --all     all that was staged in the session of MNT, or of the mount that has the "
     "working directory\n"
     "      --json    the result as JSON, for scripts\n",
     unstage_main},
    {"ring", "[--nodes N] [FILE | MNT]", "which nodes own a file's chunks",
     "For a FILE in a mount: the node that owns each of its chunks, the next node in the chunk's "
     "order, the\n"
     "file's home, and where its latest bytes are.  For a mount: each node's share of the "
     "chunks.\n\n"
     "      --nodes N     with nodes named node1 to nodeN instead of the session's\n",
     ring_main},
};

/* Paths and names of processes may be another user's. */
void complain(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        die("out of memory for a message");
    va_end(ap);
    char *printable = control_printable(text);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "eddy: %s\n", printable);
    free(printable);
    free(text);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

int usage_of(const char *name)
{
    const struct command *c = find_command(name);
    fprintf(stderr, "usage: eddy %s %s\n", c->name, c->args);
    return WRONG_USAGE;
}

int help_of(const char *name)
{
    const struct command *c = find_command(name);
    printf("usage: eddy %s %s\n\n%s", c->name, c->args, c->help);
    return DONE;
}

int next_option(int argc, char **argv, const char *shorts, const struct option *longs)
{
    char why[SUGGEST_WHY];
    int c = option_next(argc, argv, shorts, longs, why);
    if (c == '?')
        complain("%s", why);
    return c;
}

static void print_usage(FILE *to)
{
    fputs("usage: eddy COMMAND ...\n\n", to);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(to, "  eddy %-7s %-38s %s\n", commands[i].name, commands[i].args,
                commands[i].brief);
    fputs("\n  -h, --help       this, and after a command: more about it\n"
          "  -V, --version    the version\n\n"
          "exit codes: 0 done, 1 failed, 2 wrong usage, 3 data is not on the PFS (the files are "
          "listed),\n4 recovered beside files that had changed, 5 a part failed (with the reasons), 6 it "
          "does not fit, 124 "
          "the time of flush or stage is over,\n130 interrupted\n",
          to);
}

static void complain_of_command(const char *name)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i].name;
    const char *meant = suggest(name, names, ARRAY_LEN(names));
    if (meant)
        complain("%s: no such command: did you mean \"eddy %s\"?", name, meant);
    else
        complain("%s: no such command (\"eddy --help\" lists them)", name);
}

static int finish(int code)
{
    if (fflush(stdout) || ferror(stdout)) {
        complain("standard output: %m");
        return code == DONE ? FAILED : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "-h") || !strcmp(name, "--help")) {
        print_usage(stdout);
        return finish(DONE);
    }
    if (!strcmp(name, "-V") || !strcmp(name, "--version")) {
        printf("eddy %s\n", EDDY_VERSION);
        return finish(DONE);
    }
    const struct command *c = find_command(name);
    if (!c) {
        if (*name)
            complain_of_command(name);
        else
            print_usage(stderr);
        return WRONG_USAGE;
    }
    return finish(c->run(argc - 1, argv + 1));
}
