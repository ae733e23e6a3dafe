"""Over a PFS that is slow on purpose: faultfs holds it to a bandwidth, for all mounts together.

The kernel keeps nothing of what was read from the PFS before: each sample has a new faultfs.
"""
import os
import subprocess

from lib.contenders import Place
from lib.rounds import Group, Line, Row
from lib.work import Failed, run
from rows.large_files import MIB, compare, fill, fio

BANDWIDTH = 200 * 1000 * 1000  # bytes/s
DELAY_US = 500                 # of each request


class SlowPfs(Group):
    """What is compared with is the PFS itself."""

    base = "the PFS"

    def start(self, contender, name, **options):
        """faultfs over bench.pfs, and the contender over that."""
        work = self.bench.work
        mount = work.path(name + ".pfs")
        process = work.start_mount(
            [self.bench.tool("test/faultfs"), "-f", "--bandwidth", str(BANDWIDTH), "--shared", work.path("pfs.shared"),
             "--delay-us", str(DELAY_US), self.bench.pfs, mount], mount)
        below = Place(self.bench, contender, mount, mount, process)
        try:
            place = contender.start(self.bench, mount, name, **options)
        except BaseException:
            below.stop()
            raise
        place.below = below
        return place


class FirstRead(SlowPfs):
    name = "slow"
    fresh = True
    weight = 10

    def __init__(self, bench):
        super().__init__(bench)
        self.size = bench.scale(128, 512) * MIB

    def make_files(self):
        fill(self.bench.pfs + "/large", self.size)

    def rows(self):
        line = Line("first read of an uncached large file, slow PFS", "MiB/s", base=self.base)

        def sample(place, meter):
            def read():
                part = fio(place.path("large"), "read", "1M", f"--size={self.size}")
                return part["bw_bytes"] / MIB, part["io_bytes"]
            meter.run(line, read)
        return [Row(line, sample)]


class WorkingSet(SlowPfs):
    """Reads of 1 MiB at random places of a file of twice the cache, past the kernel's page cache:
    with it, memory and not the cache would be measured."""

    name = "twice"
    weight = 4

    def __init__(self, bench):
        super().__init__(bench)
        self.cache = bench.scale(96, 256) * MIB
        self.reads = bench.scale(100, 300)

    def start(self, contender, name):
        return super().start(contender, name, cache_size=self.cache)

    def make_files(self):
        fill(self.bench.pfs + "/large", 2 * self.cache)

    def prepare(self, place):
        compare(place.path("large"), os.path.join(self.bench.pfs, "large"))

    def rows(self):
        lines = [Line(f"working set twice the cache, slow PFS, {name} of reads of 1 MiB", "ms", less=True,
                      base=self.base) for name in ("p50", "p99")]

        def sample(place, meter):
            part = {}

            def read():
                part.update(fio(place.path("large"), "randread", "1M", f"--size={2 * self.cache}", "--direct=1",
                                f"--number_ios={self.reads}", "--percentile_list=50:99"))
                return milliseconds(part, 50), part["io_bytes"]
            meter.run(lines[0], read)
            meter.note(lines[1], milliseconds(part, 99))
        return [Row(lines, sample)]


def milliseconds(part, percentile):
    return part["clat_ns"]["percentile"][f"{percentile}.000000"] / 1e6


class Training(SlowPfs):
    """Epochs of a training: the native column is the node's own disk, with a copy of the data."""

    name = "train"
    title = "training"
    base = "native"
    fresh = True
    weight = 8
    readers = 4
    epochs = 3
    size = 256 << 10

    def __init__(self, bench):
        super().__init__(bench)
        self.count = bench.scale(500, 2000)

    def start(self, contender, name, **options):
        if contender.key == "native":
            return contender.start(self.bench, self.bench.pfs, name)
        return super().start(contender, name, **options)

    def make_files(self):
        run(self.command("make", self.bench.pfs))

    def command(self, what, directory, *more):
        return [self.bench.tool("test/readtrace"), what, directory, str(self.count), str(self.size), *more]

    def rows(self):
        lines = [Line(f"{self.title}, {self.count:,} files of 256 KiB, 4 readers, slow PFS: epoch {n + 1}", "s",
                      less=True) for n in range(self.epochs)]
        amount = self.count * self.size

        def sample(place, meter):
            command = self.command("read", place.dir, str(self.readers), str(self.epochs))
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as trace:
                try:
                    for line in lines:
                        meter.run(line, lambda: (next_seconds(trace), amount))
                finally:
                    trace.kill()  # when all epochs are told, or the bench is interrupted
        return [Row(lines, sample)]


class TrainingImmutable(Training):
    """eddyfs is told that the data never changes: no file is looked at again on the PFS."""

    name = "train-immutable"
    title = "training, --immutable"
    columns = ("native", "eddyfs", "eddyfs-cached")
    weight = 3

    def start(self, contender, name):
        mount = self.bench.work.path(name + ".pfs")
        return super().start(contender, name, immutable=mount)


def next_seconds(trace):
    said = trace.stdout.readline()
    if not said:
        raise Failed("readtrace ended early")
    return float(said)
