"""What a writer's files must be after a crash.

A writer is one process that does one operation after the other on files of its own. What it was
told ("acknowledged") is known exactly; the one operation that it was in when the crash came is in
doubt: done, not done, or, for a write, done in part.

After the daemon's death a file has its acknowledged bytes. After a power cut each byte is one that
it had at its last fsync or since: `kept` and what came after it, of which a flush may have got a part
to the PFS; and a file that is not as acknowledged must have been named.
"""
import random
import zlib

BLOCK = 4096
CHANGES = ("write", "append", "truncate")


class Wrong(Exception):
    """The promise is broken; the text says how."""


def content(label, length):
    """The bytes of a record; no two records have the same."""
    return random.Random(label).randbytes(length)


class Record:
    """One operation, as in the record of what was acknowledged."""

    def __init__(self, entry):
        self.__dict__.update(entry)
        self.done = None   # when it returned
        self.error = None  # or what it returned

    def data(self):
        data = content(self.label, self.len)
        if zlib.crc32(data) != self.sum:
            raise Wrong(f"the record {self.label} itself is damaged")
        return data

    def __str__(self):
        where = f" at {self.off} of {self.len} bytes" if hasattr(self, "off") else ""
        to = f" to {self.to}" if hasattr(self, "to") else ""
        end = "in doubt" if self.done is None else "acknowledged"
        return f"{self.label} {self.op} {self.name}{to}{where}: {end}"


def changed(before, record):
    """The bytes of a file after that operation."""
    if record.op in ("write", "append"):
        data = record.data()
        after = bytearray(before)
        if len(after) < record.off:
            after.extend(bytes(record.off - len(after)))
        after[record.off:record.off + len(data)] = data
        return bytes(after)
    if record.op == "truncate":
        return before[:record.off] + bytes(max(0, record.off - len(before)))
    return before


class File:
    def __init__(self, name):
        self.names = [name]  # since `kept`; the last one is its name
        self.all_names = {name}
        self.data = b""      # as acknowledged
        self.kept = b""      # what a power cut must not take
        self.since = []      # records after `kept`

    def apply(self, record):
        self.data = changed(self.data, record)
        if record.op in ("fsync", "fdatasync"):
            self.keep()
        elif record.op in CHANGES:
            self.since.append(record)

    def keep(self):
        self.kept, self.since, self.names = self.data, [], self.names[-1:]

    def found(self, data):
        """A crash was survived: what is there now counts."""
        self.data = data
        self.keep()

    def states(self, from_kept):
        """All that it was since, oldest first; or only what it is."""
        states = [self.kept if from_kept else self.data]
        for record in self.since if from_kept else ():
            states.append(changed(states[-1], record))
        return states


def sizes_of(states, doubt, power_cut):
    sizes = {len(s) for s in states}
    if power_cut:
        return range(min(sizes), max(sizes) + 1)
    if doubt and doubt.op in ("write", "append"):  # a part of it may be there
        sizes.update(range(len(states[-2]), len(states[-1])))
    return sizes


def zeros_from(file, power_cut, suspect):
    """From where on zeros may be: a truncation may be there without what came before or after it,
    and of a suspect file the PFS may have parts only, from a flush that the cut ended."""
    cuts = [r.off for r in file.since if r.op == "truncate"] if power_cut else []
    return min(cuts + ([len(file.kept)] if suspect else []), default=None)


def explain(file, got, at, records):
    end = at
    while end < len(got) and end - at < BLOCK and got[end] == 0:
        end += 1
    text = f"{file.names[-1]}: byte {at} of {len(got)} is {got[at]:02x}"
    if end - at > 8:
        text += f" (at least {end - at} zeros)"
    text += f", as it was acknowledged {file.data[at]:02x}" if at < len(file.data) else \
        ", where nothing was written"
    text += "".join(f"\n    {r}" for r in records if not hasattr(r, "off") or r.op == "truncate" or
                    r.off <= at < r.off + r.len)
    return text


