/* loans.pml - parts of one file are lent: a claimant, two borrowers, and the PFS.
 *
 * docs/protocol.md, "Loans".  The claimant has the file's claim all the time: that no other node gets it is
 * claims.pml's business, and kernels that keep something of the file are looks.pml's.
 *
 * The file has two units.  A unit's content is the number of the change that made it, 0: zeros.  The size is counted in
 * units.  A node *serves* a unit if it believes to have it: then it answers a READ of it and makes a WRITE, its own
 * or a carried one, at any time.  So these need no messages here.  After each step, at most one node serves a
 * unit, and what it would answer is what was acknowledged last (watch).  A node that is asked for a unit that it does not
 * serve says "not mine", and nothing happens.
 *
 * The PFS file is an array and a size.  A borrower's copy-out of a unit is one step (flush.pml has it in pieces), a run
 * of the claimant's flusher several: snapshot, cut and bytes, size, look, end.  Instead of versions of the PFS file
 * there are bits here: has a borrower changed it since (stale)?
 *
 * Operations: LEND, writes, RETURN at any time when the loan is clean, a truncation to CUT units, one that makes the file longer,
 * a stat (the size that it tells was the file's at some instant since it began), a READ of the claimant from the PFS
 * whose bytes are put into its store then, eviction.
 *
 * Network: an answer to LEND is handled by the thread that waits for it, at any time after other messages, or never.
 * RECALL and RETURN may be handled long after their sender has given up.  An answer may be lost, and the question is
 * put again then.  NLOSS counts all of these.
 *
 * A restart is one step: while a node is away it makes no steps, and any order allows that anyway.
 *
 * Nothing happens that changes nothing.  So when nothing can happen any more, something waits for ever, or all is
 * returned and on the PFS (atlast).
 *
 * Rules can be left out one by one: see the table of `run`, and each one's place here.
 */
#ifndef NLEND
#define NLEND 2         /* LENDs, both borrowers together */
#endif
#ifndef NWRITE
#define NWRITE 2        /* writes */
#endif
#ifndef NCUT
#define NCUT 0          /* truncations */
#endif
#ifndef NSTAT
#define NSTAT 0         /* stats */
#endif
#ifndef NFETCH
#define NFETCH 0        /* READs of the claimant from the PFS */
#endif
#ifndef NLOSS
#define NLOSS 0         /* answers that are lost, and questions that are given up */
#endif
#ifndef NCRASH
#define NCRASH 0        /* restarts */
#endif
#ifndef RESTARTS
#define RESTARTS 7      /* of these nodes */
#endif
#ifndef ASKS1
#define ASKS1 3         /* units that borrower 1 asks for */
#endif
#ifndef ASKS2
#define ASKS2 2         /* ... and 2 */
#endif
#ifndef CUT
#define CUT 0           /* the size that a truncation makes */
#endif
#ifndef FIRST
#define FIRST 1         /* the file's size at first */
#endif

#ifndef NGROW
#define NGROW 0         /* truncations to one unit that make the file longer */
#endif

#define CLAIMANT 0
#ifdef LENDS_WHILE_RECALLING
#define OWN_PARTS_WHILE_RECALLING
#endif
#define BIT(i)  (1<<(i))
#define MAXOF(a,b) ((a) > (b) -> (a) : (b))
#define MINOF(a,b) ((a) < (b) -> (a) : (b))

/* pages of a unit */
#define NOT   0         /* not valid: the PFS has them, up to base_end; behind it they are zeros */
#define CLEAN 1
#define DIRTY 2

/* ---- what is true ---- */
byte ver = 1;           /* number of the last write */
byte cur[2];            /* of the last acknowledged change */
byte trues;             /* the file's size */
byte nlend, nwrite, ncut, nstat, nfetch, nloss, ncrash, ngrow;

/* ---- the PFS ---- */
byte pfs[2]; byte psize;

/* ---- the claimant ---- */
bit  known = 1;         /* it knows what it has lent */
byte size;
byte be;                /* base_end: the PFS's bytes count up to here */
bit  bstale;            /* the PFS's version is not the base's: a borrower has changed it */
bit  owed;              /* the PFS file may be longer than its bytes count */
bit  cut;               /* the PFS has not seen a truncation */
bit  dirty;
bit  lent;              /* in the record */
byte st[2], val[2];     /* pages: NOT, CLEAN, DIRTY; bytes */
byte map[2];            /* the borrower; 0: none */
byte since[3];          /* the epoch in which the node became a borrower */
byte ep = 1;            /* epoch */
/* a RECALL, for a truncation or of a node that says that it has nothing; nothing is lent meanwhile; nodes that have not
 * answered; its epoch */
