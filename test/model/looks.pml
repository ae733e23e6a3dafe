/* looks.pml - who looks is told: lookers, BREAK, watchers and CHANGED of one file among three nodes.
 *
 * docs/protocol.md, "Looking".  Who has the claim is claims.pml's business: here a new home knows what it knows by the
 * rules that are checked there, and leases, views and the wait W are as there.  Ring: node numbers; home = lowest
 * member of the view, next = second lowest.
 *
 * A file is a number, its version.  A node's kernel may have it twice: as attributes with a time-out (`attr`), and as a
 * page that a descriptor reads (`page`; it is read only while the descriptor is open).  cur is the version of the
 * last change that was acknowledged.  Whenever a change is acknowledged, and whenever a kernel gets something to
 * keep, nothing that any kernel keeps is older than cur; and no process is told anything older than what was
 * acknowledged when it asked.
 *
 * Operations: a stat, an open that caches if it may, a READ through such a descriptor, a WRITE through one (a store to
 * a mapping, too), an open for writing, a change by the claimant, a close.  A READ and a WRITE are first in the kernel's
 * queue, where the daemon does not know of them, and hold the page's lock until they are answered.
 *
 * Network: each kind of message has a place for the last one to each node.  It stays there until the next one: so it
 * may be late, doubled, or lost.  Nothing happens that changes nothing, and nobody gives up more than NGIVEUP times: so
 * a state in which nothing can happen any more is one in which something waits for ever (atlast).
 *
 * Time: old[u] says that W has passed since view u was made, as in claims.pml.  That 1 s has passed since a moment may
 * be noticed at any time after it, and then what was to end in this 1 s has ended.
 *
 * Rules can be left out one by one: see the table of `run`, and each one's place here.
 */
#ifndef NV
#define NV 1            /* views */
#endif
#ifndef NCRASH
#define NCRASH 0        /* crashes; every crashed node may return */
#endif
#ifndef NLOOK
#define NLOOK 2         /* stats and opens, all nodes together */
#endif
#ifndef NREAD
#define NREAD 1         /* READs */
#endif
#ifndef NWANT
#define NWANT 1         /* opens for writing */
#endif
#ifndef NCHANGE
#define NCHANGE 1       /* changes by the claimant itself */
#endif
#ifndef NCARRY
#define NCARRY 0        /* carried WRITEs */
#endif
#ifndef NGIVEUP
#define NGIVEUP 0       /* operations that reach their deadline */
#endif
#ifndef LOOKERS
#define LOOKERS 7       /* the nodes that look */
#endif
#ifndef WRITERS
#define WRITERS 7       /* the nodes that open for writing */
#endif
#ifndef VIEWS2
#define VIEWS2 (BIT(7) | BIT(3) | BIT(5) | BIT(6))     /* the members that view 2 may have */
#endif

#define N     3
#define NONE  3         /* no node; as an answer: "on the PFS" */
#define ALL   7
#define BIT(i)  (1<<(i))
#define HOME(m) (((m)&1) -> 0 : (((m)&2) -> 1 : 2))
#define NEXT(m) (((m)==7||(m)==3) -> 1 : (((m)==5||(m)==6) -> 2 : NONE))

/* kinds of looks */
#define STAT  1
#define OPEN  2
/* an operation's steps */
#define IDLE   0
#define QUEUED 1        /* in the kernel's queue: the daemon does not know of it */
#define ASKED  2        /* WHERE is sent */
#define FOUND  3        /* knows what to answer */
#define BEGUN  4        /* the answer is on its way into the kernel */
/* a WRITE's steps: QUEUED, and then */
#define KNOWN  2        /* the daemon has it, and carries it */
#define MADE   3        /* the claimant has made the change, and tells the watchers */
#define ANSWERED 4      /* only of a page of a mapping: it is answered before all are told */
#define UNKNOWN 8       /* among those who are to be told: watchers that the claimant does not know yet */

/* ---- on the PFS ---- */
typedef View { byte mem; byte inc[N] };
View view[NV+1];
byte newest = 1;
byte old = BIT(1);      /* bit u: W has passed since view u was made */
byte pfs;               /* version on the PFS */

/* ---- operations of a node's processes: [0] a stat or an open, [1] a READ ---- */
typedef Op {
    byte st; byte kind;
    byte num;           /* number of its WHERE */
    byte views;         /* WHERE was sent in these */
    byte val; byte want;/* version found; at least this */
    bit  keep;          /* AT said so, or it is here */
    bit  stale;         /* its ticket is void: BREAK or CHANGED came since WHERE was sent */
    bit  late;          /* 1 s has passed since WHERE was sent */
    bit  known;         /* a drop has left its page out */
    byte av; byte at; bit ak; byte as   /* AT: view, where, keep (and count, for STAMPS) */
};

/* ---- a node ---- */
typedef Node {
    bit  up; byte inc;
    byte v;             /* adopted view; 0 = none (fenced or not joined) */
    byte lastv;         /* the last one it adopted */
    byte seen;          /* the newest one it has read of */
    bit  lease;
    /* home */
    byte act;           /* 0 collecting, 1 complete, 2 also at next */
    bit  young;         /* the first second since it is complete */
    bit  blind;
    byte cnt;           /* count of its changes and BREAKs */
    byte rec; byte recq;
    byte ph;            /* of a grant: 0 none, 1 COPY is sent, 2 BREAKs are out */
    bit  held;          /* it is asked for by the node that has the claim */
    byte wait; byte watch;  /* not yet BROKEN; BROKEN said "cached" */
    byte tk[N]; byte tq[N]; /* lookers: kind, number of WHERE; of home or next */
    /* next */
    byte nrec; byte ncnt; bit nhas;
    /* looker */
    Op   op[2];
    byte num;           /* number of the last WHERE or FREE */
    byte attr; byte anum;   /* version + 1 in the kernel, and the number that it goes back to */
    byte page;          /* version + 1 in the kernel */
    bit  desc;          /* a cached descriptor is open */
    bit  keeps;         /* its look keeps: no shared use */
    byte drop;          /* dropping for: 0 nothing, 1 BREAK, 2 CHANGED */
    byte dv; byte ds;   /* this one */
    byte bv; byte bs;   /* the newest BREAK that has come (for STAMPS) */
    byte cw; bit map; byte cwv; byte cwm; byte cwc; /* WRITE: step, of a mapping, version, not yet told, at */
    /* claimant */
    bit  wst; byte q; byte wv; bit wheld;
    bit  claim; byte ver;   /* on disk */
    byte cq;
    bit  told;          /* it knows the watchers */
    byte wm;            /* the watchers */
    bit  lc; byte lcv; byte lcm /* own change: version, not yet told */
};
Node n[N];

