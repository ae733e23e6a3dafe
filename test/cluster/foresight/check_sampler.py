#!/usr/bin/env python3
"""check_sampler.py: the orders that eddy.Sampler gives out, and what it tells of them, and when: with a queue that only notes what it
is told.  PYTHONPATH has eddy.py.  Torch's samplers take part where torch is."""
import errno
import random
import sys
import warnings

import eddy


class Noted(eddy.NoQueue):
    """The hints that stand, in their order: (number, path)."""

    def __init__(self):
        super().__init__()
        self.stands = []

    def extend(self, items):
        items = list(items)
        first = super().extend(items)
        self.stands += [(first + k, item) for k, item in enumerate(items)]
        return first

    def cancel(self, from_number):
        self.stands = [(number, path) for number, path in self.stands if number < from_number]

    def paths(self):
        return [path for _, path in self.stands]


N = 20
FILES = [f"/data/{i}" for i in range(N)]


def paths(order):
    return [FILES[i] for i in order]


def orders_are_drawn_apart():
    sampler = eddy.Sampler(FILES, Noted(), seed=7)
    random.seed(1)
    first = list(sampler)
    random.seed(2)
    random.random()
    again = eddy.Sampler(FILES, Noted(), seed=7)
    assert list(again) == first, "the order depends on the program's own generator"
    assert list(again) != first and list(again) != first, "each epoch has the same order"
    assert list(eddy.Sampler(FILES, Noted(), seed=8)) != first
    assert sorted(first) == list(range(N)) and len(sampler) == N
    assert list(eddy.Sampler(FILES, Noted(), shuffle=False)) == list(range(N))


def two_epochs_are_told():
    queue = Noted()
    sampler = eddy.Sampler(FILES, queue, seed=3)
    e = [sampler.order(k) for k in range(4)]
    assert not queue.stands, "something is told before the first epoch"
    for k in range(3):
        for place, i in enumerate(sampler):
            assert i == e[k][place]
            assert queue.paths() == sum((paths(e[j]) for j in range(k + 2)), []), (k, place)
    sampler.close()
    assert queue.paths() == sum((paths(e[j]) for j in range(3)), []), "hints of the next epoch stay"


def the_last_epoch_is_the_last():
    queue = Noted()
    with eddy.Sampler(FILES, queue, epochs=2) as sampler:
        for _ in range(2):
            list(sampler)
        assert len(queue.stands) == 2 * N
        assert sorted(sampler) == list(range(N)), "an epoch more than was said"
        assert len(queue.stands) == 2 * N


def an_epoch_may_end_early():
    queue = Noted()
    sampler = eddy.Sampler(FILES, queue, seed=5)
    e = [sampler.order(k) for k in range(3)]
    for place, _ in enumerate(sampler):
        if place == 4:
            break
    assert queue.paths() == paths(e[0] + e[1])
    assert next(iter(sampler)) == e[1][0]
    assert queue.paths() == paths(e[0][:5] + e[1] + e[2]), "what was not read is not taken back"
    sampler.set_epoch(0)
    assert list(sampler) == e[0]
    assert queue.paths() == paths(e[0][:5] + e[1][:1] + e[0] + e[1]), "another epoch than was told"
    sampler.set_epoch(0)
    assert list(sampler) == e[0], "the same epoch again"
    assert queue.paths() == paths(e[0][:5] + e[1][:1] + e[0] + e[0] + e[1])


def ranks_part_it():
    for n, replicas in ((20, 4), (21, 4), (3, 5), (0, 2)):
        for drop in (False, True):
            parts = [eddy.Sampler(range(n), Noted(), rank=r, replicas=replicas, drop_last=drop) for r in range(replicas)]
            orders = [list(p) for p in parts]
            assert [len(o) for o in orders] == [len(p) for p in parts] == [len(orders[0])] * replicas
            given = sum(orders, [])
            if drop:
                assert len(given) == n - n % replicas and len(set(given)) == len(given)
            else:
                assert set(given) == set(range(n)) and len(given) - n < max(replicas, 1) or not n