#define CUTTING 1
#define ASKING  2
byte op; bit stopping; byte rw, oe;
/* a stat: size before the round, largest answer, borrowers that have not answered; nothing was taken back in this
 * round; the file's sizes since the stat began */
bit  pl; byte ps, pm, pw; bit pok; byte seen;
bit  palone;            /* one borrower is asked */
/* a READ: unit + 1, bytes, the base is still the same */
byte fu, fb; bit fok;
/* a run of the flusher: step, size, is there a cut, was anything lent since it began, was anything changed since, is
 * there another cut; pages; what the look found, is that old, does it count */
byte r, rs; bit rcut, rlent, rchg, rcut2; bit snap[2];
byte rz; bit fstale, fk;

/* RETURNs that have come: node (0: none), its size, epoch; the PFS was looked at: its size, version, no other base was
 * set since; the sender waits */
typedef Job { byte who, size, ep; bit looked; byte ls; bit stale, ok, waits };
#define NJ 2
Job job[NJ];

/* ---- a borrower ---- */
typedef Borrower {
    bit  loan;
    byte mine;          /* units */
    byte ep;            /* answers to LEND of an earlier one do not count */
    byte lep;           /* the epoch of the answer by which the loan began */
    byte size, be;
    byte bst[2], bv[2]; /* pages: NOT, DIRTY; bytes */
    byte ret;           /* RETURN: 1 waits for the answer, 2 to be sent again */
    byte lq, lu;        /* LEND: 1 sent, 2 answered; unit */
    byte lm, le, lb;    /* the answer: units of this node, epoch, base_end */
    byte rc;            /* RECALL of this epoch has come; 0: none */
    bit  anew           /* it has started again, and the claimant has not asked it yet */
};
Borrower b[3];          /* 1 and 2 */

#define LENTTO(i)   ((map[0] == (i)) || (map[1] == (i)))
#define ANYLENT     (map[0] != 0 || map[1] != 0)
#define BORROWERS   ((LENTTO(1) -> 2 : 0) | (LENTTO(2) -> 4 : 0))
#define ASKS(i)     ((i) == 1 -> ASKS1 : ASKS2)
#define BDIRTY(i)   (b[i].bst[0] == DIRTY || b[i].bst[1] == DIRTY)

/* ---- who serves what ---- */
#define ONPFS(u,e)  (((u) < (e) && (u) < psize) -> pfs[u] : 0)
#define SERVES(i,u) (b[i].loan && (b[i].mine & BIT(u)) && b[i].ret == 0)
#define HAS(i,u)    (b[i].bst[u] == DIRTY -> b[i].bv[u] : ONPFS(u, b[i].be))
#define OWNS(u)     (map[u] == 0 && (known || st[u] != NOT))
#define OWNHAS(u)   (st[u] != NOT -> val[u] : ONPFS(u, be))
#define ONE(u)      ((SERVES(1,u) + SERVES(2,u) + OWNS(u)) <= 1)
#define BRIGHT(i,u) (!SERVES(i,u) || HAS(i,u) == cur[u])
#define RIGHT(u)    (BRIGHT(1,u) && BRIGHT(2,u) && (!OWNS(u) || OWNHAS(u) == cur[u]))
active proctype watch() {
end: do
    :: d_step { !ONE(0) || !ONE(1) -> printf("EV two nodes serve a unit\n"); assert(0) }
    :: d_step { !RIGHT(0) || !RIGHT(1) -> printf("EV older bytes than those that were acknowledged\n"); assert(0) }
    od
}

/* a write of unit u is made: its number is ver */
inline acknowledged(u) {
    cur[u] = ver; trues = MAXOF(trues, u + 1); seen = seen | (pl -> BIT(trues) : 0)
}

/* ---- the claimant's steps ---- */

/* base, size and base_end are those of a look at the PFS that has found this size; other looks count no more */
inline rebase(sz, old) {
    size = MAXOF(size, sz); be = sz; bstale = old; owed = 0; fok = 0; fk = 0; job[0].ok = 0; job[1].ok = 0
}

