"""A process of its own for each node, which plays on that node's mount: it has the node's kept descriptors and locks,
may hang where the mount does, and may be ended by a signal that a map gives."""

import ctypes
import multiprocessing
import os
import signal

from player import Player

PR_SET_PDEATHSIG = 1
FORK = multiprocessing.get_context("fork")  # what Python does by itself before 3.14


class Gone(Exception):
    """The worker hangs, or was ended; the text says how."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(pipe, make_player):
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    player = make_player("")
    while True:
        method, arguments = pipe.recv()
        if method == "root":
            player.root = arguments[0]
            pipe.send(None)
        elif method == "seen":
            pipe.send(player.seen.get(arguments[0]))
        else:
            pipe.send(getattr(player, method)(*arguments))


class Worker:
    def __init__(self, node, make_player=Player):
        self.node, self.make_player = node, make_player
        self.process = None
        self.hangs = False

    def start(self):
        self.hangs = False
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=serve, args=(theirs, self.make_player), daemon=True)
        self.process.start()
        theirs.close()

    def call(self, method, *arguments, seconds=90):
        try:
            self.pipe.send((method, arguments))
            if not self.pipe.poll(seconds):
                self.hangs = True
                raise Gone(f"node {self.node}: {method} hangs for {seconds} s")
            return self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join(5)
            code = self.process.exitcode
            how = signal.Signals(-code).name if code and code < 0 else f"code {code}"
            raise Gone(f"node {self.node}: the program that did this was ended: {how}") from None

    def end(self):
        """Also of one that hangs; then the daemon under it must end, too, before it is gone."""
        if self.process:
            self.process.kill()
            self.process.join(5)
            self.pipe.close()
            self.process = None
