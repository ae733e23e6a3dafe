"""Who is compared: each mounts the same directory, the *source*, and is used through a Place."""
import json
import os

from lib.build import DAY, SECOND
from lib.work import Failed, cpu_seconds, run


class Place:
    """A contender at work: `dir` shows the source, `process` serves it (None: the kernel)."""

    def __init__(self, bench, contender, source, mount=None, process=None, caches=()):
        self.bench, self.contender, self.source = bench, contender, source
        self.dir = mount or source
        self.process = process
        self.caches = caches  # directories that hold its copies of the source's files
        self.made = 0         # directories by new_directory
        # Places whose end is this one's end:
        self.below = None     # whose directory is the source
        self.other = None     # another node of the session

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def own(self, *names):
        """Where this contender alone writes: some take it that nobody else changes the source."""
        return self.path("of-" + self.contender.key, *names)

    def new_directory(self):
        """Never one that a measurement before has left behind, as it failed."""
        self.made += 1
        path = self.own(str(self.made))
        os.mkdir(path)
        return path

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid) if self.process else 0.0

    def status(self, name):
        """A number of /proc/PID/status in KiB; 0 where the kernel serves."""
        if not self.process:
            return 0
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        raise Failed(f"{self.contender.title} ended by itself")

    def forget(self, name):
        """The kernel forgets what it has of this mount's file: the next read asks the daemon."""
        if self.process:
            drop_pages(self.path(name))

    def chill(self, name):
        """No byte of the file is in memory any more, whoever's copy it is."""
        self.forget(name)
        drop_pages(os.path.join(self.source, name), sync=True)
        for cache in self.caches:
            for directory, _, files in os.walk(cache):
                for file in files:
                    drop_pages(os.path.join(directory, file), sync=True)

    def settle(self, path):
        """Nothing of this file is left to be written while the next contender is measured."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)
        self.contender.settle(self)

    def stop(self):
        if self.process:
            self.bench.work.stop_mount(self.process, self.dir)
        for place in (self.other, self.below):
            if place:
                place.stop()
        if self.bench.limit:
            self.bench.limit.collect()

    def remove_caches(self):
        """After its end: samples with an empty cache each would fill the disk."""
        for cache in (*self.caches, *(self.other.caches if self.other else ())):
            self.bench.work.remove(cache)


def drop_pages(path, sync=False):
    """Dirty pages stay unless they are written first."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if sync:
            os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


class Contender:
    key = title = None
    missing = None  # why it cannot take part
    rounds = None   # at most, if not as many as the others
    copy = ("cp", "-a")

    def argv(self, bench, source, mount, cache, options):
        raise NotImplementedError

    def caches(self, cache):
        return ()

    def settle(self, place):
        pass

    def cached_files(self, place):
        """How many are in its cache, where it removes them later than their names."""
        return 0

    def start(self, bench, source, name, **options):
        """`options` are what a row asks of those who have such a thing: cache_size; of passthrough_hp second (names are
        kept for one); of eddyfs immutable, attr_timeout, node, session, wait_nodes, chunk_size."""
        mount, cache = bench.work.path(name), bench.work.path(name + ".cache")
        argv = self.argv(bench, source, mount, cache, options)
        process = bench.work.start_mount(self.limited(bench, argv), mount)
        return Place(bench, self, source, mount, process, self.caches(cache))

    def limited(self, bench, argv):
        return argv


class Native(Contender):
    key = title = "native"

    def start(self, bench, source, name, **options):
        return Place(bench, self, source)


class PassthroughHp(Contender):
    key, title = "hp", "passthrough_hp"

    def argv(self, bench, source, mount, cache, options):
        names = SECOND if options.get("second") else DAY
        if names not in bench.passthrough_hp:
            raise Failed("it could not be built")
        return [bench.passthrough_hp[names], "--foreground", source, mount]


class Rclone(Contender):
    """Its uploads are put off: they would run while others are measured.  Nearly all of a round's time is its own,
    and its figures are far from everybody's: few rounds tell them."""
    key = title = "rclone"
    rounds = 5
    copy = ("cp", "-r", "-P", "--preserve=timestamps")  # cp -a fails: EIO for the ACL that is the mode

    def argv(self, bench, source, mount, cache, options):
        limit = ["--vfs-cache-max-size", str(options["cache_size"]), "--vfs-cache-poll-interval", "1s"] \
            if "cache_size" in options else []
        return ["rclone", "mount", source, mount, "--vfs-cache-mode", "full", "--cache-dir", cache,
                "--config", "/dev/null", "--vfs-write-back", "1h", *limit]

    def caches(self, cache):
        return (cache + "/vfs",)


class Eddyfs(Contender):
    def __init__(self, key, title, *options):
        self.key, self.title, self.options = key, title, options

    def argv(self, bench, source, mount, cache, options):
        given = {"node": self.key, "session": os.path.basename(mount), "cache_size": 8 << 30, **options}
        return [bench.tool("eddyfs"), "-f", "--listen", "127.0.0.1", "--session-dir", bench.work.path("sessions"),
                "--cache-dir", cache, *[f"--{name.replace('_', '-')}={value}" for name, value in given.items()],
                *self.options, source, mount]

    def limited(self, bench, argv):
        return bench.limit.command(argv) if bench.limit else argv

    def caches(self, cache):
        return (cache + "/data",)

    def settle(self, place):
        run([place.bench.tool("eddy"), "flush", place.dir], env=place.bench.work.env)

    def cached_files(self, place):
        return self.reply(place)["cache"]["files"]

    def reply(self, place):
        return json.loads(run([place.bench.tool("eddy"), "status", "--json", place.dir],
                              env=place.bench.work.env))


def eddyfs_columns(bench):
    """With the kernel's passthrough and without, as far as this daemon and this machine can."""
    plain = Eddyfs("eddyfs", "eddyfs")
    place = plain.start(bench, bench.work.make("empty"), "probe")
    passes = plain.reply(place).get("passthrough") is True
    place.stop()
    switch = "--no-passthrough" if "--no-passthrough" in run([bench.tool("eddyfs"), "-h"]) else None
    with_it = Eddyfs("eddyfs", "eddyfs")
    without = Eddyfs("eddyfs-cached", "eddyfs, no passthrough", *([switch] if switch else []))
    if not passes:
        with_it.missing = "this daemon has no passthrough here (eddy status)"
    elif not switch:
        without.missing = "this daemon has no --no-passthrough"
    return [with_it, without]


def all_contenders(bench, eddyfs):
    hp = PassthroughHp()
    hp.missing = None if DAY in bench.passthrough_hp else "could not be built"
    return [Native(), hp, Rclone(), *eddyfs]
