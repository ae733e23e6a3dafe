"""Several users: owners, groups, sticky and setgid directories, permissions."""
import contextlib
import errno
import os
import shutil
import subprocess

from common import NOBODY, as_user, check, mode_of, need_root, read, refused, write


@check
def what_a_user_makes_is_the_users():
    need_root()
    os.chmod(".", 0o777)

    def make():
        write("f")
        os.mkdir("d")
        os.symlink("x", "l")
        os.mkfifo("p")
        write("d/g", b"x")

    as_user(make)
    for name in "f", "d", "l", "p", "d/g":
        st = os.lstat(name)
        assert (st.st_uid, st.st_gid) == (NOBODY, NOBODY), (name, st.st_uid, st.st_gid)


@check
def setgid_directories_give_their_group():
    need_root()
    os.mkdir("d")
    os.chown("d", 0, 4242)
    os.chmod("d", 0o2777)

    def make():
        write("d/f")
        os.mkdir("d/sub")

    as_user(make)
    assert os.stat("d/f").st_gid == 4242 and os.stat("d/f").st_uid == NOBODY
    assert os.stat("d/sub").st_gid == 4242 and mode_of("d/sub") & 0o2000


@check
def a_user_loses_setgid_for_a_group_not_ones_own():
    need_root()
    os.chmod(".", 0o777)
    write("f")
    os.chown("f", NOBODY, 4242)

    def change():
        os.chmod("f", 0o2755)

    as_user(change)
    assert mode_of("f") == 0o755, oct(mode_of("f"))
    as_user(change, groups=[4242])
    assert mode_of("f") == 0o2755


@check
def sticky_directories_protect_others_files():
    need_root()
    os.chmod(".", 0o1777)
    write("root's")
    os.mkdir("root's dir")

    def attack():
        for op in (
            lambda: os.unlink("root's"),
            lambda: os.rename("root's", "mine"),
            lambda: os.rmdir("root's dir"),
        ):
            with refused(errno.EPERM, errno.EACCES):
                op()
        write("mine")
        with refused(errno.EPERM, errno.EACCES):
            os.rename("mine", "root's")
        os.unlink("mine")

    as_user(attack)
    assert sorted(os.listdir(".")) == ["root's", "root's dir"]


@check
def permissions_are_checked():
    need_root()
    os.mkdir("closed", 0o700)
    write("closed/f")
    write("f", b"x")
    os.chmod("f", 0o600)
    os.chmod(".", 0o755)

    def attack():
        for op in (
            lambda: os.stat("closed/f"),
            lambda: os.listdir("closed"),
            lambda: write("new"),
            lambda: os.mkdir("new"),
            lambda: os.unlink("f"),
            lambda: read("f"),
            lambda: os.truncate("f", 0),
            lambda: os.rename("f", "g"),
        ):
            with refused(errno.EACCES):
                op()
        for op in lambda: os.chmod("f", 0o777), lambda: os.chown("f", NOBODY, -1), lambda: os.utime("f", (1, 1)):
            with refused(errno.EPERM):
                op()

    as_user(attack)
    assert read("f") == b"x"


@check
def owners_and_groups_can_be_changed():
    need_root()
    write("f")
    os.chmod("f", 0o6755)
    os.chown("f", 1, 2)
    st = os.stat("f")
    assert (st.st_uid, st.st_gid) == (1, 2)
    assert mode_of("f") == 0o755, "chown clears setuid and setgid: " + oct(mode_of("f"))
    os.chown("f", -1, 3)
    os.chown("f", 4, -1)
    st = os.stat("f")
    assert (st.st_uid, st.st_gid) == (4, 3)
    os.symlink("f", "l")
    os.lchown("l", 7, 8)
    assert os.lstat("l").st_uid == 7 and os.stat("f").st_uid == 4


@check
def a_chown_to_nobody_else_clears_setuid():
    need_root()
    write("f")
    os.chmod("f", 0o6755)
    os.chown("f", -1, -1)
    assert mode_of("f") == 0o755, oct(mode_of("f"))
    os.chmod(".", 0o777)
    os.chmod("f", 0o6755)

    def attack():
        with contextlib.suppress(PermissionError):
            os.chown("f", -1, -1)

    as_user(attack)
    assert mode_of("f") == 0o6755, "a user clears another's setuid: " + oct(mode_of("f"))
    os.chmod("f", 0o2644)  # without the group's right to execute setgid is another thing
    os.chown("f", -1, -1)
    assert mode_of("f") == 0o2644, oct(mode_of("f"))


@check
def a_reader_of_a_setuid_file_sees_who_writes_it():
    need_root()
    write("f", b"data")
    os.chmod("f", 0o4755)
    reader = os.open("f", os.O_RDONLY)
    os.fstat(reader)
    writer = os.open("f", os.O_WRONLY | os.O_APPEND)
    os.write(writer, b" and more")
    size = os.fstat(reader).st_size
    seen = os.pread(reader, 100, 0)
    os.close(writer)
    os.close(reader)
    assert size == 13 and seen == b"data and more", (size, seen)


@check
def a_users_truncation_clears_setuid():
    need_root()
    os.chmod(".", 0o777)
    write("f", b"data")
    os.chown("f", NOBODY, NOBODY)
    os.chmod("f", 0o6777)
    as_user(lambda: os.truncate("f", 2))
    assert mode_of("f") == 0o777, oct(mode_of("f"))


@check
def a_program_that_may_only_be_executed_is():
    need_root()
    os.chmod(".", 0o755)
    shutil.copy("/bin/true", "run")
    os.chmod("run", 0o711)

    def execute():
        with refused(errno.EACCES):
            read("run")
        assert subprocess.run(["./run"], check=False).returncode == 0

    as_user(execute)


@check
def a_group_member_reads():
    need_root()
    write("f", b"x")
    os.chown("f", 0, 4242)
    os.chmod("f", 0o640)
    os.chmod(".", 0o755)
    as_user(lambda: read("f"), groups=[4242])

    def denied():
        with refused(errno.EACCES):
            read("f")

    as_user(denied)
