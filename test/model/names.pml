/* names.pml - a name goes: who has the file open without a descriptor takes one first, and who removes the name knows whether it
 * must tell a claimant.
 *
 * docs/protocol.md, rule 37.  One file with one name, three nodes.  Node 0 removes the name; nodes 0 and 1 open the file by it, without
 * a descriptor if they may; node 2 opens it for writing, and wants the claim.  All are members of all views, and each view has
 * another home.  Bytes, leases and the wait W are claims.pml's and looks.pml's business: here each home acts when all have
 * adopted its view.
 *
 * Network: of each kind of message to or from a node the last one stays, and may be taken late, again, or never.
 *
 * Rules can be left out one by one: see the table of `run`, and each one's place here.
 */
#ifndef NV
#define NV 2            /* views */
#endif
#ifndef NOPEN
#define NOPEN 1         /* opens, all nodes together */
#endif

#define N 3
#define HOME(v) ((v) == 1 -> 1 : ((v) == 2 -> 2 : 0))
#define BIT(i) (1<<(i))

/* steps of an open: it is counted from ASKED on */
#define IDLE  0
#define ASKED 1         /* WHERE is sent */
#define OPEN  2

/* steps of the removal */
#define TOLD  2         /* all that had it open have descriptors */
#define GONE  3         /* the name is gone on the PFS */
#define DONE  4

typedef Node {
    byte v;             /* adopted view */
    byte st;            /* of its open */
    bit  fd;            /* it has a descriptor */
    byte looked;        /* the view in which it looked at the name, and knows the file since */
    byte num;           /* number of its last WHERE */
    byte onum, ov;      /* of the open's WHERE: number, view */
    /* as a home */
    byte lk[N];         /* lookers: number + 1 */
    byte gk;            /* node 0 is about to remove the name, or has: number + 1 */
    bit  gl;            /* it has left */
    byte wait;          /* not yet BROKEN, of the removal */
    byte cwait;         /* of the claim */
    byte gn;            /* the removal's WHERE that is being answered: number + 1 */
    byte wn;            /* 1: a WANT is being answered */
    bit  granted
};
Node n[N];

typedef Report { bit sent; bit open; bit goes; byte num };
typedef Reports { Report r[N] };
Reports rep[NV + 1];

byte newest = 1;
bit  named = 1;         /* the name is there */
/* messages */
byte brv[N], brs[N];            /* BREAK to node: view, count */
byte bkv[N], bks[N];            /* BROKEN of node */
byte lvv[N], lvn[N];            /* LEAVE of node: view, number */
byte atv[N], atn[N]; bit atg[N];/* AT for an open: view, number, "take a descriptor" */
byte gov, gon; bit goc;         /* AT for the removal: view, number, claimed */
byte cnt;                       /* of BREAKs */
/* the removal */
byte rm, rnum, rv;
bit  goes, void_, heardclaim;
/* the claim of node 2 */
bit  want, claim;
byte nopen;

#define COMPLETE(v_) (rep[v_].r[0].sent && rep[v_].r[1].sent && rep[v_].r[2].sent)
#define ACTS(h) (HOME(n[h].v) == h && COMPLETE(n[h].v))
#define OPENED(i) (n[i].st != IDLE)
/* with the daemon's help nothing else leads to it */
#define HELPLESS(i) (n[i].st == OPEN && !n[i].fd)

/* The attribute time-out has passed for each look from before the removal. */
#ifdef ENDS_WITH_LEAVE
#define FORGOTTEN 1
#else
#define FORGOTTEN (n[0].looked == 0 && n[1].looked == 0)
#endif
#ifdef NOT_KNOWN_AGAIN
#define KNOWS(i) 1
#else
#define KNOWS(i) (n[i].looked == n[i].v)
#endif
inline takes_fd(j) { if :: OPENED(j) && named -> n[j].fd = 1 :: else fi }

#ifdef LEAVE_WITHOUT_NUMBER
#define COVERS(l, e) 1
#else
#define COVERS(l, e) ((l) + 1 >= (e))
#endif
#ifdef NO_MARK
#define MARKED(h) 0
#else
#define MARKED(h) (n[h].gk != 0)
#endif

inline breaks(h, j) { cnt++; brv[j] = n[h].v; brs[j] = cnt }

