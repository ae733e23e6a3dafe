#!/usr/bin/env python3
"""Crashes, and what is left: see usage below.

Every lane is a node with a session, a PFS directory and writers of its own; lanes run beside each
other, as a node that comes back waits some seconds before it grants anything. A round of a lane:
writers work on their files, the crash comes at a random instant, the node starts again (now and
then it is killed once more meanwhile), and every file is compared. Meanwhile the files are hinted and
staged, in any order; what asks for that is killed, too. Rounds build on each other.
"""
import argparse
import json
import multiprocessing
import os
import random
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from model import Files, Wrong  # noqa: E402
from node import Disk, Node, die_with_parent, wait_for  # noqa: E402
from writer import Writer, replay  # noqa: E402

FORK = multiprocessing.get_context("fork")  # what Python does by itself before 3.14

USAGE = """run.py --work DIR --pfs DIR --eddyfs PROGRAM --eddy PROGRAM [options] [-- EDDYFS_OPTION...]

  --below DIR       the PFS behind --pfs, for comparing (the same directory)
  --rounds N        of all lanes together (50)
  --lanes N         nodes that run beside each other (10)
  --writers N       for each node (2)
  --seed N          chooses what is done, and when the crashes come (random)
  --power-cut       the crash is a power cut of the cache's disk; needs root, and
  --boot-id FILE    what the daemons read as the boot id: it is changed with each cut

Writes records of what was acknowledged to DIR/nLANE/record.ROUND.WRITER. Exit codes: 0 nothing was lost, 1 something
was, or failed; the seed and the lane's number are said.
"""
FLUSH_WAITS = (0, 0.05, 0.3, 1, 60)
WRITER_SECONDS = 90
CONFLICT = ".eddy-conflict-"
LISTED_SECONDS = 5  # the list of dirty files in the session directory may be so old on a busy machine


