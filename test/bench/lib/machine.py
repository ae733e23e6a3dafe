"""What the figures were measured on."""
import os
import subprocess


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


def touch_memory(size):
    """Has `size` bytes of memory used just now, as a file's pages, and free again.

    A virtual machine may give free memory back to its host within seconds, and gets it again when
    it is used: that takes several times as long as filling it, and would make slow whoever fills
    new pages, by chance.
    """
    piece = b"x" * (1 << 20)
    fd = os.memfd_create("bench")
    try:
        for _ in range(size >> 20):
            os.write(fd, piece)
    finally:
        os.close(fd)


REPORTING = "/sys/module/page_reporting/parameters/page_reporting_order"
BUDDY_MAX = 10  # the kernel's MAX_PAGE_ORDER: no free block is larger


def reported_order():
    """The least order of free blocks that the host is told of; None: it is told of none, ever."""
    try:
        with open(REPORTING) as f:
            return int(f.read())
    except (OSError, ValueError):
        return None


def report_order(order):
    with open(REPORTING, "w") as f:
        f.write(str(order))


class KeptMemory:
    """While it lives the host is not told what memory is free, and so leaves it here. For root only."""

    def __init__(self):
        self.before = reported_order()
        if self.before is not None:
            report_order(BUDDY_MAX + 1)

    def close(self):
        if self.before is not None:
            report_order(self.before)


def free_memory():
    """What becomes of it: see touch_memory. A pause of some seconds is enough to make it cold again."""
    order = reported_order()
    return "taken back by the host: new pages are slow (--keep-memory)" if order is not None and order <= BUDDY_MAX else "kept"


def description(bench):
    """Name and value of each thing that the figures depend on."""
    kib = int(field_of("/proc/meminfo", "MemTotal").split()[0])
    free = os.statvfs(bench.work.dir)
    return [
        ("CPU", field_of("/proc/cpuinfo", "model name")),
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("memory", f"{kib / 2**20:.1f} GiB"),
        ("free memory", free_memory()),
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