inline adopts(j) {
    n[j].v = newest; rep[newest].r[j].sent = 1;
    rep[newest].r[j].open = OPENED(j) || (j == 0 && goes); rep[newest].r[j].num = n[j].num;
#ifdef NOT_IN_ADOPTED
    rep[newest].r[j].goes = 0;
#else
    rep[newest].r[j].goes = (j == 0 && goes);
#endif
    n[j].lk[0] = 0; n[j].lk[1] = 0; n[j].lk[2] = 0; n[j].gk = 0; n[j].gl = 0; n[j].wait = 0; n[j].cwait = 0; n[j].gn = 0; n[j].wn = 0; n[j].granted = 0;
    if :: j == 0 -> void_ = 1 :: else fi
}

/* The home takes what the members have said, before it answers anything. */
inline collects(h) {
    x = 0;
    do
    :: x < N -> if :: rep[n[h].v].r[x].open -> n[h].lk[x] = rep[n[h].v].r[x].num + 1 :: else fi; x++
    :: else -> break
    od;
    if :: rep[n[h].v].r[0].goes -> n[h].gk = rep[n[h].v].r[0].num + 1 :: else fi;
    if :: claim -> n[h].granted = 1 :: else fi;
    x = 0
}

proctype node(byte i) {
    byte x, collected;
end:
    do
    /* ---------- views ---------- */
    :: d_step { i == 0 && newest < NV && n[0].v == newest && n[1].v == newest && n[2].v == newest -> newest++ }
    :: d_step { n[i].v < newest -> adopts(i) }
    :: d_step { ACTS(i) && collected < n[i].v -> collects(i); collected = n[i].v }

    /* ---------- opens: a look at the name, then the open by what is known ---------- */
    :: d_step { i < 2 && named && COMPLETE(n[i].v) && n[i].st == IDLE && n[i].looked != n[i].v && nopen < NOPEN -> n[i].looked = n[i].v }
    :: d_step { i < 2 && n[i].st == IDLE && n[i].looked == n[i].v && nopen < NOPEN -> nopen++; n[i].st = ASKED; n[i].num++; n[i].onum = n[i].num; n[i].ov = n[i].v }
    :: d_step { n[i].st == ASKED && atv[i] == n[i].ov && atn[i] == n[i].onum ->
        if
        :: !atg[i] && n[i].v == n[i].ov && KNOWS(i) -> n[i].st = OPEN
        :: else -> if :: named -> n[i].st = OPEN; n[i].fd = 1 :: else -> n[i].st = IDLE fi
        fi }
    :: d_step { n[i].st == ASKED && n[i].ov != n[i].v -> n[i].num++; n[i].onum = n[i].num; n[i].ov = n[i].v; n[i].looked = 0;
        if :: named -> n[i].fd = 1 :: else -> n[i].st = IDLE fi }
    :: d_step { n[i].st == OPEN && !(i == 0 && goes) -> n[i].st = IDLE; n[i].fd = 0; lvv[i] = n[i].v; lvn[i] = n[i].num }
    :: d_step { n[i].looked != 0 -> n[i].looked = 0 } /* the attribute time-out */
    /* BREAK: of either kind */
    :: d_step { brv[i] == n[i].v && brs[i] > bks[i] -> takes_fd(i);
        if :: i == 0 -> void_ = 1 :: else fi;
        bkv[i] = brv[i]; bks[i] = brs[i] }

    /* ---------- the removal, by node 0 ---------- */
    :: d_step { i == 0 && rm == IDLE && named -> goes = 1; rm = ASKED; n[0].num++; rnum = n[0].num; rv = n[0].v; void_ = 0 }
    :: d_step { i == 0 && rm == ASKED && rv != n[0].v -> n[0].num++; rnum = n[0].num; rv = n[0].v; void_ = 0 }
    :: d_step { i == 0 && rm == ASKED && gov == rv && gon == rnum && gov == n[0].v -> rm = TOLD; heardclaim = goc; takes_fd(0) }
    :: d_step { i == 0 && rm == TOLD -> named = 0; rm = GONE; n[0].looked = 0; assert(!HELPLESS(0) && !HELPLESS(1)) }
    /* it tells nobody where the file is now */
    :: d_step { i == 0 && rm == GONE && !heardclaim && !void_ -> assert(!claim); rm = DONE }
    :: d_step { i == 0 && rm == GONE && (heardclaim || void_) -> rm = DONE }
    :: d_step { i == 0 && rm == DONE && goes -> goes = 0;
        if :: !OPENED(0) -> lvv[0] = n[0].v; lvn[0] = n[0].num :: else fi }

    /* ---------- the claim, by node 2: it has opened the file by its name ---------- */
    :: d_step { i == 2 && !want && named && n[2].st == IDLE -> want = 1; n[2].st = OPEN; n[2].fd = 1 }
    :: d_step { i == 2 && want && !claim && n[HOME(n[2].v)].granted && n[HOME(n[2].v)].v == n[2].v -> claim = 1 }

    /* ---------- the home ---------- */
    /* WHERE of an open */
    :: d_step { ACTS(i) && collected == n[i].v && n[0].st == ASKED && n[0].ov == n[i].v && !(atv[0] == n[i].v && atn[0] == n[0].onum) ->
        atv[0] = n[i].v; atn[0] = n[0].onum; atg[0] = (MARKED(i) || n[i].wn != 0 || n[i].granted); n[i].lk[0] = n[0].onum + 1 }
    :: d_step { ACTS(i) && collected == n[i].v && n[1].st == ASKED && n[1].ov == n[i].v && !(atv[1] == n[i].v && atn[1] == n[1].onum) ->
        atv[1] = n[i].v; atn[1] = n[1].onum; atg[1] = (MARKED(i) || n[i].wn != 0 || n[i].granted); n[i].lk[1] = n[1].onum + 1 }
    /* WHERE of the removal; not while a claim is being granted */
    :: d_step { ACTS(i) && collected == n[i].v && rm == ASKED && rv == n[i].v && n[i].gn != rnum + 1 && !(n[i].wn && !n[i].granted) ->
        n[i].gn = rnum + 1; n[i].gk = rnum + 1; n[i].gl = 0; n[i].wait = 0;
#ifndef NOT_ENTERED
        n[i].lk[0] = rnum + 1;
#endif
#ifndef NOT_TOLD
        if :: n[i].lk[1] && !n[i].granted -> n[i].wait = BIT(1); breaks(i, 1) :: else fi
#endif
        }
    :: d_step { ACTS(i) && n[i].gn == rnum + 1 && n[i].wait == 0 && !(gov == n[i].v && gon == rnum) -> gov = n[i].v; gon = rnum; goc = n[i].granted }
    :: d_step { n[i].wait && bkv[1] == n[i].v && bks[1] == brs[1] -> n[i].wait = 0 }
    /* WANT */
    :: d_step { ACTS(i) && collected == n[i].v && want && !claim && n[2].v == n[i].v && !n[i].wn && !n[i].granted ->
        n[i].wn = 1; n[i].cwait = 0;
        if :: n[i].lk[0] -> n[i].cwait = n[i].cwait | BIT(0); breaks(i, 0) :: else fi;
        if :: n[i].lk[1] -> n[i].cwait = n[i].cwait | BIT(1); breaks(i, 1) :: else fi }
    :: d_step { (n[i].cwait & BIT(0)) && bkv[0] == n[i].v && bks[0] == brs[0] -> n[i].cwait = n[i].cwait & BIT(1) }
    :: d_step { (n[i].cwait & BIT(1)) && bkv[1] == n[i].v && bks[1] == brs[1] -> n[i].cwait = n[i].cwait & BIT(0) }
    :: d_step { n[i].wn && n[i].cwait == 0 && !n[i].granted && ACTS(i) -> n[i].granted = 1; n[i].wn = 0 }
    /* LEAVE */
    :: d_step { ACTS(i) && collected == n[i].v && lvv[0] == n[i].v && n[i].gk && !n[i].gl && COVERS(lvn[0], n[i].gk) -> n[i].gl = 1 }
    :: d_step { n[i].gl && FORGOTTEN -> n[i].gl = 0; n[i].gk = 0 }
    :: d_step { ACTS(i) && collected == n[i].v && lvv[0] == n[i].v && n[i].lk[0] && COVERS(lvn[0], n[i].lk[0]) -> n[i].lk[0] = 0 }
    :: d_step { ACTS(i) && collected == n[i].v && lvv[1] == n[i].v && n[i].lk[1] && COVERS(lvn[1], n[i].lk[1]) -> n[i].lk[1] = 0 }
    od
}

/* once the name is gone, nobody opens the file without a descriptor; and nothing waits for ever */
active proctype always() {
end: atomic { !named && (HELPLESS(0) || HELPLESS(1)) -> assert(0) }
}
active proctype atlast() {
end: atomic { timeout -> assert(rm != ASKED && n[0].st != ASKED && n[1].st != ASKED && (!want || claim)) }
}

init {
    byte k;
    atomic {
        do :: k < N -> n[k].v = 1; rep[1].r[k].sent = 1; k++ :: else -> break od;
        run node(0); run node(1); run node(2)
    }
}