/* ---- messages ---- */
typedef Report { bit sent; bit claim; byte cq; bit open; byte num; byte rv; byte rec };
typedef Reports { Report r[N] };
Reports rep[NV+1];      /* ADOPTED(view) of node */
byte cpv, cpc, cprec = NONE;            /* COPY: view, count, record */
byte cdv, cdc, cdk[N], cdq[N];          /* COPIED: view, count, lookers of next */
byte brv[N], brs[N];                    /* BREAK to node: view, number */
byte bkv[N], bks[N]; bit bkc[N];        /* BROKEN of node: view, number, "cached" */
byte grv[N], grq[N], grm[N];            /* GRANT: view, request, watchers */
byte frv[N], frq[N], frk[N], frn[N];    /* FREE: view, request, kind of look, number */
byte lvn[N];                            /* LEAVE: number of the last WHERE that it covers */
byte chm[N];                            /* CHANGED to node: version */
byte chd[N]; bit chk[N];                /* CHANGED_DONE of node: version, "cached" */

/* ---- ghosts ---- */
byte cur;               /* version of the last change that was acknowledged */
byte ncrash, nlook, nread, nwant, nchange, ncarry, ngiveup;

#define IN(x,u)   ((view[u].mem & BIT(x)) && view[u].inc[x] == n[x].inc)
#define SAME(x,u,y) ((view[u].mem & BIT(x)) && (view[y].mem & BIT(x)) && view[u].inc[x] == view[y].inc[x])
#define ISHOME(i) (n[i].v != 0 && HOME(view[n[i].v].mem) == i)
#define ISNEXT(i) (n[i].v != 0 && NEXT(view[n[i].v].mem) == i)
#define NOBODY(i) (NEXT(view[n[i].v].mem) == NONE)
#define GOT(u,x)  (!(view[u].mem & BIT(x)) || rep[u].r[x].sent)
#define REPS(u)   (GOT(u,0) && GOT(u,1) && GOT(u,2))
#define SETTLED(i) (view[n[i].v].mem == ALL || (old & BIT(n[i].v)))
/* what a home says of the file */
#ifdef AT_NODE_WHILE_BREAKING
#define WORD(h)   n[h].rec
#elif defined(AT_PFS_WHILE_HELD)
#define WORD(h)   (n[h].ph != 0 -> NONE : n[h].rec)
#else
#define WORD(h)   (n[h].ph != 0 && !n[h].held -> NONE : n[h].rec)
#endif
#define THERE(c,v_) ((c) == NONE || (view[v_].mem & BIT(c)))
#define LOOKS(i)  (n[i].desc || (n[i].op[0].st >= ASKED && n[i].op[0].kind == OPEN))
/* such a page counts */
#define COUNTS(j) (n[j].lease || (n[j].v != 0 && n[j].v == newest))
#define FRESH(j)  ((n[j].attr == 0 || n[j].attr > cur) && (n[j].page == 0 || !COUNTS(j) || n[j].page > cur))
#define COHERENT  (FRESH(0) && FRESH(1) && FRESH(2))
#define NOATTRBEGUN (n[0].op[0].st != BEGUN && n[1].op[0].st != BEGUN && n[2].op[0].st != BEGUN)
#define CARRIES   (n[0].cw != 0 || n[1].cw != 0 || n[2].cw != 0)

/* A node that is out of the claimant's view, or a claimant that is out of the view: W after that nobody is left who looks */
#ifdef LEFT_OUT_AT_ONCE
#define LEFTOUT(c,j) (!(view[n[c].seen].mem & BIT(j)) || !(view[n[c].seen].mem & BIT(c)))
#else
#define LEFTOUT(c,j) ((old & BIT(n[c].seen)) && (!(view[n[c].seen].mem & BIT(j)) || !(view[n[c].seen].mem & BIT(c))))
#endif

#ifdef CLAIMANT_RESTARTS        /* only the claimant crashes, and view 2 is made when it is back */
#define MAYCRASH(i) n[i].claim
#define MAYMAKE     (ncrash == NCRASH && n[0].up && n[1].up && n[2].up)
#else
#define MAYCRASH(i) 1
#define MAYMAKE     1
#endif

/* The tickets of what node i is answering are void. */
inline voids(i) {
    if :: n[i].op[0].st >= ASKED -> n[i].op[0].stale = 1 :: else fi;
    if :: n[i].op[1].st >= ASKED -> n[i].op[1].stale = 1 :: else fi;
#ifdef STAMPS   /* breaks are counted from when AT has come; before that its stamp tells */
    if :: n[i].op[0].st == ASKED -> n[i].op[0].stale = 0 :: else fi;
    if :: n[i].op[1].st == ASKED -> n[i].op[1].stale = 0 :: else fi;
#endif
}

/* A drop begins; it leaves out what the daemon knows of. */
inline dropbegins(i) {
    voids(i); n[i].keeps = 0;
    if :: n[i].op[1].st >= ASKED -> n[i].op[1].known = 1 :: else fi
}

/* BEGUN answers are short; QUEUED requests hold the page */
#ifdef NOT_FOR_ANSWERS
#define NONEBEGUN(i) 1
#define PAGEFREE(i)  (n[i].op[1].st == IDLE || n[i].op[1].st == BEGUN || n[i].op[1].known)
#else
#define NONEBEGUN(i) (n[i].op[0].st != BEGUN && n[i].op[1].st != BEGUN)
#define PAGEFREE(i)  (n[i].op[1].st == IDLE || n[i].op[1].known)
#endif
#define WRITEFREE(i) (!n[i].map || n[i].cw == IDLE || n[i].cw == ANSWERED)

inline ends(i, o) {
    n[i].op[o].st = IDLE; n[i].op[o].kind = 0; n[i].op[o].num = 0; n[i].op[o].views = 0; n[i].op[o].val = 0; n[i].op[o].want = 0;
    n[i].op[o].keep = 0; n[i].op[o].stale = 0; n[i].op[o].late = 0; n[i].op[o].known = 0;
    n[i].op[o].av = 0; n[i].op[o].at = 0; n[i].op[o].ak = 0; n[i].op[o].as = 0
}

/* The daemon looks where the file is: here, as its look keeps it, or by WHERE. */
inline locate(i, o) {
    n[i].op[o].stale = 0; n[i].op[o].late = 0; n[i].op[o].keep = 0; n[i].op[o].av = 0; n[i].op[o].at = 0; n[i].op[o].ak = 0; n[i].op[o].as = 0;
    if
    :: n[i].claim -> n[i].op[o].val = n[i].ver; n[i].op[o].keep = 1; n[i].op[o].num = n[i].num; n[i].op[o].st = FOUND
    :: !n[i].claim && o == 1 && n[i].keeps -> n[i].op[o].val = pfs; n[i].op[o].keep = 1; n[i].op[o].num = n[i].num; n[i].op[o].st = FOUND
    :: else -> n[i].num++; n[i].op[o].num = n[i].num; n[i].op[o].st = ASKED; n[i].op[o].views = (n[i].v -> BIT(n[i].v) : 0)
    fi
}

