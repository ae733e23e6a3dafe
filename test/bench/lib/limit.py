"""A limit on the memory of each eddyfs daemon: a memory cgroup of its own.

What the daemon reads and writes in its cache's files counts there too, as far as it is in memory:
the kernel has to take that back, and kills the daemon if it can not.
"""
import os

from lib.targets import Finding
from lib.work import Failed


class Version1:
    """Below the group that this program is in, so that what holds for it holds for them."""
    limit, peak, kills = "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"

    @staticmethod
    def parent():
        root = mounted("cgroup", "memory")
        with open("/proc/self/cgroup") as f:
            own = [line.rstrip("\n").split(":", 2) for line in f]
        path = next((path for _, names, path in own if "memory" in names.split(",")), None)
        return root + path if root and path else None


class Version2:
    """Below the topmost group: only there may processes and groups with limits be side by side."""
    limit, peak, kills = "memory.max", "memory.peak", "memory.events"

    @staticmethod
    def parent():
        root = mounted("cgroup2")
        if not root or "memory" not in read(root, "cgroup.controllers").split():
            return None
        if "memory" not in read(root, "cgroup.subtree_control").split():
            write(root, "cgroup.subtree_control", "+memory")
        return root


class Limit:
    def __init__(self, size):
        self.size = size
        self.groups = []  # that exist, by their paths
        self.daemons = self.most = self.killed = 0
        self.version, self.parent = self.find()

    @staticmethod
    def find():
        for version in (Version2, Version1):
            parent = version.parent()
            if parent:
                return version, parent
        raise Failed("--memory: no memory cgroup is mounted here")

    def command(self, argv):
        """The daemon's command, in a new group."""
        group = os.path.join(self.parent, f"eddy-bench-{os.getpid()}-{self.daemons}")
        os.mkdir(group)
        self.groups.append(group)
        self.daemons += 1
        write(group, self.version.limit, str(self.size))
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', group + "/cgroup.procs", *argv]

    def collect(self):
        """From the groups whose daemon has ended; they go."""
        for group in list(self.groups):
            if read(group, "cgroup.procs"):
                continue
            self.most = max(self.most, int(read(group, self.version.peak)))
            events = dict(line.split() for line in read(group, self.version.kills).splitlines())
            self.killed += int(events["oom_kill"])
            os.rmdir(group)
            self.groups.remove(group)

    def findings(self):
        return [Finding(f"{self.daemons} daemons with {self.size >> 20} MiB of memory each", "eddyfs", "none is killed",
                        f"{self.killed} killed; at most {self.most >> 20} MiB used", not self.killed)]


def mounted(kind, *options):
    """Where the file system of this kind with these options is mounted."""
    with open("/proc/mounts") as f:
        for _, path, fs, given, *_ in map(str.split, f):
            if fs == kind and set(options) <= set(given.split(",")):
                return path
    return None


def read(group, name):
    with open(os.path.join(group, name)) as f:
        return f.read()


def write(group, name, value):
    with open(os.path.join(group, name), "w") as f:
        f.write(value)
