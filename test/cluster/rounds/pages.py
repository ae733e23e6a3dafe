"""The pages that writers write: each tells its file, its page and the number of the write that made it."""

import zlib

PAGE = 4096
PAGES = 8


def make(name, number, seq):
    """So that each byte but those of the head differs from that of any other page and of the 31 writes before and after."""
    head = f"{name} {number} {seq}\n".encode()
    first = zlib.crc32(name.encode()) + PAGES * seq + number
    return head + (bytes((first + i) % 251 for i in range(len(head), len(head) + 251)) * 17)[: PAGE - len(head)]


def common(a, b, at):
    """How many bytes from `at` on are the same in both."""
    if a[at:] == b[at:]:
        return len(a) - at
    low, high = at, min(len(a), len(b))
    while low < high:
        mid = (low + high + 1) // 2
        if a[at:mid] == b[at:mid]:
            low = mid
        else:
            high = mid - 1
    return low - at


def pieces(data, sources, shortest=1):
    """The fewest pieces of which data is made: (offset, length, source). sources: what the bytes at these offsets may be
    of, and which bytes it has there. A piece that none of them has, or of fewer bytes than `shortest`, is of None."""
    found, at = [], 0
    while at < len(data):
        length, source = max(((common(data, has, at), of) for of, has in sources.items()), key=lambda x: x[0])
        if length < shortest:
            length, source = 1, None
        if found and found[-1][2] is None and source is None:
            found[-1] = (found[-1][0], found[-1][1] + 1, None)
        else:
            found.append((at, length, source))
        at += length
    return found


def seq_of(name, number, data):
    """The write that made these bytes; None: no write did."""
    try:
        got_name, got_number, seq = data[:200].split(b"\n", 1)[0].decode().split()
        if got_name == name and int(got_number) == number and data == make(name, number, int(seq)):
            return int(seq)
    except ValueError:
        pass
    return None
