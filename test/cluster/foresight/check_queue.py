#!/usr/bin/env python3
"""check_queue.py MOUNT PLAIN: eddy.py's queues on a mount with run/step-00 to step-15; PLAIN is no eddyfs."""
import errno
import os
import sys

import eddy

MOUNT, PLAIN = sys.argv[1:]
STEPS = [f"{MOUNT}/run/step-{i:02d}" for i in range(16)]


def raises(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except OSError as e:
        assert e.errno == error, (call, args, e)
        return
    raise AssertionError(f"{call} {args}: no {errno.errorcode[error]}")


def read(path):
    with open(path, "rb") as file:
        return len(file.read())


def queues_are_opened_where_an_eddyfs_is():
    raises(errno.ENODEV, eddy.Queue, PLAIN)
    raises(errno.ENODEV, eddy.open, PLAIN, required=True)
    assert isinstance(eddy.open(PLAIN), eddy.NoQueue)
    for path in (MOUNT, STEPS[0], MOUNT + "/made/later", os.fsencode(MOUNT)):
        with eddy.Queue(path) as queue:
            assert queue.stats().hints == 0


def hints_are_numbered_and_ahead():
    with eddy.open(MOUNT, required=True) as queue:
        assert queue.extend(reversed(STEPS)) == 0 and queue.extend([]) is None
        assert queue.append(STEPS[0], 4096, 4096) == 16
        assert queue.append(MOUNT + "/run/made later") == 17
        raises(errno.EXDEV, queue.append, PLAIN + "/file")
        raises(errno.EINVAL, queue.append, "")
        raises(errno.EXDEV, queue.extend, [STEPS[0], PLAIN + "/file"])  # all or none
        assert queue.stats().hints == 18
        assert not queue.wait(0, timeout=0.2), "a queue that is not started has fetched"
        queue.start()
        assert all(queue.wait(n, timeout=30) for n in range(17))
        stats = queue.stats()
        assert stats.ahead >= 17 and stats.ahead_bytes >= 16 * 200000, stats
        raises(errno.ENOENT, queue.wait, 18)
        raises(errno.ENOENT, queue.consumed, 18)
        queue.stop()


def hints_end_when_they_are_read():
    with eddy.open(MOUNT, start=True, required=True) as queue:
        first = queue.extend(STEPS)
        for path in STEPS[:4]:
            read(path)
        assert all(queue.wait(n, timeout=30) for n in range(4))
        queue.consumed(first + 4)
        queue.cancel(first + 5)
        assert queue.wait(eddy.ALL_CONSUMED, timeout=30)
        stats = queue.stats()
        assert (stats.hints, stats.consumed, stats.cancelled) == (16, 5, 11), stats
        assert queue.append(STEPS[0]) == 16, "numbers are used again"


def relative_paths_and_strange_ones():
    os.chdir(MOUNT + "/run")
    name = b"caf\xe9 \n"
    with open(name, "wb") as file:
        file.write(b"data")
    with eddy.open(".", start=True, required=True) as queue:
        queue.extend(["step-00", name, os.fsdecode(name)])
        assert all(queue.wait(n, timeout=30) for n in range(3))


def a_forked_child_has_no_queue():
    with eddy.open(MOUNT, required=True) as queue:
        queue.append(STEPS[0])
        child = os.fork()
        if not child:
            try:
                raises(errno.ECHILD, queue.append, STEPS[1])
                queue.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert queue.append(STEPS[1]) == 1, "the child's close has ended the parent's queue"


def a_closed_queue_says_so():
    queue = eddy.open(MOUNT, required=True)
    queue.close()
    queue.close()
    try:
        queue.append(STEPS[0])
    except ValueError:
        return
    raise AssertionError("a closed queue takes hints")


def the_sampler_tells_what_is_read():
    queue = eddy.open(MOUNT, start=True, required=True)
    with eddy.Sampler(STEPS, queue, seed=3, epochs=3) as sampler:
        for epoch in range(3):
            for place, i in enumerate(sampler):
                if not place:
                    assert queue.stats().hints == 16 * min(epoch + 2, 3), (epoch, queue.stats())
                assert read(STEPS[i]) == 200000
        assert queue.wait(eddy.ALL_CONSUMED, timeout=30), queue.stats()
        stats = queue.stats()
        assert (stats.hints, stats.consumed, stats.cancelled) == (48, 48, 0), stats
    queue.close()
    with eddy.Sampler(STEPS, MOUNT) as sampler:  # opens a queue of its own
        assert sorted(sampler) == list(range(16))


def main():
    for check in (queues_are_opened_where_an_eddyfs_is, hints_are_numbered_and_ahead, hints_end_when_they_are_read,
                  relative_paths_and_strange_ones, a_forked_child_has_no_queue, a_closed_queue_says_so,
                  the_sampler_tells_what_is_read):
        check()
        print(check.__name__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
