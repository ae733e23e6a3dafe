#!/usr/bin/env bash
# Who has a file open sees its size also after another node has removed it before it was
# flushed, and while it does: the PFS never had any of it.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_node writer "$PFS" --flush-wait 3600
start_node trusting "$PFS" --attr-timeout 60
start_node asking "$PFS" --attr-timeout 0
cat >"$W/removed.py" <<'PY'
import os, sys, threading

writer, trusting, asking = sys.argv[1:]
data = os.urandom(50000)


def expect(fd, what):
    st = os.fstat(fd)
    assert st.st_size == len(data), f"{what}: {st}"


# The reader's kernel has the attributes of the empty file when it opens the full one.
for n in range(10):
    with open(f"{writer}/late{n}", "wb", buffering=0) as f:
        assert os.stat(f"{trusting}/late{n}").st_size == 0
        f.write(data)
    fd = os.open(f"{trusting}/late{n}", os.O_RDONLY)
    os.unlink(f"{writer}/late{n}")
    expect(fd, f"late{n}")
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)

# Removed while its attributes are asked for.
for n in range(1000):
    with open(f"{writer}/f", "wb") as f:
        f.write(data)
    fd = os.open(f"{asking}/f", os.O_RDONLY)
    assert os.pread(fd, 100000, 0) == data
    remover = threading.Thread(target=os.unlink, args=(f"{writer}/f",))
    remover.start()
    while remover.is_alive():
        expect(fd, f"turn {n}")
    remover.join()
    expect(fd, f"turn {n}, removed")
    os.close(fd)
PY
python3 -B "$W/removed.py" "$W/mnt-writer" "$W/mnt-trusting" "$W/mnt-asking" || fail "see above"
stop_node asking
stop_node trusting
stop_node writer