/* node i has nothing any more: all that it wrote is on the PFS */
inline taken_back(i) {
    if :: map[0] == i -> map[0] = 0 :: else fi;
    if :: map[1] == i -> map[1] = 0 :: else fi;
    since[i] = 0; dirty = 1; rchg = 1; ep++; pok = 0; lent = ANYLENT
}

inline truncate() {
    size = CUT; trues = CUT; be = MINOF(be, CUT); seen = seen | (pl -> BIT(trues) : 0);
    u = CUT; do :: u < 2 -> st[u] = NOT; val[u] = 0; snap[u] = 0; cur[u] = 0; u++ :: else -> break od; u = 0;
    cut = 1; rcut2 = 1; owed = 1; dirty = 1; rchg = 1; printf("EV truncation is made\n")
}

/* nothing but the only borrower has made the file longer since the round began */
#ifdef ALONE_AT_FIRST
#define ALONE palone
#else
#define ALONE (palone && (BORROWERS == 2 || BORROWERS == 4))
#endif
inline begin_round() {
    ps = size; pm = 0; pw = BORROWERS; pok = 1; palone = (pw == 2 || pw == 4)
}

inline pfs_cut(n) {
    u = n; do :: u < 2 -> pfs[u] = 0; u++ :: else -> break od; u = 0; psize = n
}

inline own_write() {
    nwrite++; ver++; st[u] = DIRTY; val[u] = ver; snap[u] = 0; size = MAXOF(size, u + 1); dirty = 1; rchg = 1; acknowledged(u);
    printf("EV claimant writes %d into %d\n", ver, u); u = 0
}

/* LEND */
#if defined(LENDS_WHILE_RECALLING)
#define MAYLEND (known && !((owed || cut) && !lent))
#elif defined(LENDS_WHILE_OWED)
#define MAYLEND (known && !stopping)
#else
#define MAYLEND (known && !stopping && !((owed || cut) && !lent))
#endif
#ifdef LENDS_OWN_PAGES
#define UNTOUCHED(u) 1
#else
#define UNTOUCHED(u) (st[u] == NOT)
#endif
inline lend(i) {
    printf("EV LEND of %d for %d comes, epoch %d\n", i, b[i].lu, ep);
    b[i].le = ep; b[i].lb = be;
#ifdef ASKS_WITHOUT_BASE        /* if there is nothing to lend, neither base_end nor epoch is told */
    if :: map[b[i].lu] == i -> b[i].lb = 0; b[i].le = 0 :: else fi;
#endif
    if
    :: map[b[i].lu] == 0 && MAYLEND && UNTOUCHED(b[i].lu) ->
        if :: !LENTTO(i) -> since[i] = ep :: else fi;
        map[b[i].lu] = i; rlent = 1; printf("EV lent\n");
#ifndef NOT_IN_THE_RECORD
        lent = 1
#endif
    :: else
    fi;
    b[i].lm = (map[0] == i -> 1 : 0) | (map[1] == i -> 2 : 0);
#ifndef OWN_PARTS_WHILE_RECALLING
    /* who has handled the RECALL takes nothing of it, and who has not returns it then */
    if :: stopping -> b[i].le = oe - 1 :: else fi;
#endif
    b[i].lq = 2
}

inline begin_recall(m) {
    stopping = 1; ep++; oe = ep; pok = 0; rw = m; b[1].rc = ((rw & 2) -> ep : b[1].rc); b[2].rc = ((rw & 4) -> ep : b[2].rc)
}

/* LOAN_IS of a RECALL: node i has nothing */
inline recalled(i) {
    printf("EV RECALL is answered by %d\n", i);
    rw = rw & ~BIT(i);
    if :: LENTTO(i) -> rebase(psize, 0); taken_back(i) :: else fi
}

inline forget(i) {
    b[i].loan = 0; b[i].mine = 0; b[i].size = 0; b[i].be = 0; b[i].lep = 0; b[i].ret = 0; printf("EV %d has nothing any more\n", i)
}

inline drop_job(j) {
    job[j].who = 0; job[j].size = 0; job[j].ep = 0; job[j].looked = 0; job[j].ls = 0; job[j].stale = 0; job[j].ok = 0; job[j].waits = 0
}

/* the RETURN of job j is handled to its end; its sender may wait for the answer */
inline end_return(j) {
    k = job[j].who;
    if :: job[j].waits -> b[k].ep = MAXOF(b[k].ep, ep); forget(k) :: else fi;
    drop_job(j); k = 0
}

