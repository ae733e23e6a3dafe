/* kept.c - whether the kernel's pages of a file may stay when it is opened (FOPEN_KEEP_CACHE).
 *
 * They may stay if they surely have the bytes that this open must see (data_tag).  An open of other bytes
 * makes the kernel drop all pages, but only when the answer arrives in the kernel.  Until then a second open
 * of the same bytes would keep pages that are about to be dropped, and read them.  When the kernel asks for
 * bytes by that open, the answer has arrived.  Beside opens of other bytes (an older version, another node's)
 * nothing is known until all those opens are closed, as any of them may be the newest.  What they read from
 * now on has to be as new as what this open is to see, since it gets the same pages (data_dropping).
 *
 *     unknown --open: its bytes--> dropping --read by such an open--> known: same bytes keep
 *        ^                            |                                 |
 *        '---- passthrough; other bytes beside opens of these (mixed) --'
 */
#include "fs/kept.h"

bool kept_open(struct inode *i, const struct data_tag *tag, unsigned *turn)
{
    lock_assert_held(&i->lock);
    struct kept_pages *k = &i->kept;
    bool alone = i->mode.cached == 1, same = data_tag_eq(&k->tag, tag);
    if (!same || (alone && !k->known)) {
        k->tag = *tag;
        k->mixed = !alone;
        k->known = false;
        k->turn++;
    }
    *turn = k->turn;
    return k->known;
}

void kept_asked(struct inode *i, unsigned turn)
{
    lock_assert_held(&i->lock);
    struct kept_pages *k = &i->kept;
    if (turn == k->turn && !k->mixed)
        k->known = true;
}

void kept_lose(struct inode *i)
{
    lock_assert_held(&i->lock);
    i->kept.known = false;
}
