/* fid.c - see fid.h. */
#include "transport/fid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/base.h"
#include "transport/hash.h"

uint64_t version_mark(const struct version *v)
{
    const uint64_t fields[] = {v->size, (uint64_t)v->mtime_ns, (uint64_t)v->ctime_ns};
    uint64_t hash = data_hash(fields, sizeof(fields));
    return hash ? hash : 1;
}

bool version_racy(const struct version *v, int64_t read_at)
{
    bool whole_seconds = v->mtime_ns % 1000000000 == 0 && v->ctime_ns % 1000000000 == 0;
    int64_t grain = whole_seconds ? 1000000000 : 10000000;
    return v->ctime_ns > read_at - grain; /* also a ctime in the future: clocks differ */
}

bool version_is_same(const struct version *base, const struct version *v,
                     const struct version *same_as)
{
    if (base->size != v->size || same_as->size != v->size)
        return false;
    if (base->ctime_ns < same_as->ctime_ns || base->ctime_ns > v->ctime_ns)
        return false;
    return base->mtime_ns == v->mtime_ns || base->mtime_ns == same_as->mtime_ns;
}

char *fid_text(struct fid f, char buf[FID_TEXT])
{
    snprintf(buf, FID_TEXT, "%016llx%016llx", (unsigned long long)f.hi, (unsigned long long)f.lo);
    return buf;
}

int fid_parse(const char *text, struct fid *out)
{
    uint64_t half[2] = {0, 0};
    if (strlen(text) != FID_TEXT - 1)
        return -EINVAL;
    for (int i = 0; i < FID_TEXT - 1; i++) {
        int d = hex_digit(text[i]);
        if (d < 0)
            return -EINVAL;
        half[i / 16] = half[i / 16] << 4 | (unsigned)d;
    }
    *out = (struct fid){half[0], half[1]};
    return 0;
}

bool time_is_kept(int64_t kept, int64_t set)
{
    static const int64_t units[] = {1, 100, 1000, 1000000, 1000000000};
    for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++) {
        int64_t rest = set % units[i];
        if (kept == set - (rest < 0 ? rest + units[i] : rest))
            return true;
    }
    return false;
}