inline looks(i, k_, q_, t) {        /* home or next i enters a looker */
    if :: n[i].tk[t] < k_ -> n[i].tk[t] = k_ :: else fi;
    if :: n[i].tq[t] < q_ -> n[i].tq[t] = q_ :: else fi
}

/* BREAK to all lookers but the asker */
inline breaks(i) {
    n[i].ph = 2; n[i].cnt++; n[i].wait = 0; n[i].watch = 0; x = 0;
    do
    :: x < N -> if
#ifndef NOT_ALL_WHEN_YOUNG
                :: x != n[i].rec && n[i].young && (view[n[i].v].mem & BIT(x)) -> n[i].wait = n[i].wait | BIT(x); brv[x] = n[i].v; brs[x] = n[i].cnt
#endif
                :: x != n[i].rec && n[i].tk[x] != 0 -> n[i].wait = n[i].wait | BIT(x); brv[x] = n[i].v; brs[x] = n[i].cnt
                :: else fi; x++
    :: else -> break
    od; x = 0;
    printf("EV home %d sends BREAK %d.%d to %d\n", i, n[i].v, n[i].cnt, n[i].wait)
}

inline sendcopy(i) { cpv = n[i].v; cpc = n[i].cnt; cprec = n[i].rec }

inline forgets(i) { /* what a home or next knew goes with the view */
    n[i].act = 0; n[i].young = 0; n[i].blind = 0; n[i].cnt = 0; n[i].ph = 0; n[i].held = 0; n[i].wait = 0; n[i].watch = 0;
    n[i].rec = NONE; n[i].recq = 0; n[i].nrec = NONE; n[i].ncnt = 0; n[i].nhas = 0;
    x = 0; do :: x < N -> n[i].tk[x] = 0; n[i].tq[x] = 0; x++ :: else -> break od; x = 0
}

/* Home i has ADOPTED from all.  Who has the claim: members' own lists; of absent nodes the record of the last home or next. */
inline collect(i) {
    u = n[i].v; n[i].rec = NONE; n[i].recq = 0; n[i].blind = 0; y = u - 1; h = NONE;
    do
    :: y == 0 -> break
    :: else ->
        x = HOME(view[y].mem);
        if :: SAME(x,y,u) && rep[u].r[x].rv == y -> h = rep[u].r[x].rec; break :: else fi;
        x = NEXT(view[y].mem);
        if
        :: x != NONE ->
            if :: SAME(x,y,u) && rep[u].r[x].rv == y -> h = rep[u].r[x].rec; break :: else fi;
            if :: !SAME(x,y,u) && !SAME(HOME(view[y].mem),y,u) -> n[i].blind = 1; break :: else fi
        :: else -> if :: !SAME(HOME(view[y].mem),y,u) -> n[i].blind = 1; break :: else fi
        fi;
        y--
    od;
    if :: h != NONE && !(view[u].mem & BIT(h)) -> n[i].rec = h :: else fi;
    x = 0;
    do
    :: x < N ->
        if
        :: (view[u].mem & BIT(x)) && rep[u].r[x].claim -> n[i].rec = x; n[i].recq = rep[u].r[x].cq; n[i].blind = 0
        :: else
        fi;
        if :: (view[u].mem & BIT(x)) && rep[u].r[x].open -> n[i].tk[x] = OPEN; n[i].tq[x] = rep[u].r[x].num :: else fi;
        x++
    :: else -> break
    od;
    n[i].cnt = 0; n[i].act = 1;
#ifndef YOUNG_FROM_ADOPTION
    n[i].young = 1;
#endif
    printf("EV home %d is complete in %d: claimant %d blind %d\n", i, u, n[i].rec, n[i].blind);
    sendcopy(i);
    if :: NOBODY(i) -> n[i].act = 2 :: else fi;
    u = 0; x = 0; y = 0; h = 0
}

/* All that a kernel has of the file ends, without BREAK. */
inline dropall(i) {
    voids(i); n[i].keeps = 0; n[i].attr = 0; n[i].anum = 0; n[i].page = 0
}

inline adopts(i) {
    rep[newest].r[i].sent = 1; rep[newest].r[i].claim = n[i].claim; rep[newest].r[i].cq = (n[i].claim -> n[i].cq : 0);
    rep[newest].r[i].open = LOOKS(i); rep[newest].r[i].num = n[i].num;
    rep[newest].r[i].rv = (n[i].v != 0 && ((ISHOME(i) && n[i].act != 0) || (ISNEXT(i) && n[i].nhas)) -> n[i].v : 0);
    rep[newest].r[i].rec = (rep[newest].r[i].rv == 0 -> NONE : (ISHOME(i) -> n[i].rec : n[i].nrec));
#ifdef NO_OPEN_IN_ADOPTED
    rep[newest].r[i].open = 0;
#endif
#ifndef KEEPS_WHEN_IT_WAS_OUT
    if :: n[i].v == 0 || n[i].lastv + 1 < newest -> dropall(i) :: else fi;
#endif
#ifndef KEEPS_WHEN_ONE_IS_MISSING
    if
    :: n[i].v != 0 && (view[n[i].v].mem & (ALL - view[newest].mem)) != 0 && !n[i].keeps -> voids(i); n[i].page = 0
    :: else
    fi;
#endif
    n[i].v = newest; n[i].lastv = newest; n[i].seen = newest; n[i].lease = 1;
    printf("EV %d adopts %d (claim %d, open %d)\n", i, newest, n[i].claim, LOOKS(i));
    forgets(i);
#ifdef YOUNG_FROM_ADOPTION
    n[i].young = 1;
#endif
    if :: n[i].op[0].st == ASKED -> n[i].op[0].views = n[i].op[0].views | BIT(newest) :: else fi;
    if :: n[i].op[1].st == ASKED -> n[i].op[1].views = n[i].op[1].views | BIT(newest) :: else fi;
    if :: n[i].wst -> n[i].wv = n[i].wv | BIT(newest) :: else fi;
    assert(FRESH(i))
}

/* WANT(k): nobody has the claim, or k itself; or another has it */
#define WANTS(i,k) (n[i].up && ISHOME(i) && n[i].act == 2 && n[i].lease && n[k].wst && (n[k].wv & BIT(n[i].v)) && \
    ((n[i].ph == 0 && SETTLED(i) && !(frv[k] == n[i].v && frq[k] >= n[k].q) && \
      ((n[i].rec == NONE && !n[i].blind) || (n[i].rec == k && n[k].q > n[i].recq))) || (n[i].rec != NONE && n[i].rec != k)))
