#include "commands.h"

#include "faults.h"
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char commands_text[] =
    "Commands, of --fault and --tell; a fault answers with its number:\n"
    "  error ERRNO OPS [path=PATTERN] [times=N] [late]\n"
    "                        requests fail: error EIO read,getattr path='data/*'\n"
    "  hang OPS [path=PATTERN] [times=N]\n"
    "                        requests wait until the fault is cleared, then go on\n"
    "  short BYTES [path=PATTERN] [times=N]\n"
    "                        a write takes no more than so many bytes\n"
    "  full BYTES [path=PATTERN] [late]\n"
    "                        writes fail with ENOSPC when the files take up so many bytes\n"
    "  quota BYTES [path=PATTERN] [late]\n"
    "                        the same with EDQUOT\n"
    "  read-only [path=PATTERN]\n"
    "                        what would change something fails with EROFS\n"
    "  whole-seconds         time stamps, except birth times, lose what is below a second\n"
    "  behind SECONDS        time stamps, except birth times, are of a clock so much behind\n"
    "  bandwidth BYTES, delay-us N, delay-meta-us N\n"
    "                        as the options, from now on\n"
    "  list                  the faults: NUMBER hits=N waiting=N COMMAND\n"
    "  clear [NUMBER]        ends that fault, or all\n"
    "OPS are requests as the counters name them, or all, data, meta or change, with commas\n"
    "between. PATTERN is a shell's, of the path below DIRECTORY; * matches / too, and !(A|B) all\n"
    "but A and B. A late error (of error ... write, full, quota) comes only from the next fsync\n"
    "or close of the open file, once; the written bytes are lost. times=N: only N requests.\n";

#define WORDS 8

struct line {
    char *copy;
    const char *words[WORDS + 1]; /* NULL after the last */
    FILE *out;
};

static int refuse(const struct line *line, const char *what, const char *word, const char *instead)
{
    fprintf(line->out, "%s%s%s: %s\n", what, word ? " " : "", word ? word : "", instead);
    return -EINVAL;
}

static int parse_number(const struct line *line, const char *word, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = word ? strtoull(word, &end, 10) : 0;
    if (!word || *word < '0' || *word > '9' || *end || errno)
        return refuse(line, "not a number:", word ? word : "nothing",
                      "write digits, without a unit");
    return 0;
}

static int parse_errno(const struct line *line, const char *word, int *value)
{
    for (int n = 1; word && n < 134; n++) {
        const char *name = strerrorname_np(n);

        if (name && strcmp(name, word) == 0) {
            *value = n;
            return 0;
        }
    }
    return refuse(line, "no error is named", word ? word : "nothing",
                  "write it as errno(3) does: EIO, ENOSPC, EDQUOT, ESTALE, EACCES ...");
}

/* The operations that a word stands for. */
static uint64_t ops_named(const char *word)
{
    uint64_t ops = 0;

    for (int n = 0; n < OP_COUNT; n++) {
        enum op op = (enum op)n;

        if (strcmp(word, op_name(op)) == 0 || strcmp(word, "all") == 0 ||
            (strcmp(word, "data") == 0 && op_moves_data(op)) ||
            (strcmp(word, "meta") == 0 && !op_moves_data(op)) ||
            (strcmp(word, "change") == 0 && op_changes(op)))
            ops |= UINT64_C(1) << op;
    }
    return ops;
}

static int refuse_op(const struct line *line, const char *word)
{
    fprintf(line->out, "no operation is named %s: write all, data, meta, change,",
            word && *word ? word : "nothing");
    for (int op = 0; op < OP_COUNT; op++)
        fprintf(line->out, " %s%s", op_name((enum op)op), op + 1 < OP_COUNT ? "," : "\n");
    return -EINVAL;
}

static int parse_ops(const struct line *line, const char *word, uint64_t *ops)
{
    char *names = strdup(word ? word : ""), *rest = names, *name;
    int err = word ? 0 : refuse_op(line, word);

    *ops = 0;
    while (!err && (name = strsep(&rest, ","))) {
        uint64_t more = ops_named(name);

        if (!more)
            err = refuse_op(line, name);
        *ops |= more;
    }
    free(names);
    return err;
}

/* What may follow the words that a fault must have. */
enum { PATH = 1, TIMES = 2, LATE = 4 };

static int parse_options(const struct line *line, const char *const *words, int may,
                         struct fault *fault)
{
    int err = 0;

    for (; !err && *words; words++) {
        if (may & PATH && strncmp(*words, "path=", 5) == 0) {
            free((char *)fault->pattern);
            fault->pattern = strdup(*words + 5);
        } else if (may & TIMES && strncmp(*words, "times=", 6) == 0) {
            err = parse_number(line, *words + 6, &fault->times);
        } else if (may & LATE && strcmp(*words, "late") == 0) {
            fault->late = true;
        } else {
            err = refuse(line, "this command does not take", *words, "faultfs --help tells what");
        }
    }
    return err;
}

/* ---- each kind of fault: its words into `fault` ---- */

