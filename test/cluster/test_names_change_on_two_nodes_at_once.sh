#!/usr/bin/env bash
# Two processes on each of two nodes make, write, rename, exchange, link, chmod and
# remove files and directories in one small tree, at random. Nobody ever reads a file
# that nobody has written in one piece, and in the end both nodes and the PFS have the
# same names, attributes and bytes.
# timeout: 150
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/worker.py" <<'PY'
import ctypes, os, random, sys

top, seed, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.chdir(top)
random.seed(seed)
libc = ctypes.CDLL(None, use_errno=True)
dirs = ["d0", "d1", "d0/s", "d1/s"]
expected = {  # what another process may have changed under our feet
    "FileNotFoundError", "FileExistsError", "NotADirectoryError", "IsADirectoryError",
    "OSError:ENOTEMPTY", "OSError:ESTALE", "OSError:EINVAL", "OSError:ELOOP",
}


def name():
    return f"{random.choice(dirs)}/f{random.randrange(8)}"


def whole(data, path):
    if not data:
        return
    unit = data[:32]
    assert len(data) % 32 == 0 and data == unit * (len(data) // 32), f"{path}: torn: {data[:40]}"


def write():
    path = name()
    new = f"{path}.{seed}"
    unit = f"{seed:4d} {random.getrandbits(90):026d}".encode()[:32].ljust(32)
    with open(new, "wb") as f:
        f.write(unit * random.choice([1, 100, 5000, 40000]))
    if random.random() < 0.7:
        os.rename(new, path)
    else:
        os.link(new, f"{path}.link")
        os.unlink(new)


def read():
    path = name() + random.choice(["", ".link"])
    fd = os.open(path, os.O_RDONLY)
    try:
        data = b""
        while piece := os.read(fd, 1 << 20):
            data += piece
        whole(data, path)
        size = os.fstat(fd).st_size
        assert size == len(data), f"{path}: {size} bytes, {len(data)} read"
    finally:
        os.close(fd)


def exchange():
    a, b = name().encode(), name().encode()
    if libc.renameat2(-100, a, -100, b, 2):
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def swap_dirs():
    os.rename("d0/s", f"d1/moved{seed}")
    os.rename(f"d1/moved{seed}", "d0/s")


def remove_dir():
    d = f"{random.choice(dirs)}/dir{random.randrange(3)}"
    os.mkdir(d) if random.random() < 0.6 else os.rmdir(d)


ops = [
    (write, 6), (read, 6), (exchange, 1), (swap_dirs, 1), (remove_dir, 1),
    (lambda: os.rename(name(), name()), 3),
    (lambda: os.link(name(), name() + ".link"), 1),
    (lambda: os.unlink(name() + random.choice(["", ".link"])), 3),
    (lambda: os.chmod(name(), random.choice([0o600, 0o644, 0o400])), 1),
    (lambda: os.utime(name(), ns=(random.getrandbits(60), random.getrandbits(60))), 1),
    (lambda: [e.stat() for e in os.scandir(random.choice(dirs))], 2),
    (lambda: os.symlink("f1", name() + ".sym"), 1),
]
for turn in range(turns):
    op = random.choices([o for o, _ in ops], [w for _, w in ops])[0]
    try:
        op()
    except OSError as e:
        import errno

        kinds = {type(e).__name__, f"OSError:{errno.errorcode.get(e.errno)}"}
        if not kinds & expected:
            print(f"turn {turn}: {e!r}")
            sys.exit(1)
PY

start_node a "$PFS" --flush-wait 0.2
start_node b "$PFS" --flush-wait 0.2
mkdir -p "$W/mnt-a"/d{0,1}/s
pids=()
for worker in "a 1" "a 2" "b 3" "b 4"; do
    python3 -B "$W/worker.py" "$W/mnt-${worker% *}" "${worker#* }" 1500 >"$W/worker${worker#* }.out" 2>&1 &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" || fail "a worker: see its output"
done

sleep 1.1 # the attribute time-out
picture() {
    (cd "$1" && find d0 d1 -printf '%p %y %m %n %l ' \( -type d -printf '\n' -o -printf '%s %T@\n' \) | sort)
    (cd "$1" && find d0 d1 -type f | sort | xargs sha256sum)
}
picture "$W/mnt-a" >"$W/picture-a"
picture "$W/mnt-b" >"$W/picture-b"
diff "$W/picture-a" "$W/picture-b" || fail "the nodes do not see the same"
eddy flush "$W/mnt-a"
eddy flush "$W/mnt-b"
picture "$PFS" >"$W/picture-pfs"
diff "$W/picture-a" "$W/picture-pfs" || fail "the PFS has something else"
[ "$(wc -l <"$W/picture-a")" -gt 20 ] || fail "hardly anything is left: nothing is shown"
stop_node a
stop_node b
