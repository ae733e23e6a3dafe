"""What the checks share: registering one, expecting errors, being another user."""
import contextlib
import ctypes
import errno
import os
import stat
import sys
import traceback

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
NOREPLACE, EXCHANGE = 1, 2
NOBODY = 12345  # a user and group that own nothing
checks = []


class Skip(Exception):
    pass


def check(fn):
    checks.append(fn)
    return fn


@contextlib.contextmanager
def refused(*codes):
    try:
        yield
    except OSError as e:
        assert e.errno in codes, f"{errno.errorcode[e.errno]}, not {[errno.errorcode[c] for c in codes]}"
    else:
        raise AssertionError(f"was not refused with {[errno.errorcode[c] for c in codes]}")


def write(path, data=b"", mode=0o666):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.write(fd, data)
    os.close(fd)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def renameat2(a, b, flags):
    if libc.renameat2(AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), flags) != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def as_user(fn, uid=NOBODY, gid=NOBODY, groups=()):
    """Runs fn as another user, in a child; its exception is raised here."""
    need_root()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups(list(groups))
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            fn()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, f"as user {uid}: failed, see above"


def umask(mask, fn):
    old = os.umask(mask)
    try:
        return fn()
    finally:
        os.umask(old)


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)
