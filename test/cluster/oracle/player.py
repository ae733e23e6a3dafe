"""Does operations below one directory, and looks at what is there.

A node's mount and the model (a plain directory on a local disk) are played by the same code, so what differs is
the file system's doing. An operation is a dictionary, as it stands in a replay file: "op" is its name, "node" the
node that does it; a file is named by "path" (opened for this operation alone) or by "slot" (a descriptor that an
earlier "open" of that node has kept). What an operation gives is {"ok": value} or {"err": "ENOENT"}.
"""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
import random
import stat
import struct
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
AT_FDCWD = -100
RENAME_FLAGS = {"": 0, "NOREPLACE": 1, "EXCHANGE": 2}
FALLOCATE_MODES = {"": 0, "KEEP": 1, "PUNCH": 3}  # a hole is punched with KEEP_SIZE
F_OFD_SETLK = 37
PAGE = 4096
LONGEST_READ = 64 << 20


def data_of(n, length):
    """The bytes that operation n writes: no two operations have the same."""
    return random.Random(n).randbytes(length)


def flags_of(names):
    flags = 0
    for name in filter(None, names.split("|")):
        flags |= getattr(os, "O_" + name)
    return flags


def digest(data):
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def checked(result):
    if result < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def aligned(data):
    """In memory that O_DIRECT takes."""
    buffer = mmap.mmap(-1, max(len(data), 1))
    buffer[:len(data)] = data
    return memoryview(buffer)[:len(data)]


def stat_fields(st):
    return {"type": stat.S_IFMT(st.st_mode), "mode": stat.S_IMODE(st.st_mode), "owner": (st.st_uid, st.st_gid),
            "nlink": st.st_nlink, "size": st.st_size, "ino": st.st_ino, "mtime": st.st_mtime_ns,
            "ctime": st.st_ctime_ns}


class Slot:
    """A descriptor that is kept."""

    def __init__(self, fd, flags):
        self.fd, self.flags = fd, flags
        self.by_descriptor = False  # opened by another one's name in /proc
        self.opened = time.monotonic()

    def writes(self):
        return "WRONLY" in self.flags or "RDWR" in self.flags