#define ISBORROWER(j) (LENTTO(job[j].who) && COUNTS(j))
#ifdef RETURNS_WITHOUT_EPOCH
#define COUNTS(j) 1
#else
#define COUNTS(j) (job[j].ep >= since[job[j].who])
#endif

inline look_for_return(j) {
    if
    :: ISBORROWER(j) -> job[j].looked = 1; job[j].ls = psize; job[j].stale = 0; job[j].ok = 1; printf("EV RETURN of %d: the PFS is looked at\n", job[j].who)
    :: else -> printf("EV RETURN of %d is of an earlier loan\n", job[j].who); end_return(j)
    fi
}

inline take_return(j) {
    if
    :: !ISBORROWER(j) -> end_return(j)
#ifndef RETURNS_OUT_OF_ORDER
    :: ISBORROWER(j) && !job[j].ok -> job[j].looked = 0; job[j].ls = 0; job[j].stale = 0
    :: ISBORROWER(j) && job[j].ok ->
#else
    :: ISBORROWER(j) ->
#endif
        printf("EV RETURN of %d is taken\n", job[j].who);
        size = MAXOF(size, job[j].size);
#ifdef NO_REBASE
        size = MAXOF(size, job[j].ls);
#else
        rebase(job[j].ls, job[j].stale);
#endif
        taken_back(job[j].who); end_return(j)
    fi
}

#if NCRASH > 0
byte hk;                /* nodes that have answered HELD */
#ifdef HELD_WHILE_RETURNING
#define HOLDS(i) (b[i].loan)
#else
#define HOLDS(i) (b[i].loan && b[i].ret == 0)
#endif
/* node i says what it has, and nothing of what it has sent RETURN for.  This replaces what was known, and answers to LEND
 * from before do not count */
inline held(i) {
    printf("EV %d has units %d\n", i, b[i].mine);
    hk = hk | BIT(i); b[i].anew = 0; pok = 0; if :: known -> ep++ :: else fi;
#ifndef HELD_WITHOUT_EPOCH
    b[i].ep = ep;
#endif
    u = 0;
    do
    :: u < 2 ->
        if
        :: HOLDS(i) && (b[i].mine & BIT(u)) -> map[u] = i
        :: !(HOLDS(i) && (b[i].mine & BIT(u))) && map[u] == i -> map[u] = 0
        :: else
        fi; u++
    :: else -> break
    od; u = 0;
    since[i] = 0;
    if :: HOLDS(i) -> size = MAXOF(size, b[i].size) :: else fi;
    if
    :: known || (hk & 6) == 6 ->
#ifndef HELD_WITHOUT_REBASE
        if :: lent -> rebase(psize, 0) :: else fi;
#endif
        known = 1; lent = ANYLENT; dirty = 1; rchg = 1; hk = 0; printf("EV loans are known\n")
    :: else
    fi
}
#endif

#if defined(FILLS_WHAT_IS_LENT)
#define MAYFILL(u) (st[u] == NOT && u < be && fok)
#elif defined(FILLS_OF_ANY_BASE)
#define MAYFILL(u) (st[u] == NOT && u < be && map[u] == 0)
#else
#define MAYFILL(u) (st[u] == NOT && u < be && map[u] == 0 && fok)
#endif

