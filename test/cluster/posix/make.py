"""Making and removing names of every kind, and what is refused."""
import errno
import os
import stat

from common import check, mode_of, need_root, read, refused, umask, write


@check
def every_type_is_made_with_its_mode_and_umask():
    def make():
        os.mkdir("dir", 0o777)
        os.mkfifo("fifo", 0o666)
        os.symlink("target", "link")
        os.mknod("node", 0o666 | stat.S_IFREG)
        os.close(os.open("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o777))
        os.mknod("socket", 0o777 | stat.S_IFSOCK)

    umask(0o027, make)
    assert mode_of("dir") == 0o750, oct(mode_of("dir"))
    assert mode_of("fifo") == 0o640
    assert mode_of("node") == 0o640
    assert mode_of("file") == 0o750
    assert mode_of("socket") == 0o750
    assert stat.S_ISDIR(os.lstat("dir").st_mode)
    assert stat.S_ISFIFO(os.lstat("fifo").st_mode)
    assert stat.S_ISREG(os.lstat("node").st_mode)
    assert stat.S_ISSOCK(os.lstat("socket").st_mode)
    assert os.readlink("link") == "target"
    assert os.lstat("link").st_size == len("target")


@check
def devices_are_made_by_root():
    need_root()
    os.mknod("null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    st = os.stat("null")
    assert stat.S_ISCHR(st.st_mode) and st.st_rdev == os.makedev(1, 3)


@check
def what_is_there_is_not_made_again():
    write("f")
    os.mkdir("d")
    for name in "f", "d":
        with refused(errno.EEXIST):
            os.mkdir(name)
        with refused(errno.EEXIST):
            os.symlink("x", name)
        with refused(errno.EEXIST):
            os.mkfifo(name)
        with refused(errno.EEXIST):
            os.link("f", name)
        with refused(errno.EEXIST):
            os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@check
def excl_does_not_follow_a_dangling_link():
    os.symlink("nowhere", "l")
    with refused(errno.EEXIST):
        os.open("l", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    write("l", b"x")  # without O_EXCL it makes the target
    assert read("nowhere") == b"x"


@check
def wrong_kinds_are_refused():
    write("f")
    os.mkdir("d")
    os.mkdir("d/e")
    with refused(errno.ENOTDIR):
        os.stat("f/x")
    with refused(errno.ENOTDIR):
        os.mkdir("f/x")
    with refused(errno.ENOTDIR):
        os.rmdir("f")
    with refused(errno.EISDIR):
        os.unlink("d")
    with refused(errno.EISDIR):
        os.open("d", os.O_WRONLY)
    with refused(errno.ENOTEMPTY, errno.EEXIST):
        os.rmdir("d")
    with refused(errno.EPERM):
        os.link("d", "x")
    with refused(errno.EINVAL):
        os.readlink("f")
    with refused(errno.EINVAL):
        os.rmdir("d/.")
    with refused(errno.EINVAL):
        os.rename("d", "d/e/x")
    with refused(errno.ENOTEMPTY, errno.EEXIST):
        os.rename("d/e", "d")
    os.rename("f", "f")


@check
def what_is_not_there_is_missing():
    for op in os.stat, os.lstat, os.unlink, os.rmdir, os.readlink:
        with refused(errno.ENOENT):
            op("x")
    with refused(errno.ENOENT):
        os.rename("x", "y")
    with refused(errno.ENOENT):
        os.link("x", "y")
    with refused(errno.ENOENT):
        os.mkdir("x/y")
    with refused(errno.ENOENT):
        os.open("x", os.O_RDONLY)


@check
def names_have_255_bytes_at_most():
    long = "n" * 255
    write(long)
    os.rename(long, "é" * 127 + "e")
    os.unlink("é" * 127 + "e")
    longer = "n" * 256
    write("f")
    for op in (
        lambda: os.stat(longer),
        lambda: os.mkdir(longer),
        lambda: os.open(longer, os.O_CREAT | os.O_WRONLY),
        lambda: os.link("f", longer),
        lambda: os.rename("f", longer),
        lambda: os.symlink("f", longer),
        lambda: os.unlink(longer),
    ):
        with refused(errno.ENAMETOOLONG):
            op()
    with refused(errno.ENAMETOOLONG):
        os.stat("/".join(["d"] * 3000))


@check
def link_targets_are_kept_as_they_are():
    for target in "a", "x" * 4095, "/abs/../olute", "ünïcödé \n\t", "..":
        os.symlink(target, "l")
        assert os.readlink("l") == target
        os.unlink("l")
    os.symlink("b", "a")
    os.symlink("a", "b")
    with refused(errno.ELOOP):
        os.stat("a")
    with refused(errno.ELOOP):
        os.open("a", os.O_RDONLY | os.O_NOFOLLOW)


@check
def odd_names_are_names():
    names = ["-rf", " ", "...", "a\nb", "a\\b", "\x01", "'\"", "*", "~", ".hidden", "\udcff\udcfe"]
    for name in names:
        write(name, name.encode(errors="surrogateescape"))
    assert sorted(os.listdir(".")) == sorted(names)
    for name in names:
        assert read(name) == name.encode(errors="surrogateescape")


@check
def tmpfile_is_not_supported_and_says_so():
    try:
        os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY))
    except OSError as e:
        assert e.errno in (errno.EOPNOTSUPP, errno.EISDIR), errno.errorcode[e.errno]
