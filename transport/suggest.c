/* suggest.c - see suggest.h. */
#include "transport/suggest.h"

#include <stdio.h>
#include <string.h>

#include "transport/base.h"

#define WORD_MAX 40 /* longer words are no name of ours */

static char letter(char c)
{
    return c == '_' ? '-' : c;
}

/* Edit distance with exchanged neighbours (optimal string alignment). */
static unsigned distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = (unsigned)(i + j);
                continue;
            }
            bool same = letter(a[i - 1]) == letter(b[j - 1]);
            d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]))
                d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

/* The longest name that the word begins with: "flush-policy" may mean "flush". */
static const char *beginning(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);
        if (!strncmp(word, names[i], len) && letter(word[len]) == '-' && (!best || len > strlen(best)))
            best = names[i];
    }
    return best;
}

const char *suggest(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    unsigned least = WORD_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(word, names[i]);
        if (d < least && d * 3 <= MAX(strlen(word), strlen(names[i]))) {
            least = d;
            best = names[i];
        }
    }
    return best ? best : beginning(word, names, n);
}

/* word: of a long option, from "--" on. */
static void say_unknown(const char *word, const struct option *longs, char *why)
{
    const char *names[64];
    char name[WORD_MAX + 2];
    size_t n = 0;
    for (; longs[n].name && n < ARRAY_LEN(names); n++)
        names[n] = longs[n].name;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *meant = suggest(name, names, n);
    snprintf(why, SUGGEST_WHY, "%.80s: no such option%s%s%s", word, meant ? ": did you mean --" : "", meant ? meant : "",
             meant ? "?" : "");
}

static bool is_one_of(const char *word, const struct option *longs)
{
    size_t len = strcspn(word + 2, "=");
    for (; longs->name; longs++)
        if (strlen(longs->name) == len && !strncmp(word + 2, longs->name, len))
            return true;
    return false;
}

int option_next(int argc, char **argv, const char *shorts, const struct option *longs, char why[SUGGEST_WHY])
{
    char with[32];
    snprintf(with, sizeof(with), ":%s", shorts); /* ':' is told from '?' then */
    opterr = 0;
    int at = optind, c = getopt_long(argc, argv, with, longs, NULL);
    if (c != '?' && c != ':')
        return c;
    const char *word = argv[MAX(optind - 1, at)];
    if (c == ':')
        snprintf(why, SUGGEST_WHY, "%.80s: needs a value", word);
    else if (strncmp(word, "--", 2))
        snprintf(why, SUGGEST_WHY, "-%c: no such option", optopt);
    else if (is_one_of(word, longs))
        snprintf(why, SUGGEST_WHY, "%.80s: takes no value", word);
    else
        say_unknown(word, longs, why);
    return '?';
}
