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


def speed(line, part, jobs):
    """In the line's unit, and the work it was. From the time that the calls took: fio's own clock
    of a run counts in ms, which is coarse for what the page cache serves, and has fio's start in it."""
    calls_per_s = jobs * 1e9 / part["lat_ns"]["mean"]
    size = part["io_bytes"] / part["total_ios"]
    return calls_per_s if line.unit == "IOPS" else calls_per_s * size / MIB, part["io_bytes"]


def compare(one, other):
    """In large reads: cmp's are small, and a slow PFS takes its time for each."""
    with open(one, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        while True:
            got, wanted = a.read(MIB), b.read(MIB)
            if got != wanted:
                raise Failed(f"{one} differs from {other}")
            if not got:
                return


class Reading(Group):
    name = "read"

    def __init__(self, bench):
        super().__init__(bench)
        self.size = 256 * MIB  # more than a processor's cache: from there the native file is read at twice the speed
        self.memory = 2 * self.size

    def make_files(self):
        fill(self.bench.pfs + "/large", self.size)

    def prepare(self, place):
        compare(place.path("large"), os.path.join(place.source, "large"))

    def rows(self):
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
            bring_to(state, place, "large")
            options = [*self.bounds(rw, jobs, state), *more]
            meter.run(line, lambda: speed(line, fio(place.path("large"), rw, block, *options, jobs=jobs), jobs))
        return Row(line, sample)

    def bounds(self, rw, jobs, state):
        """Warm: for a time. Else each byte once (each reader its part), or so many random ones."""
        if state == "warm":
            return ["--time_based", f"--runtime={self.bench.scale(200, 500)}ms", *self.parts(rw, jobs)]
        if rw == "randread":
            count = self.bench.scale(5000, 20000) if state == "first" else self.bench.scale(1000, 4000)
            return [f"--size={self.size}", f"--number_ios={count // jobs}"]
        return self.parts(rw, jobs)

    def parts(self, rw, jobs):
        if rw == "randread" or jobs == 1:
            return [f"--size={self.size}"]
        return [f"--size={self.size // jobs}", f"--offset_increment={self.size // jobs}"]


class Writing(Group):
    """New files are removed at once, so that their write-back does not run while others are measured."""

    name = "write"
    writes = True

    def __init__(self, bench):
        super().__init__(bench)
        self.size = bench.scale(256, 512) * MIB  # of all new files together
        self.memory = 2 * self.size
        self.old_size = 64 * MIB                  # of each that is rewritten

    def make_files(self):
        for contender in self.bench.contenders:
            directory = os.path.join(self.bench.pfs, "of-" + contender.key, "old")
            os.makedirs(directory)
            for n in range(4):
                fill(f"{directory}/f.{n}", self.old_size)

    def rows(self):
        rows = [self.new_row(block, jobs) for block in ("4k", "64k", "1M") for jobs in (1, 4)]
        return rows + [self.rewrite_row(jobs) for jobs in (1, 4)] + [self.fsync_row()]

    def new_row(self, block, jobs):
        size = self.size // 4 if block == "4k" else self.size
        line = Line(f"write new file {NAMES[block]}, {writers(jobs)}", "MiB/s")

        def sample(place, meter):
            directory = place.new_directory()
            meter.run(line, lambda: speed(line, write(directory, block, size, jobs), jobs))
            check_sizes(directory, jobs, size // jobs)
            remove_files(directory)
        return Row(line, sample)

    def rewrite_row(self, jobs):
        loops = self.size // self.old_size // jobs
        line = Line(f"rewrite 1 MiB, {writers(jobs)}", "MiB/s")

        def sample(place, meter):
            meter.run(line, lambda: speed(line, write(place.own("old"), "1M", self.old_size * jobs, jobs,
                                                      f"--loops={loops}"), jobs))
            for n in range(jobs):
                place.settle(place.own("old", f"f.{n}"))
        return Row(line, sample)

    def fsync_row(self):
        line = Line("write 4 KiB, fsync after each", "IOPS")

        def sample(place, meter):
            directory = place.new_directory()
            ms = self.bench.scale(500, 1000)

            def run_synced():
                part = write(directory, "4k", 16 * MIB, 1, "--fsync=1", "--time_based", f"--runtime={ms}ms")
                return part["iops"], part["io_bytes"]  # the calls' time has no fsync in it
            meter.run(line, run_synced)
            remove_files(directory)
        return Row(line, sample)


NAMES = {"4k": "4 KiB", "64k": "64 KiB", "1M": "1 MiB"}


def writers(jobs):
    return f"{jobs} writer{'s' * (jobs > 1)}"


def write(directory, block, size, jobs, *options):
    """The size is that of all writers' files together."""
    return fio(directory, "write", block, f"--size={size // jobs}", "--create_on_open=1", *options,
               jobs=jobs, own_files=True)


def check_sizes(directory, jobs, size):
    for n in range(jobs):
        found = os.stat(f"{directory}/f.{n}").st_size
        if found != size:
            raise Failed(f"{directory}/f.{n} has {found} bytes, not {size}")


def remove_files(directory):
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    os.rmdir(directory)


def bring_to(state, place, name):
    """Each time anew: a kernel may take back what nobody used for seconds (DAMON does it on hosts of
    virtual machines), and each contender's copy is used only when it has its turn."""
    if state == "cold":
        place.chill(name)
        return
    if state == "first":
        place.forget(name)  # so that the cache's copy is what is read
    read_all(place.path(name))
    if state == "first":
        place.forget(name)


def read_all(path):
    buffer = bytearray(MIB)
    with open(path, "rb", buffering=0) as f:
        while f.readinto(buffer):
            pass


def fill(path, size):
    """Random bytes: nothing on the way can make them less."""
    block = os.urandom(8 * MIB)
    with open(path, "wb") as f:
        for n in range(size // len(block)):
            f.write(n.to_bytes(8, "little") + block[8:])
        os.fsync(f.fileno())
