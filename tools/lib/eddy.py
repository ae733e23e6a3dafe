"""eddy - tells an eddyfs on this node which files will be read next, so that they are in its cache by then.

    import eddy

    with eddy.open("/mnt/data", start=True) as queue:
        queue.extend(reversed(checkpoints))
        for path in reversed(checkpoints):
            restore(path)

A hint is never needed and never wrong: it changes when bytes are fetched and how long they are kept, and nothing else.  So
eddy.open gives a queue that does nothing where there is no eddyfs, or no libeddy.  eddy.Sampler gives a PyTorch DataLoader
its order, and tells it.

This file is all there is; it needs libeddy.so, which is looked for where the system looks for libraries, or is named by
EDDY_LIBRARY.  Any thread may call; calls that wait let other threads run.  Errors are OSError, with errno; what each one
means is in eddy.h.  A process that was forked does not have its parent's queues (ECHILD).
"""

import ctypes
import errno
import os
import random
import warnings
import weakref

__all__ = ["ALL_CONSUMED", "NoQueue", "Queue", "Sampler", "Stats"]  # eddy.open is not to hide the open of Python

ALL_CONSUMED = -1  # for Queue.wait
_ANY_READER = 1
_NAMES = ("libeddy.so.0", "libeddy.so")


class _Hint(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class Stats(ctypes.Structure):
    """What has become of a queue's hints; the names and units are those of struct eddy_queue_stats in eddy.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "hints", "cancelled", "consumed", "admitted", "ahead", "absent", "ahead_bytes", "fetched_bytes")]

    def __repr__(self):
        return "Stats(" + ", ".join(f"{name}={getattr(self, name)}" for name, _ in self._fields_) + ")"


def _load():
    failure = None
    for name in [os.environ["EDDY_LIBRARY"]] if "EDDY_LIBRARY" in os.environ else _NAMES:
        try:
            lib = ctypes.CDLL(name)
            break
        except OSError as e:
            failure = e
    else:
        raise OSError(errno.ENOSYS, f"libeddy is not installed, and EDDY_LIBRARY does not name it: {failure}")
    queue, number, many = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(_Hint)
    for name, result, arguments in (
            ("open", ctypes.c_int, [ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(queue)]),
            ("append_many", number, [queue, many, ctypes.c_size_t]),
            ("start", ctypes.c_int, [queue]),
            ("stop", ctypes.c_int, [queue]),
            ("consumed", ctypes.c_int, [queue, number]),
            ("wait", ctypes.c_int, [queue, number, ctypes.c_int]),
            ("cancel", ctypes.c_int, [queue, number]),
            ("stats", ctypes.c_int, [queue, ctypes.POINTER(Stats), ctypes.c_size_t]),
            ("close", None, [queue])):
        function = getattr(lib, "eddy_queue_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = None


def _library():
    global _lib
    if _lib is None:
        _lib = _load()
    return _lib


def _checked(result, what=None):
    if result < 0:
        raise OSError(-result, os.strerror(-result), what)
    return result


def _as_hint(item):
    """A path, or (path, offset, length) in bytes; length 0: to the end."""
    path, off, length = item if isinstance(item, (tuple, list)) else (item, 0, 0)
    return _Hint(os.fsencode(path), off, length)


def _close(lib, handle, pid):
    if os.getpid() == pid:
        lib.eddy_queue_close(handle)


class Queue:
    """The hints of one reader, in the order in which it will read: files that this process opens, or its descendants (a
    DataLoader's workers); any_reader: or any process on this node.

    path: the mount, or anything in it.  OSError: ENODEV, it is no eddyfs; ENOSYS, there is no libeddy; others as in eddy.h."""

    def __init__(self, path, any_reader=False, start=False):
        lib, handle = _library(), ctypes.c_void_p()
        _checked(lib.eddy_queue_open(os.fsencode(path), _ANY_READER if any_reader else 0, ctypes.byref(handle)), path)
        self._lib, self._handle = lib, handle
        self._end = weakref.finalize(self, _close, lib, handle, os.getpid())
        if start:
            self.start()

    def _queue(self):
        if not self._end.alive:
            raise ValueError("the queue is closed")
        return self._handle

    def append(self, path, offset=0, length=0):
        """This will be read: length bytes at offset; length 0: to the end.  The file need not exist yet.  Returns the hint's
        number: 0, 1, 2 ..."""
        return self.extend([(path, offset, length)])

    def extend(self, items):
        """Appends a hint for each item, a path or (path, offset, length); all or none.  Returns the number of the first
        one, or None if there are no items."""
        hints = [_as_hint(item) for item in items]
        if not hints:
            return None
        array = (_Hint * len(hints))(*hints)
        return _checked(self._lib.eddy_queue_append_many(self._queue(), array, len(hints)))

    def start(self):
        """Fetching begins.  A queue that is not started only tells the cache what to keep."""
        _checked(self._lib.eddy_queue_start(self._queue()))

    def stop(self):
        """Fetching ends; the hints stay."""
        _checked(self._lib.eddy_queue_stop(self._queue()))

    def consumed(self, number):
        """This hint's bytes were read.  Needed only where the file is not closed after it was read."""
        _checked(self._lib.eddy_queue_consumed(self._queue(), number))

    def wait(self, number, timeout=None):
        """Waits until what the hint names is on this node, or was read; ALL_CONSUMED: until all hints were read.  timeout:
        seconds.  False: it is over."""
        ms = -1 if timeout is None else max(0, min(round(timeout * 1000), 2**31 - 1))
        result = self._lib.eddy_queue_wait(self._queue(), number, ms)
        if result == -errno.ETIMEDOUT:
            return False
        _checked(result)
        return True

    def cancel(self, from_number):
        """Takes back the hints with this number and all later ones."""
        _checked(self._lib.eddy_queue_cancel(self._queue(), from_number))

    def stats(self):
        stats = Stats()
        _checked(self._lib.eddy_queue_stats(self._queue(), ctypes.byref(stats), ctypes.sizeof(stats)))
        return stats

    def close(self):
        """Ends the queue and its hints.  No other call with it may be under way.  May be called again."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class NoQueue:
    """Has the methods of a Queue, and does nothing; `why` is the OSError for which there is no queue."""

    def __init__(self, why=None):
        self.why = why
        self._next = 0

    def append(self, path, offset=0, length=0):
        return self.extend([(path, offset, length)])

    def extend(self, items):
        first, n = self._next, sum(1 for _ in items)
        self._next += n
        return first if n else None

    def start(self):
        pass

    def stop(self):
        pass

    def consumed(self, number):
        pass

    def wait(self, number, timeout=None):
        return True

    def cancel(self, from_number):
        pass

    def stats(self):
        return Stats()

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def open(path, any_reader=False, start=False, required=False):
    """A Queue at the mount in which path is.  Where there can be none (no eddyfs, one without queues, no libeddy, too many
    queues): a NoQueue, or the OSError if it is required."""
    try:
        return Queue(path, any_reader, start)
    except OSError as e:
        if required or e.errno not in (errno.ENODEV, errno.ENOSYS, errno.EAGAIN, errno.EACCES):
            raise
        return NoQueue(e)


# ---- for PyTorch ----


def _flat(order):
    for index in order:
        if isinstance(index, (tuple, list)):  # of a batch sampler
            yield from index
        else:
            yield index


class _Told:
    """An epoch: its order, how many hints it has, the first one's number, and how many of them were given out."""

    def __init__(self, order, n, first):
        self.order, self.n, self.first, self.given = order, n, first, 0


class Sampler:
    """The sampler of a torch DataLoader.  Each epoch's order is drawn before the epoch begins, from a generator of its own, and
    told to the queue; the next epoch's with it, so that the cache keeps what comes again soon.

        sampler = eddy.Sampler(paths, "/mnt/data", seed=1)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=32, num_workers=4)

    files     what is read for each index: files[i] is a path, or (path, offset, length); or a function of i
    queue     a queue, or a path in the mount: then one is opened, and ended by close()
    seed      epoch e has the order of (seed, e), on every rank and in every run; nothing else draws from that generator
    shuffle   False: in order
    rank, replicas   as of torch's DistributedSampler: this one takes each replicas-th index of the order, which is padded from
              its beginning to a multiple of replicas, or cut to one (drop_last)
    epochs    after so many nothing is told any more; None: not known
    sampler   one of torch's, whose order is used instead: shuffle, rank, replicas and drop_last are its own.  Its generator is
              replaced by one that is seeded as above; set_epoch() is called, if it has that.  Batch samplers may be used, too.
    n         how many indexes there are, if files is a function and there is no sampler

    It needs no torch, but for `sampler`.  One epoch is iterated at a time.  An epoch that ends early (break) is no error: its
    hints are taken back when the next one begins.  If the queue fails (the mount has no memory for so many hints, or has ended),
    the epoch goes on without it, with a warning; one that was opened here is opened again for the next epoch."""

    def __init__(self, files, queue, *, seed=0, shuffle=True, rank=0, replicas=1, drop_last=False, epochs=None,
                 sampler=None, n=None):
        if not 0 <= rank < replicas:
            raise ValueError(f"rank {rank} of {replicas} replicas")
        if callable(files) and sampler is None and n is None:
            raise ValueError("files is a function: n must tell how many indexes there are")
        self._file = files if callable(files) else files.__getitem__
        self._n = n if n is not None else None if callable(files) else len(files)
        self._seed, self._shuffle, self._epochs, self._inner = seed, shuffle, epochs, sampler
        self._rank, self._replicas, self._drop_last = rank, replicas, drop_last
        self._path = queue if isinstance(queue, (str, bytes, os.PathLike)) else None
        self._queue = queue if self._path is None else open(queue, start=True)
        self._failed = False
        self._epoch = 0  # the one that the next iteration is
        self._told = {}  # by epoch: this one and the next

    # ---- orders ----

    def _drawn(self, epoch):
        order = list(range(self._n))
        if self._shuffle:
            random.Random(f"eddy {self._seed} {epoch}").shuffle(order)
        if self._drop_last:
            del order[len(order) - len(order) % self._replicas:]
        else:
            short = -len(order) % self._replicas
            while order and short > 0:  # more replicas than indexes
                more = order[:short]
                order += more
                short -= len(more)
        return order[self._rank::self._replicas]

    def _of_inner(self, epoch):
        inner = self._inner
        if hasattr(inner, "set_epoch"):
            inner.set_epoch(epoch)
        for drawing in (inner, getattr(inner, "sampler", None)):  # a BatchSampler has another one
            if hasattr(drawing, "generator"):
                import torch
                number = random.Random(f"eddy {self._seed} {epoch}").getrandbits(62)
                drawing.generator = torch.Generator().manual_seed(number)
        return list(inner)

    def order(self, epoch):
        """The indexes of an epoch, as they are given out."""
        if epoch in self._told:
            return self._told[epoch].order
        return self._drawn(epoch) if self._inner is None else self._of_inner(epoch)

    # ---- telling ----

    def _fail(self, error):
        warnings.warn(f"eddyfs is not told what will be read: {error}", RuntimeWarning, stacklevel=4)
        if error.errno == errno.ENOBUFS:
            return  # what was told before stands
        if self._path is not None:
            self._queue.close()
        self._queue, self._failed = NoQueue(error), True

    def _tell(self, epoch):
        if epoch in self._told or (self._epochs is not None and epoch >= self._epochs):
            return
        order = self.order(epoch)
        files = [self._file(i) for i in _flat(order)]
        try:
            self._told[epoch] = _Told(order, len(files), self._queue.extend(files))
        except OSError as e:
            self._told[epoch] = _Told(order, 0, None)
            self._fail(e)

    def _take_back(self, unread):
        self._told.clear()
        try:
            if unread:
                self._queue.cancel(min(told.first + told.given for told in unread.values()))
        except OSError as e:
            self._fail(e)

    def _open_again(self):
        if self._failed and self._path is not None:
            self._told.clear()  # of the queue that failed
            self._queue, self._failed = open(self._path, start=True), False

    def _begin(self, epoch):
        self._open_again()
        unread = {e: told for e, told in self._told.items() if told.given < told.n}
        if any(e != epoch or told.given for e, told in unread.items()):
            self._take_back(unread)  # an epoch ended early, or another one comes than was told
        else:
            self._told = unread
        self._tell(epoch)
        self._tell(epoch + 1)

    # ---- as a sampler ----

    def set_epoch(self, epoch):
        """The next iteration is of this epoch: to go on where a run has ended.  Else epochs are 0, 1, 2 ..."""
        self._epoch = epoch

    def __iter__(self):
        epoch = self._epoch
        self._epoch += 1
        self._begin(epoch)
        told = self._told.get(epoch) or _Told(self.order(epoch), 0, None)
        for index in told.order:
            told.given += len(index) if isinstance(index, (tuple, list)) else 1
            yield index

    def __len__(self):
        if self._inner is not None:
            return len(self._inner)
        return self._n // self._replicas if self._drop_last else -(-self._n // self._replicas)

    def close(self):
        """Takes all hints back; ends the queue if it was opened here."""
        if self._path is not None:
            self._queue.close()
            self._told.clear()
        else:
            self._take_back({e: told for e, told in self._told.items() if told.given < told.n})

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