inline takewant(i, k_) {
    if
    :: n[i].rec == NONE || n[i].rec == k_ ->
        n[i].rec = k_; n[i].recq = n[k_].q; n[i].held = n[k_].wheld; n[i].cnt++; n[i].ph = 1; sendcopy(i);
        printf("EV home %d records claimant %d request %d held %d\n", i, k_, n[k_].q, n[k_].wheld);
        if :: NOBODY(i) -> breaks(i) :: else fi
    :: else -> printf("EV home %d tells %d: at %d\n", i, k_, n[i].rec); n[k_].wst = 0; n[k_].wv = 0; n[k_].wheld = 0
    fi
}

/* BROKEN(k), of this BREAK */
#ifdef ANY_BROKEN
#define BROKE(i,k) (n[i].up && ISHOME(i) && n[i].ph == 2 && (n[i].wait & BIT(k)) && bkv[k] != 0)
#else
#define BROKE(i,k) (n[i].up && ISHOME(i) && n[i].ph == 2 && (n[i].wait & BIT(k)) && bkv[k] == n[i].v && bks[k] == n[i].cnt)
#endif
inline broken(i, k_) {
    n[i].wait = n[i].wait & (ALL - BIT(k_));
    if :: bkc[k_] -> n[i].watch = n[i].watch | BIT(k_) :: else -> n[i].tk[k_] = 0; n[i].tq[k_] = 0 fi
}
/* LEAVE(k): what was given before may be in the kernel for 1 s more */
#ifdef LEAVE_WITHOUT_NUMBER
#define LEFT(i,k) (n[i].up && ISHOME(i) && n[i].act != 0 && n[i].tk[k] == OPEN && lvn[k] != 0)
#else
#define LEFT(i,k) (n[i].up && ISHOME(i) && n[i].act != 0 && n[i].tk[k] == OPEN && lvn[k] != 0 && lvn[k] >= n[i].tq[k])
#endif
inline leave(i, k_) {
#ifdef LEAVE_AT_ONCE
    n[i].tk[k_] = 0; n[i].tq[k_] = 0;
#else
    n[i].tk[k_] = STAT;
#endif
    lvn[k_] = 0
}

/* the time of a stat is over, at home or next: so it is at the node, which counts it from before its WHERE */
#define EXPIRES(i,k) (n[i].up && (ISHOME(i) || ISNEXT(i)) && n[i].tk[k] == STAT && n[k].op[0].st != BEGUN)
inline expire(i, k_) {
    if :: n[k_].attr != 0 && n[k_].anum <= n[i].tq[k_] -> n[k_].attr = 0; n[k_].anum = 0 :: else fi;
#ifndef COUNTED_FROM_THE_ANSWER
    if :: n[k_].op[0].st != IDLE && n[k_].op[0].kind == STAT && n[k_].op[0].num <= n[i].tq[k_] -> n[k_].op[0].late = 1 :: else fi;
#endif
    n[i].tk[k_] = 0; n[i].tq[k_] = 0
}

/* WHERE of k's operation o: home and next tell */
#define ASKS(i,k,o) (n[k].op[o].st == ASKED && (n[k].op[o].views & BIT(n[i].v)) && n[k].op[o].av != n[i].v)
#define TELLS(i,k,o) (n[i].up && ISHOME(i) && n[i].act >= 1 && !n[i].blind && THERE(n[i].rec, n[i].v) && n[i].lease && ASKS(i,k,o))
inline tell(i, k_, o_) {
    n[k_].op[o_].av = n[i].v; n[k_].op[o_].at = WORD(i);
#ifdef STAMPS
    n[k_].op[o_].as = n[i].cnt;
#endif
    n[k_].op[o_].ak = (WORD(i) == NONE && n[i].ph != 2);
    if :: n[k_].op[o_].ak -> looks(i, n[k_].op[o_].kind, n[k_].op[o_].num, k_) :: else fi;
    printf("EV home %d tells %d.%d: at %d keep %d\n", i, k_, o_, n[k_].op[o_].at, n[k_].op[o_].ak)
}
#define NEXTTELLS(i,k,o) (n[i].up && ISNEXT(i) && n[i].nhas && REPS(n[i].v) && THERE(n[i].nrec, n[i].v) && n[i].lease && ASKS(i,k,o))
inline nexttell(i, k_, o_) {
    n[k_].op[o_].av = n[i].v; n[k_].op[o_].at = n[i].nrec;
#ifdef STAMPS
    n[k_].op[o_].as = n[i].ncnt;
#endif
    n[k_].op[o_].ak = (n[i].nrec == NONE);
    if :: n[k_].op[o_].ak -> looks(i, n[k_].op[o_].kind, n[k_].op[o_].num, k_) :: else fi;
    printf("EV next %d tells %d.%d: at %d keep %d\n", i, k_, o_, n[k_].op[o_].at, n[k_].op[o_].ak)
}

inline look(i, k_) {
    nlook++; n[i].op[0].kind = k_; n[i].op[0].want = cur; locate(i, 0); printf("EV %d looks (%d), number %d\n", i, k_, n[i].op[0].num)
}

/* AT.  "Not mine" is heard as soon as there is something else to hear: then the home is asked again. */
#define CLAIMS(c) (n[(c)%3].up && n[(c)%3].claim)
#ifdef SILENT_WHILE_TELLING      /* a claimant that serves nobody until its change is acknowledged */
#define SERVES(c) (CLAIMS(c) && !n[(c)%3].lc)
#else
#define SERVES(c) CLAIMS(c)
#endif
#define HOMEOF(i) HOME(view[n[i].v].mem)
#define HEARS(i,o) (n[i].up && n[i].v != 0 && n[i].op[o].st == ASKED && n[i].op[o].av == n[i].v && \
    (n[i].claim || n[i].op[o].at == NONE || SERVES(n[i].op[o].at) || (n[HOMEOF(i)].v == n[i].v && WORD(HOMEOF(i)) != n[i].op[o].at)))
inline hear(i, o_) {
    if
    :: n[i].claim -> n[i].op[o_].val = n[i].ver; n[i].op[o_].keep = 1; n[i].op[o_].st = FOUND
    :: !n[i].claim && n[i].op[o_].at == NONE ->
        n[i].op[o_].val = pfs; n[i].op[o_].keep = n[i].op[o_].ak; n[i].op[o_].st = FOUND;
#ifdef STAMPS           /* only the stamp tells of what came before AT */
        n[i].op[o_].stale = (n[i].op[o_].av < n[i].bv || (n[i].op[o_].av == n[i].bv && n[i].op[o_].as < n[i].bs));
#endif
#ifdef COUNTED_FROM_AT  /* nothing does */
        n[i].op[o_].stale = 0;
#endif
        printf("EV %d.%d hears: on the PFS, finds %d\n", i, o_, pfs)
    :: !n[i].claim && n[i].op[o_].at != NONE && SERVES(n[i].op[o_].at) ->
        n[i].op[o_].val = n[n[i].op[o_].at%3].ver; n[i].op[o_].keep = 0; n[i].op[o_].st = FOUND;
        printf("EV %d.%d hears: at %d, finds %d\n", i, o_, n[i].op[o_].at, n[i].op[o_].val)
    :: else -> n[i].op[o_].av = 0; n[i].op[o_].at = 0; n[i].op[o_].as = 0
    fi
}

