"""What there must be: a plain directory on a local disk on which the same is done, with the same kept descriptors; and
beside it what such a directory does not know (Facts): which node changed what, and when.
"""

import math
import os
import stat
import time

from player import Player

OUTSIDE = -1  # the node's number of somebody who is on none


class Model(Player):
    """A player that notes what it changes."""

    def __init__(self, root):
        super().__init__(root)
        self.changed = {}
        self.cut = set()
        self.names = []
        self.mtimes = {}  # of inode numbers, as they were noted last
        self.sizes = {}   # the same

    def do(self, op):
        self.changed = {}  # inode number: "data", "may" (be changed data), "times" (were set), or "meta"
        self.cut = set()   # inode numbers of files that have become shorter
        self.names = []    # (path, the inode number before or None)
        return super().do(op)

    def note(self, where, kind):
        st = os.fstat(where) if isinstance(where, int) else os.stat(where)
        if kind == "hole":
            kind = "may"  # where there was nothing, nothing needs to change
        elif kind == "may" and self.mtimes.get(st.st_ino, st.st_mtime_ns) != st.st_mtime_ns:
            kind = "data"
        if st.st_size < self.sizes.get(st.st_ino, 0):
            self.cut.add(st.st_ino)
        self.sizes[st.st_ino] = st.st_size
        self.mtimes[st.st_ino] = st.st_mtime_ns
        self.changed[st.st_ino] = kind

    def note_name(self, path):
        self.names.append((path, self.ino_at(path)))
        parent = self.ino_at(os.path.dirname(path))
        for ino in (self.ino_at(path), parent):
            if ino is not None:
                self.changed.setdefault(ino, "meta")

    def new_names(self):
        """Of the last operation: those names that are another file's now, or nobody's, or new."""
        return [(path, before) for path, before in self.names if self.ino_at(path) != before]

    # ---- what is there ----

    def ino_at(self, path):
        try:
            return os.lstat(self.at(path)).st_ino
        except OSError:
            return None

    def type_at(self, path):
        """"file", "dir", "link", or None."""
        try:
            mode = os.lstat(self.at(path)).st_mode
        except OSError:
            return None
        return "dir" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"

    def size_of(self, op):
        """Of the file that an operation names; 0 if it is not there."""
        try:
            if "slot" in op:
                return os.fstat(self.slots[op["node"], op["slot"]].fd).st_size
            return os.stat(self.at(op["path"])).st_size
        except OSError:
            return 0

    def ino_of_slot(self, key):
        return os.fstat(self.slots[key].fd).st_ino

    def has_name(self, key):
        return os.fstat(self.slots[key].fd).st_nlink > 0

    def slots_of(self, ino, node=None):
        return [k for k in sorted(self.slots) if (node is None or k[0] == node) and self.ino_of_slot(k) == ino]

    def tree(self):
        """All paths below, sorted: [(path, lstat)]."""
        found = []

        def walk(path):
            with os.scandir(self.at(path)) as entries:
                for name in sorted(e.name for e in entries):
                    below = os.path.join(path, name)
                    st = os.lstat(self.at(below))
                    found.append((below, st))
                    if stat.S_ISDIR(st.st_mode):
                        walk(below)
        walk("")
        return found


class Inode:
    """What the oracle knows of a file besides what the model has."""

    def __init__(self):
        self.there = None        # its inode number on the PFS
        self.meta = []           # [(when, node)]: changes of attributes, which other nodes may see later
        self.data_node = None    # the node that changed its data last
        self.told = None         # (mtime, ctime) as told first after the last change
        self.not_before = 0      # mtime is not before that (nanoseconds since 1970), if it was not set
        self.mtime_set = None    # or it was set to this
        self.latest_ctime = 0
        self.writers = set()     # nodes that may have bytes of it which the PFS has not
        self.sharers = set()     # nodes that were among them since the last check: one may have lent parts to another
        self.nameless = False    # its last name is gone
        self.dropped = False     # ... and went while a node was dead that may have had bytes which the PFS has not
        self.replaced = False    # its last name is gone, and was removed outside of the session
        self.not_opened = set()  # nodes that have not opened it since it was changed outside of the session
        # [(when, node, slot, since)]: sizes of which no descriptor with O_APPEND is told that was opened between `since` and
        # `when`: the file became shorter, or was written by passthrough
        self.untold = []

    def add_writer(self, node):
        self.writers.add(node)
        self.sharers.add(node)


