"""One node's applications: write and close its own files, read everybody's, lock what all lock.

worker.py MOUNT NODE NODES SEED LOG STOP: until the file STOP is there; a line of JSON in LOG for each thing done.
Times are CLOCK_REALTIME, which time namespaces leave alone.
"""

import base64
import errno
import fcntl
import json
import os
import random
import sys
import time
import zlib

import pages

FILES = 4  # of each node
LOCKS = 3


def write(path, name, seq, times):
    """times: when each page was begun, and when the last one ended."""
    fd = os.open(path, os.O_WRONLY)
    try:
        for number in range(pages.PAGES):
            page = pages.make(name, number, seq)
            times.append(time.time())
            os.pwrite(fd, page, number * pages.PAGE)
        times.append(time.time())
    except OSError:
        os.close(fd)
        raise
    os.close(fd)


def read(path, name):
    fd = os.open(path, os.O_RDONLY)
    try:
        begin = time.time()
        data = os.pread(fd, pages.PAGE * pages.PAGES + 1, 0)
        end = time.time()
    finally:
        os.close(fd)
    if len(data) != pages.PAGE * pages.PAGES:
        return {"size": len(data)}
    parts = [data[n * pages.PAGE : (n + 1) * pages.PAGE] for n in range(pages.PAGES)]
    seqs = [pages.seq_of(name, n, part) for n, part in enumerate(parts)]
    odd = {n: base64.b64encode(zlib.compress(parts[n])).decode() for n, seq in enumerate(seqs) if seq is None}
    return {"seqs": seqs, **({"odd": odd, "from": begin, "to": end} if odd else {})}


def lock(path, rng):
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        acquired = time.time()
        time.sleep(rng.random() / 20)
        released = time.time()
        fcntl.lockf(fd, fcntl.LOCK_UN)
        return {"from": acquired, "to": released}
    finally:
        os.close(fd)


def one(mount, node, nodes, rng, seqs, log):
    what = rng.choice(["write", "write", "read", "read", "read", "lock"])
    owner = node if what == "write" else rng.randrange(nodes)
    name = f"lock-{rng.randrange(LOCKS)}" if what == "lock" else f"f{owner}-{rng.randrange(FILES)}"
    path = os.path.join(mount, name)
    done = {"what": what, "node": node, "file": name, "error": None}
    if what == "write":
        seqs[name] = seqs.get(name, 0) + 1
        done["seq"] = seqs[name]
        log({**done, "started": time.time()})
    done["begin"] = time.time()
    try:
        if what == "write":
            write(path, name, seqs[name], done.setdefault("times", []))
        elif what == "read":
            done.update(read(path, name))
        else:
            done.update(lock(path, rng))
    except OSError as e:
        done["error"] = errno.errorcode.get(e.errno, str(e.errno))
    done["end"] = time.time()
    log(done)
    if done["error"] in ("ENOTCONN", "ENOENT", "ECONNABORTED"):
        time.sleep(0.2)  # there is no daemon now
    time.sleep(rng.random() / 50)


def main():
    mount, node, nodes, seed, log_path, stop = sys.argv[1:]
    rng = random.Random(f"{seed} {node}")
    seqs = {}
    with open(log_path, "a", buffering=1) as f:
        while not os.path.exists(stop):
            one(mount, int(node), int(nodes), rng, seqs, lambda o: f.write(json.dumps(o) + "\n"))


main()
