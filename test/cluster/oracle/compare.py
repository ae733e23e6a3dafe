"""What a node shows, held against what there must be.

A deviation's key says who saw it, how, and in what: "other/kept-RDONLY/size" (the looker is not the node that changed
the file last; it looked through a descriptor that it had kept), "same/path/mode", "result/write/EIO".
"""

import time

TICK_NS = 20_000_000  # the kernel's clock for time stamps may be so much behind
EVENTUAL = ("mode", "owner", "nlink", "xattrs", "mtime", "ctime")  # attributes: within --attr-timeout elsewhere


class Deviation:
    def __init__(self, key, what, expected, got, until=0, seen=None):
        self.key, self.what, self.expected, self.got = key, what, expected, got
        self.until = until  # until then (monotonic time) the README allows it
        self.seen = seen    # where the bytes of it are, to be told which they are

    def __str__(self):
        return f"{self.what}: expected {self.expected}, got {self.got}"


def short(told):
    return told["err"] if "err" in told else told["ok"]


class Judge:
    """Of one look."""

    def __init__(self, facts, looker, began):
        self.facts, self.looker = facts, looker
        self.began = began  # when the look did (monotonic)
        self.found = []

    def differ(self, how, field, what, expected, got, until=0, seen=None):
        self.found.append(Deviation(f"{self.who}/{how}/{field}", what, expected, got, until, seen))

    def judge(self, model_look, node_look):
        """Deviations, also those that are allowed for a time."""
        for key, expected in model_look.items():
            kind, name = key.split(" ", 1)
            if kind == "path":
                self.judge_path(name, expected, node_look[key])
            else:
                self.judge_slot(int(name), expected, node_look[key])
        return self.found

    def set_who(self, ino):
        inode = self.facts.of(ino)
        last = inode.meta[-1][1] if inode.meta and inode.data_node is None else inode.data_node
        self.who = "same" if last in (None, self.looker) else "other"

    def judge_path(self, path, expected, got):
        ino = self.facts.model.ino_at(path)
        self.who = "other" if self.facts.names and self.facts.names[-1][1] != self.looker else "same"
        itself, above = self.facts.open_until(self.looker, path)
        if ino is None:
            self.judge_absent(path, expected, got, max(itself, above))
            return
        self.set_who(ino)
        meta = max(self.facts.meta_open_until(self.looker, ino), itself, above)
        listing = max(self.facts.list_open_until(self.looker, path), itself, above)
        if "open" in got:
            self.judge_error("new", f"{path}: open", ino, {"ok": "a descriptor"}, got["open"],
                             self.until_of(got["open"]["err"], itself, above))
        for aspect in [a for a in expected if a in got]:
            if "err" in got[aspect] or "err" in expected[aspect]:
                self.judge_error("path", f"{path}: {aspect}", ino, expected[aspect], got[aspect],
                                 self.until_of(got[aspect].get("err"), itself, above))
            else:
                how = "path" if aspect in ("stat", "list", "link", "xattrs") else "new"
                until = {"list": listing, "xattrs": meta}.get(aspect, max(itself, above))
                self.judge_aspect(how, f"{path}: {aspect}", aspect, ino, expected[aspect]["ok"], got[aspect]["ok"],
                                  until, meta, f"path {path}")

    def judge_absent(self, path, expected, got, until):
        if short(expected["stat"]) != short(got["stat"]):
            is_there = "ok" in got["stat"]
            self.differ("path", "removed" if is_there else "error", f"{path}: stat", short(expected["stat"]),
                        "it is there" if is_there else short(got["stat"]), until)

    def judge_error(self, how, what, ino, expected, got, until):
        if self.facts.may_fail(ino, got.get("err")):
            return
        if expected.get("err") != got.get("err"):
            self.differ(how, got.get("err", "no-error"), what, short(expected), short(got), until)

    @staticmethod
    def until_of(error, itself, above):
        """An old name may be another type's. But a name that is there is no reason for these errors."""
        return above if error in ("ENOENT", "ESTALE", "EIO") else max(itself, above)

    def judge_slot(self, slot, expected, got):
        key = (self.looker, slot)
        flags = self.facts.model.slots[key].flags
        ino = self.facts.model.ino_of_slot(key)
        how = "kept-" if self.facts.model.has_name(key) else "nameless-"
        how += "+".join(f for f in flags.split("|") if f in ("RDONLY", "WRONLY", "RDWR", "APPEND", "DIRECT"))
        self.set_who(ino)
        meta = self.facts.meta_open_until(self.looker, ino)
        for aspect in expected:
            what = f"slot {slot} ({flags}): {aspect}"
            if "err" in got[aspect] or "err" in expected[aspect]:
                self.judge_error(how, what, ino, expected[aspect], got[aspect], 0)
            else:
                self.judge_aspect(how, what, aspect, ino, expected[aspect]["ok"], got[aspect]["ok"], 0, meta,
                                  f"slot {slot}")

    def judge_aspect(self, how, what, aspect, ino, expected, got, until, meta, seen):
        if aspect in ("stat", "fstat"):
            self.judge_stat(how, what, ino, expected, got, until, meta)
        elif aspect in ("bytes", "map"):
            if expected != got:
                field = "length" if expected[0] != got[0] else "bytes"
                self.differ(how, field if aspect == "bytes" else f"map-{field}", what, f"{expected[0]} bytes",
                            f"{got[0]} bytes", until, seen + (" map" if aspect == "map" else ""))
        elif expected != got:
            self.differ(how, aspect, what, expected, got, until)

    def judge_stat(self, how, what, ino, expected, got, until, meta):
        for field in ("type", "mode", "owner", "nlink", "size"):
            if field == "size" and expected["type"] == 0o040000 or expected[field] == got[field]:
                continue
            allowed = max(until, meta) if field in EVENTUAL else until
            self.differ(how, field, f"{what}: {field}", expected[field], got[field], allowed)
        self.judge_ino(how, what, ino, got, until)
        if expected["type"] == 0o100000:
            self.judge_times(how, what, ino, got, max(until, meta))

    def judge_ino(self, how, what, ino, got, until):
        there = self.facts.of(ino).there
        if there not in (None, got["ino"]):
            self.differ(how, "ino", f"{what}: inode number", there, got["ino"], until)

    def judge_times(self, how, what, ino, got, until):
        inode = self.facts.of(ino)
        now = time.time_ns()
        mtime, ctime = got["mtime"], got["ctime"]
        if inode.mtime_set is not None:
            if mtime != inode.mtime_set:
                self.differ(how, "mtime-set", f"{what}: mtime that was set", inode.mtime_set, mtime, until)
        elif not inode.not_before - TICK_NS <= mtime <= now + TICK_NS:
            since = (mtime - inode.not_before) / 1e9
            self.differ(how, "mtime", f"{what}: mtime", "one since the last change",
                        f"{abs(since):.3f} s {'before it' if since < 0 else 'after it, in the future'}", until)
        if ctime < inode.latest_ctime:
            self.differ(how, "ctime-back", f"{what}: ctime", f"none before {inode.latest_ctime}", ctime, until)
        if inode.told is None:
            if self.began >= until:
                inode.told = (mtime, ctime)
        elif inode.told != (mtime, ctime):
            field = "mtime-moved" if inode.told[0] != mtime else "ctime-moved"
            self.differ(how, field, f"{what}: (mtime, ctime) of a file that nobody changed", inode.told, (mtime, ctime),
                        until)
        if self.began >= until:
            inode.latest_ctime = max(inode.latest_ctime, ctime)


def judge_result(op, expected, got, has_name):
    """Of an operation: how it deviates. has_name: or it was done through a descriptor of a file that has none."""
    result = "result" if has_name else "result-nameless"
    name = op["op"] + (f"-{op['flags']}" if op["op"] == "rename" and op["flags"] else "")
    if "err" in expected or "err" in got:
        if expected == got:
            return []
        return [Deviation(f"{result}/{name}/{got.get('err', 'no-error')}", name, short(expected), short(got))]
    expected, got = expected["ok"], got["ok"]
    if not isinstance(expected, dict):
        expected, got = {"value": expected}, {"value": got}
    return [Deviation(f"{result}/{name}/{field}", f"{name}: {field}", expected[field], got[field])
            for field in expected if expected[field] != got[field]]