static int parse_error(const struct line *line, struct fault *fault)
{
    int err = parse_errno(line, line->words[1], &fault->error);

    fault->kind = FAULT_ERROR;
    if (!err)
        err = parse_ops(line, line->words[2], &fault->ops);
    if (!err)
        err = parse_options(line, line->words + 3, PATH | TIMES | LATE, fault);
    if (!err && fault->late && fault->ops != UINT64_C(1) << OP_write)
        err =
            refuse(line, "late", NULL, "only errors of write can be late: error ERRNO write late");
    return err;
}

static int parse_hang(const struct line *line, struct fault *fault)
{
    int err = parse_ops(line, line->words[1], &fault->ops);

    fault->kind = FAULT_HANG;
    return err ? err : parse_options(line, line->words + 2, PATH | TIMES, fault);
}

static int parse_short(const struct line *line, struct fault *fault)
{
    int err = parse_number(line, line->words[1], &fault->bytes);

    fault->kind = FAULT_SHORT;
    if (!err && !fault->bytes)
        err = refuse(line, "short 0", NULL,
                     "a write that takes nothing is an error: error ERRNO write");
    return err ? err : parse_options(line, line->words + 2, PATH | TIMES, fault);
}

static int parse_space(const struct line *line, struct fault *fault)
{
    int err = parse_number(line, line->words[1], &fault->bytes);

    fault->kind = FAULT_SPACE;
    fault->error = strcmp(line->words[0], "full") == 0 ? ENOSPC : EDQUOT;
    return err ? err : parse_options(line, line->words + 2, PATH | LATE, fault);
}

static int parse_read_only(const struct line *line, struct fault *fault)
{
    fault->kind = FAULT_READ_ONLY;
    return parse_options(line, line->words + 1, PATH, fault);
}

static int parse_whole_seconds(const struct line *line, struct fault *fault)
{
    fault->kind = FAULT_WHOLE_SECONDS;
    return parse_options(line, line->words + 1, 0, fault);
}

static int parse_behind(const struct line *line, struct fault *fault)
{
    int err = parse_number(line, line->words[1], &fault->bytes);

    fault->kind = FAULT_BEHIND;
    return err ? err : parse_options(line, line->words + 2, 0, fault);
}

static int add_fault(const struct line *line, const char *text,
                     int (*parse)(const struct line *line, struct fault *fault))
{
    struct fault *fault = calloc(1, sizeof(*fault));
    int err = fault ? parse(line, fault) : -ENOMEM;

    if (err) {
        free(fault ? (char *)fault->pattern : NULL);
        free(fault);
        return err;
    }
    fault->text = strdup(text);
    fprintf(line->out, "%u\n", faults_add(fault));
    return 0;
}

/* ---- the other commands ---- */

static int set_limit(const struct line *line, void (*set)(uint64_t value))
{
    uint64_t value;
    int err = parse_number(line, line->words[1], &value);

    if (!err && line->words[2])
        err = refuse(line, "one number too many:", line->words[2], "give one");
    if (!err)
        set(value);
    return err;
}

static int clear(const struct line *line)
{
    uint64_t number = 0;
    int err = line->words[1] ? parse_number(line, line->words[1], &number) : 0;

    if (!err && line->words[1] && (number == 0 || faults_clear((unsigned)number) != 0))
        return refuse(line, "there is no fault", line->words[1], "list tells their numbers");
    if (!err && !line->words[1])
        faults_clear(0);
    return err;
}

static int run(const struct line *line, const char *text)
{
    static const struct {
        const char *name;
        int (*parse)(const struct line *line, struct fault *fault);
        void (*set)(uint64_t value);
    } commands[] = {
        {"error", parse_error, NULL},
        {"hang", parse_hang, NULL},
        {"short", parse_short, NULL},
        {"full", parse_space, NULL},
        {"quota", parse_space, NULL},
        {"read-only", parse_read_only, NULL},
        {"whole-seconds", parse_whole_seconds, NULL},
        {"behind", parse_behind, NULL},
        {"bandwidth", NULL, limits_set_bandwidth},
        {"delay-us", NULL, limits_set_delay_us},
        {"delay-meta-us", NULL, limits_set_delay_meta_us},
    };
    const char *name = line->words[0] ? line->words[0] : "nothing";

    for (size_t n = 0; n < sizeof(commands) / sizeof(commands[0]); n++)
        if (strcmp(name, commands[n].name) == 0)
            return commands[n].parse ? add_fault(line, text, commands[n].parse)
                                     : set_limit(line, commands[n].set);
    if (strcmp(name, "clear") == 0)
        return clear(line);
    if (strcmp(name, "list") == 0) {
        faults_list(line->out);
        return 0;
    }
    fprintf(line->out, "no command is named %s: write one of these\n%s", name, commands_text);
    return -EINVAL;
}

int commands_do(const char *text, FILE *out)
{
    struct line line = {.copy = strdup(text), .out = out};
    char *rest = line.copy, *word;
    int count = 0, err = line.copy ? 0 : -ENOMEM;

    while (!err && (word = strsep(&rest, " \t\n"))) {
        if (!*word)
            continue;
        if (count == WORDS)
            err = refuse(&line, "too many words, from", word, "write a pattern without blanks");
        else
            line.words[count++] = word;
    }
    if (!err)
        err = run(&line, text);
    free(line.copy);
    return err;
}
