"""Reading and writing large files, with fio.

warm    the kernel has the bytes in memory
first   the cache has them in its files, which are in memory; the kernel asks the daemon for them
cold    the cache's files have them, and no byte is in memory
"""
import json
import os

from lib.rounds import Group, Line, Row
from lib.work import Failed, run

MIB = 1 << 20


def fio(path, rw, block, *options, jobs=1, own_files=False):
    """Runs one fio job and returns its "read" or "write" part. Nothing is dropped or laid out by fio."""
    where = ["--directory", path, "--filename_format", "f.$jobnum"] if own_files else ["--filename", path]
    out = run(["fio", "--name=bench", "--thread", f"--numjobs={jobs}", "--group_reporting", "--ioengine=psync",
               f"--rw={rw}", f"--bs={block}", "--invalidate=0", "--fallocate=none", "--fadvise_hint=0",
               "--norandommap", "--randrepeat=0", "--output-format=json", *where, *options])
    part = json.loads(out[out.index("{"):])["jobs"][0]["write" if "write" in rw else "read"]
    if not part["io_bytes"]:
        raise Failed("fio did nothing")
    return part


def compare(one, other):
    run(["cmp", one, other])


class Reading(Group):
    name = "read"

    def make_files(self, bench):
        self.size = bench.scale(256, 512) * MIB
        fill(bench.pfs + "/large", self.size)

    def prepare(self, place):
        compare(place.path("large"), os.path.join(place.source, "large"))

    def rows(self, bench):
        shapes = [("1 MiB sequential", "read", "1M"), ("128 KiB sequential", "read", "128k"),
                  ("random 4 KiB", "randread", "4k")]
        return [self.row(f"{shape}, {jobs} reader{'s' * (jobs > 1)}, {state}", rw, block, jobs, state)
                for shape, rw, block in shapes for jobs in (1, 4) for state in ("warm", "first", "cold")] + \
            [self.mmap_row(state) for state in ("warm", "cold")]

    def row(self, name, rw, block, jobs, state):
        unit = "IOPS" if rw == "randread" else "MiB/s"
        return self.any_row(Line("read " + name, unit), rw, block, jobs, state)

    def mmap_row(self, state):
        return self.any_row(Line(f"mmap read 1 MiB sequential, {state}", "MiB/s"), "read", "1M", 1, state,
                            "--ioengine=mmap")

    def any_row(self, line, rw, block, jobs, state, *more):
        def sample(place, meter):
            options = self.bounds(rw, jobs, state, place.bench)
            bring_to(state, place, "large")
            part = [None]

            def read():
                part[0] = fio(place.path("large"), rw, block, *options, *more, jobs=jobs)
                return part[0]["iops"] if line.unit == "IOPS" else part[0]["bw_bytes"] / MIB

            before = place.cpu_seconds()
            value = read()
            meter.cost(line, part[0]["io_bytes"], before)
            line.put(place, meter.turn, value)
        return Row(line, sample)

    def bounds(self, rw, jobs, state, bench):
        """Warm: for a time. Else each byte once (each reader its part), or so many random ones."""
        if state == "warm":
            return ["--time_based", f"--runtime={bench.scale(300, 500)}ms", *self.parts(rw, jobs)]
        if rw == "randread":
            return [f"--size={self.size}", f"--number_ios={bench.scale(1000, 4000) // jobs}"]
        return self.parts(rw, jobs)

    def parts(self, rw, jobs):
        if rw == "randread" or jobs == 1:
            return [f"--size={self.size}"]
        return [f"--size={self.size // jobs}", f"--offset_increment={self.size // jobs}"]


def bring_to(state, place, name):
    """A read leaves the file as warm as it was, or warmer, but not wholly in the kernel's memory."""
    was = place.warmth.get(name)
    if was != state and not (state == "first" and was == "warm") and state != "cold":
        compare(place.path(name), place.path(name))
    if state == "first":
        place.forget(name)
    elif state == "cold":
        place.chill(name)
    place.warmth[name] = state


def fill(path, size):
    """Random bytes: nothing on the way can make them less."""
    block = os.urandom(8 * MIB)
    with open(path, "wb") as f:
        for n in range(size // len(block)):
            f.write(n.to_bytes(8, "little") + block[8:])
        os.fsync(f.fileno())