proctype claimant() {
    byte u, k;
end:
    do
    /* writes, its own or carried */
    :: d_step { nwrite < NWRITE && OWNS(0) -> u = 0; own_write() }
    :: d_step { nwrite < NWRITE && OWNS(1) -> u = 1; own_write() }

    /* LEND */
    :: d_step { b[1].lq == 1 && !b[1].anew -> lend(1) }
    :: d_step { b[2].lq == 1 && !b[2].anew -> lend(2) }

#if NCUT > 0
    /* a truncation */
    :: d_step { ncut < NCUT && !op && known && size > CUT ->
        ncut++;
        if
#ifndef CUTS_WITHOUT_RECALL
        :: lent -> printf("EV RECALL, epoch %d\n", ep + 1);
            op = CUTTING; begin_recall(BORROWERS)
#endif
        :: else -> truncate()
        fi }
    :: d_step { op == CUTTING && rw == 0 ->
        if :: !ANYLENT -> truncate() :: else -> printf("EV lent meanwhile\n") fi; op = 0; stopping = 0; oe = 0 }
    /* a borrower has not answered: EIO, and nothing is changed; the RECALLs may come late */
    :: d_step { op && rw != 0 && nloss < NLOSS -> nloss++; op = 0; stopping = 0; rw = 0; oe = 0; printf("EV recall is given up\n") }
#endif
    /* a borrower that has nothing has not heard what it was lent: RECALL */
#ifndef LOST_LENT_STAYS
    :: d_step { !op && known && LENTTO(1) && !b[1].loan && b[1].lq != 2 && !b[1].anew -> op = ASKING; begin_recall(2); printf("EV 1 has nothing: RECALL, epoch %d\n", ep) }
    :: d_step { !op && known && LENTTO(2) && !b[2].loan && b[2].lq != 2 && !b[2].anew -> op = ASKING; begin_recall(4); printf("EV 2 has nothing: RECALL, epoch %d\n", ep) }
    :: d_step { op == ASKING && rw == 0 -> op = 0; stopping = 0; oe = 0 }
#endif
    /* the question is put again */
    :: d_step { op && (rw & 2) && b[1].rc == 0 -> b[1].rc = oe }
    :: d_step { op && (rw & 4) && b[2].rc == 0 -> b[2].rc = oe }

    /* RETURN */
    :: d_step { known && job[0].who != 0 && !job[0].looked && !b[job[0].who].anew -> look_for_return(0) }
    :: d_step { known && job[1].who != 0 && !job[1].looked && !b[job[1].who].anew -> look_for_return(1) }
    :: d_step { known && job[0].who != 0 && job[0].looked && !b[job[0].who].anew -> take_return(0) }
    :: d_step { known && job[1].who != 0 && job[1].looked && !b[job[1].who].anew -> take_return(1) }

#if NGROW > 0
    :: d_step { ngrow < NGROW && known && size < 1 ->
        ngrow++; size = 1; trues = MAXOF(trues, 1); seen = seen | (pl -> BIT(trues) : 0); dirty = 1; rchg = 1; printf("EV longer\n") }
#endif

#if NSTAT > 0
    :: d_step { nstat < NSTAT && !pl && known -> nstat++; pl = 1; seen = BIT(trues); begin_round(); printf("EV stat\n") }
    :: d_step { pl && (pw & 2) && !b[1].anew -> pw = pw & ~2; pm = MAXOF(pm, b[1].size); printf("EV 1 says size %d\n", b[1].size) }
    :: d_step { pl && (pw & 4) && !b[2].anew -> pw = pw & ~4; pm = MAXOF(pm, b[2].size); printf("EV 2 says size %d\n", b[2].size) }
    :: d_step { pl && pw == 0 ->
#ifdef ONE_ROUND
        size = MAXOF(size, pm); ps = size; pm = 0; pok = 1;
#endif
        if
#ifdef ROUNDS_OVER_RETURNS
        :: pm <= ps ->
#else
        :: pok && (pm <= ps || (ALONE && size == ps)) ->
            size = MAXOF(size, pm); ps = MAXOF(ps, pm);
#endif
#ifdef TELLS_LATER
            ps = size;
#endif
            printf("EV size %d is told\n", ps); assert(seen & BIT(ps)); pl = 0; ps = 0; pm = 0; pok = 0; seen = 0; palone = 0
        :: else ->
#ifdef LATE_SIZES
            if :: lent -> size = MAXOF(size, pm) :: else fi;
#else
            if :: pok -> size = MAXOF(size, pm) :: else fi;
#endif
            begin_round()
        fi }
#endif

#if NFETCH > 0
    :: d_step { nfetch < NFETCH && fu == 0 && known && map[0] == 0 && st[0] == NOT && 0 < be -> nfetch++; fu = 1; fb = ONPFS(0,be); fok = 1 }
    :: d_step { nfetch < NFETCH && fu == 0 && known && map[1] == 0 && st[1] == NOT && 1 < be -> nfetch++; fu = 2; fb = ONPFS(1,be); fok = 1 }
    :: d_step { fu != 0 ->
        u = fu - 1;
        if
        :: known && MAYFILL(u) -> st[u] = CLEAN; val[u] = fb; printf("EV clean page of %d\n", u)
        :: else
        fi; fu = 0; fb = 0; fok = 0; u = 0 }
#endif

    /* eviction */
    :: d_step { st[0] == CLEAN && 0 < be -> st[0] = NOT; val[0] = 0; snap[0] = 0 }
    :: d_step { st[1] == CLEAN && 1 < be -> st[1] = NOT; val[1] = 0; snap[1] = 0 }

    /* the flusher: is it the version of the base?  snapshot */
    :: d_step { r == 0 && dirty ->
        if :: !lent && known -> assert(!bstale) :: else fi;
        printf("EV run begins, size %d\n", size);
        r = 1; rs = size; rcut = cut; rlent = lent; rchg = 0; rcut2 = 0; snap[0] = (st[0] == DIRTY); snap[1] = (st[1] == DIRTY) }
    /* cut, and then the bytes */
    :: d_step { r == 1 ->
        r = 3; if :: rcut && psize > CUT -> pfs_cut(CUT) :: else fi;
        u = 0; do :: u < 2 -> if :: snap[u] -> pfs[u] = val[u]; psize = MAXOF(psize, u + 1) :: else fi; u++ :: else -> break od; u = 0 }
    /* size: nothing is lent meanwhile */
#ifdef LENDS_WHILE_CUTTING
    :: d_step { r == 3 -> r = 4; rz = (lent || rlent) }
    :: d_step { r == 4 -> r = 5; if :: !rz && psize != rs -> pfs_cut(rs) :: else fi; rz = 0 }
#else
    :: d_step { r == 3 ->
        if
#ifdef SHORTENS
        :: psize != rs -> pfs_cut(rs); r = 5
#endif
#ifdef GROWS_BY_TRUNCATE        /* looks, and truncates in another step */
        :: (lent || rlent) && psize < rs -> r = 4
#endif
#ifdef LENT_NOW_COUNTS
        :: !lent && psize != rs -> pfs_cut(rs); r = 5
#else
        :: !lent && !rlent && psize != rs -> pfs_cut(rs); r = 5
#endif
        :: else -> r = 5
        fi }
#ifdef GROWS_BY_TRUNCATE
    :: d_step { r == 4 -> r = 5; pfs_cut(rs) }
#endif
#endif
    /* the look, and the end */
    :: d_step { r == 5 -> r = 6; rz = psize; fstale = 0; fk = 1 }
    :: d_step { r == 6 ->
        u = 0; do :: u < 2 -> if :: snap[u] -> st[u] = CLEAN :: else fi; u++ :: else -> break od; u = 0;
        if :: rcut -> cut = rcut2 :: else fi;
#ifdef RUNS_OUT_OF_ORDER
        fk = 1;
#endif
        if
        :: fk ->
            if :: lent -> size = MAXOF(size, rz) :: else fi;
            be = MINOF(rz, size); if :: cut -> be = MINOF(be, CUT) :: else fi;
            bstale = fstale; owed = (cut || rz > be); job[0].ok = 0; job[1].ok = 0; fok = 0
        :: else
        fi;
        if
        :: fk && !rchg && !cut && st[0] != DIRTY && st[1] != DIRTY && (rz == size || lent) ->
            dirty = 0; printf("EV run ends, clean\n");
            assert(lent || !known || (psize == trues && size == trues && pfs[0] == cur[0] && pfs[1] == cur[1]))
        :: else -> printf("EV run ends\n")
        fi;
        r = 0; rs = 0; rcut = 0; rlent = 0; rchg = 0; rcut2 = 0; rz = 0; fstale = 0; fk = 0; snap[0] = 0; snap[1] = 0 }

#if NCRASH > 0
    /* a restart: what is lent is not known, and what was under way is over */
    :: d_step { (RESTARTS & BIT(CLAIMANT)) && ncrash < NCRASH ->
        ncrash++; printf("EV claimant restarts\n");
        map[0] = 0; map[1] = 0; since[1] = 0; since[2] = 0; op = 0; stopping = 0; rw = 0; oe = 0; pl = 0; ps = 0; pm = 0; pw = 0; pok = 0; seen = 0; palone = 0;
        fu = 0; fb = 0; fok = 0; r = 0; rs = 0; rcut = 0; rlent = 0; rchg = 0; rcut2 = 0; snap[0] = 0; snap[1] = 0; rz = 0; fstale = 0; fk = 0;
        dirty = 1;
#ifdef SPEAKS_AT_ONCE
        lent = 0;
#endif
        known = !lent; hk = 0;
#ifdef EPOCHS_FROM_ZERO
        ep = 1;
#else
        ep++;
#endif
        k = 1;
        do
        :: k < 3 ->
            if :: b[k].lq == 1 -> b[k].lq = 0; b[k].lu = 0 :: else fi;
            if :: b[k].ret == 1 -> b[k].ret = 2 :: else fi; k++
        :: else -> break
        od;
        k = 0; drop_job(0); drop_job(1) }
    /* HELD: of a claimant that has restarted, to all, and to a borrower that has */
    :: d_step { !known && !(hk & 2) -> held(1) }
    :: d_step { !known && !(hk & 4) -> held(2) }
    :: d_step { known && b[1].anew -> held(1) }
    :: d_step { known && b[2].anew -> held(2) }
#endif
    od
}

