"""One run of phasework over one policy: what was written when, to the mount and to the PFS."""
import json
import os
import subprocess
import threading
import time

from lib.contenders import Eddyfs
from lib.machine import field_of
from lib.work import Failed, cpu_seconds, run

SAMPLE_S = 0.05
STATUS_S = 0.2


class Setting:
    """What is the same for all policies of a comparison."""

    def __init__(self, name, files, passthrough, compute_s, flush_wait, iterations):
        self.name, self.files, self.passthrough = name, files, passthrough
        self.compute_s, self.flush_wait, self.iterations = compute_s, flush_wait, iterations


class Policy:
    """`options` of eddyfs; None: straight to the PFS. `missing`: why it cannot take part."""

    def __init__(self, key, options, flushed=True):
        self.key, self.options, self.flushed = key, options, flushed
        self.missing = None


def value_at(series, when):
    """Of (time, value) pairs of what only grows: between two of them in proportion."""
    before = series[0]
    for t, value in series:
        if t >= when:
            share = (when - before[0]) / (t - before[0]) if t > before[0] else 1
            return before[1] + (value - before[1]) * max(0, min(1, share))
        before = (t, value)
    return before[1]


class Sampler(threading.Thread):
    """Over time: bytes that faultfs has been given, what the processes have used of the processors, and what is
    dirty, where that is asked for."""

    def __init__(self, stats, status, processes):
        super().__init__(daemon=True)
        self.stats, self.status, self.processes = stats, status, processes
        self.ended = threading.Event()
        self.written = []  # (time, bytes)
        self.used = {name: [] for name in processes}  # (time, seconds)
        self.dirty = []

    def run(self):
        next_status = 0
        while not self.ended.wait(SAMPLE_S):
            self.look()
            now = time.monotonic()
            if self.status and now >= next_status:
                next_status = now + STATUS_S
                self.ask()

    def ask(self):
        try:
            self.dirty.append((time.monotonic(), self.status()))
        except Failed:  # the daemon has ended: all is on the PFS
            self.dirty.append((time.monotonic(), 0))
            self.status = None

    def look(self):
        with open(self.stats) as f:
            counts = json.load(f)
        self.written.append((time.monotonic(), counts["write_bytes"]))
        for name, process in self.processes.items():
            if process.poll() is None:
                self.used[name].append((time.monotonic(), cpu_seconds(process.pid)))


class Result:
    def __init__(self, phases, sampler, size, finish_s):
        self.phases, self.sampler, self.size, self.finish_s = phases, sampler, size, finish_s

    def seconds(self, kind):
        return sum(end - begin for phase, begin, end in self.phases if phase == kind)

    def bandwidth(self):
        return self.size / self.seconds("io")

    def total(self):
        return self.phases[-1][2] - self.phases[0][1] + self.finish_s

    def grew_in(self, kind, series):
        return sum(value_at(series, end) - value_at(series, begin) for phase, begin, end in self.phases if phase == kind)

    def flushed_in(self, kind):
        return self.grew_in(kind, self.sampler.written)

    def used_in(self, kind, name):
        """Seconds of the processors, by "daemon" or "server"."""
        return self.grew_in(kind, self.sampler.used[name]) if name in self.sampler.used else 0.0


def memory_free():
    return int(field_of("/proc/meminfo", "MemAvailable").split()[0]) << 10


class Runner:
    """`most`: bytes that one run writes at most."""

    def __init__(self, bench, most):
        self.bench, self.count = bench, 0
        self.spins = {}  # by seconds: the same work for all policies
        self.disks = bench.work.make("pfs")
        self.in_memory = self.take_memory(most + most // 4)  # each run's bytes are removed after it

    def take_memory(self, size):
        """The PFS's disks belong to other machines: its bytes stay in memory, where root can have that, so that
        writing them takes neither this node's disk nor more of its processors than it must: large pages are a
        fifth of the work."""
        if os.geteuid() != 0 or memory_free() < 2 * size:
            return False
        self.bench.work.note(".mounts", self.disks)
        options = f"size={size},mode=700"
        return any(subprocess.run(["mount", "-t", "tmpfs", "-o", tried, "eddy-bench", self.disks],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
                   for tried in (options + ",huge=within_size", options))

    def spins_of(self, seconds):
        if seconds not in self.spins:
            self.spins[seconds] = run([self.bench.tool("test/phasework"), str(seconds)]).strip()
        return self.spins[seconds]

    def run(self, policy, setting, watch_dirty=False):
        """Everything new: the PFS's mount, its directory, the cache. All bytes are compared by size."""
        bench, self.count = self.bench, self.count + 1
        pfs = bench.work.make("pfs", str(self.count))
        stats = os.path.join(self.disks, f"{self.count}.json")
        below = bench.work.path(f"below-{self.count}")
        process = bench.work.start_mount(
            [bench.tool("test/faultfs"), "-f", "--stats", stats, "--bandwidth", str(bench.bandwidth), pfs, below], below)
        place = None
        try:
            if policy.options is not None:
                place = self.mount(policy, setting, below)
            status = (lambda: place.contender.reply(place)["cache"]["dirty"]) if place and watch_dirty else None
            processes = {"server": process, **({"daemon": place.process} if place else {})}
            return self.measure(policy, setting, place, below, Sampler(stats, status, processes))
        finally:
            if place:
                place.stop()
            bench.work.stop_mount(process, below)
            bench.work.remove(pfs)
            bench.work.remove(bench.work.path(f"mnt-{self.count}.cache"))

    def mount(self, policy, setting, below):
        options = [*policy.options, *([] if setting.passthrough else ["--no-passthrough"])]
        if "--flush-wait" not in options:
            options += ["--flush-wait", str(setting.flush_wait)]
        return Eddyfs(policy.key, policy.key, *options).start(self.bench, below, f"mnt-{self.count}")

    def measure(self, policy, setting, place, below, sampler):
        directory = os.path.join(place.dir if place else below, "work")
        os.mkdir(directory)
        sampler.start()
        try:
            phases = self.work(setting, directory)
            finish_s = self.finish(place) if place and policy.flushed else 0.0
        finally:
            sampler.ended.set()
            sampler.join()
        sampler.look()
        size = self.bench.size(setting)
        if policy.flushed:
            self.check(os.path.join(below, "work"), size)
        return Result(phases, sampler, size, finish_s)

    def work(self, setting, directory):
        bench = self.bench
        out = run([bench.tool("test/phasework"), directory, str(bench.processes), str(bench.iterations(setting)),
                   str(bench.bytes), self.spins_of(setting.compute_s), setting.files])
        return [(kind, float(begin), float(end)) for kind, begin, end in (line.split() for line in out.splitlines())]

    def finish(self, place):
        began = time.monotonic()
        run([self.bench.tool("eddy"), "umount", place.dir], env=self.bench.work.env)
        return time.monotonic() - began

    def check(self, directory, size):
        found = sum(entry.stat().st_size for entry in os.scandir(directory))
        if found != size:
            raise Failed(f"{found} bytes are on the PFS, {size} were written")

    def probe(self, policy):
        """Whether this daemon has the policy."""
        try:
            place = Eddyfs("probe", "probe", *policy.options).start(
                self.bench, self.bench.work.make("empty"), f"probe-{policy.key}")
            place.stop()
        except (Failed, subprocess.CalledProcessError) as e:
            policy.missing = str(e).splitlines()[-1]
