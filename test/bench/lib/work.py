"""The work directory: all that a run makes is in it, and ends with it.

Processes and mounts are written down in it as test/cluster/cleanup.sh wants them, and that
script ends them: only those, whatever happened.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

CLEANUP = os.path.join(os.path.dirname(__file__), "../../cluster/cleanup.sh")


BUILD = os.environ.get("EDDY_BUILD", "build")


class Failed(Exception):
    """Something that was to be measured did not work; the message says what."""


def tool(name):
    """The path of what the build has by this name."""
    path = os.path.join(BUILD, name)
    if not os.access(path, os.X_OK):
        raise Failed(f"{path} is not there: build eddyfs first, or set EDDY_BUILD")
    return os.path.realpath(path)


TICKS = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """/proc/PID/stat from the third field on."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()


def cpu_seconds(pid):
    """Of all threads of the process, also those that have ended."""
    fields = stat_of(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def thread_switches(pid):
    """How often the process's present threads have waited for something."""
    found = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{task}/status") as f:
            found += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches:"))
    return found


def start_time(pid):
    """When the process was started, in ticks: with its number, that names it for ever."""
    return stat_of(pid)[19]


def is_mounted(path):
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == path for line in f)


def wait_until(condition, seconds, step=0.02):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


class Work:
    """The directory is on a disk: caches on tmpfs would compare memory with memory."""

    def __init__(self, base):
        if not base:
            base = os.environ.get("TMPDIR", "/tmp")
            kind = subprocess.check_output(["stat", "-f", "-c", "%T", base], text=True).strip()
            base = "/var/tmp" if kind == "tmpfs" else base
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="eddy-bench.", dir=base))
        # Where eddy finds the mounts of this run, and nobody else's.
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.make("run"), TMPDIR=self.path("run"))

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def make(self, *names):
        path = self.path(*names)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self, path):
        """A tree of this directory; a mount in it is never entered."""
        subprocess.run(["rm", "-rf", "--one-file-system", path], check=True)

    def note(self, file, line):
        with open(self.path(file), "a") as f:
            f.write(line + "\n")

    def start(self, argv, log):
        """A daemon, in a session of its own: Ctrl-C is for the bench, which then ends it."""
        with open(log, "ab") as out:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env=self.env, start_new_session=True)
        self.note(".processes", f"{process.pid} {start_time(process.pid)}")
        return process

    def start_mount(self, argv, mount):
        """The same for a daemon that mounts; returns when its mount is there."""
        os.makedirs(mount, exist_ok=True)
        self.note(".mounts", mount)
        log = mount + ".log"
        process = self.start(argv, log)
        wait_until(lambda: is_mounted(mount) or process.poll() is not None, 60)
        if not is_mounted(mount):
            with open(log) as f:
                raise Failed(f"{os.path.basename(argv[0])} does not mount: {f.read()[-400:].strip()}")
        os.statvfs(mount)
        return process

    def stop_mount(self, process, mount):
        """As a user unmounts; what does not end within 30 s is killed."""
        if is_mounted(mount) and not unmount(mount):
            unmount(mount, "-z")
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self):
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        subprocess.run(["bash", "-c", '. "$1" && clear_work_dir "$2"', "clear", CLEANUP, self.dir])


def unmount(mount, *options):
    return subprocess.run(["fusermount3", "-u", *options, mount], stderr=subprocess.DEVNULL).returncode == 0


def run(argv, **more):
    """A command whose output is wanted. Raises Failed with its last words."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise Failed(f"{os.path.basename(argv[0])} ended with {done.returncode}: {said}")
    return done.stdout


def need(*commands):
    return [c for c in commands if not shutil.which(c)]
