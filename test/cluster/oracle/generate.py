"""Chooses operations: by the seed, and by what the model has. After each one, looks at what it has changed."""

import random

from known_wrong import is_made

FILES = ("f0", "f1", "f2", "f3", "f4")
DIRS = ("d0", "d1", "d2")
LINKS = ("l0", "l1")
SLOTS = 4  # kept descriptors of a node
EDGES = (0, 1, 100, 4095, 4096, 4097, 8192, 12288, 20000, 65535, 65536, 65537, 100000, 131072, 196608, 300000)
MODES = ("RDONLY", "RDONLY", "WRONLY", "RDWR", "RDWR", "RDWR|APPEND", "WRONLY|APPEND", "RDONLY|DIRECT",
         "RDWR|DIRECT")
WRITERS = ("WRONLY", "RDWR", "RDWR", "RDWR", "RDWR", "RDWR|APPEND", "RDWR|DIRECT", "RDONLY")
POLICIES = ("idle", "immediate", "close", "end")
LARGEST = 1 << 20

# How often each is chosen, by profile; what is not named here is chosen BASE times.
BASE = {
    "open": 10, "close": 3, "reopen": 1, "write": 14, "append": 8, "stream": 3, "read": 2, "truncate": 5, "allocate": 4,
    "mapstore": 4, "sync": 2, "copy": 3, "publish": 3, "locked": 4, "lock": 1, "unlock": 1, "rename": 5, "link": 3,
    "unlink": 3, "mkdir": 3, "rmdir": 1, "symlink": 1, "chmod": 2, "chown": 1, "utimens": 2, "setxattr": 2,
    "removexattr": 1, "flush": 1, "hint": 2, "stage": 1, "check": 0.3, "outside": 0.7, "wait": 0.2,
}
PROFILES = {
    "mixed": {},
    "data": {"rename": 0.5, "link": 0.3, "unlink": 0.5, "mkdir": 0.5, "rmdir": 0.1, "symlink": 0.1, "publish": 0.5,
             "chmod": 0.5, "chown": 0.3, "utimens": 0.5, "setxattr": 0.5, "outside": 0.2, "open": 12},
    "names": {"rename": 16, "link": 8, "unlink": 7, "mkdir": 7, "rmdir": 3, "publish": 8, "outside": 2},
    "locks": {"locked": 30, "lock": 6, "unlock": 6, "append": 12, "rename": 0.5, "link": 0.3, "unlink": 0.5,
              "mkdir": 0.5, "publish": 0.5, "outside": 0.2},
    # few files, which several nodes have open for writing all the time (oracle.py --shared)
    "shared": {"rename": 1, "link": 0.5, "unlink": 0.7, "mkdir": 0.3, "rmdir": 0.1, "symlink": 0.1, "publish": 0.3, "chmod": 0.5,
               "chown": 0.3, "utimens": 2, "setxattr": 0.5, "outside": 0.2, "open": 16, "close": 2, "write": 45, "stream": 8,
               "append": 5, "truncate": 3, "allocate": 3, "sync": 4, "flush": 2},
}
FAULTS = {"kill": 1, "umount": 0.7}
# While a node is dead: what has no part that may be done when another fails.
WHILE_DEAD = ("open", "close", "write", "append", "rename", "link", "unlink", "mkdir", "chmod", "wait", "lock",
              "unlock", "hint", "stage")