class Player:
    def __init__(self, root):
        self.root = root
        self.slots = {}  # (node, number): Slot
        self.seen = {}   # of the last look: the bytes behind each digest

    def at(self, path):
        return os.path.join(self.root, path) if path else self.root

    def do(self, op):
        try:
            return {"ok": getattr(self, "do_" + op["op"])(op)}
        except OSError as e:
            return {"err": errno.errorcode.get(e.errno, str(e.errno))}

    def note(self, where, kind):
        """The model remembers what an operation has changed: a descriptor's or a path's file; its "data", perhaps
        its data ("may", "hole"), or its attributes ("meta")."""

    def note_name(self, path):
        """... and which names it is about to change."""

    # ---- descriptors ----

    @contextlib.contextmanager
    def file(self, op, flags, prefix=""):
        if prefix + "slot" in op:
            yield self.slots[op["node"], op[prefix + "slot"]].fd
            return
        fd = self.opened(op[prefix + "path"], flags | flags_of(op.get("flags", "")), op)
        try:
            yield fd
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise
        os.close(fd)

    def opened(self, path, flags, op):
        if flags & os.O_CREAT:
            self.note_name(path)
        fd = os.open(self.at(path), flags, op.get("mode", 0o644))
        if flags & os.O_TRUNC:
            self.note(fd, "may")
        return fd

    def keep(self, op, fd, flags):
        self.slots[op["node"], op["slot"]] = Slot(fd, flags)

    def do_open(self, op):
        self.keep(op, self.opened(op["path"], flags_of(op["flags"]), op), op["flags"])

    def do_reopen(self, op):
        """By the descriptor's name in /proc."""
        path = f"/proc/self/fd/{self.slots[op['node'], op['from_slot']].fd}"
        fd = os.open(path, flags_of(op["flags"]))
        if "TRUNC" in op["flags"]:
            self.note(fd, "may")
        self.keep(op, fd, op["flags"])
        self.slots[op["node"], op["slot"]].by_descriptor = True

    def do_close(self, op):
        os.close(self.slots.pop((op["node"], op["slot"])).fd)

    def close_all(self, node):
        for key in [k for k in self.slots if k[0] == node]:
            with contextlib.suppress(OSError):
                os.close(self.slots.pop(key).fd)

    # ---- data ----

    def do_write(self, op):
        data = data_of(op["n"], op["len"])
        with self.file(op, os.O_WRONLY) as fd:
            done = os.pwrite(fd, aligned(data) if self.is_direct(op) else data, op["at"])
            self.note(fd, "data" if done else "may")
        return done

    def is_direct(self, op):
        return "DIRECT" in (self.slots[op["node"], op["slot"]].flags if "slot" in op else op.get("flags", ""))

    def do_append(self, op):
        """By O_APPEND, or by a look for the end."""
        with self.file(op, os.O_WRONLY | os.O_APPEND) as fd:
            begin = None
            self.ask_size(op, fd)
            if "slot" in op and "APPEND" not in self.slots[op["node"], op["slot"]].flags:
                begin = os.lseek(fd, 0, os.SEEK_END)
            done = os.write(fd, data_of(op["n"], op["len"]))
            self.note(fd, "data" if done else "may")
            return {"begin": begin, "done": done, "position": os.lseek(fd, 0, os.SEEK_CUR)}

    def ask_size(self, op, fd):
        """README: else the position after an append may be that of an older size."""
        if op.get("asks"):
            os.fstat(fd)

    def do_stream(self, op):
        """Writes where the descriptor is."""
        with self.file(op, os.O_WRONLY) as fd:
            self.ask_size(op, fd)
            done = os.write(fd, data_of(op["n"], op["len"]))
            self.note(fd, "data" if done else "may")
            return done

    def do_read(self, op):
        with self.file(op, os.O_RDONLY) as fd:
            data = os.read(fd, op["len"])
            return {"length": len(data), "bytes": digest(data)}

    def do_truncate(self, op):
        if "slot" in op:
            os.ftruncate(self.slots[op["node"], op["slot"]].fd, op["size"])
            self.note(self.slots[op["node"], op["slot"]].fd, "may")
        else:
            os.truncate(self.at(op["path"]), op["size"])
            self.note(self.at(op["path"]), "may")

    def do_allocate(self, op):
        with self.file(op, os.O_WRONLY) as fd:
            checked(libc.fallocate(fd, FALLOCATE_MODES[op["how"]], op["at"], op["len"]))
            self.note(fd, "hole" if op["how"] == "PUNCH" else "may")

    def do_mapstore(self, op):
        """Stores through a shared map, which msync writes back."""
        with self.file(op, os.O_RDWR) as fd:
            size = os.fstat(fd).st_size
            if size == 0:
                return 0
            with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as m:
                at = op["at"] % size
                data = data_of(op["n"], min(op["len"], size - at))
                m[at:at + len(data)] = data
                m.flush()
                if "slot" in op and self.slots[op["node"], op["slot"]].by_descriptor:
                    os.fsync(fd)  # README: of such a store the kernel tells nobody, also in msync
            self.note(fd, "may")
            return size

    def do_sync(self, op):
        with self.file(op, os.O_RDONLY) as fd:
            (os.fsync if op["how"] == "fsync" else os.fdatasync)(fd)

    def do_copy(self, op):
        with self.file(op, os.O_RDONLY, "from_") as source, self.file(op, os.O_WRONLY) as target:
            done, length, distance = 0, op["len"], op["at"] - op["from_at"]
            if distance > 0 and os.path.sameopenfile(source, target):
                length = min(length, 100 * distance)  # a file that grows under its own copy: each call copies that distance
            while done < length:
                os.fstat(source)  # as cp does; README: the kernel copies up to the size that it knows
                n = os.copy_file_range(source, target, length - done, op["from_at"] + done, op["at"] + done)
                if n == 0:
                    break
                done += n
            self.note(target, "data" if done else "may")
            return done

    def do_publish(self, op):
        """Writes another file, and renames it over the name."""
        new = op["path"] + ".new"
        with self.file({**op, "path": new}, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
            os.write(fd, data_of(op["n"], op["len"]))
            self.note(fd, "data")
        self.do_rename({"path": new, "to": op["path"], "flags": ""})

    # ---- locks ----

    def lock(self, fd, kind, how):
        if kind == "flock":
            fcntl.flock(fd, how if how == fcntl.LOCK_UN else how | fcntl.LOCK_NB)
        else:
            type_ = {fcntl.LOCK_EX: fcntl.F_WRLCK, fcntl.LOCK_SH: fcntl.F_RDLCK, fcntl.LOCK_UN: fcntl.F_UNLCK}[how]
            command = F_OFD_SETLK if kind == "ofd" else fcntl.F_SETLK
            fcntl.fcntl(fd, command, struct.pack("hhqqixxxx", type_, os.SEEK_SET, 0, 0, 0))

    def do_lock(self, op):
        self.lock(self.slots[op["node"], op["slot"]].fd, op["kind"], getattr(fcntl, "LOCK_" + op["how"]))

    def do_unlock(self, op):
        self.lock(self.slots[op["node"], op["slot"]].fd, op["kind"], fcntl.LOCK_UN)

    def do_locked(self, op):
        """Lock, look, change, unlock."""
        read_only = op["what"] == "read"
        with self.file(op, os.O_RDONLY if read_only else os.O_RDWR) as fd:
            self.lock(fd, op["kind"], fcntl.LOCK_SH if read_only else fcntl.LOCK_EX)
            try:
                return self.under_lock(op, fd)
            finally:
                self.lock(fd, op["kind"], fcntl.LOCK_UN)

    def under_lock(self, op, fd):
        if op["what"] == "append":
            end = os.lseek(fd, 0, os.SEEK_END)
            tail = os.pread(fd, 64, max(0, end - 64))
            os.pwrite(fd, data_of(op["n"], 64), end)
            self.note(fd, "data")
            return {"end": end, "bytes": digest(tail)}
        if op["what"] == "count":
            head = os.pread(fd, 16, 0)
            os.pwrite(fd, data_of(op["n"], 16), 0)
            self.note(fd, "data")
            return {"bytes": digest(head)}
        data = self.all_of(fd, PAGE * 16, False)
        return {"length": len(data), "bytes": digest(data)}

    # ---- names and attributes ----

    def do_rename(self, op):
        self.note_name(op["path"])
        self.note_name(op["to"])
        def rename():
            checked(libc.renameat2(AT_FDCWD, os.fsencode(self.at(op["path"])), AT_FDCWD, os.fsencode(self.at(op["to"])),
                                   RENAME_FLAGS[op["flags"]]))

        try:
            rename()
        except OSError as e:
            # README, "rename": the kernel knows the directory by the path that another node has moved it from.
            moved = [path for path in (op["path"], op["to"]) if e.errno == errno.ESTALE and os.path.isdir(self.at(path))]
            if not moved:
                raise
            rename()

    def do_link(self, op):
        self.note_name(op["path"])
        self.note_name(op["to"])
        os.link(self.at(op["path"]), self.at(op["to"]), follow_symlinks=False)

    def do_unlink(self, op):
        self.note_name(op["path"])
        os.unlink(self.at(op["path"]))

    def do_mkdir(self, op):
        self.note_name(op["path"])
        os.mkdir(self.at(op["path"]), op.get("mode", 0o755))

    def do_rmdir(self, op):
        self.note_name(op["path"])
        os.rmdir(self.at(op["path"]))

    def do_symlink(self, op):
        self.note_name(op["path"])
        os.symlink(op["text"], self.at(op["path"]))

    def do_chmod(self, op):
        self.change_attributes(op, lambda file: os.chmod(file, op["mode"]))

    def do_chown(self, op):
        self.change_attributes(op, lambda file: os.chown(file, op["owner"], op["owner"]))

    def do_utimens(self, op):
        self.change_attributes(op, lambda file: os.utime(file, ns=(op["mtime"], op["mtime"])), "times")

    def do_setxattr(self, op):
        value = op["value"].encode() if "value" in op else data_of(op["n"], op["len"])
        self.change_attributes(op, lambda file: os.setxattr(file, op["name"], value))

    def do_removexattr(self, op):
        self.change_attributes(op, lambda file: os.removexattr(file, op["name"]))

    def change_attributes(self, op, change, kind="meta"):
        file = self.slots[op["node"], op["slot"]].fd if "slot" in op else os.path.join(self.at(op["path"]))
        change(file)
        self.note(file, kind)

    # ---- looks ----

    def identities(self, paths):
        """Of each: (inode number, type), or an error."""
        return [self.identity(self.at(path)) for path in paths]

    @staticmethod
    def identity(path):
        try:
            st = os.lstat(path)
        except OSError as e:
            return errno.errorcode.get(e.errno, str(e.errno))
        return st.st_ino, stat.S_IFMT(st.st_mode)

    def look(self, op):
        """{"path f": {aspect: what is seen}, "slot 3": ...}: in the order in which the operation has the aspects."""
        self.seen = {}
        found = {}
        for path, aspects in op["paths"].items():
            found["path " + path] = self.look_at_path(path, aspects, op.get("piece", 1 << 20))
        for slot, aspects in op["slots"].items():
            key = "slot " + slot
            kept = self.slots[op["node"], int(slot)]
            found[key] = self.look_at_fd(key, kept.fd, aspects, op.get("piece", 1 << 20), "DIRECT" in kept.flags)
        return found

    def look_at_path(self, path, aspects, piece):
        key, found = "path " + path, {}
        by_name = [a for a in aspects if a in ("stat", "list", "link", "xattrs")]
        by_fd = [a for a in aspects if a not in by_name]
        first = by_fd if aspects[0] in by_fd else []
        for part in (first, by_name, [] if first else by_fd):
            if part is by_name:
                for aspect in part:
                    found[aspect] = self.told(lambda: getattr(self, "look_" + aspect)(self.at(path)))
            elif part:
                found.update(self.look_through_open(key, path, part, piece))
        return found

    def look_through_open(self, key, path, aspects, piece):
        direct = "direct" in aspects
        try:
            fd = os.open(self.at(path), os.O_RDONLY | os.O_NOFOLLOW | (os.O_DIRECT if direct else 0))
        except OSError as e:
            return {"open": {"err": errno.errorcode[e.errno]}}
        try:
            return self.look_at_fd(key, fd, aspects, piece, direct)
        finally:
            os.close(fd)

    def look_at_fd(self, key, fd, aspects, piece, direct):
        looks = {
            "fstat": lambda: stat_fields(os.fstat(fd)),
            "end": lambda: self.end_of(fd),
            "pos": lambda: os.lseek(fd, 0, os.SEEK_CUR),
            "bytes": lambda: self.bytes_of(key, self.all_of(fd, piece, direct)),
            "map": lambda: self.bytes_of(key + " map", self.mapped(fd)),
        }
        return {a: self.told(looks[a]) for a in aspects if a in looks}

    @staticmethod
    def told(look):
        try:
            return {"ok": look()}
        except OSError as e:
            return {"err": errno.errorcode.get(e.errno, str(e.errno))}

    @staticmethod
    def look_stat(path):
        return stat_fields(os.lstat(path))

    @staticmethod
    def look_list(path):
        with os.scandir(path) as entries:
            return sorted((e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in entries)

    @staticmethod
    def look_link(path):
        return os.readlink(path)

    @staticmethod
    def look_xattrs(path):
        names = [n for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user.")]
        return {n: digest(os.getxattr(path, n, follow_symlinks=False)) for n in sorted(names)}

    @staticmethod
    def end_of(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            return "of a directory"  # each file system has another one
        position = os.lseek(fd, 0, os.SEEK_CUR)
        end = os.lseek(fd, 0, os.SEEK_END)
        os.lseek(fd, position, os.SEEK_SET)
        return end

    @staticmethod
    def all_of(fd, piece, direct):
        """Read until there is nothing more, whatever its size is said to be."""
        buffer = memoryview(mmap.mmap(-1, piece)) if direct else None
        data = bytearray()
        while len(data) < LONGEST_READ:
            if direct:
                part = buffer[:os.preadv(fd, [buffer], len(data))]
            else:
                part = os.pread(fd, piece, len(data))
            if not len(part):
                break
            data += part
            if direct and len(data) % PAGE:
                break  # O_DIRECT is to go on at a page; this was the end
        return bytes(data)

    @staticmethod
    def mapped(fd):
        size = os.fstat(fd).st_size
        if size == 0:
            return b""
        with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) as m:
            return m[:]

    def bytes_of(self, key, data):
        self.seen[key] = data
        return [len(data), digest(data)]
