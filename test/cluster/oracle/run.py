"""One list of operations, done on the nodes and on the model, compared after each."""

import os
import time

from compare import Deviation, Judge, judge_result, short
from known_wrong import is_known, is_made
from model import OUTSIDE, Facts, Model
from nodes import Broken
from pfs import compare_trees
from player import Player
from say import which_bytes
from worker import Gone

SLACK = 0.3     # seconds beyond --attr-timeout: the machine is busy
POLL = 0.004
RETURN_SECONDS = 10  # in which a node gives back what it has written of another one's file, when that is flushed
LOCK_SECONDS = 2
ASPECTS = {"file": ("stat", "xattrs", "open", "fstat", "end", "pos", "bytes", "map", "direct"),
           "dir": ("stat", "xattrs", "list"), "link": ("stat", "link"), None: ("stat",)}


class Failure:
    def __init__(self, index, ops, deviations):
        self.index, self.ops, self.deviations = index, ops, deviations
        self.key = deviations[0].key


class Run:
    def __init__(self, cluster, config, name, strict):
        self.cluster, self.config, self.name, self.strict = cluster, config, name, strict
        self.model = Model(os.path.join(cluster.work, "model", name))
        self.facts = Facts(self.model, float(config["attr_timeout"]) + SLACK, config["passthrough"])
        self.outside = Player(os.path.join(cluster.pfs, name))
        self.up, self.down = set(cluster.nodes), set()
        self.ops = []
        self.count = {}
        self.known = {}  # deviations that are known: how many of each key

    # ---- the whole ----

    def run(self, source):
        """A Failure, or None."""
        os.makedirs(self.model.root)
        os.mkdir(self.outside.root)
        for node in self.cluster.nodes:
            self.cluster.workers[node].call("root", os.path.join(self.cluster.mount_of(node), self.name))
        if self.config.get("shared"):
            os.setxattr(os.path.join(self.cluster.mount_of(0), self.name), "user.eddy.shared", b"always")
        deviations = []
        while not deviations and (op := source.next(self)):
            self.ops.append(op)
            deviations = self.perform(op)
        if deviations:
            return Failure(len(self.ops) - 1, self.ops, deviations)
        self.end()
        return None

    def end(self):
        """All is closed, and runs."""
        for node in sorted(self.facts.dead | self.down):
            self.bring_back(node)
        for node in self.cluster.nodes:
            self.cluster.workers[node].call("close_all", node)
            self.model.close_all(node)

    def perform(self, op):
        """What deviates, and is not known to."""
        if not self.can(op):
            return []
        self.count[op["op"]] = self.count.get(op["op"], 0) + 1
        try:
            found = getattr(self, "run_" + op["op"], self.run_on_node)(op)
        except (Gone, Broken) as e:
            found = [Deviation(f"gone/{op['op']}", op["op"], "that it goes on", e)]
        for deviation in found:
            if self.is_known(deviation):
                self.known[deviation.key] = self.known.get(deviation.key, 0) + 1
        return [d for d in found if not self.is_known(d)]

    def is_known(self, deviation):
        return not self.strict and is_known(deviation.key)

    def can(self, op):
        """In a list that was shortened, an operation may lack what made it possible."""
        name, node = op["op"], op.get("node")
        if name in ("restart", "mount"):
            return node in (self.facts.dead if name == "restart" else self.down)
        if name in ("kill", "umount"):
            return node in self.up and len(self.up) > 1 and not self.facts.dead
        if name in ("check", "outside"):
            return not self.facts.dead
        if node is not None and node not in self.up:
            return False
        needed = {"open": (), "reopen": ("from_slot",)}.get(name, ("slot", "from_slot"))
        used = [(node, op[k]) for k in needed if k in op]
        return all(k in self.model.slots and (name == "close" or self.is_used(k)) for k in used)

    def is_used(self, key):
        """Not, if it has no name any more, and that is known to be wrong."""
        return self.strict or is_made("nameless") or self.model.has_name(key)

    # ---- an operation on a node ----

    def run_on_node(self, op):
        node = op["node"]
        self.free_slot(op)
        if op["op"] in ("append", "stream") and self.appends_untold((node, op.get("slot"))):
            op = {**op, "asks": True}
        paths = [op[k] for k in ("path", "to", "from_path") if k in op]
        unsettled = self.settle(node, paths)
        if unsettled:
            return unsettled
        has_name = all(self.model.has_name((node, op[k])) for k in ("slot", "from_slot") if k in op and
                       (node, op[k]) in self.model.slots)
        began = time.time_ns()
        got = self.cluster.workers[node].call("do", op)
        if self.is_excused(op, got):
            if op["op"] == "close":  # a descriptor is closed also by a close that fails
                self.model.do(op)
            return []
        expected = self.model.do(op)
        if op["op"] == "lock" and "ok" in expected:
            got = self.lock_again(op, got)
        self.facts.done(op, node, began)
        self.learn_inodes()
        self.drop_half_open(op, got, expected)
        return judge_result(op, expected, got, has_name)

    def lock_again(self, op, got):
        """README: an open file description lock ends a moment after the last close."""
        until = time.monotonic() + LOCK_SECONDS
        while got.get("err") == "EAGAIN" and time.monotonic() < until:
            time.sleep(0.01)
            got = self.cluster.workers[op["node"]].call("do", op)
        return got

    def appends_untold(self, key):
        slot = self.model.slots.get(key)
        return slot and "APPEND" in slot.flags and not self.facts.is_told_size(key)

    def learn_inodes(self):
        """Names are on the PFS at once; the nodes show its inode numbers."""
        for path, _ in self.model.new_names():
            ino, there = self.model.ino_at(path), self.outside.identity(self.outside.at(path))
            if ino is not None and not isinstance(there, str):
                self.facts.of(ino).there = there[0]

    def free_slot(self, op):
        if op["op"] in ("open", "reopen") and (op["node"], op["slot"]) in self.model.slots:
            self.run_on_node({"op": "close", "node": op["node"], "slot": op["slot"]})

    def drop_half_open(self, op, got, expected):
        """A descriptor that only one of the two has is of no use."""
        if op["op"] in ("open", "reopen") and ("ok" in got) != ("ok" in expected):
            close = {"op": "close", "node": op["node"], "slot": op["slot"]}
            if "ok" in got:
                self.cluster.workers[op["node"]].call("do", close)
            else:
                self.model.do(close)

    def is_excused(self, op, got):
        """README: EIO, where the latest bytes, or a lock, are on a node that left; and what Facts.may_fail says. Before a node that was
        killed counts as such its locks are locks as any (EAGAIN)."""
        error = "EIO" if op["op"] == "lock" and got.get("err") == "EAGAIN" else got.get("err")
        if error not in ("EIO", "ESTALE"):
            return False
        if op["op"] == "reopen" and error == "ESTALE" and self.is_replaced((op["node"], op["from_slot"])):
            return True
        inos = [self.model.ino_of_slot((op["node"], op[k])) for k in ("slot", "from_slot") if k in op and
                (op["node"], op[k]) in self.model.slots]
        for key in ("path", "to", "from_path"):
            if key in op and os.path.lexists(self.model.at(op[key])):
                inos += [self.model.ino_at(op[key]), self.model.ino_at(self.followed(op[key]))]
        return any(ino is not None and self.facts.may_fail(ino, error) for ino in inos)

    def is_replaced(self, key):
        """README: a file that somebody outside has replaced while it was open may not be opened again by its descriptor."""
        return self.facts.of(self.model.ino_of_slot(key)).replaced and not self.model.has_name(key)

    def followed(self, path):
        return os.path.relpath(os.path.realpath(self.model.at(path)), self.model.root)

    def settle(self, node, paths):
        """Waits until the node sees those names as they are, if another node has changed them just now."""
        wanted = set()
        for path in [*paths, *(self.followed(p) for p in paths)]:
            while path and not path.startswith(".."):
                wanted.add(path)
                path = os.path.dirname(path)
        until = max((max(self.facts.open_until(node, path)) for path in wanted), default=0)
        wanted = sorted(wanted)
        while until:
            late = time.monotonic() > until
            different = self.different_names(node, wanted)
            if not different:
                return []
            if late:
                return [Deviation("other/path/settle", f"names at node {node}", *different)]
            time.sleep(POLL)
        return []

    def different_names(self, node, paths):
        theirs = self.cluster.workers[node].call("identities", paths)
        for path, here, there in zip(paths, self.model.identities(paths), theirs):
            if isinstance(here, str) or isinstance(there, str):
                lost = there == "EIO" and not isinstance(here, str) and self.facts.may_be_lost(here[0])
                if here != there and not lost:
                    return (f"{path}: " + (here if isinstance(here, str) else "is there"),
                            there if isinstance(there, str) else "it is there")
            elif here[1] != there[1] or self.facts.of(here[0]).there not in (None, there[0]):
                return f"{path} has inode {self.facts.of(here[0]).there}", there[0]
        return None

    # ---- looks ----

    def run_look(self, op):
        op = self.possible_look(op)
        if not op["paths"] and not op["slots"]:
            return []
        worker = self.cluster.workers[op["node"]]
        while True:
            expected = self.model.look(op)
            began = time.monotonic()
            got = worker.call("look", op)
            found = Judge(self.facts, op["node"], began).judge(expected, got)
            wrong = [d for d in found if began > d.until]
            if wrong or all(self.is_known(d) for d in found):
                break
            time.sleep(POLL)
        for deviation in wrong:
            if deviation.seen and isinstance(deviation.got, str):
                seen = worker.call("seen", deviation.seen)
                deviation.got += which_bytes(self.model.seen[deviation.seen], seen, self.ops)
        return wrong

    def possible_look(self, op):
        paths, slots = {}, {}
        for path, aspects in op["paths"].items():
            aspects = [a for a in aspects if a in ASPECTS[self.model.type_at(path)]] or ["stat"]
            paths[path] = aspects
            ino = self.model.ino_at(path)
            if ino is not None and ("open" in aspects or "bytes" in aspects):
                self.facts.of(ino).not_opened.discard(op["node"])
        for slot, aspects in op["slots"].items():
            key = (op["node"], int(slot))
            if key not in self.model.slots or not self.is_used(key):
                continue
            if op["node"] not in self.facts.of(self.model.ino_of_slot(key)).not_opened:
                reads = "WRONLY" not in self.model.slots[key].flags
                maps = reads and (self.strict or is_made("map-kept"))
                slots[slot] = [a for a in aspects if (reads or a != "bytes") and (maps or a != "map")]
        return {**op, "paths": paths, "slots": slots}

    # ---- nodes ----

    def run_flush(self, op):
        failed = self.cluster.flush([op["node"]])
        self.facts.flushed(op["node"])
        return [Deviation("result/flush", "flush", "0", failed)] if failed else []

    def run_hint(self, op):
        self.cluster.hint(op["node"], self.name, op["paths"], op["start"])
        return []

    def run_stage(self, op):
        """It changes nothing that can be seen, whatever it says of these paths."""
        failed = self.cluster.stage(op["node"], self.name, op["paths"], op["how"])
        return [Deviation("result/stage", "stage", "that it ends as it is to", failed)] if failed else []

    def run_check(self, op):
        """All is flushed, and the PFS is as the model."""
        self.facts.returned_until = time.monotonic() + RETURN_SECONDS
        failed = wrong = []
        late = True
        while late and not failed and not wrong:
            failed = self.cluster.flush(sorted(self.up))
            self.facts.is_lent = self.cluster.is_anything_lent(self.up)
            began = time.monotonic()
            found = compare_trees(self.model, self.outside.root, self.facts, self.ops)
            wrong = [d for d in found if began > d.until]
            late = any(d.until == self.facts.returned_until for d in found)
        self.facts.returned_until = 0
        if failed:
            return [Deviation("result/flush", "flush", "0", failed)]
        for node in self.up:
            self.facts.flushed(node)
        self.facts.checked()
        return wrong

    def run_kill(self, op):
        self.close_nameless(op["node"])
        for key in [k for k in self.model.slots if k[0] == op["node"]]:
            self.facts.of(self.model.ino_of_slot(key)).add_writer(op["node"])  # it may hold a lock
        self.cluster.kill(op["node"])
        self.model.close_all(op["node"])
        self.up.discard(op["node"])
        self.facts.dead.add(op["node"])
        self.facts.forget_gone()
        return []

    def close_nameless(self, node):
        """What has no name goes with the node that has its bytes."""
        for key in sorted(self.model.slots):
            if key[0] != node and not self.model.has_name(key):
                close = {"op": "close", "node": key[0], "slot": key[1]}
                self.cluster.workers[key[0]].call("do", close)
                self.model.do(close)

    def run_restart(self, op):
        self.bring_back(op["node"])
        return []

    run_mount = run_restart

    def bring_back(self, node):
        self.cluster.mount(node)
        self.up.add(node)
        self.cluster.wait_until_joined(self.up, self.facts.dead)
        self.facts.dead.discard(node)
        self.down.discard(node)

    def run_umount(self, op):
        node = op["node"]
        self.close_nameless(node)
        self.cluster.workers[node].call("close_all", node)
        self.model.close_all(node)
        self.facts.forget_gone()
        failed = self.cluster.unmount(node)
        if failed:
            return [Deviation("result/umount", "umount", "0", failed)]
        self.up.discard(node)
        self.down.add(node)
        self.facts.left(node)
        self.cluster.wait_until_joined(self.up)
        return []

    def run_wait(self, op):
        time.sleep(op["seconds"])
        return []

    # ---- somebody outside of the session ----

    def run_outside(self, op):
        inner = op["do"]
        changes_data = inner["op"] in ("write", "append", "truncate", "publish")
        # What a name leads to is replaced: of unflushed data of it, and of what is written to it until its writer looks, a
        # killed node makes a conflict, as it should.
        changed = inner["path"] if changes_data else inner.get("to")
        kind = self.model.type_at(changed) if changed else None
        if changes_data and kind != "file":
            return []
        if changes_data or kind == "file":
            ino = self.model.ino_at(changed)
            if any(self.model.slots[k].writes() for k in self.model.slots_of(ino)):
                return []
            failed = self.cluster.flush(sorted(self.up))
            if failed:
                return [Deviation("result/flush", "flush", "0", failed)]
            self.cluster.wait_for_claims(self.up, sum(slot.writes() for slot in self.model.slots.values()))
            if inner["op"] in ("publish", "rename"):
                self.facts.of(ino).replaced = True
        began = time.time_ns()
        got = self.outside.do(inner)
        expected = self.model.do(inner)
        self.facts.done(inner, OUTSIDE, began)
        self.learn_inodes()
        if got != expected:
            return [Deviation(f"outside/{inner['op']}", inner["op"], short(expected), short(got))]
        if changes_data:
            for ino, kind in self.model.changed.items():
                if kind in ("data", "may"):
                    self.facts.of(ino).not_opened = set(self.cluster.nodes)
            time.sleep(self.facts.window)
        return []
