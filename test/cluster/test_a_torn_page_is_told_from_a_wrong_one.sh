#!/usr/bin/env bash
# What judges the rounds of faults accepts a page that has bytes of two writes if the later one was writing this page during the
# read, and nothing else; and it says what a page has that it does not accept.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires cmd python3
DIR=$(dirname "$SCRIPT")/rounds
cat >"$W/judge.py" <<'PY'
import base64, json, os, subprocess, sys, zlib
import pages

check, pfs, work = sys.argv[1:4]
with open(f"{pfs}/f0-0", "wb") as f:
    f.write(b"".join(pages.make("f0-0", n, 2) for n in range(pages.PAGES)))
old, new = (pages.make("f0-0", 3, seq) for seq in (1, 2))

def write(seq, at):
    """Page n from at + n to at + n + 1."""
    brief = {"what": "write", "node": 0, "file": "f0-0", "error": None, "seq": seq}
    return [{**brief, "started": at}, {**brief, "begin": at, "times": [at + n for n in range(9)], "end": at + 9}]

def read(page, begin, end):
    seqs = [1] * pages.PAGES
    odd = {}
    if page in (old, new):
        seqs[3] = 1 + (page == new)
    else:
        seqs[3], odd = None, {"3": base64.b64encode(zlib.compress(page)).decode()}
    return {"what": "read", "node": 1, "file": "f0-0", "error": None, "begin": begin, "seqs": seqs, "odd": odd,
            "from": begin, "to": end, "end": end}

def judge(page, begin, end):
    rest = [{"what": "lock", "node": 1, "file": "lock-0", "error": None, "begin": 0, "from": 0, "to": 1, "end": 1}]
    with open(f"{work}/log.json", "w") as f:
        f.writelines(json.dumps(o) + "\n" for o in [*write(1, 0), *write(2, 100), read(page, begin, end), *rest])
    done = subprocess.run([sys.executable, "-B", check, pfs, os.devnull, f"{work}/log.json"], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done.returncode == 0, done.stdout

def must(page, begin, end, right, *told):
    good, text = judge(page, begin, end)
    assert good == right, f"judged {good}"
    for part in told:
        assert part in text, f"it does not say: {part}"

begun, ended = 103, 104  # when write 2 wrote page 3
must(old, begun + 0.2, begun + 0.4, True)
must(new, begun + 0.2, begun + 0.4, True)
torn = new[:100] + old[100:2000] + new[2000:]
must(torn, begun + 0.2, begun + 0.4, True, "torn", "page 3 has 100 bytes at 0 of write 2, 1900 bytes at 100 of write 1")
must(torn, begun - 2, begun + 0.1, True)
must(torn, ended - 0.1, ended + 2, True)
must(torn, begun - 2, begun - 0.1, False, "page 3 has 100 bytes at 0 of write 2, 1900 bytes at 100 of write 1")
must(torn, ended + 0.1, ended + 2, False)
must(new[:100] + bytes(100) + new[200:], begun, ended, False, "100 bytes at 100 of zeros")
must(new[:512] + pages.make("f0-0", 5, 2)[512:], begun, ended, False, "of page 5 of write 2")
must(old[:1000] + pages.make("f0-0", 3, 3)[1000:], begun, ended, False, "3096 bytes at 1000 of write 3")
must(new[:1000] + b"something else that nobody wrote" + new[1032:], begun, ended, False, b"something else".hex())
PY
PYTHONPATH=$DIR python3 -B "$W/judge.py" "$DIR/check.py" "$PFS" "$W" >"$W/judged" 2>&1 || { cat "$W/judged"; fail "see above"; }