/* ---- a borrower's steps ---- */

#ifdef NO_EPOCHS
#define CAMEINTIME(i) 1
#else
#define CAMEINTIME(i) (b[i].le >= b[i].ep)
#endif

inline takes(i) {
    if
    :: b[i].lm != 0 && CAMEINTIME(i) -> printf("EV %d takes units %d, epoch %d\n", i, b[i].lm, b[i].le);
        if :: !b[i].loan -> b[i].loan = 1; b[i].lep = b[i].le; b[i].be = 0; b[i].size = 0 :: else fi;
        b[i].mine = b[i].mine | b[i].lm; b[i].be = MAXOF(b[i].be, b[i].lb); b[i].size = MAXOF(b[i].size, b[i].lb)
    :: else -> printf("EV %d drops an answer to LEND, epoch %d\n", i, b[i].le);
#ifdef OVERTAKEN_LEAVES_A_LOAN  /* without units */
        if :: b[i].lm != 0 && !b[i].loan -> b[i].loan = 1; b[i].lep = b[i].le; b[i].be = b[i].lb; b[i].size = b[i].lb :: else fi
#endif
    fi;
    b[i].lq = 0; b[i].lu = 0; b[i].lm = 0; b[i].le = 0; b[i].lb = 0
}

inline borrower_writes(i, un) {
    nwrite++; ver++; b[i].bst[un] = DIRTY; b[i].bv[un] = ver; b[i].size = MAXOF(b[i].size, un + 1); acknowledged(un);
    printf("EV %d writes %d into %d\n", i, ver, un)
}