def check_bytes(file, got, states, doubt, history, power_cut=False, suspect=False, holes=False):
    """Every byte is that of one of the states, in blocks first, as most are."""
    sizes = sizes_of(states, doubt, power_cut)
    if len(got) not in sizes:
        raise Wrong(f"{file.names[-1]}: size {len(got)}, not {min(sizes)} to {max(sizes)}\n    " +
                    "\n    ".join(str(r) for r in history[-12:]))
    if got in states:
        return
    cut = 0 if holes else zeros_from(file, power_cut, suspect)
    for at in range(0, len(got), BLOCK):
        block = got[at:at + BLOCK]
        if any(s[at:at + BLOCK] == block for s in states):
            continue
        for i in range(at, at + len(block)):
            if cut is not None and i >= cut and got[i] == 0:
                continue
            if not any(i < len(s) and s[i] == got[i] for s in states):
                raise Wrong(explain(file, got, i, history))


def is_whole(file, got, states, doubt, history):
    """Nothing that was acknowledged is missing."""
    if got == file.data:
        return True
    try:
        check_bytes(file, got, states[-2:] if doubt else states[-1:], doubt, history)
    except Wrong:
        return False
    return bool(doubt)


class Files:
    """A writer's files by name, and the operation in doubt."""

    def __init__(self):
        self.by_name = {}
        self.doubt = None
        self.history = {}  # by File: all records, to explain
        self.removed = {}  # by name: the files that had it, since the last crash

    def note(self, record, file):
        self.history.setdefault(id(file), []).append(record)

    def apply(self, record):
        """It was acknowledged."""
        files = self.by_name
        if record.op == "create":
            files[record.name] = File(record.name)
        file = files[record.name]
        self.note(record, file)
        if record.op == "rename":
            self.note_removed(record.to)
            files[record.to] = files.pop(record.name)
            file.names.append(record.to)
            file.all_names.add(record.to)
        elif record.op == "unlink":
            self.note_removed(record.name)
            del files[record.name]
        elif record.op != "create":
            file.apply(record)

    def note_removed(self, name):
        if name in self.by_name:
            self.removed.setdefault(name, []).append(self.by_name[name])

    def check_returned(self, name, got, holes):
        """A file that was removed, or replaced, and of which a power cut took the note that it was: it is as any
        other file after one. `holes`: the log says that some of its bytes were only on the PFS."""
        doubt = self.doubt
        files = list(self.removed.get(name, []))
        if doubt and name in self.by_name and name == (doubt.to if doubt.op == "rename" else doubt.name):
            files.append(self.by_name[name])
        problem = Wrong(f"{name}: came back, but was never removed")
        for file in files:
            try:
                check_bytes(file, got, file.states(True), None, self.history.get(id(file), []), True, True, holes)
                return
            except Wrong as e:
                problem = e
        raise problem

    def possible_names(self):
        """Name to file, as it may be now: without and with the operation in doubt."""
        maps = [self.by_name]
        doubt = self.doubt
        if doubt and doubt.op in ("create", "rename", "unlink"):
            after = dict(self.by_name)
            if doubt.op == "create":
                after[doubt.name] = File(doubt.name)
            else:
                file = after.pop(doubt.name)
                if doubt.op == "rename":
                    after[doubt.to] = file
            maps.append(after)
        return maps

    def find_names(self, listing):
        for names in self.possible_names():
            if set(names) == set(listing):
                if self.doubt and self.doubt.op == "rename" and names is not self.by_name:
                    names[self.doubt.to].names.append(self.doubt.to)
                    names[self.doubt.to].all_names.add(self.doubt.to)
                return names
        raise Wrong(f"names {sorted(listing)}, expected {sorted(self.by_name)}; in doubt: {self.doubt}")

    def check(self, names, read, power_cut, suspects):
        """Compares each file; read(name) gives its bytes, `suspects` names those that the node says are
        in doubt. Returns the files that lost something."""
        lost = []
        for name, file in names.items():
            states = file.states(power_cut)
            doubt = self.doubt if self.doubt and self.by_name.get(self.doubt.name) is file else None
            if doubt:
                states.append(changed(states[-1], doubt))
            got = read(name)
            history = self.history.get(id(file), []) + ([doubt] if doubt else [])
            suspect = any(n in suspects for n in file.names)
            check_bytes(file, got, states, doubt, history, power_cut, suspect)
            if not is_whole(file, got, states, doubt, history):
                lost.append(file)
        return lost

    def survived(self, names, read):
        self.by_name, self.doubt, self.history, self.removed = names, None, {}, {}
        for name, file in names.items():
            file.found(read(name))
