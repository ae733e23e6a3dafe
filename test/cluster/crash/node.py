"""The node that crashes: its daemon, its mount, and the disk that its cache is on."""
import ctypes
import fcntl
import os
import random
import signal
import subprocess
import time
import uuid

from model import Wrong

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NOLOGFLUSH = (2).to_bytes(4, "little")
SYNC_RANGE = 7  # wait before, write, wait after
START_SECONDS = 60
libc = ctypes.CDLL(None, use_errno=True)


def wait_for(seconds, condition, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Wrong(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def die_with_parent():
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def record_process(work, pid):
    """Where test/cluster/cleanup.sh ends what a test that was killed has left."""
    with open(f"/proc/{pid}/stat") as f:
        started = f.read().rpartition(")")[2].split()[19]
    with open(os.path.join(work, ".processes"), "a") as f:
        f.write(f"{pid} {started}\n")


class Node:
    def __init__(self, options, lane):
        self.options, self.name = options, f"n{lane}"
        self.mount = os.path.join(options.work, f"mnt-{self.name}")
        self.below = os.path.join(options.pfs, self.name)           # as the daemon sees the PFS
        self.truth = os.path.join(options.below or options.pfs, self.name)  # as it is
        self.own = os.path.join(options.work, self.name)  # logs and records
        self.log = os.path.join(self.own, "log")
        self.cache = os.path.join(options.work, f"cache-{self.name}")
        self.cache_size = "3M" if lane % 3 == 2 else "64M"  # of the smaller ones much is evicted
        self.process = None
        self.output = os.path.join(self.own, "output")  # what it says before the log is open
        self.read_so_far = {self.log: 0, self.output: 0}
        os.makedirs(self.below, exist_ok=True)
        os.mkdir(self.own)
        os.mkdir(self.mount)
        with open(os.path.join(options.work, ".mounts"), "a") as f:
            f.write(self.mount + "\n")

    def command(self, flush_wait):
        return [self.options.eddyfs, "-f", "--node", self.name, "--listen", "127.0.0.1", "--session", self.name,
                "--session-dir", self.truth + ".sessions", "--cache-dir", self.cache, "--cache-size",
                self.cache_size, "--chunk-size", "64K", "--log", self.log, "--flush-wait", str(flush_wait),
                *self.options.eddyfs_options, self.below, self.mount]

    def start(self, flush_wait):
        with open(self.output, "a") as out:
            self.process = subprocess.Popen(self.command(flush_wait), stdout=out, stderr=out)
        record_process(self.options.work, self.process.pid)

    def answers(self):
        """A dead mount fails statfs; a new daemon clears it, and then the plain directory answers."""
        if self.process.poll() is not None:
            raise Wrong(f"the daemon ended by itself with {self.process.returncode}")
        try:
            os.statvfs(self.mount)
            return os.stat(self.mount).st_dev != os.stat(self.options.work).st_dev
        except OSError:
            return False

    def wait_until_mounted(self):
        wait_for(START_SECONDS, self.answers, "the mount answers")

    def kill(self):
        """Returns when it was: what failed before that failed by itself."""
        killed = time.monotonic()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return killed

    def eddy(self, *words):
        return subprocess.run([self.options.eddy, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120)

    def tell(self, names, how):
        """Hints of these files, or a stage of them, in a process of its own, which goes on."""
        words = ["hint", "--"] if how == "hint" else ["stage", *how.split(), "--"]
        process = subprocess.Popen([self.options.eddy, *words, *(os.path.join(self.mount, name) for name in names)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                                   preexec_fn=die_with_parent)
        record_process(self.options.work, process.pid)
        return process

    def new_log_lines(self):
        lines = []
        for path, at in self.read_so_far.items():
            with open(path, errors="replace") as f:
                f.seek(at)
                lines += f.read().splitlines()
                self.read_so_far[path] = f.tell()
        return lines

    def end_of_log(self):
        lines = []
        for path in self.output, self.log:
            with open(path, errors="replace") as f:
                lines += f.readlines()[-30:]
        return "".join(f"    {line}" for line in lines)

    def unmount(self):
        ended = self.eddy("umount", self.mount)
        if self.process.wait(60) != ended.returncode:
            raise Wrong(f"the daemon ended with {self.process.returncode}, eddy umount with {ended.returncode}")
        return ended

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        subprocess.run(["fusermount3", "-uz", self.mount], stderr=subprocess.DEVNULL)


class Disk:
    """An ext4 of its own for a cache, whose power can be cut."""

    def __init__(self, options, node):
        self.image = os.path.join(options.work, f"disk-{node.name}.image")
        self.directory = os.path.join(options.work, f"disk-{node.name}")
        self.boot_id = options.boot_id
        self.random = random.Random(f"{options.seed}.{node.name}.disk")
        os.mkdir(self.directory)
        with open(self.image, "wb") as f:
            f.truncate(512 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        self.mount()
        node.cache = os.path.join(self.directory, "cache")

    def mount(self):
        subprocess.run(["mount", "-o", "loop,commit=1", self.image, self.directory], check=True)

    def write_something_back(self):
        """What a kernel may do at any time: some pages of some files reach the disk, not others."""
        files = [os.path.join(d, f) for d, _, files in os.walk(self.directory) for f in files]
        path = self.random.choice(files or [self.directory])
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return  # a socket, or removed meanwhile
        try:
            size = os.fstat(fd).st_size
            if self.random.random() < 0.3:
                os.fsync(fd)
            elif size:
                at = self.random.randrange(size) & ~4095
                length = 4096 * self.random.choice((1, 1, 8, 64))
                libc.sync_file_range(fd, ctypes.c_int64(at), ctypes.c_int64(length), SYNC_RANGE)
        finally:
            os.close(fd)

    def cut(self):
        """Nothing more gets to the disk."""
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, NOLOGFLUSH)
        finally:
            os.close(fd)

    def unmounts(self):
        return subprocess.run(["umount", self.directory], stderr=subprocess.DEVNULL).returncode == 0

    def power_on(self):
        """With what did get to it. Nobody may have a file of it open."""
        wait_for(60, self.unmounts, "the disk is let go")
        self.mount()
        with open(self.boot_id, "r+") as f:
            f.write(str(uuid.uuid4()) + "\n")

    def close(self):
        self.unmounts()
