"""Many small files: what each system call of them costs."""
import os
import time

from lib.rounds import Group, Line, Row
from lib.work import Failed, run

PHASES = {"create": "create, write, close", "stat": "stat", "read": "open, read, close", "unlink": "unlink"}


class SmallFiles(Group):
    """The files are new ones of this node, in a directory of their own for each round."""

    name = "small"
    suffix = ""  # of the lines' names
    phases = tuple(PHASES)  # that are told
    writes = True
    weight = 3

    def rows(self):
        return [self.row(self.bench.scale(1000, 5000), 4096, "4 KiB"),
                self.row(self.bench.scale(400, 2000), 102400, "100 KiB")]

    def row(self, count, size, size_name):
        lines = {phase: Line(f"{what}{self.suffix}: {count:,} files of {size_name}", "/s", work="10k ops")
                 for phase, what in PHASES.items() if phase in self.phases}

        def sample(place, meter):
            directory, cached = place.new_directory(), place.contender.cached_files(place)
            for phase in PHASES:
                def work():
                    return count / phase_seconds(place, phase, directory, count, size), count
                if phase in lines:
                    meter.run(lines[phase], work)
                else:
                    work()
                if phase == "create":
                    self.write_back(place)
            os.rmdir(directory)
            self.removal(place, cached)
        return Row(list(lines.values()), sample)

    def write_back(self, place):
        """The files are cached, and nothing of them is left to be written: else one would be measured beside its
        write-back, and another with files that have no block on the disk yet."""
        place.contender.settle(place)
        run(["sync", "-f", self.bench.work.dir])

    def removal(self, place, cached):
        """What is removed from a cache after its name has gone, has gone before the next one is measured."""
        end = time.monotonic() + 60
        while place.contender.cached_files(place) > cached:
            if time.monotonic() > end:
                raise Failed(f"{place.contender.title}: removed files are still in its cache after 60 s")
            time.sleep(0.02)


class SmallFilesKnown(SmallFiles):
    """With an --attr-timeout that the files do not outlive, as passthrough_hp's day is one."""

    name = "small-known"
    suffix = ", names known"
    columns = ("native", "hp", "eddyfs", "eddyfs-cached")
    weight = 1.5

    def start(self, contender, name):
        return contender.start(self.bench, self.bench.pfs, name, attr_timeout=3600)


class SmallFilesAsked(SmallFiles):
    """With a passthrough_hp that keeps names and attributes for a second, as eddyfs does, which is over: both are
    asked for each name again."""

    name = "small-asked"
    suffix = ", names asked again"
    phases = ("stat",)
    columns = ("native", "hp", "eddyfs", "eddyfs-cached")
    weight = 1.5

    def start(self, contender, name):
        options = {"second": True} if contender.key == "hp" else {}
        return contender.start(self.bench, self.bench.pfs, name, **options)

    def write_back(self, place):
        super().write_back(place)
        if place.contender.key != "native":
            time.sleep(1.1)


def phase_seconds(place, phase, directory, count, size):
    return float(run([place.bench.tool("test/smallfiles"), phase, directory, str(count), str(size)]))


class Listing(Group):
    """Files that are on the PFS, and were never opened."""

    name = "list"
    count = 10000

    def make_files(self):
        os.mkdir(self.bench.pfs + "/list")
        for n in range(self.count):
            open(f"{self.bench.pfs}/list/{n}", "x").close()

    def rows(self):
        line = Line(f"ls -l of {self.count:,} files", "/s", work="10k ops")

        def sample(place, meter):
            meter.run(line, lambda: (self.count / timed(["ls", "-l", place.path("list")]), self.count))
        return [Row(line, sample)]


def timed(argv, **more):
    start = time.monotonic()
    run(argv, **more)
    return time.monotonic() - start