/* The answer begins.  It is to be kept if AT said so, nothing has come since, in time, under a lease. */
#ifdef WITHOUT_A_LEASE
#define KEEPS(i) (n[i].op[0].keep && !n[i].op[0].stale && !n[i].op[0].late)
#else
#define KEEPS(i) (n[i].op[0].keep && !n[i].op[0].stale && !n[i].op[0].late && n[i].lease)
#endif
#ifdef READS_NOT_MADE_AGAIN
#define AGAIN(i) 0
#else
#define AGAIN(i) n[i].op[1].stale
#endif
inline begin(i, o_) {
    n[i].op[o_].av = 0; n[i].op[o_].at = 0; n[i].op[o_].ak = 0; n[i].op[o_].as = 0; n[i].op[o_].views = 0;
    if
    :: o_ == 1 && AGAIN(i) -> locate(i, o_)             /* made again */
    :: (o_ == 1 && !AGAIN(i)) || (o_ == 0 && KEEPS(i)) -> n[i].op[o_].st = BEGUN
    :: else -> assert(!COUNTS(i) || n[i].op[o_].val >= n[i].op[o_].want); printf("EV %d answers %d with time-out 0\n", i, n[i].op[o_].val); ends(i, o_)
    fi
}
inline kernel(i, o_) {
    printf("EV %d.%d: its kernel has %d\n", i, o_, n[i].op[o_].val);
    assert(!COUNTS(i) || n[i].op[o_].val >= n[i].op[o_].want);
    if
    :: o_ == 1 -> n[i].page = n[i].op[o_].val + 1
    :: else ->
        n[i].attr = n[i].op[o_].val + 1; n[i].anum = n[i].op[o_].num;
        if :: n[i].op[o_].kind == OPEN -> n[i].desc = 1 :: else fi
    fi;
    /* shared use ends when AT said keep and nothing has come since */
    if :: n[i].desc && n[i].op[o_].keep && !n[i].op[o_].stale && !n[i].claim -> n[i].keeps = 1 :: else fi;
    assert(FRESH(i)); ends(i, o_)
}

/* CHANGED to all watchers in m_, of version w_ */
inline tells_changed(i, m_, w_) {
    x = 0; do :: x < N -> if :: x != i && ((m_) & BIT(x)) && chm[x] < w_ -> chm[x] = w_ :: else fi; x++ :: else -> break od; x = 0
}
#ifdef NOT_AGAIN_AFTER_A_START
#define MAYCHANGE(i) n[i].claim
#else
#define MAYCHANGE(i) (n[i].claim && n[i].told)
#endif
/* A change of k that claimant i makes.  Its own kernel follows like another node's.  A page of a mapping waits for nothing
 * that may wait for it. */
#ifdef MAPPINGS_WAIT
#define WAITSFORALL(k) 1
#else
#define WAITSFORALL(k) (!n[k].map)
#endif
#define CARRIED(i,k) (n[i].up && n[i].claim && (MAYCHANGE(i) || !WAITSFORALL(k)) && n[k].up && n[k].cw == KNOWN)
inline carried(i, k_) {
    n[i].ver++; n[k_].cw = MADE; n[k_].cwv = n[i].ver; n[k_].cwc = i;
    n[k_].cwm = (n[i].wm & (ALL - BIT(k_))) | BIT(i) | (MAYCHANGE(i) -> 0 : UNKNOWN);
    printf("EV %d makes %d of %d\n", i, n[i].ver, k_);
#ifndef CARRIED_PAST_OWN_KERNEL
    voids(i);
#endif
    tells_changed(i, n[k_].cwm, n[i].ver)
}
#define MADEBY(i,k) (n[k].cw >= MADE && n[k].cwc == i)
/* the watchers of i are known now */
inline knowswatchers(i, k_) {
    if
    :: MADEBY(i,k_) && (n[k_].cwm & UNKNOWN) ->
        n[k_].cwm = (n[k_].cwm | (n[i].wm & (ALL - BIT(k_)))) & (UNKNOWN - 1); tells_changed(i, n[k_].cwm, n[k_].cwv)
    :: else
    fi
}
inline answered(i) {
    n[i].attr = 0; n[i].anum = 0; n[i].page = (n[i].page == n[i].cwv -> n[i].cwv + 1 : 0)
}
#define OWNFOLLOWS(i,k) (n[i].up && MADEBY(i,k) && (n[k].cwm & BIT(i)) && NONEBEGUN(i) && n[i].op[1].st != QUEUED)
inline ownfollows(i, k_) {
    n[i].attr = 0; n[i].anum = 0; n[i].page = 0; n[k_].cwm = n[k_].cwm & (ALL - BIT(i))
}
/* CHANGED_DONE(j) has come, and says whether it is a watcher still; or j is left out */
inline toldby(i, j_, w_) {
    if
    :: chd[j_] >= w_ && chk[j_] -> skip
    :: else -> n[i].wm = n[i].wm & (ALL - BIT(j_))
    fi
}
#ifdef ACKNOWLEDGED_BEFORE_TOLD
#define ALLTOLD(i) 1
#else
#define ALLTOLD(i) (n[i].lcm == 0)
#endif
#define TOLD(i,j) (n[i].lc && (n[i].lcm & BIT(j)) && (chd[j] >= n[i].lcv || LEFTOUT(i,j)))
inline istold(i, j_) { toldby(i, j_, n[i].lcv); n[i].lcm = n[i].lcm & (ALL - BIT(j_)) }
#define CARRYTOLD(i,k,j) (MADEBY(i,k) && i != j && (n[k].cwm & BIT(j)) && (chd[j] >= n[k].cwv || LEFTOUT(i,j)))
inline carrytold(i, k_, j_) { toldby(i, j_, n[k_].cwv); n[k_].cwm = n[k_].cwm & (ALL - BIT(j_)) }