class Generator:
    def __init__(self, config, length, strict):
        self.config, self.length, self.strict = config, length, strict
        self.shared = config["profile"] == "shared"
        self.names, self.modes = (FILES[:2], WRITERS) if self.shared else (FILES, MODES)
        self.random = random.Random(f"operations {config['seed']}")
        self.number = 0       # of operations, without looks
        self.waiting = []     # looks, and what comes after them
        self.soon = []        # what is to be done after that which is chosen now
        weights = {**BASE, **PROFILES[config["profile"]], **(FAULTS if config["faults"] else {})}
        self.weights = {k: w for k, w in weights.items() if self.is_made(k)}
        self.last = None

    def is_made(self, operation):
        return self.strict or is_made(operation)

    # ---- one after the other ----

    def next(self, run):
        self.run, self.model = run, run.model
        if self.last and self.last["op"] not in ("look", "check", "flush", "wait"):
            self.waiting = self.looks_after(self.last) + self.waiting
        self.last = None
        if self.waiting:
            return self.waiting.pop(0)
        if self.number == self.length:
            self.number += 1
            self.waiting = self.last_ones()
        elif self.number > self.length:
            return None
        else:
            self.number += 1
            if self.number % 40 == 0:
                self.waiting = self.sweep()
            self.waiting += [self.choose(), *self.soon]
            self.soon = []
        self.last = self.waiting.pop(0)
        return self.last

    def last_ones(self):
        back = [{"op": "restart", "node": n} for n in sorted(self.run.facts.dead)]
        back += [{"op": "mount", "node": n} for n in sorted(self.run.down)]
        nodes = list(self.run.cluster.nodes)
        return [*back, *self.sweep(nodes), {"op": "check"}, *self.sweep(nodes)]

    def choose(self):
        """An operation that may be made; most are possible, some not."""
        self.entries = self.model.tree()
        dead = sorted(self.run.facts.dead)
        if dead and self.chance(0.4):
            return {"op": "restart", "node": dead[0]}
        if self.run.down and self.chance(0.1):
            return {"op": "mount", "node": sorted(self.run.down)[0]}
        while True:
            names = [n for n in self.weights if not dead or n in WHILE_DEAD and self.is_made(n + "-while-dead")]
            name = self.random.choices(names, [self.weights[n] for n in names])[0]
            op = getattr(self, "make_" + name)()
            if op:
                return {"op": name, **op}

    def chance(self, p):
        return self.random.random() < p

    def pick(self, list_):
        return self.random.choice(list_) if list_ else None

    # ---- what it is done to ----

    def node(self):
        return self.pick(sorted(self.run.up))

    def files(self):
        return [p for p, _ in self.entries if self.model.type_at(p) == "file"]

    def dirs(self):
        return [""] + [p for p, _ in self.entries if self.model.type_at(p) == "dir"]

    def new_path(self, names, deepest=3):
        directory = self.pick([d for d in self.dirs() if d.count("/") < deepest - 1])
        return f"{directory}/{self.pick(names)}" if directory else self.pick(names)

    def some_file(self):
        """One that is there, most times."""
        links = [p for p, _ in self.entries if self.model.type_at(p) == "link"]
        if links and self.chance(0.05):
            return self.pick(links)
        there = self.files()
        return self.pick(there) if there and self.chance(0.95) else self.new_path(self.names)

    def slots(self, node, can=lambda flags: True):
        return [k[1] for k in sorted(self.model.slots) if k[0] == node and can(self.model.slots[k].flags)]

    def target(self, can=lambda flags: True, path_flags=("",)):
        """A kept descriptor or a path, and the node."""
        node = self.node()
        slots = self.slots(node, can)
        if slots and self.chance(0.9 if self.shared else 0.6):
            return {"node": node, "slot": self.pick(slots)}
        flags = self.pick(path_flags)
        return {"node": node, "path": self.some_file(), **({"flags": flags} if flags else {})}

    def place(self, op):
        """(offset, length): at edges of pages, of chunks, and of the file."""
        size = self.model.size_of(op)
        many = self.config["sizes"] == "chunks"
        edges = [e for e in EDGES if many or e <= 20000]
        edges += [size, size, max(0, size - 1), max(0, size - 5000), size + 3000]
        at = self.pick(edges) + self.pick((0, 0, 0, 7, 4096))
        length = self.pick((1, 10, 100, 4096, 4097, 8192, 10000) + ((65536, 70000, 131072) if many else ()))
        if self.is_direct(op):
            at, length = at // 4096 * 4096, max(1, length // 4096) * 4096
        return {"at": min(at, LARGEST), "len": length}

    def is_direct(self, op):
        flags = self.model.slots[op["node"], op["slot"]].flags if "slot" in op else op.get("flags", "")
        return "DIRECT" in flags

    def label(self):
        return {"n": self.number}

    # ---- each operation ----

    def make_open(self):
        node = self.node()
        flags = self.pick(self.modes)
        path = self.some_file()
        if self.chance(0.1 if self.shared else 0.3):
            flags += self.pick(("|CREAT", "|CREAT", "|CREAT|EXCL", "|SYNC", "|CREAT|TRUNC", "|TRUNC"))
            if "CREAT" in flags:
                path = self.new_path(self.names)
        if self.run.facts.dead:
            flags = flags.replace("|TRUNC", "")
        if self.model.type_at(path) == "dir":
            return None
        return {"node": node, "slot": self.random.randrange(SLOTS), "path": path, "flags": flags}

    def make_reopen(self):
        node = self.node()
        slots = self.slots(node)
        if not slots:
            return None
        from_slot = self.pick(slots)
        return {"node": node, "slot": (from_slot + 1) % SLOTS, "from_slot": from_slot,
                "flags": self.pick(("RDONLY", "RDWR", "WRONLY|APPEND", "RDWR|TRUNC", "RDONLY|DIRECT"))}

    def make_close(self):
        node = self.node()
        slots = self.slots(node)
        return {"node": node, "slot": self.pick(slots)} if slots else None

    def make_write(self):
        op = self.target(lambda f: "RDONLY" not in f or self.chance(0.02),
                         ("", "", "CREAT", "CREAT|TRUNC", "DIRECT", "SYNC", "CREAT|EXCL", "TRUNC"))
        if self.run.facts.dead:
            op.pop("flags", None)
        if "CREAT" in op.get("flags", ""):
            op["path"] = self.new_path(self.names)
        return {**op, **self.place(op), **self.label()}

    def make_append(self):
        op = self.target(lambda f: "RDONLY" not in f and "DIRECT" not in f, ("", "", "CREAT"))
        if self.run.facts.dead:
            op.pop("flags", None)
        at_end = "slot" in op and "APPEND" not in self.model.slots[op["node"], op["slot"]].flags
        if self.model.size_of(op) > LARGEST or (at_end and not self.is_made("append-seek")):
            return None
        return {**op, "len": self.place(op)["len"], **self.label()}

    def make_stream(self):
        node = self.node()
        slots = self.slots(node, lambda f: "RDONLY" not in f and "DIRECT" not in f)
        op = {"node": node, "slot": self.pick(slots)}
        if not slots or self.model.size_of(op) > LARGEST:
            return None
        return {**op, "len": self.pick((1, 100, 5000, 70000)), **self.label()}

    def make_read(self):
        node = self.node()
        slots = self.slots(node, lambda f: "WRONLY" not in f and "DIRECT" not in f)
        return {"node": node, "slot": self.pick(slots), "len": self.pick((1, 4096, 70000))} if slots else None

    def make_truncate(self):
        op = self.target(lambda f: "RDONLY" not in f)
        return {**op, "size": self.place(op)["at"]}

    def make_allocate(self):
        op = self.target(lambda f: "RDONLY" not in f)
        return {**op, "how": self.pick(("PUNCH", "PUNCH", "", "KEEP")), **self.place(op)}

    def make_mapstore(self):
        op = self.target(lambda f: "RDWR" in f and "DIRECT" not in f)
        if "slot" in op and not self.is_made("map-kept"):
            return None
        return {**op, **self.place(op), **self.label()}

    def make_sync(self):
        return {**self.target(), "how": self.pick(("fsync", "fdatasync"))}

    def make_copy(self):
        op = self.target(lambda f: "RDONLY" not in f and "APPEND" not in f and "DIRECT" not in f)
        place = self.place(op)
        source = {"from_path": self.some_file()}
        slots = self.slots(op["node"], lambda f: "WRONLY" not in f and "DIRECT" not in f)
        if slots and self.chance(0.4):
            source = {"from_slot": self.pick(slots)}
        return {**op, **source, "from_at": self.pick((0, 0, 100, 4096, 65536)), **place}

    def make_publish(self):
        return {"node": self.node(), "path": self.some_file(), "len": self.pick((1, 5000, 70000)), **self.label()}

    def make_locked(self):
        op = self.target(lambda f: "DIRECT" not in f)
        flags = self.model.slots[op["node"], op["slot"]].flags if "slot" in op else "RDWR"
        what = "read" if "RDONLY" in flags else self.pick(("append", "count"))
        if "WRONLY" in flags or not self.is_made("locked-" + what):
            return None
        return {**op, "kind": self.pick(("fcntl", "flock")), "what": what, **self.label()}

    def make_lock(self):
        node = self.node()
        slots = self.slots(node, lambda f: "RDWR" in f)
        return {"node": node, "slot": self.pick(slots), "kind": self.pick(("ofd", "flock")),
                "how": self.pick(("EX", "SH"))} if slots else None

    def make_unlock(self):
        node = self.node()
        slots = self.slots(node, lambda f: "RDWR" in f)
        return {"node": node, "slot": self.pick(slots), "kind": self.pick(("ofd", "flock"))} if slots else None

    def make_rename(self):
        kind = self.pick(("file", "file", "dir", "over", "over dir", "EXCHANGE", "NOREPLACE"))
        if not self.is_made("rename-" + kind):
            return None
        dirs = self.dirs()[1:]
        path = self.pick(dirs) if "dir" in kind else self.some_file()
        if kind == "EXCHANGE" and self.chance(0.4):
            path = self.pick(dirs)
        if not path:
            return None
        to = {"file": self.new_path(self.names), "over": self.some_file(), "dir": self.new_path(DIRS),
              "over dir": self.pick(dirs), "EXCHANGE": self.pick(dirs + self.files()),
              "NOREPLACE": self.new_path(self.names)}[kind]
        replaces = self.model.ino_at(to or "") is not None
        if not to or (replaces and self.run.facts.dead and not self.is_made("unlink-while-dead")):
            return None
        return {"node": self.node(), "path": path, "to": to,
                "flags": kind if kind in ("EXCHANGE", "NOREPLACE") else ""}

    def make_link(self):
        return {"node": self.node(), "path": self.some_file(), "to": self.new_path(self.names)}

    def make_unlink(self):
        return {"node": self.node(), "path": self.some_file()}

    def make_mkdir(self):
        return {"node": self.node(), "path": self.new_path(DIRS), "mode": self.pick((0o755, 0o700, 0o777))}

    def make_rmdir(self):
        dirs = self.dirs()[1:]
        return {"node": self.node(), "path": self.pick(dirs)} if dirs else None

    def make_symlink(self):
        return {"node": self.node(), "path": self.new_path(LINKS), "text": self.pick((*FILES, "../f0", "d0/f1"))}

    def make_chmod(self):
        return {**self.target_or_dir(), "mode": self.pick((0o644, 0o600, 0o755, 0o664))}

    def make_chown(self):
        return {**self.target_or_dir(), "owner": self.pick((0, 12345))}

    def make_utimens(self):
        return {**self.target(), "mtime": 1_000_000_000_000_000_000 + self.random.randrange(10**15)}

    def make_setxattr(self):
        if self.chance(0.2) and self.dirs()[1:]:
            return {"node": self.node(), "path": self.pick(self.dirs()[1:]), "name": "user.eddy.flush",
                    "value": self.pick(POLICIES)}
        return {**self.target_or_dir(), "name": self.pick(("user.a", "user.b")), "len": self.pick((0, 10, 200)),
                **self.label()}

    def make_removexattr(self):
        return {**self.target_or_dir(), "name": self.pick(("user.a", "user.b"))}

    def target_or_dir(self):
        dirs = self.dirs()[1:]
        if dirs and self.chance(0.2):
            return {"node": self.node(), "path": self.pick(dirs)}
        return self.target()

    # ---- nodes, and the PFS ----

    def make_flush(self):
        return {"node": self.node()}

    def make_hint(self):
        """A queue of what is there, and of names that are none, or none yet. It stays until the node's next one."""
        names = self.files() + self.dirs()[1:] + [self.new_path(FILES) for _ in range(2)] + ["no/such", "d0/f0"]
        return {"node": self.node(), "paths": [self.pick(names) for _ in range(self.random.randrange(9))],
                "start": self.chance(0.8)}

    def make_stage(self):
        names = self.files() + self.dirs() + [self.new_path(FILES)]
        return {"node": self.node(), "paths": [self.pick(names) for _ in range(self.random.randrange(1, 4))],
                "how": self.pick(("--here", "--spread", "--spread --pin", "--here --pin=1s", "--here --wait --timeout=2",
                                  "unstage"))}

    def make_check(self):
        return {}

    def make_wait(self):
        return {"seconds": self.pick((0.06, 0.4, 1.2))}

    def make_kill(self):
        if self.run.facts.dead or len(self.run.up) < 2:
            return None
        node = self.node()
        if self.chance(0.4):
            self.soon.append({"op": "restart", "node": node})
        return {"node": node}

    def make_umount(self):
        if self.run.facts.dead or len(self.run.up) < 2:
            return None
        return {"node": self.node()}

    def make_outside(self):
        kind = self.pick(("write", "append", "truncate", "publish", "rename", "rename", "chmod"))
        if self.run.facts.dead or not self.is_made("outside-" + kind):
            return None
        if kind == "rename":
            from_ = self.pick(self.files() + 2 * self.dirs()[1:])
            if not from_:
                return None
            to = self.new_path(DIRS if self.model.type_at(from_) == "dir" else FILES)
            return {"do": {"op": "rename", "path": from_, "to": to, "flags": ""}}
        path = self.pick(self.files())
        if not path:
            return None
        place = self.place({"path": path})
        return {"do": {"write": {"op": "write", "path": path, **place, **self.label()},
                       "append": {"op": "append", "path": path, "len": place["len"], **self.label()},
                       "truncate": {"op": "truncate", "path": path, "size": place["at"]},
                       "publish": {"op": "publish", "path": path, "len": place["len"], **self.label()},
                       "chmod": {"op": "chmod", "path": path, "mode": self.pick((0o640, 0o600))}}[kind]}

    # ---- looks ----

    def looks_after(self, op):
        """On another node, and on the same."""
        if not self.chance(self.config["looks"]) and op["op"] != "outside":
            return []
        changed = set(self.model.changed)
        names = [path for path, _ in self.model.names]
        self.entries = self.model.tree()
        node = op.get("node")
        others = [n for n in sorted(self.run.up) if n != node]
        nodes = others if op["op"] == "outside" else [self.pick(others)] if others else []
        if node in self.run.up and self.chance(0.7):
            nodes = nodes + [node]
            self.random.shuffle(nodes)
        return [look for n in nodes if (look := self.look_at(n, changed, names, op["op"] == "outside"))]

    def look_at(self, node, inos, names, opens=False):
        """At some of the names, and descriptors, of those files."""
        paths = sorted({p for p, st in self.entries if st.st_ino in inos} | set(names))
        if len(paths) > 4:
            paths = sorted(self.random.sample(paths, 4))
        slots = [k[1] for k in sorted(self.model.slots) if k[0] == node and self.model.ino_of_slot(k) in inos]
        how = "both" if opens else self.pick(("both", "both", "slots", "slots", "paths"))
        if how == "slots" and not slots:
            how = "paths"
        look = {"op": "look", "node": node,
                "paths": {p: self.aspects_of_path() for p in paths} if how != "slots" else {},
                "slots": {str(s): self.aspects_of_slot() for s in slots} if how != "paths" else {}}
        if self.chance(0.3):
            look["piece"] = self.pick((4096, 16384, 65536))
        return look if look["paths"] or look["slots"] else None

    def aspects_of_path(self):
        data = ["open", "fstat", "end", "bytes"] + (["map"] if self.chance(0.15) else [])
        data += ["direct"] if self.chance(0.1) else []
        self.random.shuffle(data)
        by_name = ["stat", "xattrs", "list", "link"]
        if self.chance(0.3):
            return data + by_name
        return by_name + (data if self.chance(0.8) else [])

    def aspects_of_slot(self):
        aspects = ["fstat", "end", "bytes", "pos"] + (["map"] if self.chance(0.1) else [])
        self.random.shuffle(aspects)
        return aspects[:self.pick((1, 2, 4, 5))]

    def sweep(self, nodes=None):
        """All that there is, on one node, or on these."""
        nodes = nodes or [self.node()]
        return [{"op": "look", "node": n, "paths": self.all_paths(), "slots": self.all_slots(n)} for n in nodes]

    def all_paths(self):
        paths = {p: ["stat", "xattrs", "list", "link", "open", "fstat", "end", "bytes"] for p, _ in self.model.tree()}
        return {"": ["list"], **paths}

    def all_slots(self, node):
        return {str(k[1]): ["end", "fstat", "bytes", "pos"] for k in sorted(self.model.slots) if k[0] == node}
