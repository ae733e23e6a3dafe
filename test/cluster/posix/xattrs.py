"""Extended attributes and ACLs."""
import ctypes
import errno
import os
import shutil
import subprocess

from common import (
    NOBODY,
    Skip,
    as_user,
    check,
    libc,
    mode_of,
    need_root,
    read,
    refused,
    umask,
    write,
)


def need_xattrs():
    write("x")
    try:
        os.setxattr("x", "user.a", b"1")
    except OSError as e:
        raise Skip(f"no extended attributes here: {e.strerror}") from e
    os.unlink("x")


@check
def xattrs_are_kept():
    need_xattrs()
    write("f")
    os.mkdir("d")
    for name in "f", "d":
        os.setxattr(name, "user.one", b"value")
        os.setxattr(name, "user.empty", b"")
        os.setxattr(name, "user.big", bytes(range(256)) * 8)
        assert sorted(os.listxattr(name)) == ["user.big", "user.empty", "user.one"]
        assert os.getxattr(name, "user.big") == bytes(range(256)) * 8
        assert os.getxattr(name, "user.empty") == b""
        with refused(errno.EEXIST):
            os.setxattr(name, "user.one", b"x", os.XATTR_CREATE)
        os.setxattr(name, "user.one", b"x", os.XATTR_REPLACE)
        assert os.getxattr(name, "user.one") == b"x"
        with refused(errno.ENODATA):
            os.setxattr(name, "user.none", b"x", os.XATTR_REPLACE)
        with refused(errno.ENODATA):
            os.getxattr(name, "user.none")
        os.removexattr(name, "user.one")
        with refused(errno.ENODATA):
            os.removexattr(name, "user.one")
    os.setxattr("f", "user.eddy.mine", b"1")
    os.rename("f", "g")
    assert os.getxattr("g", "user.eddy.mine") == b"1"
    size = libc.getxattr(b"g", b"user.big", None, 0)
    assert size == 2048, size
    small = ctypes.create_string_buffer(10)
    assert libc.getxattr(b"g", b"user.big", small, 10) == -1 and ctypes.get_errno() == errno.ERANGE
    with refused(errno.EOPNOTSUPP):
        os.setxattr("g", "nonsense.name", b"x")


def acl(*args):
    done = subprocess.run(["setfacl", *args], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no ACLs here: {done.stderr.strip()}")


def getfacl(path):
    out = subprocess.run(["getfacl", "-cE", path], capture_output=True, text=True, check=True)
    return out.stdout.split()


@check
def acls_are_kept_and_change_the_mode():
    if not shutil.which("setfacl"):
        raise Skip("needs setfacl")
    write("f")
    os.chmod("f", 0o600)
    acl("-m", f"u:{NOBODY}:rw", "f")
    assert f"user:{NOBODY}:rw-" in getfacl("f"), getfacl("f")
    assert mode_of("f") == 0o660, oct(mode_of("f"))  # the mask
    os.chmod("f", 0o600)
    assert "mask::---" in getfacl("f")
    acl("-b", "f")
    assert getfacl("f") == ["user::rw-", "group::---", "other::---"], getfacl("f")


@check
def an_acl_gives_a_user_access():
    need_root()
    if not shutil.which("setfacl"):
        raise Skip("needs setfacl")
    write("f", b"secret")
    os.chmod("f", 0o600)

    def denied():
        with refused(errno.EACCES):
            read("f")

    as_user(denied)
    acl("-m", f"u:{NOBODY}:r", "f")
    as_user(lambda: read("f"))


@check
def a_default_acl_counts_in_place_of_the_umask():
    if not shutil.which("setfacl"):
        raise Skip("needs setfacl")
    os.mkdir("d")
    umask(0o077, lambda: write("d/before"))
    assert mode_of("d/before") == 0o600
    acl("-d", "-m", f"u::rwx,g::rx,o::rx,u:{NOBODY}:rwx", "d")
    umask(0o077, lambda: write("d/f"))
    umask(0o077, lambda: os.mkdir("d/sub"))
    assert mode_of("d/f") == 0o664, oct(mode_of("d/f"))
    assert mode_of("d/sub") == 0o775, oct(mode_of("d/sub"))
    assert f"default:user:{NOBODY}:rwx" in getfacl("d/sub"), getfacl("d/sub")
    acl("-k", "d")
    umask(0o077, lambda: write("d/after"))
    assert mode_of("d/after") == 0o600
