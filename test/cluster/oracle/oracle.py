#!/usr/bin/env python3
"""Random operations on several nodes against an oracle: see usage below."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import plant  # noqa: E402
import replay  # noqa: E402
from compare import Deviation  # noqa: E402
from config import LANES, config_of, lane_of  # noqa: E402
from generate import Generator  # noqa: E402
from known_wrong import is_known  # noqa: E402
from nodes import Broken, Daemons, Native  # noqa: E402
from pfs import compare_trees  # noqa: E402
from run import Failure, Run  # noqa: E402
from say import program  # noqa: E402
from shrink import Shrink  # noqa: E402
from worker import Gone  # noqa: E402

USAGE = """oracle.py [options] [-- EDDYFS_OPTION...]

  --build DIR       where eddyfs and eddy are ($EDDY_BUILD)
  --native          no daemons: all nodes' mounts are one plain directory (nothing may be found)
  --seeds N         how many (24), from --first N on (0); seed S has the modes of config.py
  --ops N           operations of a seed, without looks (200)
  --seconds N       begin no other seed after that time
  --all             also what known_wrong.py lists
  --faults, --no-faults
                    kill, unmount and start nodes in all seeds, or in none (by the seed)
  --shared          user.eddy.shared=always on all files, of which several nodes have most open for writing
  --replay FILE     do what that file says, again
  --findings DIR    write a replay file there for each seed that fails
  --keep-going N    go on until N seeds have failed (1)
  --shrink N        seconds for shortening a failing list (120, with --replay 0: not at all)
  --plant NAME      what a node is to do wrong: the test of this test (plant.py)
  --work DIR        below it everything is made (a new directory in $TMPDIR, removed when it ends)
  --keep            leave there the logs, caches and directories of all nodes, also when they have ended
  --json FILE       the summary, as JSON

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage, 3 the daemons did not start, or not end.
"""

TRIES = 4  # to see a failure again
OUTLASTS = ("result/flush", "result/umount", "pfs/")  # its directory: the daemons are of no use any more
RUNS = 60  # lists on the same daemons while one is shortened


class Oracle:
    def __init__(self, options):
        self.options = options
        self.cluster = None
        self.failures = []
        self.numbers = {"seeds": 0, "operations": 0, "looks": 0, "kills": 0, "unmounts": 0, "starts": 0}
        self.known = {}
        self.directories = 0
        self.began = time.monotonic()

    # ---- daemons ----

    def start(self, config):
        """Nodes of these modes, on caches and a PFS of their own."""
        self.stop()
        self.directories += 1
        work = os.path.join(self.options.work, f"lane-{self.directories}")
        os.makedirs(work)
        player = plant.player_of(self.options.plant)
        if self.options.native:
            self.cluster = Native(work, config, player)
        else:
            self.cluster = Daemons(work, config, player, self.options.build, self.options.eddyfs_options)
        self.cluster.work = work
        self.runs = 0
        self.cluster.start()

    def stop(self):
        if self.cluster:
            self.cluster.end()
            if not self.options.keep:
                shutil.rmtree(self.cluster.work, ignore_errors=True)
            self.cluster = None

    def once(self, config, source):
        """One list of operations, in a directory of its own: (Run, Failure or None)."""
        self.runs += 1
        run = Run(self.cluster, config, f"s{config['seed']}.{self.runs}", self.options.all)
        return run, run.run(source)

    # ---- seeds ----

    def config_of(self, seed):
        config = config_of(seed)
        if self.options.faults is not None:
            config["faults"] = self.options.faults
        if self.options.shared:
            config.update(shared=True, profile="shared", sizes="chunks")
        return config

    def run_lane(self, seeds):
        """Those of one lane; at the end all nodes are unmounted."""
        self.start(self.config_of(seeds[0]))
        done = []
        for seed in seeds:
            if self.is_over():
                break
            config = self.config_of(seed)
            run, failure = self.once(config, Generator(config, self.options.ops, self.options.all))
            self.count(run)
            if failure is None:
                done.append(run)
            else:
                self.failed(config, failure)
                if not self.is_over():
                    done = self.go_on(config, run, failure, done)
        self.finish_lane(done)

    def go_on(self, config, run, failure, done):
        """On the same daemons, if what was wrong does not outlast its directory. The runs that the end is to look at."""
        if not self.options.shrink and failure.key.startswith(("other/", "same/")):
            try:
                run.end()
                return done
            except (Broken, Gone, OSError):
                pass
        self.start(config)
        return []

    def finish_lane(self, runs):
        """All nodes are unmounted; then the PFS is compared once more."""
        if not runs:
            return
        for node in self.cluster.nodes:
            wrong = self.cluster.unmount(node)
            if wrong:
                seeds = ", ".join(str(run.config["seed"]) for run in runs)
                self.wrong_at_end(runs[-1], [Deviation("result/umount", f"umount after seeds {seeds}", "0", wrong)])
                return
        for run in runs:
            self.wrong_at_end(run, compare_trees(run.model, run.outside.root, run.facts, run.ops))

    def wrong_at_end(self, run, found):
        found = [d for d in found if not run.is_known(d)]
        if found:
            self.report(run.config, Failure(len(run.ops) - 1, run.ops, found), self.cluster.logs())

    def is_over(self):
        late = self.options.seconds and time.monotonic() - self.began > self.options.seconds
        return late or len(self.failures) >= self.options.keep_going

    def count(self, run):
        n = self.numbers
        n["seeds"] += 1
        n["looks"] += run.count.pop("look", 0)
        n["operations"] += sum(run.count.values())
        n["kills"] += run.count.get("kill", 0)
        n["unmounts"] += run.count.get("umount", 0)
        n["starts"] += run.count.get("restart", 0) + run.count.get("mount", 0)
        for key, count in run.known.items():
            self.known[key] = self.known.get(key, 0) + count

    def failed(self, config, failure):
        text = f"after {failure.index + 1} operations and looks: {failure.deviations[0].key}: {failure.deviations[0]}"
        print(f"seed {config['seed']}: WRONG {text}", flush=True)
        logs = self.cluster.logs()
        if self.options.shrink:
            failure = self.shortened(config, failure)
        self.report(config, failure, logs)

    def shortened(self, config, failure):
        best, tries = [failure], [TRIES]

        def fails(ops):
            for _ in range(tries[0]):
                if self.runs > RUNS or best[0].key.startswith(OUTLASTS):
                    self.start(config)
                again = self.try_again(config, ops)
                if again and again.key == failure.key:
                    best[0] = again
                    return again.ops[:again.index + 1]
            return None
        self.start(config)
        shrink = Shrink(fails, self.options.shrink)
        ops = failure.ops[:failure.index + 1]
        first = self.runs
        again = fails(ops)
        tries[0] = max(1, self.runs - first)  # so many it takes
        if again is None:
            print("  it does not fail so again: the whole list is kept", flush=True)
            return failure
        shrink.run(ops)
        print(f"  {len(ops)} operations and looks, {len(best[0].ops)} after {shrink.tries} tries", flush=True)
        return best[0]

    def try_again(self, config, ops):
        try:
            run, failure = self.once(config, replay.Replay(ops))
            if failure is None or not self.cluster.has_lost_workers():
                run.end()
            elif not self.cluster.replace_workers():
                self.start(config)
            return failure
        except (Broken, Gone, OSError) as e:
            print(f"  {e}", flush=True)
            self.start(config)
            return None

    def report(self, config, failure, more):
        self.failures.append((config["seed"], failure.key))
        modes = " ".join(f"{k}={v}" for k, v in config.items())
        text = f"seed {config['seed']} ({modes}):\n{program(failure)}\n"
        print(text + more, flush=True)
        if self.options.findings:
            os.makedirs(self.options.findings, exist_ok=True)
            name = f"{config['seed']:05}-{failure.key.replace('/', '-')}.ops"
            replay.write(os.path.join(self.options.findings, name), config, failure, text)

    def run(self):
        if self.options.replay:
            return self.run_replay()
        seeds = range(self.options.first, self.options.first + self.options.seeds)
        lanes = {}
        for seed in seeds:
            lanes.setdefault(lane_of(seed), []).append(seed)
        for lane in lanes:
            if not self.is_over():
                self.run_lane(lanes[lane])
        self.stop()
        return 1 if self.failures else 0

    def run_replay(self):
        """What is known to be wrong counts in a list that is kept for it."""
        config, key, ops = replay.read(self.options.replay)
        self.options.all |= is_known(key)
        self.start(config)
        run, failure = self.once(config, replay.Replay(ops))
        self.count(run)
        if failure is None:
            self.finish_lane([run])
        else:
            print(f"it failed with {key} when the file was made, now with {failure.key}", flush=True)
            self.failed(config, failure)
        self.stop()
        return 1 if self.failures else 0

    def summary(self):
        seconds = time.monotonic() - self.began
        n = self.numbers
        print(f"oracle: {n['seeds']} seeds, {n['operations']} operations and {n['looks']} looks, "
              f"{n['kills']} nodes killed, {n['unmounts']} unmounted, {n['starts']} started again, {len(self.failures)} seeds wrong, "
              f"{sum(self.known.values())} known deviations, {seconds:.0f} s "
              f"({(n['operations'] + n['looks']) / max(seconds, 0.001):.0f} operations and looks a second)")
        for key, count in sorted(self.known.items()):
            print(f"  known: {count} {key}")
        if self.options.json:
            with open(self.options.json, "w") as f:
                json.dump({**n, "seconds": seconds, "known": self.known,
                           "wrong": [{"seed": s, "key": k} for s, k in self.failures]}, f, indent=1)


def parse():
    parser = argparse.ArgumentParser(usage=USAGE, add_help=False)
    parser.add_argument("--build", default=os.environ.get("EDDY_BUILD"))
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--seeds", type=int, default=LANES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ops", type=int, default=200)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--faults", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--replay")
    parser.add_argument("--findings")
    parser.add_argument("--keep-going", type=int, default=1)
    parser.add_argument("--shrink", type=float)
    parser.add_argument("--plant", choices=plant.NAMES)
    parser.add_argument("--work")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("eddyfs_options", nargs="*")
    options = parser.parse_args()
    if not options.native and not options.build:
        parser.error("--build DIR, or --native")
    if options.shrink is None:
        options.shrink = 0 if options.replay else 120
    return options


def main():
    options = parse()
    made = None
    if not options.work:
        made = options.work = tempfile.mkdtemp(prefix="oracle.", dir=os.environ.get("TMPDIR", "/tmp"))
    os.environ.setdefault("XDG_RUNTIME_DIR", options.work)
    os.umask(0o022)
    oracle = Oracle(options)
    code = 3
    try:
        code = oracle.run()
    except Broken as e:
        print(f"oracle: {e}\n{oracle.cluster.logs() if oracle.cluster else ''}")
        code = 1 if oracle.failures else 3
    finally:
        oracle.stop()
        oracle.summary()
        if made and not options.keep:
            shutil.rmtree(made, ignore_errors=True)
    sys.exit(code)


main()
