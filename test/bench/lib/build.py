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
DAY = "86400.0"  # seconds that it keeps names and attributes
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


def build_passthrough_hp(directory):
    """Against the libfuse that this build has made, or the system's where that is used.  Twice: as it is, and, with
    "-second" behind its name, with names and attributes kept for a second in place of a day."""
    program, source = directory + "/bench/passthrough_hp", source_of_libfuse(directory)
    compile_example(directory, source + EXAMPLE, program)
    compile_example(directory, for_a_second(source + EXAMPLE, program + "-second.cc"), program + "-second")
    return program


def for_a_second(source, copy):
    with open(source) as f:
        text = f.read()
    if text.count(DAY) != 1:
        raise Failed(f"{source}: the time that names are kept is not found")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    if not os.path.exists(copy) or os.path.getmtime(source) > os.path.getmtime(copy):
        with open(copy, "w") as f:
            f.write(text.replace(DAY, "1.0"))
    return copy


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
