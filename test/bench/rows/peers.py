"""Reading what another node has: two nodes of one session on loopback, over one directory.

The unit of caching is as large as a request, so that each request is for what one node owns. Only
chunks that the ring gives to the other node are read, in random order; the other node has them in
its store, and the reader never had them. Neighbours, and pieces of one large request, look like a
sequential reader: what is then read ahead, and not wanted, is part of the time.
"""
import os
import random

from lib.rounds import Group, Line, Row
from lib.work import Failed, run
from rows.large_files import MIB, fill, fio, speed

IN_FLIGHT = (1, 4, 8)
SPARE = 4          # times as many chunks as are read: about half of them are the other node's
AHEAD = 16 * MIB   # the most that is read ahead, and never more than
AHEAD_CHUNKS = 16  # (placement/chunks/stream.c)


class FromPeer(Group):
    fresh = True
    columns = ("native", "eddyfs", "eddyfs-cached")
    weight = 4
    request = None  # bytes

    def __init__(self, bench):
        super().__init__(bench)
        self.name = f"peer{self.request >> 10}"
        self.each = bench.scale(64, 128) * MIB // self.request  # requests of a line
        self.memory = 4 * len(IN_FLIGHT) * self.each * self.request

    def start(self, contender, name):
        if contender.key == "native":
            return contender.start(self.bench, self.bench.pfs, name)
        session = {"session": name, "chunk_size": self.request}
        other = contender.start(self.bench, self.bench.pfs, name + "-other", node="other", **session)
        try:
            place = contender.start(self.bench, self.bench.pfs, name, node="reader", wait_nodes=2, **session)
        except BaseException:
            other.stop()
            raise
        place.other = other
        return place

    def make_files(self):
        fill(self.bench.pfs + "/large", SPARE * len(IN_FLIGHT) * self.each * self.request)

    def rows(self):
        name = f"{self.request // MIB} MiB" if self.request >= MIB else f"{self.request >> 10} KiB"
        lines = [Line(f"from a peer: requests of {name}, {n} in flight", "MiB/s", base="its disk") for n in IN_FLIGHT]

        def sample(place, meter):
            chosen = self.chosen(place)
            for n, (line, mine) in enumerate(zip(lines, chosen)):
                with FromOther(place, self.each * self.request):
                    meter.run(line, lambda: speed(line, self.read(place, mine, IN_FLIGHT[n]), IN_FLIGHT[n]))
                if meter.turn == 0:
                    self.check(place, mine)
        return [Row(lines, sample)]

    def chosen(self, place):
        """The chunks that are read, for each line by their numbers: after this the other node has them;
        without another node they are on the disk, and not in memory. Each line has a part of the file, and
        nothing that is read ahead of one line is wanted by the next."""
        part = SPARE * self.each
        gap = min(AHEAD // self.request, AHEAD_CHUNKS)
        if place.other:
            owned = owned_by(place, "other")
        else:
            place.chill("large")
            owned = range(part * len(IN_FLIGHT))
        parts = [[c for c in owned if n * part <= c < (n + 1) * part - gap] for n in range(len(IN_FLIGHT))]
        if min(map(len, parts)) < self.each:
            raise Failed(f"the other node owns {list(map(len, parts))} chunks of the parts, not {self.each}")
        chosen = [random.sample(chunks, self.each) for chunks in parts]
        if place.other:
            for _ in self.each_chunk(place.other.path("large"), sum(chosen, [])):
                pass
        return chosen

    def read(self, place, chunks, jobs):
        """Each of `jobs` processes (fio's threads can not do it) reads its part of them, one after the other."""
        path = place.path("large")
        logs = []
        for n in range(jobs):
            logs.append(self.bench.work.path(f"{self.name}.iolog.{n}"))
            with open(logs[-1], "w") as log:
                reads = [f"{path} read {chunk * self.request} {self.request}\n" for chunk in chunks[n::jobs]]
                log.writelines(["fio version 2 iolog\n", f"{path} add\n", f"{path} open\n", *reads, f"{path} close\n"])
        part = fio(path, "read", str(self.request), "--thread=0", "--fadvise_hint=random", "--replay_no_stall=1",
                   "--read_iolog=" + ":".join(logs), jobs=jobs)
        if part["io_bytes"] != len(chunks) * self.request:
            raise Failed(f"fio read {part['io_bytes']} bytes, not {len(chunks) * self.request}")
        return part

    def check(self, place, chunks):
        """Once: what came is what the file has."""
        pairs = zip(self.each_chunk(place.path("large"), chunks), self.each_chunk(place.source + "/large", chunks))
        if any(got != wanted for got, wanted in pairs):
            raise Failed(f"{place.path('large')} has other bytes than {place.source}/large")

    def each_chunk(self, path, chunks):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            for chunk in chunks:
                yield os.pread(fd, self.request, chunk * self.request)
        finally:
            os.close(fd)


class FromPeer64K(FromPeer):
    request = 64 << 10


class FromPeer1M(FromPeer):
    request = 1 << 20


class FromPeer4M(FromPeer):
    request = 4 << 20


class FromOther:
    """Around a measurement: fails if its chunks, which the other node owns, did not come from there."""

    def __init__(self, place, size):
        self.place, self.size = place, size

    def __enter__(self):
        self.before = self.counted()

    def __exit__(self, kind, *_):
        if kind or not self.place.other:
            return
        received, fallback = (after - before for after, before in zip(self.counted(), self.before))
        if received < self.size or fallback:
            raise Failed(f"{self.size} bytes were read: {received} came from the other node, and {fallback} chunks "
                         "from the PFS, as it did not serve them")

    def counted(self):
        if not self.place.other:
            return None
        counters = self.place.contender.reply(self.place)["counters"]
        return counters["received_bytes"], counters["fallback_reads"]


def owned_by(place, node):
    """From the table of `eddy ring FILE`: a chunk's number, its owner, the next one."""
    said = run([place.bench.tool("eddy"), "ring", place.path("large")], env=place.bench.work.env)
    words = [line.split() for line in said.splitlines()]
    return [int(w[0]) for w in words if len(w) == 3 and w[0].isdigit() and w[1] == node]
