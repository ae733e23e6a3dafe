"""Renames: what they replace, their flags, and what is below or open."""
import errno
import os

from common import EXCHANGE, NOREPLACE, check, mode_of, read, refused, renameat2, write


@check
def rename_replaces_what_it_may():
    write("f", b"f")
    os.mkdir("d")
    os.mkdir("full")
    write("full/x")
    with refused(errno.EISDIR):
        os.rename("f", "d")
    with refused(errno.ENOTDIR):
        os.rename("d", "f")
    with refused(errno.ENOTEMPTY, errno.EEXIST):
        os.rename("d", "full")
    os.rename("full", "d")
    assert os.listdir("d") == ["x"]
    os.link("f", "g")
    os.rename("f", "g")  # two names of one file: nothing happens
    assert os.stat("f").st_nlink == 2 and os.stat("g").st_nlink == 2


@check
def rename_flags():
    write("a", b"a")
    write("b", b"b")
    with refused(errno.EEXIST):
        renameat2("a", "b", NOREPLACE)
    renameat2("a", "c", NOREPLACE)
    assert read("c") == b"c".replace(b"c", b"a")
    renameat2("b", "c", EXCHANGE)
    assert read("b") == b"a" and read("c") == b"b"
    os.mkdir("d")
    write("d/x", b"x")
    renameat2("b", "d", EXCHANGE)
    assert read("d") == b"a" and read("b/x") == b"x"
    with refused(errno.ENOENT):
        renameat2("c", "nothing", EXCHANGE)
    with refused(errno.EINVAL):
        renameat2("c", "w", NOREPLACE | EXCHANGE)


@check
def an_exchange_of_open_files_and_directories():
    os.makedirs("p/in")
    os.makedirs("q/in")
    write("p/in/f", b"p")
    write("q/in/f", b"q")
    p, q = os.open("p/in/f", os.O_RDWR), os.open("q/in/f", os.O_RDWR)
    renameat2("p", "q", EXCHANGE)
    assert read("p/in/f") == b"q" and read("q/in/f") == b"p"
    os.fchmod(p, 0o600)
    assert mode_of("q/in/f") == 0o600
    os.write(q, b"Q")
    assert read("p/in/f") == b"Q"
    os.close(p)
    os.close(q)


@check
def everything_below_a_renamed_directory_follows():
    os.makedirs("a/b/c")
    write("a/b/c/f", b"x")
    fd = os.open("a/b/c/f", os.O_RDWR)
    cwd = os.open("a/b", os.O_RDONLY)
    os.rename("a", "z")
    os.chmod("z/b/c/f", 0o600)
    assert os.fstat(fd).st_mode & 0o777 == 0o600
    write("z/b/new", b"n")
    os.mkdir("a")  # another directory under the old name
    os.makedirs("a/b/c")
    write("a/b/c/f", b"other")
    os.ftruncate(fd, 0)
    assert read("a/b/c/f") == b"other" and os.stat("z/b/c/f").st_size == 0
    assert sorted(os.listdir(cwd)) == ["c", "new"]
    assert os.stat("new", dir_fd=cwd).st_size == 1
    os.close(fd)
    os.close(cwd)


@check
def many_renames_in_a_row():
    write("f", b"x")
    ino = os.stat("f").st_ino
    for n in range(300):
        os.rename("f" if n == 0 else f"f{n - 1}", f"f{n}")
    assert os.listdir(".") == ["f299"] and os.stat("f299").st_ino == ino
    for n in range(200):
        write("new", str(n).encode())
        os.rename("new", "target")
        assert read("target") == str(n).encode()
    assert sorted(os.listdir(".")) == ["f299", "target"]
