"""Hard links, and files and directories that are open when their name goes."""
import errno
import os
import stat
import time

from common import check, mode_of, read, refused, write


@check
def hard_links_are_one_file():
    write("a", b"one")
    os.link("a", "b")
    a, b = os.stat("a"), os.stat("b")
    assert a.st_ino == b.st_ino and a.st_nlink == b.st_nlink == 2
    write("b", b"other")
    assert read("a") == b"other"
    os.unlink("a")
    assert os.stat("b").st_nlink == 1 and read("b") == b"other"
    with refused(errno.ENOENT):
        os.stat("a")


def link_count_without(fd, take_away):
    """The writes make the kernel ask again, so that a count of 2 is remembered when a name goes."""
    os.link("a", "b")
    for _ in range(40):
        os.write(fd, b"x")
        assert os.fstat(fd).st_nlink == 2
    take_away()
    return os.stat("a").st_nlink, os.fstat(fd).st_nlink


@check
def the_link_count_is_right_at_once():
    fd = os.open("a", os.O_RDWR | os.O_CREAT, 0o644)
    for n in range(20):
        assert link_count_without(fd, lambda: os.unlink("b")) == (1, 1), n
        write("c", b"y")
        assert link_count_without(fd, lambda: os.rename("c", "b")) == (1, 1), n
        os.unlink("b")
    os.close(fd)


@check
def a_descriptor_survives_its_name_while_another_is_left():
    write("a", b"data")
    os.link("a", "b")
    fd = os.open("a", os.O_RDWR)
    os.unlink("a")
    assert os.fstat(fd).st_nlink == 1
    os.fchmod(fd, 0o600)
    assert mode_of("b") == 0o600
    os.utime(fd, ns=(10**9, 2 * 10**9))
    assert os.stat("b").st_mtime_ns == 2 * 10**9
    os.ftruncate(fd, 2)
    assert read("b") == b"da"
    os.close(fd)


@check
def an_unlinked_open_file_is_read_and_written():
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"before")
    ino = os.fstat(fd).st_ino
    os.unlink("f")
    st = os.fstat(fd)
    assert st.st_nlink == 0 and st.st_size == 6 and st.st_ino == ino, st
    os.write(fd, b" after")
    assert os.pread(fd, 100, 0) == b"before after"
    assert os.fstat(fd).st_size == 12
    os.ftruncate(fd, 3)
    assert os.pread(fd, 100, 0) == b"bef" and os.fstat(fd).st_size == 3
    os.fchmod(fd, 0o600)
    write("f", b"new")  # another file under the name
    assert os.pread(fd, 100, 0) == b"bef" and read("f") == b"new"
    assert os.fstat(fd).st_nlink == 0 and os.stat("f").st_nlink == 1
    os.close(fd)
    assert read("f") == b"new"


@check
def attributes_of_an_unlinked_open_file_are_changed_for_good():
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"x")
    os.setxattr(fd, "user.before", b"1")
    os.unlink("f")
    os.fchmod(fd, 0o600)
    os.utime(fd, ns=(10**9, 2 * 10**9))
    if os.geteuid() == 0:
        os.fchown(fd, 7, 8)
    os.setxattr(fd, "user.after", b"2")
    time.sleep(1.1)  # attribute time-out
    st = os.fstat(fd)
    assert stat.S_IMODE(st.st_mode) == 0o600 and st.st_mtime_ns == 2 * 10**9 and st.st_nlink == 0, st
    assert os.geteuid() != 0 or (st.st_uid, st.st_gid) == (7, 8), st
    assert os.getxattr(fd, "user.before") == b"1" and os.getxattr(fd, "user.after") == b"2"
    os.write(fd, b"y")
    st = os.fstat(fd)
    assert stat.S_IMODE(st.st_mode) == 0o600 and st.st_size == 2 and st.st_mtime_ns > 2 * 10**9, st
    os.close(fd)


@check
def the_link_count_is_right_after_another_open():
    fd = os.open("a", os.O_RDWR | os.O_CREAT, 0o644)
    for n in range(20):
        os.link("a", "b")
        assert os.fstat(fd).st_nlink == 2
        os.unlink("b")
        time.sleep(0.002)
        other = os.open("a", os.O_RDWR)
        assert os.fstat(other).st_nlink == 1, n
        os.close(other)
    os.close(fd)


@check
def a_file_replaced_by_rename_is_still_read():
    write("a", b"old" * 1000)
    write("b", b"new")
    fd = os.open("a", os.O_RDONLY)
    os.rename("b", "a")
    assert os.fstat(fd).st_nlink == 0
    assert os.read(fd, 10000) == b"old" * 1000
    assert read("a") == b"new" and os.listdir(".") == ["a"]
    os.close(fd)


@check
def a_dirty_file_keeps_its_bytes_under_every_name():
    fd = os.open("a", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"1")
    os.rename("a", "b")
    os.write(fd, b"2")
    os.mkdir("d")
    os.rename("b", "d/c")
    os.rename("d", "e")
    os.write(fd, b"3")
    assert os.fstat(fd).st_size == 3
    assert read("e/c") == b"123"
    os.close(fd)
    assert read("e/c") == b"123"
    write("over", b"x" * 100000)
    os.rename("e/c", "over")
    assert read("over") == b"123" and os.stat("over").st_size == 3


@check
def a_removed_directory_that_is_open_is_empty():
    os.mkdir("d")
    fd = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir("d")
    assert os.fstat(fd).st_nlink == 0
    assert os.listdir(fd) == []
    with refused(errno.ENOENT):
        os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    os.mkdir("d")
    write("d/f")
    assert os.listdir(fd) == []
    os.close(fd)