def files_may_be_a_function_and_ranges():
    queue = Noted()
    list(eddy.Sampler(lambda i: (FILES[0], i * 10, 10), queue, n=3, shuffle=False, epochs=1))
    assert queue.paths() == [(FILES[0], 0, 10), (FILES[0], 10, 10), (FILES[0], 20, 10)]
    for wrong in (lambda: eddy.Sampler(str, queue), lambda: eddy.Sampler(FILES, queue, rank=2, replicas=2)):
        try:
            wrong()
        except ValueError:
            continue
        raise AssertionError("wrong arguments are taken")


class Failing(Noted):
    def __init__(self, error):
        super().__init__()
        self.error, self.fails = error, False

    def extend(self, items):
        if self.fails:
            raise OSError(self.error, "as told")
        return super().extend(items)


def a_queue_that_fails_stops_no_epoch():
    for error in (errno.ENOBUFS, errno.ENOTCONN):
        queue = Failing(error)
        sampler = eddy.Sampler(FILES, queue, seed=3)
        e = [sampler.order(k) for k in range(5)]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for epoch in range(4):
                queue.fails = epoch == 1
                assert list(sampler) == e[epoch], epoch
        assert len(warned) == 1 and "as told" in str(warned[0].message), warned
        told = 5 if error == errno.ENOBUFS else 2  # after the other one the queue is of no use
        assert queue.paths() == sum((paths(e[k]) for k in range(told)), []), error
        sampler.close()


class Batches:
    """As a batch sampler of torch around one that counts its epochs."""

    def __init__(self):
        self.epoch = None

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 2

    def __iter__(self):
        yield [self.epoch, self.epoch + 1]
        yield [self.epoch + 2]


def another_sampler_gives_the_order():
    queue = Noted()
    sampler = eddy.Sampler(FILES, queue, sampler=Batches())
    assert len(sampler) == 2
    assert list(sampler) == [[0, 1], [2]] and list(sampler) == [[1, 2], [3]]
    assert queue.paths() == paths([0, 1, 2, 1, 2, 3, 2, 3, 4])


def torch_samplers_give_the_order():
    from torch.utils.data import BatchSampler, RandomSampler
    import torch
    for make in (lambda: RandomSampler(FILES), lambda: BatchSampler(RandomSampler(FILES), 3, False)):
        torch.manual_seed(1)
        first = list(eddy.Sampler(FILES, Noted(), seed=1, sampler=make()))
        torch.manual_seed(2)
        assert list(eddy.Sampler(FILES, Noted(), seed=1, sampler=make())) == first
        assert list(eddy.Sampler(FILES, Noted(), seed=2, sampler=make())) != first


def without_an_eddyfs_nothing_is_told():
    queue = eddy.open("/proc")
    assert isinstance(queue, eddy.NoQueue) and isinstance(queue.why, OSError)
    assert queue.append("/proc/x") == 0 and queue.extend(["a", "b"]) == 1 and queue.extend([]) is None
    assert queue.wait(0) and queue.stats().hints == 0
    assert sorted(eddy.Sampler(FILES, "/proc")) == list(range(N))
    try:
        eddy.open("/proc", required=True)
    except OSError:
        return
    raise AssertionError("a queue that is required is none")


def main():
    checks = [orders_are_drawn_apart, two_epochs_are_told, the_last_epoch_is_the_last, an_epoch_may_end_early, ranks_part_it,
              files_may_be_a_function_and_ranges, another_sampler_gives_the_order, a_queue_that_fails_stops_no_epoch,
              without_an_eddyfs_nothing_is_told]
    try:
        import torch  # noqa: F401
        checks.append(torch_samplers_give_the_order)
    except ImportError:
        print("torch is not here: its own samplers are not tried")
    for check in checks:
        check()
    print(f"{len(checks)} checks")


if __name__ == "__main__":
    sys.exit(main())
