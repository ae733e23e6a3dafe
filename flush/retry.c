/* retry.c - flushes that failed: the data stays dirty in the cache, and the file is tried again after
 * 1 s, 2 s ... 60 s.
 *
 * A failure is logged once per file and kind of error.  If thousands fail for one reason (the PFS is full),
 * there is one line a second at most, and the others are counted.
 */
#include "flush/flush.h"
#include "flush/queue.h"
#include "flush/retry.h"
#include "placement/claims/claim_forget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS   1000
#define LONGEST_MS 60000

/* The file was not found.  Perhaps this node is removing it, and gives the data up as soon
 * as the PFS has answered.  So this is logged only the second time. */
static bool found_missing(int err)
{
    return err == -ENOENT || err == -ESTALE;
}

bool retry_failed(struct flush_item *it, int err, uint64_t now)
{
    bool is_news = it->error != err;
    it->failed_no = ++flush.failures;
    __atomic_store_n(&it->error, err, __ATOMIC_RELAXED);
    it->error_no += is_news;
    __atomic_fetch_add(&it->error_seq, 1, __ATOMIC_RELEASE); /* see flush_error_once */
    unsigned doublings = MIN(it->tries, 6u);
    it->tries++;
    it->retry_at_ms = now + MIN((uint64_t)FIRST_MS << doublings, (uint64_t)LONGEST_MS);
    count(flush_errors, 1);
    return found_missing(err) ? it->tries == 2 : is_news;
}

bool retry_is_wait(const struct flush_item *it, int err)
{
    return err == -EBUSY && claim_is_forgotten(it->f);
}

void retry_waited(struct flush_item *it, uint64_t now)
{
    __atomic_store_n(&it->error, 0, __ATOMIC_RELAXED);
    it->retry_at_ms = now + LONGEST_MS;
}

void retry_succeeded(struct flush_item *it)
{
    it->tries = 0;
    __atomic_store_n(&it->error, 0, __ATOMIC_RELAXED);
    it->retry_at_ms = 0;
}

/* Lock held: when they are due.  If somebody waits for all files, those come first that were not tried yet:
 * the failed ones are older, and would be before them each time. */
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
    for (struct flush_item *it = flush.failed.first, *next; it; it = next) {
        next = it->next;
        if (asked || it->retry_at_ms <= now) {
            queue_remove(it);
            it->retry_at_ms = 0;
            queue_insert(queue_ready(it), it);
        } else { /* many failures of one moment come due together, not each with a walk of its own
                  */
            flush.next_retry_ms = MIN(flush.next_retry_ms, MAX(it->retry_at_ms, now + 500));
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
    case -EBUSY:
        return "somebody changed it on the PFS after its flush had failed: its data is put beside it when "
               "it is closed here";
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

static struct flush_failures failures_of(struct file *f)
{
    const struct flush_item *it = item_if(f);
    return (struct flush_failures){.run = it ? __atomic_load_n(&it->error_seq, __ATOMIC_ACQUIRE) : 0};
}

/* Referenced, or NULL. */
static struct file *loan_of(struct file *f)
{
    return file_part_if(f, FILE_LOAN) ? file_find_used(fid_of_loan(f->fid)) : NULL;
}

void flush_error_seen(struct file *f, struct flush_seen *seen)
{
    struct file *loan = loan_of(f);
    *seen = (struct flush_seen){.file = failures_of(f)};
    if (loan) {
        seen->loan = failures_of(loan);
        file_put(loan);
    }
}

static int error_once(struct file *f, struct flush_failures *seen)
{
    const struct flush_item *it = item_if(f);
    if (!it)
        return 0;
    /* Read without the lock: the next call reports a failure that is being noted right now. */
    unsigned run = __atomic_load_n(&it->error_seq, __ATOMIC_ACQUIRE);
    if (run == seen->run)
        return 0;
    seen->run = run;
    unsigned no = __atomic_load_n(&it->error_no, __ATOMIC_RELAXED);
    if (no == seen->error)
        return 0;
    int err = __atomic_load_n(&it->error, __ATOMIC_RELAXED);
    if (err)
        seen->error = no;
    return err;
}

int flush_error_once(struct file *f, struct flush_seen *seen)
{
    int err = error_once(f, &seen->file);
    struct file *loan = err ? NULL : loan_of(f);
    if (loan) {
        err = error_once(loan, &seen->loan);
        file_put(loan);
    }
    return err;
}
