#!/usr/bin/env bash
# Processes on two nodes append records to one file, two on each node, each record with one write of up to 1 MiB, from memory that
# begins at a page and from memory that does not; by descriptors that were opened before and after others: each record is there
# once, in one piece, and in the order in which its process wrote. A reader that follows the file on the node sees each append at once.
# timeout: 120
# both
# sanitize
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
: "${RECORDS:=$(many 150 40)}"
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
cat >"$W/append.py" <<'PY'
import mmap, os, random, struct, sys, zlib
a, b, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
HEAD = struct.Struct("<4sIIII")
LONGEST = 1 << 20
EDGES = [4095, 4096, 4097, 131072, LONGEST - 4096, LONGEST - 1, LONGEST]
LIMIT = "/proc/sys/fs/fuse/max_pages_limit"  # which the daemon raises if it is root
SPANS = int(open(LIMIT).read()) if os.path.exists(LIMIT) else 256

def record(writer, number, size):
    body = random.Random(f"{writer} {number}").randbytes(size - HEAD.size)
    return HEAD.pack(b"eddy", size, writer, number, zlib.crc32(body)) + body

def sizes(writer):
    rng = random.Random(writer)
    for n in range(records):
        yield rng.choice([rng.randrange(HEAD.size, 300)] * 6 + [rng.randrange(HEAD.size, 20000)] * 2 + [rng.choice(EDGES)])

def write(writer, path):
    memory = mmap.mmap(-1, 2 * LONGEST)
    fd = os.open(path, os.O_APPEND | (os.O_RDWR if writer % 3 else os.O_WRONLY))
    for number, size in enumerate(sizes(writer)):
        at = number % 3 * 1234  # in its page
        if at + size > SPANS * 4096:
            at = 0
        memory[at:at + size] = record(writer, number, size)
        with memoryview(memory)[at:at + size] as buffer:
            assert os.write(fd, buffer) == size
        if number % 40 == 39:  # by another open
            os.close(fd)
            fd = os.open(path, os.O_APPEND | os.O_WRONLY)
    os.close(fd)

def check(path):
    data, at, numbers = open(path, "rb").read(), 0, {}
    while at < len(data):
        magic, size, writer, number, crc = HEAD.unpack_from(data, at)
        assert magic == b"eddy", f"no record begins at {at} of {len(data)}: the one before is of {last}"
        assert zlib.crc32(data[at + HEAD.size:at + size]) == crc, f"the record of {size} bytes at {at} is torn"
        assert number == numbers.get(writer, -1) + 1, f"writer {writer}: {number} comes after {numbers.get(writer)}"
        numbers[writer] = number
        last = f"{size} bytes of writer {writer}"
        at += size
    assert numbers == {w: records - 1 for w in range(4)}, f"records are lost: {numbers}"

def follow(path):
    """Readers that were opened before the writer and after it, by read, by map and by size."""
    open(path, "w").close()
    before, map_fd = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    after, size = os.open(path, os.O_RDONLY), 0
    for number in range(300):
        data = record(9, number, HEAD.size + number * 11 % 6000)
        assert os.write(fd, data) == len(data)
        for reader in before, after, fd:
            assert os.pread(reader, len(data) + 1, size) == data, f"append {number} is not seen"
            assert os.fstat(reader).st_size == os.lseek(reader, 0, os.SEEK_END) == size + len(data), "size"
        size += len(data)
        with mmap.mmap(map_fd, size, prot=mmap.PROT_READ) as m:
            assert m[size - len(data):] == data, f"append {number} is not seen by a mapping"
    for each in before, map_fd, fd, after:
        os.close(each)

follow(f"{a}/followed")
path = "appended"
open(f"{a}/{path}", "w").close()
pids = []
for writer in range(4):
    pids.append(os.fork())
    if not pids[-1]:
        write(writer, f"{(a, b)[writer % 2]}/{path}")
        os._exit(0)
assert not any([os.waitpid(pid, 0)[1] for pid in pids]), "a writer failed"
for mount in a, b:
    check(f"{mount}/{path}")
PY
python3 -B "$W/append.py" "$W/mnt-a" "$W/mnt-b" "$RECORDS" || fail "see above"
stop_node a
stop_node b
