"""A release build of its own, and libfuse's example that eddyfs is compared with."""
import glob
import os
import subprocess
import sys
import tarfile

from lib.work import Failed, run

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
ARCHIVES = os.path.join(TOP, "subprojects/packagefiles/fuse3_*.orig.tar.gz")
EXAMPLE = "example/passthrough_hp.cc"
DAY, SECOND = "86400.0", "1.0"  # seconds: it keeps names and attributes for the first
TARGETS = ["eddyfs", "eddy", "test/faultfs", "test/smallfiles", "test/readtrace", "test/fillstore",
           "test/phasework"]


def build_dir():
    return os.path.realpath(os.environ.get("EDDY_BUILD", os.path.join(TOP, "build"))) + "-bench"


def setup():
    """Installs what is missing; says nothing when all is there."""
    if subprocess.run([os.path.join(TOP, "tools/setup"), "--bench"], stdin=subprocess.DEVNULL).returncode:
        raise Failed("tools/setup --bench failed: install what it names, then add --no-setup")


def build(jobs):
    """Configured again each time, to find new files. Debug builds check locks: not for measuring."""
    directory = build_dir()
    again = ["--reconfigure"] if os.path.exists(directory + "/build.ninja") else []
    run(["meson", "setup", *again, directory, TOP, "--buildtype=release"])
    run(["ninja", "-C", directory, "-j", str(jobs), *TARGETS])
    return directory


def source_of_libfuse(directory):
    """The tree that meson has unpacked, else the archive, unpacked here."""
    trees = glob.glob(os.path.join(TOP, "subprojects/fuse-*", EXAMPLE))
    if not trees:
        for archive in glob.glob(ARCHIVES):
            with tarfile.open(archive) as tar:
                tar.extractall(directory + "/bench")
        trees = glob.glob(os.path.join(directory, "bench/fuse-*", EXAMPLE))
    if not trees:
        raise Failed("libfuse's source is not there: tools/setup --bench gets it")
    return trees[0][:-len(EXAMPLE)]


def build_passthrough_hp(directory, names=DAY):
    """Against the libfuse that this build has made, or the system's where that is used.  It keeps names and
    attributes for DAY, as it is, or for SECOND."""
    program, example = directory + "/bench/passthrough_hp", source_of_libfuse(directory) + EXAMPLE
    if names != DAY:
        program += f"-{names}"
        with open(example) as f:
            text = f.read()
        if text.count(DAY) != 1:
            raise Failed(f"{example}: the time that names are kept is not found")
        example = program + ".cc"
        write_if_new(example, text.replace(DAY, names))
    compile_example(directory, example, program)
    return program


def write_if_new(path, text):
    """Not when it says this already: what is made of it would be made again."""
    try:
        with open(path) as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def compile_example(directory, example, program):
    source = source_of_libfuse(directory)
    made = glob.glob(directory + "/subprojects/fuse-*/lib/libfuse3.a")
    if made:
        config = os.path.dirname(os.path.dirname(made[0]))
        flags = [f"-I{source}include", f"-I{source}lib", f"-I{source}example", f"-I{config}", "-lpthread", "-ldl"]
    else:
        flags = run(["pkg-config", "--cflags", "--libs", "fuse3"]).split() + [f"-I{source}lib", f"-I{source}example"]
    needs = [example, *made]
    if not os.path.exists(program) or any(os.path.getmtime(n) > os.path.getmtime(program) for n in needs):
        print(f"building libfuse's {os.path.basename(program)}", file=sys.stderr)
        os.makedirs(os.path.dirname(program), exist_ok=True)
        run(["g++", "-O3", "-DNDEBUG", "-DHAVE_LIBFUSE_PRIVATE_CONFIG_H", "-D_FILE_OFFSET_BITS=64", "-std=c++17", "-w",
             example, *made, *flags, "-o", program])
