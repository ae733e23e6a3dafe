"""What a cache of a million small files costs: the daemon's memory, and the time until it answers."""
import os
import time
from statistics import median

from lib.targets import Finding
from lib.work import run

CACHE_SIZE = 64 << 30
SMALL_CACHE = 64 << 20  # empty, and with hardly any room for records: they are made in large pieces
FILE_SIZE = 4096
STARTS = 5
KIB_PER_FILE = 1.0
FILES_PER_THING = 1000  # more descriptors or mappings than one for so many files are some per file


class ManyFiles:
    """Filled by test/bench/fillstore; an empty cache tells what the daemon needs anyhow."""

    def __init__(self, bench):
        self.bench = bench
        self.count = bench.scale(260000, 1000000)
        self.seconds = bench.scale(60, 300)  # what it may take of the run's time
        self.name = f"memory and start-up time with {self.count:,} cached files"

    def measure(self):
        column = next(c for c in self.bench.eddyfs if not c.missing)
        empty = self.starts(column, "few", SMALL_CACHE)
        cache = self.bench.work.path("many.cache")
        run([self.bench.tool("test/fillstore"), cache, str(CACHE_SIZE), str(self.count), str(FILE_SIZE)])
        return self.findings(column, empty, self.starts(column, "many", CACHE_SIZE))

    def starts(self, column, name, size):
        return [self.one_start(column, name, size) for _ in range(STARTS)]

    def one_start(self, column, name, size):
        start = time.monotonic()
        place = column.start(self.bench, self.bench.pfs, name, cache_size=size)
        took = time.monotonic() - start
        process = f"/proc/{place.process.pid}"
        try:
            with open(process + "/maps") as maps:
                return {"seconds": took, "anonymous": place.status("RssAnon"), "mapped": place.status("RssFile"),
                        "descriptors": len(os.listdir(process + "/fd")), "mappings": len(maps.readlines())}
        finally:
            place.stop()

    def findings(self, column, empty, full):
        def of(starts, what):
            return median(start[what] for start in starts)

        more = {what: of(full, what) - of(empty, what) for what in full[0]}
        memory = (more["anonymous"] + more["mapped"]) / self.count
        title = column.title

        def things(what):
            return Finding(f"{what} with {self.count:,} cached files", title, "none per cached file",
                           f"{more[what]:.0f} more than without", more[what] < self.count / FILES_PER_THING)
        return [
            Finding(f"memory with {self.count:,} cached files", title, f"< {KIB_PER_FILE:g} KiB per file",
                    f"{memory:.2f} KiB per file: {more['anonymous'] / 1024:.0f} MiB of its own, "
                    f"{more['mapped'] / 1024:.0f} MiB of mapped records", memory < KIB_PER_FILE),
            things("descriptors"), things("mappings"),
            Finding(f"start-up with {self.count:,} cached files", title, "",
                    f"{of(full, 'seconds'):.2f} s (empty cache: {of(empty, 'seconds'):.2f} s)", None),
        ]