proctype node(byte i) {
    byte k, x, y, u, h;
end:
    do
    /* ---------- members, as in claims.pml ---------- */
#if NV > 1
    :: atomic { n[i].up && newest < NV && MAYMAKE ->
        if
        :: newest == 1 && (VIEWS2 & BIT(7)) -> k = 7
        :: newest == 1 && (VIEWS2 & BIT(3)) -> k = 3
        :: newest == 1 && (VIEWS2 & BIT(5)) -> k = 5
        :: newest == 1 && (VIEWS2 & BIT(6)) -> k = 6
        :: newest > 1 -> k = ALL
        fi;
        if
        :: (k & BIT(i)) -> d_step {
            newest++; x = 0;
            do
            :: x < N ->
                if
                :: (k & BIT(x)) && n[x].up -> view[newest].mem = view[newest].mem | BIT(x); view[newest].inc[x] = n[x].inc
                :: (k & BIT(x)) && !n[x].up && (view[newest-1].mem & BIT(x)) ->
                    view[newest].mem = view[newest].mem | BIT(x); view[newest].inc[x] = view[newest-1].inc[x]
                :: else
                fi; x++
            :: else -> break
            od; x = 0; printf("EV %d makes view %d = %d\n", i, newest, view[newest].mem) }
        :: else -> skip
        fi; k = 0 }
    /* reads the views: adopts the newest, or finds itself left out.  Short answers are not cut by that. */
    :: d_step { n[i].up && n[i].v != newest && (IN(i,newest) || n[i].v != 0) && n[i].op[0].st != BEGUN && n[i].op[1].st != BEGUN ->
        if
        :: IN(i,newest) -> adopts(i)
        :: else -> n[i].v = 0; n[i].seen = newest; n[i].lease = 0; forgets(i); printf("EV %d is fenced\n", i)
        fi }
#endif

    /* ---------- home ---------- */
#if NV > 1
    :: d_step { n[i].up && ISHOME(i) && n[i].act == 0 && REPS(n[i].v) -> collect(i) }
    :: d_step { n[i].up && ISHOME(i) && n[i].act == 1 && cdv == n[i].v -> n[i].act = 2 }
    /* the first second is over: so is the time of all stats that were asked for in older views, by members */
    :: d_step { n[i].up && ISHOME(i) && n[i].young && NOATTRBEGUN ->
        n[i].young = 0; x = 0;
        do
        :: x < N ->
            if
            :: (view[n[i].v].mem & BIT(x)) ->
                if :: n[x].attr != 0 && n[x].anum <= rep[n[i].v].r[x].num -> n[x].attr = 0; n[x].anum = 0 :: else fi;
                if :: n[x].op[0].num <= rep[n[i].v].r[x].num && n[x].op[0].st != IDLE && n[x].op[0].kind == STAT -> n[x].op[0].late = 1 :: else fi
            :: else
            fi; x++
        :: else -> break
        od; x = 0 }
#endif
    /* WANT */
    :: d_step { WANTS(i,0) -> takewant(i,0) }
    :: d_step { WANTS(i,1) -> takewant(i,1) }
    :: d_step { WANTS(i,2) -> takewant(i,2) }
    /* next has it, and says who looks: BREAK */
    :: d_step { n[i].up && ISHOME(i) && n[i].ph == 1 && cdv == n[i].v && cdc >= n[i].cnt ->
#ifndef NO_LOOKERS_IN_COPIED
        x = 0; do :: x < N -> if :: cdk[x] != 0 -> looks(i, cdk[x], cdq[x], x) :: else fi; x++ :: else -> break od; x = 0;
#endif
        breaks(i) }
    :: d_step { BROKE(i,0) -> broken(i,0) }
    :: d_step { BROKE(i,1) -> broken(i,1) }
    :: d_step { BROKE(i,2) -> broken(i,2) }
    /* all have answered: GRANT */
    :: d_step { n[i].up && ISHOME(i) && n[i].ph == 2 && n[i].wait == 0 && n[i].lease && SETTLED(i) ->
        k = n[i].rec; grv[k] = n[i].v; grq[k] = n[i].recq; grm[k] = n[i].watch; n[i].ph = 0; n[i].held = 0; n[i].watch = 0;
#ifdef HANDS_OVER       /* the watchers are the claimant's from here on */
        x = 0; do :: x < N -> if :: grm[k] & BIT(x) -> n[i].tk[x] = 0; n[i].tq[x] = 0 :: else fi; x++ :: else -> break od; x = 0;
#endif
        printf("EV home %d sends GRANT %d to %d, watchers %d\n", i, grq[k], k, grm[k]); k = 0 }
    /* FREE of the recorded claimant, who is a looker from here on */
    :: d_step { n[i].up && ISHOME(i) && n[i].act == 2 && n[i].rec != NONE && frv[n[i].rec] == n[i].v && frq[n[i].rec] >= n[i].recq ->
        k = n[i].rec; printf("EV home %d takes FREE of %d\n", i, k);
#ifndef FREE_WITHOUT_LOOKS
        looks(i, frk[k], frn[k], k);
#endif
        n[i].rec = NONE; n[i].recq = 0; n[i].ph = 0; n[i].held = 0; n[i].wait = 0; n[i].watch = 0; n[i].cnt++; sendcopy(i); k = 0 }
    :: d_step { LEFT(i,0) -> leave(i,0) }
    :: d_step { LEFT(i,1) -> leave(i,1) }
    :: d_step { LEFT(i,2) -> leave(i,2) }
    :: d_step { EXPIRES(i,0) -> expire(i,0) }
    :: d_step { EXPIRES(i,1) -> expire(i,1) }
    :: d_step { EXPIRES(i,2) -> expire(i,2) }
    /* WHERE */
    :: d_step { TELLS(i,0,0) -> tell(i,0,0) }
    :: d_step { TELLS(i,0,1) -> tell(i,0,1) }
    :: d_step { TELLS(i,1,0) -> tell(i,1,0) }
    :: d_step { TELLS(i,1,1) -> tell(i,1,1) }
    :: d_step { TELLS(i,2,0) -> tell(i,2,0) }
    :: d_step { TELLS(i,2,1) -> tell(i,2,1) }

    /* ---------- next ---------- */
    :: d_step { n[i].up && ISNEXT(i) && cpv == n[i].v && (!n[i].nhas || cpc > n[i].ncnt) ->
        n[i].nhas = 1; n[i].ncnt = cpc; n[i].nrec = cprec; cdv = cpv; cdc = cpc;
        x = 0; do :: x < N -> cdk[x] = n[i].tk[x]; cdq[x] = n[i].tq[x]; x++ :: else -> break od; x = 0 }
    :: d_step { NEXTTELLS(i,0,0) -> nexttell(i,0,0) }
    :: d_step { NEXTTELLS(i,0,1) -> nexttell(i,0,1) }
    :: d_step { NEXTTELLS(i,1,0) -> nexttell(i,1,0) }
    :: d_step { NEXTTELLS(i,1,1) -> nexttell(i,1,1) }
    :: d_step { NEXTTELLS(i,2,0) -> nexttell(i,2,0) }
    :: d_step { NEXTTELLS(i,2,1) -> nexttell(i,2,1) }

    /* ---------- looks ---------- */
    :: d_step { n[i].up && (LOOKERS & BIT(i)) && n[i].v != 0 && n[i].op[0].st == IDLE && nlook < NLOOK -> look(i, STAT) }
    :: d_step { n[i].up && (LOOKERS & BIT(i)) && n[i].v != 0 && n[i].op[0].st == IDLE && nlook < NLOOK && !n[i].desc -> look(i, OPEN) }
    /* a READ comes into the kernel's queue: the page is not there */
    :: d_step { n[i].up && n[i].desc && n[i].page == 0 && n[i].op[1].st == IDLE && n[i].cw == IDLE && n[i].v != 0 && nread < NREAD ->
        nread++; n[i].op[1].kind = OPEN; n[i].op[1].st = QUEUED; n[i].op[1].want = cur; printf("EV %d reads\n", i) }
    :: d_step { n[i].up && n[i].op[1].st == QUEUED -> locate(i, 1) }
    :: d_step { HEARS(i,0) -> hear(i,0) }
    :: d_step { HEARS(i,1) -> hear(i,1) }
    :: d_step { n[i].up && n[i].op[0].st == FOUND -> begin(i,0) }
    :: d_step { n[i].up && n[i].op[1].st == FOUND -> begin(i,1) }
    :: d_step { n[i].up && n[i].op[0].st == BEGUN -> kernel(i,0) }
    :: d_step { n[i].up && n[i].op[1].st == BEGUN -> kernel(i,1) }
    /* the last close: LEAVE */
    :: d_step { n[i].up && n[i].desc && n[i].op[1].st == IDLE && n[i].cw == IDLE ->
        n[i].desc = 0; n[i].page = 0; n[i].keeps = 0; printf("EV %d closes\n", i);
        if :: n[i].v != 0 && !LOOKS(i) -> lvn[i] = n[i].num :: else fi }

    /* ---------- BREAK and CHANGED ---------- */
    :: d_step { n[i].up && n[i].drop == 0 && brv[i] != 0 && !(bkv[i] == brv[i] && bks[i] == brs[i]) ->
        n[i].drop = 1; n[i].dv = brv[i]; n[i].ds = brs[i]; dropbegins(i);
#ifdef STAMPS
        n[i].bv = brv[i]; n[i].bs = brs[i];
#endif
        printf("EV %d hears BREAK %d.%d\n", i, brv[i], brs[i]) }
    :: d_step { n[i].up && n[i].drop == 0 && chm[i] > chd[i] ->
        n[i].drop = 2; n[i].ds = chm[i]; dropbegins(i); printf("EV %d hears CHANGED %d\n", i, chm[i]) }
    :: d_step { n[i].up && n[i].drop != 0 && NONEBEGUN(i) && PAGEFREE(i) && WRITEFREE(i) ->
        n[i].attr = 0; n[i].anum = 0; n[i].page = 0;
        if
        :: n[i].drop == 1 -> bkv[i] = n[i].dv; bks[i] = n[i].ds; bkc[i] = n[i].desc
        :: else -> chd[i] = n[i].ds; chk[i] = n[i].desc
        fi;
        printf("EV %d has dropped, descriptor %d\n", i, n[i].desc);
        n[i].drop = 0; n[i].dv = 0; n[i].ds = 0; n[i].op[1].known = 0 }

    /* ---------- claimant ---------- */
    :: d_step { n[i].up && (WRITERS & BIT(i)) && n[i].v != 0 && !n[i].wst && (!n[i].claim || !n[i].told) && nwant < NWANT ->
        nwant++; n[i].q++; n[i].wst = 1; n[i].wv = BIT(n[i].v); n[i].wheld = n[i].claim; printf("EV %d wants, request %d\n", i, n[i].q) }
    :: d_step { n[i].up && n[i].v != 0 && n[i].wst && grv[i] == n[i].v && grq[i] == n[i].q && n[i].lease ->
        if
        :: n[i].wheld -> n[i].wm = n[i].wm | grm[i]
        :: else ->
            assert(!n[(i+1)%3].claim && !n[(i+2)%3].claim); assert(pfs >= cur);
            n[i].claim = 1; n[i].ver = pfs; n[i].wm = grm[i]
        fi;
#if NCARRY > 0
        knowswatchers(i,(i+1)%3); knowswatchers(i,(i+2)%3);
#endif
        n[i].told = 1; n[i].cq = n[i].q; n[i].wst = 0; n[i].wv = 0; n[i].wheld = 0; printf("EV %d takes the claim, watchers %d\n", i, n[i].wm) }
    /* a change of its own; the kernel itself keeps this and answers that are on their way in order */
    :: d_step { n[i].up && MAYCHANGE(i) && !n[i].lc && nchange < NCHANGE && n[i].op[0].st != BEGUN && n[i].op[1].st != BEGUN ->
        nchange++; n[i].ver++; n[i].lc = 1; n[i].lcv = n[i].ver; n[i].lcm = n[i].wm; voids(i); printf("EV %d makes %d\n", i, n[i].ver);
        tells_changed(i, n[i].lcm, n[i].lcv) }
#if NCARRY > 0
    :: d_step { CARRIED(i,(i+1)%3) -> carried(i,(i+1)%3) }
    :: d_step { CARRIED(i,(i+2)%3) -> carried(i,(i+2)%3) }
    :: d_step { OWNFOLLOWS(i,(i+1)%3) -> ownfollows(i,(i+1)%3) }
    :: d_step { OWNFOLLOWS(i,(i+2)%3) -> ownfollows(i,(i+2)%3) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+1)%3,0) -> carrytold(i,(i+1)%3,0) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+1)%3,1) -> carrytold(i,(i+1)%3,1) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+1)%3,2) -> carrytold(i,(i+1)%3,2) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+2)%3,0) -> carrytold(i,(i+2)%3,0) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+2)%3,1) -> carrytold(i,(i+2)%3,1) }
    :: d_step { n[i].up && CARRYTOLD(i,(i+2)%3,2) -> carrytold(i,(i+2)%3,2) }
