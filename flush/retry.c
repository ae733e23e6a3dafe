/* retry.c - flushes that failed: the data stays dirty in the cache, the file is tried again after 1
 * s, 2 s ... 60 s.
 *
 * Said once per file and kind of error; where thousands fail for one reason (the PFS is full) a
 * line a second at most, and the rest is counted.
 */
#include "flush/flush_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS   1000
#define LONGEST_MS 60000

/* Found missing: by a removal of our own that is under way, perhaps, which gives the data up as soon
 * as the PFS has answered. Worth a word if it is so the second time. */
static bool found_missing(int err)
{
    return err == -ENOENT || err == -ESTALE;
}

bool retry_failed(struct file *f, int err, uint64_t now)
{
    bool is_news = f->flush_error != err;
    f->flush_failed_no = ++flush.failures;
    __atomic_store_n(&f->flush_error, err, __ATOMIC_RELAXED);
    f->flush_error_no += is_news;
    __atomic_fetch_add(&f->flush_error_seq, 1, __ATOMIC_RELEASE); /* see flush_error_once */
    unsigned doublings = MIN(f->flush_tries, 6u);
    f->flush_tries++;
    f->retry_at_ms = now + MIN((uint64_t)FIRST_MS << doublings, (uint64_t)LONGEST_MS);
    count(flush_errors, 1);
    return found_missing(err) ? f->flush_tries == 2 : is_news;
}

bool retry_is_wait(const struct file *f, int err)
{
    return err == -EBUSY && f->forgotten;
}

void retry_waited(struct file *f, uint64_t now)
{
    __atomic_store_n(&f->flush_error, 0, __ATOMIC_RELAXED);
    f->retry_at_ms = now + LONGEST_MS;
}

void retry_succeeded(struct file *f)
{
    f->flush_tries = 0;
    __atomic_store_n(&f->flush_error, 0, __ATOMIC_RELAXED);
    f->retry_at_ms = 0;
}

/* Lock held: when they are due.  Who waits for all files has those first that were not tried yet: the
 * failed ones are older, and would be before them each time. */
uint64_t retry_next_ms(void)
{
    return flush.urgent_all && queue_nready() ? NEVER : flush.next_retry_ms;
}

/* Lock held: failed files whose time has come are ready again (asked: all, whatever their time). */
void retry_due(bool asked, uint64_t now)
{
    if (!asked && now < retry_next_ms())
        return;
    flush.next_retry_ms = NEVER;
    for (struct file *f = flush.failed.first, *next; f; f = next) {
        next = f->flush_next;
        if (asked || f->retry_at_ms <= now) {
            queue_remove(f);
            f->retry_at_ms = 0;
            queue_insert(queue_ready(f), f);
        } else { /* many failures of one moment come due together, not each with a walk of its own
                  */
            flush.next_retry_ms = MIN(flush.next_retry_ms, MAX(f->retry_at_ms, now + 500));
        }
    }
}

static const char *what_to_do(int err)
{
    switch (err) {
    case -ENOSPC:
        return "make room on the PFS";
    case -EDQUOT:
        return "the quota on the PFS is used up: make room or have it raised";
    case -EROFS:
        return "the PFS is mounted read-only";
    case -EACCES:
    case -EPERM:
        return "give this user the right to write the file";
    case -ENOENT:
    case -ESTALE:
        return "it was removed or replaced behind the cache's back: its unflushed bytes stay in "
               "the cache directory";
    case -EFBIG:
        return "it is larger than the PFS or the limit of file sizes allows";
    default:
        return "see the PFS's own messages";
    }
}

void retry_log(struct file *f, int err)
{
    static _Atomic uint64_t last, left_out;
    if (!log_every(&last, 1000)) {
        atomic_fetch_add(&left_out, 1);
        return;
    }
    char *path = file_path(f);
    uint64_t n = atomic_exchange(&left_out, 0);
    log_error("flush failed (%s): %s: the data is kept and tried again; %s", strerror(-err), path,
              what_to_do(err));
    if (n)
        log_error("%llu more files could not be flushed: `eddy status` lists them",
                  (unsigned long long)n);
    free(path);
}

void flush_error_seen(struct file *f, struct flush_seen *seen)
{
    *seen = (struct flush_seen){.pass = __atomic_load_n(&f->flush_error_seq, __ATOMIC_ACQUIRE)};
}

int flush_error_once(struct file *f, struct flush_seen *seen)
{
    /* Read without the lock: a failure that is being noted right now is told by the next call. */
    unsigned pass = __atomic_load_n(&f->flush_error_seq, __ATOMIC_ACQUIRE);
    if (pass == seen->pass)
        return 0;
    seen->pass = pass;
    unsigned no = __atomic_load_n(&f->flush_error_no, __ATOMIC_RELAXED);
    if (no == seen->error)
        return 0;
    int err = __atomic_load_n(&f->flush_error, __ATOMIC_RELAXED);
    if (err)
        seen->error = no;
    return err;
}
