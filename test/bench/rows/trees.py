"""Trees of source files, as people have them: the Python library that is installed here."""
import compileall
import os
import shutil
import sysconfig

from lib.rounds import Group, Line, Row
from lib.work import run
from rows.small_files import timed

# What is imported: packages of the library, together some hundred modules.
IMPORTED = "asyncio email.mime.text xml.dom.minidom unittest.mock json http.server logging.config " \
    "multiprocessing.pool concurrent.futures sqlite3 urllib.request ctypes tarfile zipfile pydoc argparse"
PROGRAM = """
import sys, time
sys.path[:] = [p for p in sys.path if p.endswith('lib-dynload')]
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
for name in sys.argv[2:]:
    __import__(name)
print(time.perf_counter() - start)
print(sys.modules['asyncio'].__file__)
"""
LEFT_OUT = ("dist-packages", "site-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "config-*")


class Trees(Group):
    name = "tree"
    writes = True

    def make_files(self):
        tree = self.bench.pfs + "/library"
        shutil.copytree(sysconfig.get_path("stdlib"), tree, symlinks=True,
                        ignore=shutil.ignore_patterns(*LEFT_OUT))
        self.source = self.bench.work.path("library")
        if not os.path.exists(self.source):
            shutil.copytree(tree, self.source, symlinks=True)
        compileall.compile_dir(tree, quiet=2)
        self.files = sum(len(files) for _, _, files in os.walk(self.source))

    def rows(self):
        return [self.import_row(), self.copy_row()]

    def import_row(self):
        line = Line("import of a Python package tree", "/s", work="run")

        def sample(place, meter):
            meter.run(line, lambda: (1 / import_seconds(place.path("library")), 1))
        return Row(line, sample)

    def copy_row(self):
        copy, remove = (Line(f"{what} of a source tree", "files/s", work="10k ops") for what in ("cp -a", "rm -r"))

        def sample(place, meter):
            target = place.new_directory() + "/tree"
            meter.run(copy, lambda: (self.files / timed([*place.contender.copy, self.source, target]), self.files))
            if meter.turn == 0:
                run(["diff", "-r", "--no-dereference", self.source, target])
            meter.run(remove, lambda: (self.files / timed(["rm", "-r", target]), self.files))
        return Row([copy, remove], sample)


def import_seconds(tree):
    """In a Python that sees no other library, but for what it has loaded when it comes up."""
    seconds, where = run(["python3", "-I", "-S", "-B", "-c", PROGRAM, tree, *IMPORTED.split()]).split()
    assert where.startswith(tree), where
    return float(seconds)