class Lane:
    def __init__(self, options, number, rounds):
        self.options, self.number, self.rounds = options, number, rounds
        self.random = random.Random(f"{options.seed}.{number}")
        self.node = Node(options, number)
        self.disk = Disk(options, self.node) if options.power_cut else None
        self.files = [Files() for _ in range(options.writers)]
        self.operations = self.lost = 0

    # ---- a round ----

    def run(self):
        self.node.start(self.flush_wait())
        self.node.wait_until_mounted()
        for number in range(self.rounds):
            self.round(number)
        self.finish(self.node.unmount())

    def flush_wait(self):
        return self.random.choice(FLUSH_WAITS)

    def round(self, number):
        go_on, leave = FORK.Event(), FORK.Event()
        writers = [self.start_writer(number, w, go_on, leave) for w in range(len(self.files))]
        told = self.tell()
        early = self.random.random() < 0.5  # descriptors are closed before the node is back
        self.let_them_work(number)
        self.crashed = self.crash()
        time.sleep(self.random.choice((0, 0.005)))  # the kernel's writers go on
        go_on.set()
        for process in told:
            process.kill()
            process.wait()
        if early or self.disk:
            self.end_writers(writers, leave)
        wait_for(WRITER_SECONDS, lambda: all(self.has_ended(number, w) for w in range(len(writers))),
                 "the writers end")
        for w, files in enumerate(self.files):
            self.operations += replay(self.record_path(number, w), files, self.crashed)
        self.recover()
        self.check()
        self.end_writers(writers, leave)
        if self.random.random() < 0.4:
            self.flush()

    def tell(self):
        """Queues of what there was when the round began, and of names that may come; and now and then a stage."""
        names = [name for files in self.files for name in files.by_name] + [f"w{w}.{n}" for w in range(2) for n in range(9)]
        told = []
        for how in ("hint", "hint", self.random.choice(("--here --wait", "--spread --pin", "--here --pin=1s"))):
            if self.random.random() < 0.6:
                told.append(self.node.tell(self.random.choices(names, k=self.random.randrange(1, 20)), how))
        return told

    def record_path(self, number, w):
        return os.path.join(self.node.own, f"record.{number}.{w}")

    def start_writer(self, number, w, stop, leave):
        label = f"{self.options.seed}.{self.number}.{number}.{w}"
        path = self.record_path(number, w)

        def work():
            die_with_parent()
            Writer(self.node.mount, f"w{w}", label, self.files[w], path).run(stop)
            open(path + ".ended", "w").close()
            leave.wait()
            os._exit(0)
        process = FORK.Process(target=work, daemon=True)
        process.start()
        return process

    def has_ended(self, number, w):
        return os.path.exists(self.record_path(number, w) + ".ended")

    def end_writers(self, writers, leave):
        leave.set()
        for process in writers:
            process.join(WRITER_SECONDS)
            if process.is_alive():
                raise Wrong("a writer does not end")

    def works(self, number):
        """Something was acknowledged: the node grants again what it does not while it returns."""
        try:
            with open(self.record_path(number, 0)) as f:
                return '"at"' in f.read()
        except FileNotFoundError:
            return False

    def let_them_work(self, number):
        if self.random.random() < 0.9:
            wait_for(60, lambda: self.works(number), "a first operation is acknowledged")
        longest = (0.1, 1, 5) if self.disk else (0.03, 0.4, 1.5)
        end = time.monotonic() + self.random.choice(longest) * self.random.random()
        while self.disk and time.monotonic() < end:
            self.disk.write_something_back()
        time.sleep(max(0, end - time.monotonic()))

    def crash(self):
        crashed = self.node.kill()
        if self.disk:
            self.disk.cut()
        return crashed

    # ---- after it ----

    def recover(self):
        if self.disk:
            os.system(f"umount -l {self.node.mount}")
            self.disk.power_on()
        while self.random.random() < 0.2 and not self.disk:
            self.node.start(self.flush_wait())
            time.sleep(self.random.random() * 0.2)
            self.node.kill()
        self.node.start(self.flush_wait())
        self.node.wait_until_mounted()

    def read(self, name):
        with open(os.path.join(self.node.mount, name), "rb") as f:
            try:
                data = f.read()
            except OSError as e:
                raise Wrong(f"{name}: it can not be read: {e}")
            if os.fstat(f.fileno()).st_size != len(data):
                raise Wrong(f"{name}: {len(data)} bytes read, its size is {os.fstat(f.fileno()).st_size}")
        return data

    def check(self):
        listing = [n for n in os.listdir(self.node.mount) if n[0] == "w"]
        lines = self.node.new_log_lines()
        suspects = self.suspects() if self.disk else ()
        for w, files in enumerate(self.files):
            own = [n for n in listing if n.startswith(f"w{w}.")]
            names = files.find_names(self.take_returned(files, own, lines) if self.disk else own)
            lost = files.check(names, self.read, bool(self.disk), suspects)
            self.check_named(lost, lines, suspects)
            files.survived(names, self.read)
        if not self.disk:
            errors = [line for line in lines if " error: " in line and not self.is_gone(line)]
            if errors:
                raise Wrong("the log has errors:\n" + "\n".join(errors))

    def take_returned(self, files, listing, lines):
        """A power cut may take the note that a file was replaced on purpose: what it had is beside its successor
        then, and named. Gives the other names."""
        for name in [n for n in listing if CONFLICT in n]:
            base = name.partition(CONFLICT)[0]
            if not any(f"conflict: {base}: " in line and name in line for line in lines):
                raise Wrong(f"{name}: nothing names it")
            holes = any(f"conflict: {name}: " in line and ": holes" in line for line in lines)
            files.check_returned(base, self.read(name), holes)
            os.unlink(os.path.join(self.node.mount, name))
        return [n for n in listing if CONFLICT not in n]

    def is_gone(self, line):
        """A power cut may take the note that it was removed on purpose."""
        return self.disk and ("No such file or directory" in line or "Stale file handle" in line)

    def check_named(self, lost, lines, suspects):
        """By the log, or as suspect."""
        self.lost += len(lost)
        named = "\n".join(line for line in lines if "power loss: " in line)
        named += "\n".join(suspects)
        for file in lost:
            young = all(r.done > self.crashed - LISTED_SECONDS for r in file.since)
            if not young and not any(name in named for name in file.names):
                raise Wrong(f"{file.names[-1]} has lost something, and nothing names it:\n    " +
                            "\n    ".join(str(r) for r in file.since) + "\n" + named)

    def suspects(self):
        status = self.node.eddy("status", "--json", self.node.mount)
        failed = json.loads(status.stdout)["flush"]["failed_files"]
        return [f["path"] for f in failed if f["suspect"]]

    def flush(self):
        self.finish(self.node.eddy("flush", self.node.mount))

    def finish(self, ended):
        """All is on the PFS; if not, only what is suspect, or gone, is named.

        A file that a crash met while it was renamed may be known by its old name. It is named by
        that one, kept, and flushed when somebody looks at it.
        """
        named = [line for line in ended.stdout.splitlines() if not line.startswith("eddy: ")]
        bad = [line for line in named if "suspect after a power loss" not in line and not self.is_gone(line)]
        if bad or ended.returncode != (3 if named else 0):
            raise Wrong(f"eddy ended with {ended.returncode}: {ended.stdout}")
        self.compare(self.node.truth, {line.split(":")[0] for line in named})

    def compare(self, directory, named):
        """What was not named is on the PFS, byte for byte."""
        for files in self.files:
            for name, file in files.by_name.items():
                if file.all_names & named:
                    continue
                with open(os.path.join(directory, name), "rb") as f:
                    if f.read() != file.data:
                        raise Wrong(f"{name}: the PFS has something else")

    def close(self):
        self.node.close()
        if self.disk:
            self.disk.close()


def run_lane(options, number, rounds, results):
    die_with_parent()
    lane = None
    try:
        lane = Lane(options, number, rounds)
        lane.run()
        results.put((number, lane.operations, lane.lost, None))
    except Wrong as e:
        results.put((number, 0, 0, f"{e}\n" + lane.node.end_of_log()))
    except BaseException:
        results.put((number, 0, 0, traceback.format_exc() + (lane.node.end_of_log() if lane else "")))
    finally:
        if lane:
            lane.close()


def parse():
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False)
    for name in ("--work", "--pfs", "--eddyfs", "--eddy"):
        parser.add_argument(name, required=True)
    parser.add_argument("--below")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--lanes", type=int, default=10)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--power-cut", action="store_true")
    parser.add_argument("--boot-id")
    parser.add_argument("eddyfs_options", nargs="*")
    return parser.parse_args()


def main():
    options = parse()
    print(f"crash: seed {options.seed}, {options.rounds} rounds in {options.lanes} lanes", flush=True)
    results = FORK.Queue()
    began = time.monotonic()
    lanes = []
    for number in range(options.lanes):
        rounds = options.rounds // options.lanes + (number < options.rounds % options.lanes)
        lanes.append(FORK.Process(target=run_lane, args=(options, number, rounds, results)))
        lanes[-1].start()
    ended = [results.get() for _ in lanes]
    for lane in lanes:
        lane.join()
    failed = [(number, why) for number, _, _, why in ended if why]
    for number, why in sorted(failed):
        print(f"lane {number} (again with --seed {options.seed}): {why}")
    print(f"crash: {sum(e[1] for e in ended)} operations acknowledged, {sum(e[2] for e in ended)} files lost what no "
          f"fsync covered, {len(failed)} lanes failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


main()
