"""What the figures were measured on."""
import os
import subprocess
import sys


def said_by(*argv):
    try:
        out = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        return out.strip().splitlines()[0] if out.strip() else "?"
    except OSError:
        return "not here"


def field_of(path, name):
    with open(path) as f:
        for line in f:
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return "?"


def file_system(path):
    return said_by("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", path)


def touch_memory():
    """A virtual machine gets its memory when it first uses it, which then takes several times as
    long as later: whoever were the first to fill new pages would seem slow. A process of its own
    does it, so that the memory is free again."""
    available = int(field_of("/proc/meminfo", "MemAvailable").split()[0]) << 10
    pieces = min(available // 2, 8 << 30) >> 26
    subprocess.run([sys.executable, "-c", f"pieces = [bytearray(b'x') * (1 << 26) for _ in range({pieces})]"],
                   stdin=subprocess.DEVNULL)


def description(bench):
    """Name and value of each thing that the figures depend on."""
    kib = int(field_of("/proc/meminfo", "MemTotal").split()[0])
    free = os.statvfs(bench.work.dir)
    return [
        ("CPU", field_of("/proc/cpuinfo", "model name")),
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("memory", f"{kib / 2**20:.1f} GiB"),
        ("kernel", os.uname().release),
        ("file system", file_system(bench.work.dir)),
        ("free on it", f"{free.f_bavail * free.f_frsize / 2**30:.0f} GiB"),
        ("user", "root" if os.geteuid() == 0 else "not root"),
        ("load average at start", load()),
        ("eddyfs", said_by(bench.tool("eddyfs"), "-V") + ", " + commit()),
        ("rclone", said_by("rclone", "version")),
        ("fio", said_by("fio", "--version")),
        ("gcc", said_by("gcc", "-dumpfullversion")),
    ]


def commit():
    return said_by("git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty")


def load():
    return " ".join(f"{n:.2f}" for n in os.getloadavg())