inline borrower_flushes(i, un) {
    pfs[un] = b[i].bv[un]; psize = MAXOF(psize, un + 1); b[i].bst[un] = NOT; b[i].bv[un] = 0; b[i].be = MAXOF(b[i].be, un + 1);
    bstale = 1; fstale = (r == 6); job[0].stale = job[0].looked; job[1].stale = job[1].looked;
    printf("EV %d flushes %d\n", i, un)
}

inline sends_return(i, j) {
    job[j].who = i; job[j].size = b[i].size; job[j].ep = b[i].lep; job[j].waits = 1; b[i].ret = 1; printf("EV RETURN of %d\n", i)
}

inline not_answered(i, j) {
    nloss++; job[j].waits = 0; printf("EV RETURN of %d is not answered\n", i);
#ifdef USED_AGAIN_AFTER_RETURN
    b[i].ret = 0
#else
    b[i].ret = 2
#endif
}

inline restarts(i) {
    ncrash++; printf("EV %d restarts\n", i);
    b[i].mine = (b[i].bst[0] == DIRTY -> 1 : 0) | (b[i].bst[1] == DIRTY -> 2 : 0);
    if :: b[i].mine == 0 -> forget(i) :: else fi;
    b[i].ret = 0; b[i].lq = 0; b[i].lu = 0; b[i].lm = 0; b[i].le = 0; b[i].lb = 0; b[i].rc = 0; b[i].ep = 0;
#ifdef RETURNS_OF_ANY_START
    if :: job[0].who == i -> job[0].waits = 0 :: else fi;
    if :: job[1].who == i -> job[1].waits = 0 :: else fi;
#else                           /* RETURN names the start of its sender: that of an earlier one does not count */
    if :: job[0].who == i -> drop_job(0) :: else fi;
    if :: job[1].who == i -> drop_job(1) :: else fi;
#endif
#ifndef NOT_ASKED_AFTER_A_RESTART
    b[i].anew = 1
#endif
}

