/* file_end.c - takes a file down after its last put.  Its data and record stay in the cache if they are worth
 * something, and are removed otherwise.  The remover removes those of small removed files later.
 */
#include <stdlib.h>
#include <string.h>

#include "placement/store/datafile.h"
#include "placement/store/file_int.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/pages.h"
#include "placement/store/remover.h"
#include "placement/store/shadow.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"

/* Keeps the record if it holds something. */
static void take_away(struct file *f)
{
    datafile_close(f);
    uint32_t flags = core(f)->flags;
    bool keeps =
        !(flags & CORE_DELETED) && (core_busy(core(f)) || f->rec->first_chunk != SLOT_NONE);
    if (keeps)
        return;
    lock_take(&f->lock);
    pages_drop_from(f, 0);
    kernel_io_uncount(f);
    state_busy_set(f->rec, false);
    lock_drop(&f->lock);
    int err = f->rec->data_made ? datafile_remove(f->fid) : 0;
    if (err)
        log_warn("a data file can not be removed from the cache: %s", strerror(-err));
    state_file_free(f->rec); /* last: a record that is there explains its data file */
}

static void end(struct file *f)
{
    shadow_end(f);
    store_lend_free(f);
    take_away(f);
    kernel_io_drop(f);
    store_drop_lost(f);
    file_forget(f);
}

void file_end_start(void)
{
    file_on_end(end, remover_give_back);
}

/* A thread that asks for the file meanwhile gets it back from the remover. */
void file_put_removed(struct file *f)
{
    remover_ready(end);
    if (file_drop(f) && !file_give_away(f, remover_take))
        end(f);
}
