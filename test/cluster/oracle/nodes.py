"""The nodes: daemons with a mount each, over one directory that is the PFS. Or, with --native, none: all nodes' mounts
are one plain directory, to show that what the oracle finds wrong is the file system's doing.
"""

import json
import os
import signal
import subprocess
import time

from worker import Worker, die_with_parent

START_SECONDS = 60
JOIN_SECONDS = 60
EDDY_SECONDS = 150
CLAIM_SECONDS = 2
STAGED = (0, 1, 5, 6, 124)  # all; no memory, or too many of them; some of it; it does not fit; the time is over
CONFLICT = ".eddy-conflict-"


class Broken(Exception):
    """A daemon does not do what every test relies on; the text says what."""


def wait_for(seconds, condition, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Broken(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Native:
    """Nodes that are none."""

    def __init__(self, work, config, make_player):
        self.config, self.nodes = config, range(config["nodes"])
        self.pfs = os.path.join(work, "pfs")
        os.makedirs(self.pfs, exist_ok=True)
        self.workers = [Worker(node, make_player) for node in self.nodes]

    def start(self):
        for worker in self.workers:
            worker.start()

    def has_lost_workers(self):
        return any(w.hangs or not w.process.is_alive() for w in self.workers)

    def replace_workers(self):
        """Of those that were ended; False if one hangs, as then its daemon may."""
        for worker in self.workers:
            if worker.hangs:
                return False
            if not worker.process.is_alive():
                worker.end()
                worker.start()
        return True

    def mount_of(self, node):
        return self.pfs

    def flush(self, nodes):
        """What eddy flush says if it fails."""
        return None

    def hint(self, node, below, paths, start):
        """A queue of these, in place of the node's last one."""

    def stage(self, node, below, paths, how):
        """What is wrong with how eddy stage ends."""
        return None

    def wait_for_claims(self, nodes, most):
        """README: a change from outside is seen when no node has the file open for writing, and a close is told a moment late."""

    def is_anything_lent(self, nodes):
        return False

    def kill(self, node):
        self.workers[node].call("close_all", node)

    def unmount(self, node):
        return None

    def mount(self, node):
        pass

    def wait_until_joined(self, up, dead=frozenset()):
        pass

    def end(self):
        for worker in self.workers:
            worker.end()

    def logs(self):
        return ""


class Daemons(Native):
    def __init__(self, work, config, make_player, build, options):
        super().__init__(work, config, make_player)
        self.work, self.build, self.options = work, os.path.abspath(build), options
        self.process = {}
        self.hints = {}  # the process that gives them, of a node
        self.kept = 0  # how many of the workers' processes have been ended
        for node in self.nodes:
            os.makedirs(self.mount_of(node), exist_ok=True)
            self.record("mounts", self.mount_of(node))

    def record(self, what, line):
        """Where cleanup.sh ends what a test that was killed has left."""
        with open(os.path.join(os.path.dirname(self.work), "." + what), "a") as f:
            f.write(line + "\n")

    def record_process(self, pid):
        with open(f"/proc/{pid}/stat") as f:
            self.record("processes", f"{pid} {f.read().rpartition(')')[2].split()[19]}")

    def mount_of(self, node):
        return os.path.join(self.work, f"mnt-{node}")

    def path(self, node, what):
        return os.path.join(self.work, f"{what}-{node}")

    def command(self, node):
        config = self.config
        options = ["--flush", config["flush"], "--flush-wait", config["flush_wait"], "--cache-size",
                   config["cache_size"], "--chunk-size", "64K", "--attr-timeout", config["attr_timeout"],
                   "--fsync", config["fsync"]]
        if not config["passthrough"]:
            options.append("--no-passthrough")
        return [os.path.join(self.build, "eddyfs"), "-f", "--node", f"n{node}", "--listen", "127.0.0.1", "--session",
                "oracle", "--cache-dir", self.path(node, "cache"), "--log", self.path(node, "log"),
                *map(str, options), *self.options, self.pfs, self.mount_of(node)]

    def start(self):
        for node in self.nodes:
            self.launch(node)
        for node in self.nodes:
            self.wait_until_mounted(node)
        self.wait_until_joined(set(self.nodes))
        super().start()

    def launch(self, node):
        with open(self.path(node, "out"), "a") as out:
            self.process[node] = subprocess.Popen(self.command(node), stdout=out, stderr=out, cwd="/",
                                                  preexec_fn=die_with_parent)
        self.record_process(self.process[node].pid)

    def wait_until_mounted(self, node):
        wait_for(START_SECONDS, lambda: self.answers(node), f"node {node} mounts")

    def answers(self, node):
        """A dead mount fails statfs; a new daemon clears it, and then the plain directory answers."""
        if self.process[node].poll() is not None:
            raise Broken(f"the daemon of node {node} ended by itself with {self.process[node].returncode}")
        try:
            os.statvfs(self.mount_of(node))
            return os.stat(self.mount_of(node)).st_dev != os.stat(self.work).st_dev
        except OSError:
            return False

    def mount(self, node):
        self.launch(node)
        self.wait_until_mounted(node)

    def eddy(self, *words):
        return subprocess.run([os.path.join(self.build, "eddy"), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=EDDY_SECONDS)

    def wait_until_joined(self, up, dead=frozenset()):
        """All that are up are in one view, and nobody is missing but the dead."""
        may_miss = {f"n{node}" for node in dead - up}
        for node in up:
            wait_for(JOIN_SECONDS, lambda: self.has_joined(node, len(up), may_miss),
                     f"node {node} takes part with {len(up)} nodes")

    def has_joined(self, node, count, may_miss):
        status = self.eddy("status", "--json", self.mount_of(node))
        if status.returncode:
            return False
        status = json.loads(status.stdout)
        view = status["view"]
        missing = {absent["name"] for absent in status["absent"]}
        return view["joined"] and view["lease"] and len(status["members"]) == count and missing <= may_miss

    def flush(self, nodes):
        for node in nodes:
            ended = self.eddy("flush", self.mount_of(node))
            if ended.returncode:
                return f"eddy flush of node {node} ended with {ended.returncode}: {ended.stdout.strip()}"
        return None

    def wait_for_claims(self, nodes, most):
        until = time.monotonic() + CLAIM_SECONDS  # a file without a name may keep its claim
        while sum(s["claims"] for s in self.status(nodes)) > most and time.monotonic() < until:
            time.sleep(0.02)

    def hint(self, node, below, paths, start):
        self.end_hints(node)
        if paths:
            at = os.path.join(self.mount_of(node), below)
            self.hints[node] = subprocess.Popen(
                [os.path.join(self.build, "eddy"), "hint", *([] if start else ["--no-start"]), "--",
                 *(os.path.join(at, p) for p in paths)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                preexec_fn=die_with_parent)
            self.record_process(self.hints[node].pid)

    def end_hints(self, node):
        process = self.hints.pop(node, None)
        if process:
            process.kill()
            process.wait()

    def stage(self, node, below, paths, how):
        at = os.path.join(self.mount_of(node), below)
        words = ["unstage"] if how == "unstage" else ["stage", *how.split()]
        ended = self.eddy(*words, "--", *(os.path.join(at, p) for p in paths))
        return f"{words} ended with {ended.returncode}: {ended.stdout.strip()}" if ended.returncode not in STAGED else None

    def is_anything_lent(self, nodes):
        return any(status["loans"]["lent_files"] for status in self.status(nodes))

    def status(self, nodes):
        return [json.loads(self.eddy("status", "--json", self.mount_of(node)).stdout) for node in nodes]

    def kill(self, node):
        self.process[node].kill()
        self.process[node].wait()
        self.workers[node].call("close_all", node)
        subprocess.run(["fusermount3", "-uz", self.mount_of(node)], check=True)

    def unmount(self, node):
        ended = self.eddy("umount", self.mount_of(node))
        if ended.returncode:
            return f"eddy umount of node {node} ended with {ended.returncode}: {ended.stdout.strip()}"
        code = self.process[node].wait(60)
        return f"the daemon of node {node} ended with {code}" if code else None

    def end(self):
        """At once, whatever state they are in."""
        for node in self.nodes:
            self.end_hints(node)
        for process in self.process.values():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        super().end()
        for node in self.nodes:
            if os.path.ismount(self.mount_of(node)) or self.is_dead_mount(node):
                subprocess.run(["fusermount3", "-uz", self.mount_of(node)], stderr=subprocess.DEVNULL, check=False)

    def is_dead_mount(self, node):
        try:
            os.stat(self.mount_of(node))
        except OSError:
            return True
        return False

    def logs(self):
        text = []
        for node in self.nodes:
            for path in (self.path(node, "out"), self.path(node, "log")):
                if os.path.exists(path):
                    with open(path, errors="replace") as f:
                        lines = [line for line in f if " info: " not in line][-8:]
                    text += [f"    {line}" for line in lines]
        return "".join(text)