#endif
    :: d_step { n[i].up && TOLD(i,0) -> istold(i,0) }
    :: d_step { n[i].up && TOLD(i,1) -> istold(i,1) }
    :: d_step { n[i].up && TOLD(i,2) -> istold(i,2) }
    /* all are told: acknowledged */
    :: d_step { n[i].up && n[i].lc && ALLTOLD(i) ->
        if :: n[i].lcv > cur -> cur = n[i].lcv :: else fi;
        n[i].attr = 0; n[i].anum = 0; n[i].page = (n[i].page == n[i].lcv -> n[i].lcv + 1 : 0);
        printf("EV %d acknowledges %d\n", i, n[i].lcv); n[i].lc = 0; n[i].lcv = 0; n[i].lcm = 0; assert(COHERENT) }
    /* flushed, and no writer: the claim goes back.  Who looks here is fixed in this step. */
    :: d_step { n[i].up && n[i].claim && !n[i].lc && !CARRIES && !n[i].wst ->
        pfs = n[i].ver; n[i].claim = 0; n[i].ver = 0; n[i].told = 0; n[i].wm = 0; printf("EV %d gives the claim back\n", i);
        if
        :: n[i].v != 0 ->
#ifdef FREE_WITHOUT_NUMBER
#else
            n[i].num++;
#endif
            frn[i] = n[i].num;
            frv[i] = n[i].v; frq[i] = n[i].cq; frk[i] = (LOOKS(i) -> OPEN : STAT)
        :: else
        fi;
        n[i].cq = 0 }

    /* "not mine" of a grant that no open waits for any more */
    :: d_step { n[i].up && n[i].v != 0 && !n[i].claim && !n[i].wst && n[HOMEOF(i)].v == n[i].v && n[HOMEOF(i)].rec == i &&
                n[HOMEOF(i)].recq > (frv[i] == n[i].v -> frq[i] : 0) && n[HOMEOF(i)].recq <= n[i].q ->
        n[i].num++; frn[i] = n[i].num; frv[i] = n[i].v; frq[i] = n[i].q; frk[i] = (LOOKS(i) -> OPEN : STAT); printf("EV %d has no claim\n", i) }

    /* ---------- a carried WRITE: of a process, or of a page of a mapping, which is held until the answer ---------- */