class Facts:
    def __init__(self, model, window, passthrough):
        self.model = model
        self.passthrough = passthrough
        self.window = window  # for so long (seconds) another node may see old names and attributes
        self.inodes = {}
        self.names = []       # [(when, node, path, the inode number before)]
        self.dead = set()     # nodes that were killed and are not back
        self.is_lent = False     # a node has lent parts of a file, perhaps of one that a descriptor writes
        self.returned_until = 0  # until then (monotonic time) what is flushed may be on its way back to its lender
        self.locked_by = {}   # (node, slot): inode number: locks that are kept

    def of(self, ino):
        return self.inodes.setdefault(ino, Inode())

    def forget_gone(self):
        """The model's disk uses inode numbers again."""
        live = {st.st_ino for _, st in self.model.tree()} | {self.model.ino_at("")}
        live |= {self.model.ino_of_slot(k) for k in self.model.slots}
        for table in (self.inodes, self.model.mtimes, self.model.sizes):
            for ino in [i for i in table if i not in live]:
                del table[ino]

    def done(self, op, node, began_ns):
        """The model has done it, as the node has."""
        now = time.monotonic()
        for ino, kind in self.model.changed.items():
            self.note_change(self.of(ino), kind, node, now, began_ns)
            self.note_untold(ino, op, node, now)
            if kind == "times":
                self.of(ino).mtime_set = op["mtime"]
        self.names += [(now, node, path, before) for path, before in self.model.new_names()]
        self.names = [n for n in self.names if now - n[0] <= self.window]
        if op["op"] in ("unlink", "rename", "rmdir", "open", "reopen", "close", "publish"):
            self.forget_gone()
        self.note_nameless()
        self.note_writers()

    def note_nameless(self):
        for key in self.model.slots:
            inode = self.of(self.model.ino_of_slot(key))
            if not inode.nameless and not self.model.has_name(key):
                inode.nameless = True
                inode.dropped = bool(inode.writers & self.dead)

    def note_change(self, inode, kind, node, now, began_ns):
        inode.told = None
        if kind == "times" or inode.mtime_set is not None:
            inode.not_before = 0  # it may stay as it was set
        if kind in ("meta", "times"):
            inode.meta = [m for m in inode.meta if now - m[0] <= self.window] + [(now, node)]
            return
        inode.data_node, inode.mtime_set = node, None
        inode.add_writer(node)
        if kind == "data":
            inode.not_before = began_ns

    def note_untold(self, ino, op, node, now):
        slot = self.model.slots.get((node, op.get("slot")))
        if ino in self.model.cut:
            self.of(ino).untold.append((now, node, op.get("slot"), 0))
        elif slot and self.passthrough and op["op"] != "truncate":
            self.of(ino).untold.append((now, node, op["slot"], slot.opened))

    def is_told_size(self, key):
        """Does the kernel know where a write by this descriptor ends, if it appends? README: on one node, it does not if the other
        descriptor is of another kind: passthrough, and not."""
        opened = self.model.slots[key].opened
        return not any(since < opened < when and (node != key[0] or self.passthrough and slot != key[1])
                       for when, node, slot, since in self.of(self.model.ino_of_slot(key)).untold)

    def note_writers(self):
        for key, slot in self.model.slots.items():
            if slot.writes():
                self.of(self.model.ino_of_slot(key)).add_writer(key[0])

    def flushed(self, node):
        """All that the node had is on the PFS. But an open for writing on any node keeps the claim (docs/protocol.md, rule 13),
        and the home of a file whose claimant is dead does not know that all was flushed. Which of those who wrote it has
        the claim is not known here."""
        for ino, inode in self.inodes.items():
            if not any(self.model.slots[k].writes() for k in self.model.slots_of(ino)):
                inode.writers.discard(node)

    def left(self, node):
        """It has unmounted: it has given back all claims, also of files that others have open."""
        for inode in self.inodes.values():
            inode.writers.discard(node)

    def mtime_on_pfs_until(self, ino):
        """When all was flushed, the PFS may have another mtime than was told until then, if one node may have written parts
        of another one's file: it keeps them while a descriptor of it writes the file. When they are back, and not
        before, their lender sets the mtime (docs/protocol.md, rule 33)."""
        if len(self.of(ino).sharers) < 2:
            return 0
        written = any(self.model.slots[k].writes() for k in self.model.slots_of(ino))
        return math.inf if written and self.is_lent else self.returned_until

    def checked(self):
        """All that was lent is back, but what a descriptor writes."""
        for ino, inode in self.inodes.items():
            if not any(self.model.slots[k].writes() for k in self.model.slots_of(ino)):
                inode.sharers.clear()

    # ---- what another node may see later ----

    def open_until(self, looker, path):
        """(until when the name itself, until when one above it, may be seen as it was); 0: not. Of what was changed
        outside of the session only the time is promised."""
        itself = above = 0
        for when, node, changed, _ in self.names:
            if node == looker:
                continue
            if changed == path and node != OUTSIDE:
                itself = max(itself, when + self.window)
            elif path == changed or path.startswith(changed + "/"):
                above = max(above, when + self.window)
        return itself, above

    def list_open_until(self, looker, path):
        below = [w + self.window for w, n, changed, _ in self.names if n != looker and os.path.dirname(changed) == path]
        return max([0, *below])

    def meta_open_until(self, looker, ino):
        return max([0, *(when + self.window for when, node in self.of(ino).meta if node != looker)])

    def may_be_lost(self, ino):
        """A node that is dead may have bytes of it which nobody else has."""
        return bool(self.of(ino).writers & self.dead)

    def may_fail(self, ino, error):
        """README: EIO, where the latest bytes are on a node that left; also ESTALE, when that node is back and has dropped
        them, as the file has no name any more ("unlink of an open file")."""
        return (error == "EIO" and self.may_be_lost(ino)) or (error in ("EIO", "ESTALE") and self.of(ino).dropped)
