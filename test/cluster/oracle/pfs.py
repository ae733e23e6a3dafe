"""The PFS, when all is flushed: is it as the model is?"""

import os
import stat

from compare import Deviation
from nodes import CONFLICT
from player import Player
from say import which_bytes


def entries(root):
    found = {}
    for directory, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, root)] = os.lstat(path)
    return found


def compare_trees(model, root, facts, ops):
    """Deviations, those of names first."""
    ours, theirs = entries(model.root), entries(root)
    conflicts = sorted(p for p in theirs if CONFLICT in p)
    if conflicts:
        return [Deviation("pfs/conflict", "the PFS", "no conflict", conflicts)]
    if ours.keys() != theirs.keys():
        return [Deviation("pfs/names", "names on the PFS", sorted(ours.keys() - theirs.keys()),
                          sorted(theirs.keys() - ours.keys()))]
    found = []
    for path in sorted(ours):
        found += compare_one(model, root, path, ours[path], theirs[path], facts, ops)
    return found


def compare_one(model, root, path, ours, theirs, facts, ops):
    def differ(field, expected, got, until=0):
        return Deviation(f"pfs/{field}", f"{path} on the PFS: {field}", expected, got, until)
    found = []
    if ours.st_mode != theirs.st_mode:
        found.append(differ("mode", oct(ours.st_mode), oct(theirs.st_mode)))
    if (ours.st_uid, ours.st_gid) != (theirs.st_uid, theirs.st_gid):
        found.append(differ("owner", (ours.st_uid, ours.st_gid), (theirs.st_uid, theirs.st_gid)))
    if ours.st_nlink != theirs.st_nlink:
        found.append(differ("nlink", ours.st_nlink, theirs.st_nlink))
    if stat.S_IFMT(ours.st_mode) != stat.S_IFMT(theirs.st_mode):
        return found
    here, there = os.path.join(model.root, path), os.path.join(root, path)
    if stat.S_ISLNK(ours.st_mode):
        if os.readlink(here) != os.readlink(there):
            found.append(differ("link", os.readlink(here), os.readlink(there)))
        return found
    if Player.look_xattrs(here) != Player.look_xattrs(there):
        found.append(differ("xattrs", Player.look_xattrs(here), Player.look_xattrs(there)))
    if stat.S_ISREG(ours.st_mode):
        found += compare_data(differ, here, there, ops)
        told = facts.of(ours.st_ino).told
        if told and told[0] != theirs.st_mtime_ns:
            found.append(differ("mtime", told[0], theirs.st_mtime_ns, facts.mtime_on_pfs_until(ours.st_ino)))
    return found


def compare_data(differ, here, there, ops):
    with open(here, "rb") as f, open(there, "rb") as g:
        expected, got = f.read(), g.read()
    if expected == got:
        return []
    field = "bytes" if len(expected) == len(got) else "size"
    return [differ(field, f"{len(expected)} bytes", f"{len(got)} bytes" + which_bytes(expected, got, ops))]