#if NCARRY > 0
    :: d_step { n[i].up && n[i].desc && !n[i].claim && n[i].cw == IDLE && n[i].op[1].st == IDLE && ncarry < NCARRY &&
                (CLAIMS((i+1)%3) || CLAIMS((i+2)%3)) ->
        ncarry++; n[i].cw = KNOWN; printf("EV %d writes\n", i) }
    :: d_step { n[i].up && n[i].desc && !n[i].claim && n[i].cw == IDLE && n[i].op[1].st == IDLE && ncarry < NCARRY &&
                (CLAIMS((i+1)%3) || CLAIMS((i+2)%3)) ->
        ncarry++; n[i].cw = QUEUED; n[i].map = 1; printf("EV %d writes a page back\n", i) }
    :: d_step { n[i].up && n[i].cw == QUEUED -> n[i].cw = KNOWN }
    :: d_step { n[i].up && n[i].cw == MADE && !WAITSFORALL(i) -> n[i].cw = ANSWERED; answered(i); printf("EV %d's page is written back\n", i) }
    :: d_step { n[i].up && (n[i].cw == ANSWERED || (n[i].cw == MADE && WAITSFORALL(i))) && n[i].cwm == 0 ->
        if :: n[i].cwv > cur -> cur = n[i].cwv :: else fi;
        if :: n[i].cw == MADE -> answered(i) :: else fi;
        printf("EV %d's change %d is acknowledged\n", i, n[i].cwv); n[i].cw = IDLE; n[i].map = 0; n[i].cwv = 0; n[i].cwc = 0; assert(COHERENT) }
#endif

#if NGIVEUP > 0
    :: d_step { n[i].up && n[i].wst && ngiveup < NGIVEUP -> ngiveup++; n[i].wst = 0; n[i].wv = 0; n[i].wheld = 0; printf("EV %d gives up\n", i) }
#endif

    /* ---------- crash and return ---------- */
#if NCRASH > 0
    :: d_step { n[i].up && MAYCRASH(i) && ncrash < NCRASH ->
        ncrash++; printf("EV %d crashes\n", i); n[i].up = 0; n[i].v = 0; n[i].lastv = 0; n[i].lease = 0; n[i].inc++; forgets(i);
        ends(i, 0); ends(i, 1); n[i].attr = 0; n[i].anum = 0; n[i].page = 0; n[i].desc = 0; n[i].keeps = 0; n[i].drop = 0; n[i].dv = 0; n[i].ds = 0;
        n[i].cw = 0; n[i].map = 0; n[i].cwv = 0; n[i].cwm = 0; n[i].cwc = 0;
        n[i].wst = 0; n[i].wv = 0; n[i].wheld = 0; n[i].told = 0; n[i].wm = 0; n[i].lc = 0; n[i].lcv = 0; n[i].lcm = 0;
        x = 0; do :: x < N -> if
             :: n[x].cw == MADE && n[x].cwc == i -> n[x].cw = KNOWN; n[x].cwv = 0; n[x].cwc = 0; n[x].cwm = 0
             :: n[x].cw == ANSWERED && n[x].cwc == i -> n[x].cw = IDLE; n[x].map = 0; n[x].cwv = 0; n[x].cwc = 0; n[x].cwm = 0
             :: else
             fi; x++ :: else -> break od; x = 0 }
    :: d_step { !n[i].up -> n[i].up = 1; printf("EV %d returns\n", i) }
#endif
    od
}

/* W passes: no lease of an older view is left, and no time-out was longer than the lease */
proctype clock() {
    byte u = 2, k;
end:
    do
    :: d_step { u <= NV && u <= newest && NOATTRBEGUN ->
        old = old | BIT(u); printf("EV W passed since view %d\n", u); k = 0;
        do
        :: k < N ->
            if
            :: n[k].v < u ->
                n[k].lease = 0;
#ifndef LONGER_THAN_THE_LEASE
                n[k].attr = 0; n[k].anum = 0;
#endif
            :: else fi; k++
        :: else -> break
        od; k = 0; u++ }
    od
}

#define QUIET(i) (n[i].op[0].st == IDLE && n[i].op[1].st == IDLE && n[i].cw == IDLE && !n[i].lc && !n[i].wst && n[i].drop == 0)
/* when nothing can happen any more and all are in the newest view, nothing waits */
active proctype atlast() {
end: atomic { timeout -> assert(!(IN(0,newest) && IN(1,newest) && IN(2,newest)) || (QUIET(0) && QUIET(1) && QUIET(2))) }
}

init {
    byte k = 0;
    atomic {
    view[1].mem = ALL;
    do
    :: k < N ->
        n[k].up = 1; n[k].v = 1; n[k].lastv = 1; n[k].seen = 1; n[k].lease = 1; n[k].rec = NONE; n[k].nrec = NONE;
        rep[1].r[k].sent = 1; rep[1].r[k].rec = NONE; k++
    :: else -> break
    od;
    n[0].act = 2; n[1].nhas = 1; cpv = 1; cdv = 1;
    run node(0); run node(1); run node(2); run clock()
    }
}
