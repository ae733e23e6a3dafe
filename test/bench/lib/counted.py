"""A node's mount of the PFS, which counts what that node reads: test/faultfs."""
import json
import signal

from lib.work import Failed, tool, wait_until


class Pfs:
    def __init__(self, work, name, below, *options):
        self.work, self.mount, self.stats = work, work.path("pfs-" + name), work.path("pfs-" + name + ".json")
        self.process = work.start_mount([tool("test/faultfs"), "-f", *options, "--stats", self.stats, below, self.mount], self.mount)

    def counters(self):
        with open(self.stats) as f:
            return json.load(f)

    def read_bytes(self, below):
        """Of the files whose paths begin with that; so without those of the session."""
        before = self.counters()["asked"]
        self.process.send_signal(signal.SIGUSR1)
        if not wait_until(lambda: self.counters()["asked"] > before, 10):
            raise Failed("faultfs writes no counters")
        return sum(f["read_bytes"] for path, f in self.counters()["files"].items() if path.startswith(below))

    def stop(self):
        self.work.stop_mount(self.process, self.mount)
