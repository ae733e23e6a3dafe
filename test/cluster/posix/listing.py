"""Listings, deep paths, and many processes at once."""
import contextlib
import ctypes
import os
import subprocess
import traceback

from common import check, libc, read, write


@check
def twenty_thousand_files_are_listed_once_each():
    n = 20000
    for i in range(n):
        os.close(os.open(f"file-{i:06d}", os.O_CREAT | os.O_WRONLY, 0o644))
    names = os.listdir(".")
    assert len(names) == n and len(set(names)) == n, (len(names), len(set(names)))
    with os.scandir(".") as entries:  # with attributes
        inodes = {e.name: (e.inode(), e.stat().st_ino) for e in entries}
    assert len(inodes) == n and all(a == b for a, b in inodes.values())
    assert sum(1 for x in subprocess.run(["ls", "-la"], capture_output=True).stdout.splitlines()) == n + 3
    for i in range(0, n, 2):
        os.unlink(f"file-{i:06d}")
    assert sorted(os.listdir(".")) == [f"file-{i:06d}" for i in range(1, n, 2)]
    subprocess.run(["find", ".", "-type", "f", "-delete"], check=True)
    assert os.listdir(".") == []


@check
def removing_while_listing_misses_nothing():
    os.mkdir("d")
    for i in range(3000):
        write(f"d/{i}")
    os.makedirs("d/sub/sub/sub")
    subprocess.run(["rm", "-r", "d"], check=True)
    assert os.listdir(".") == []


@check
def positions_in_a_directory_can_be_gone_back_to():
    class Dirent(ctypes.Structure):
        _fields_ = [
            ("ino", ctypes.c_uint64),
            ("off", ctypes.c_int64),
            ("reclen", ctypes.c_ushort),
            ("type", ctypes.c_ubyte),
            ("name", ctypes.c_char * 256),
        ]

    libc.opendir.restype = libc.fdopendir.restype = ctypes.c_void_p
    libc.readdir.restype = ctypes.POINTER(Dirent)
    libc.telldir.restype = ctypes.c_long
    for fn in libc.readdir, libc.telldir, libc.rewinddir, libc.closedir:
        fn.argtypes = [ctypes.c_void_p]
    libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
    for i in range(1500):
        write(f"a-longer-name-so-that-there-are-several-buffers-{i}")
    d = libc.opendir(b".")
    seen = []
    while True:
        at = libc.telldir(d)
        e = libc.readdir(d)
        if not e:
            break
        seen.append((at, e.contents.name))
    assert len(seen) == 1502
    for at, name in seen[::97] + seen[::-131]:
        libc.seekdir(d, at)
        assert libc.readdir(d).contents.name == name
    write("added")
    libc.rewinddir(d)
    again = []
    while e := libc.readdir(d):
        again.append(e.contents.name)
    assert len(again) == 1503 and b"added" in again
    assert {b".", b".."} <= set(again)
    libc.closedir(d)


@check
def listings_follow_every_change():
    os.mkdir("d")
    names = set()
    for i in range(60):
        if i % 3 == 2:
            gone = names.pop()
            os.unlink(f"d/{gone}")
        else:
            write(f"d/{i}")
            names.add(str(i))
        assert set(os.listdir("d")) == names, (i, os.listdir("d"))
        os.utime("d", ns=(10**18, 10**18))  # as tar and rsync do
        assert set(os.listdir("d")) == names
    d = os.open("d", os.O_RDONLY)
    os.fsync(d)
    os.close(d)


@check
def numbers_in_listings_are_those_of_stat():
    os.mkdir("d")
    write("f")
    os.symlink("f", "l")
    for e in os.scandir("."):
        assert e.inode() == os.lstat(e.name).st_ino
        assert e.is_symlink() == (e.name == "l") and e.is_dir() == (e.name == "d")
    assert os.stat("d/..").st_ino == os.stat(".").st_ino
    assert os.stat("d/.").st_ino == os.stat("d").st_ino


@check
def paths_longer_than_path_max_by_steps():
    name = "d" * 100
    depth = 60  # 6,060 bytes
    home = os.open(".", os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir(name)
            os.chdir(name)
        write("deep", b"down here")
        os.link("deep", "deeper")
        os.rename("deep", "deepest")
        assert read("deeper") == b"down here" and sorted(os.listdir(".")) == ["deeper", "deepest"]
        os.utime("deepest", ns=(1, 2))
        assert os.stat("deeper").st_mtime_ns == 2
        os.unlink("deeper")
        os.unlink("deepest")
    finally:
        os.fchdir(home)
        os.close(home)
    subprocess.run(["rm", "-rf", name], check=True)
    assert os.listdir(".") == []


@check
def many_processes_make_and_remove_names_at_once():
    workers = []
    for w in range(8):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for i in range(150):
                    mine = f"{w}-{i}"
                    write(mine, mine.encode())
                    os.link(mine, mine + "l")
                    os.rename(mine, f"shared{i % 5}")
                    os.listdir(".")
                    with contextlib.suppress(FileNotFoundError):
                        os.stat(f"shared{(i + 1) % 5}")
                    assert read(mine + "l") == mine.encode()
                    os.unlink(mine + "l")
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        workers.append(pid)
    assert all([os.waitpid(p, 0)[1] == 0 for p in workers])
    assert sorted(os.listdir(".")) == [f"shared{k}" for k in range(5)]
    for k in range(5):
        w, i = read(f"shared{k}").decode().split("-")
        assert int(i) % 5 == k and os.stat(f"shared{k}").st_nlink == 1


@check
def only_one_of_many_makes_an_exclusive_name():
    for turn in range(20):
        ready, go = os.pipe()
        pids = []
        for w in range(6):
            pid = os.fork()
            if pid == 0:
                os.close(go)
                os.read(ready, 1)
                try:
                    os.open(f"lock{turn}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                    os._exit(0)
                except FileExistsError:
                    os._exit(1)
            pids.append(pid)
        os.close(go)
        os.close(ready)
        made = sum(os.waitpid(p, 0)[1] == 0 for p in pids)
        assert made == 1, made