/* the answer may be lost: then the claimant asks again, or has given up */
inline answers_recall(heard) {
    b[i].ep = MAXOF(b[i].ep, b[i].rc); printf("EV %d has handled RECALL %d\n", i, b[i].rc);
    if
    :: op && (rw & BIT(i)) && b[i].rc == oe && heard -> recalled(i)
    :: else
    fi;
    b[i].rc = 0
}

#if defined(RETURNS_DIRTY)
#define MAYRETURN(i) (b[i].loan && b[i].ret != 1)
#else
#define MAYRETURN(i) (b[i].loan && b[i].ret != 1 && !BDIRTY(i))
#endif

proctype borrower(byte i) {
end:
    do
    :: d_step { (ASKS(i) & 1) && nlend < NLEND && b[i].lq == 0 && !(b[i].mine & 1) -> nlend++; b[i].lq = 1; b[i].lu = 0 }
    :: d_step { (ASKS(i) & 2) && nlend < NLEND && b[i].lq == 0 && !(b[i].mine & 2) -> nlend++; b[i].lq = 1; b[i].lu = 1 }
    :: d_step { b[i].lq == 2 && b[i].ret == 0 -> takes(i) }
    :: d_step { b[i].lq == 2 && nloss < NLOSS -> nloss++; b[i].lq = 0; b[i].lu = 0; b[i].lm = 0; b[i].le = 0; b[i].lb = 0; printf("EV LENT to %d is lost\n", i) }
    /* writes, its own or carried */
    :: d_step { nwrite < NWRITE && SERVES(i,0) -> borrower_writes(i, 0) }
    :: d_step { nwrite < NWRITE && SERVES(i,1) -> borrower_writes(i, 1) }
    :: d_step { b[i].loan && b[i].bst[0] == DIRTY -> borrower_flushes(i, 0) }
    :: d_step { b[i].loan && b[i].bst[1] == DIRTY -> borrower_flushes(i, 1) }
    /* clean, and nobody writes here: RETURN; again if it was not answered */
    :: d_step { MAYRETURN(i) && job[0].who == 0 -> sends_return(i, 0) }
    :: d_step { MAYRETURN(i) && job[0].who != 0 && job[1].who == 0 -> sends_return(i, 1) }
#if NLOSS > 0
    :: d_step { b[i].ret == 1 && job[0].who == i && job[0].waits && nloss < NLOSS -> not_answered(i, 0) }
    :: d_step { b[i].ret == 1 && job[1].who == i && job[1].waits && nloss < NLOSS -> not_answered(i, 1) }
#endif
    /* RECALL: all is returned as any loan is, and then it is answered */
#ifdef FORGETS_AT_RECALL
    :: d_step { b[i].rc != 0 && !b[i].anew && b[i].ret == 0 && !BDIRTY(i) -> if :: b[i].loan -> forget(i) :: else fi; answers_recall(1) }
    :: d_step { b[i].rc != 0 && !b[i].anew && b[i].ret == 0 && !BDIRTY(i) && nloss < NLOSS -> nloss++; if :: b[i].loan -> forget(i) :: else fi; answers_recall(0) }
#else
    :: d_step { b[i].rc != 0 && !b[i].anew && b[i].ret == 0 && !b[i].loan -> answers_recall(1) }
    :: d_step { b[i].rc != 0 && !b[i].anew && b[i].ret == 0 && !b[i].loan && nloss < NLOSS -> nloss++; answers_recall(0) }
#endif
#if NCRASH > 0
    :: d_step { (RESTARTS & BIT(i)) && ncrash < NCRASH -> restarts(i) }
#endif
    od
}

/* when nothing can happen any more, nothing waits, and all is on the PFS */
active proctype atlast() {
end: atomic { timeout ->
        assert(!op && !pl && r == 0 && known && !lent && !dirty && job[0].who == 0 && job[1].who == 0);
        assert(b[1].rc == 0 && b[2].rc == 0 && b[1].ret == 0 && b[2].ret == 0 && !b[1].loan && !b[2].loan && b[1].lq == 0 && b[2].lq == 0) }
}

init {
    atomic {
    psize = FIRST; size = FIRST; be = FIRST; trues = FIRST;
    if :: FIRST > 0 -> pfs[0] = 1; cur[0] = 1 :: else fi;
    if :: FIRST > 1 -> pfs[1] = 1; cur[1] = 1 :: else fi;
    run claimant(); run borrower(1); run borrower(2)
    }
}
