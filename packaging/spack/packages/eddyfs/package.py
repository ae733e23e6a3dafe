# Copyright (c) 2025, the eddyfs authors
#
# SPDX-License-Identifier: BSD-2-Clause
"""Spack's recipe of eddyfs.

It has no address of an archive: what is built is what is committed in the checkout that this file is in. Its libfuse is not
Spack's, which is older than 3.17, but the source that "tools/setup --libfuse" puts into subprojects/packagefiles there;
meson looks at its checksum.
"""

import os

from spack.package import *

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))


class Eddyfs(MesonPackage):
    """Caching file system for one HPC job: what one node has read of the parallel file system is served to all nodes
    from the disks of the job's own nodes, and what the job writes is written back while the application computes."""

    git = "file://" + CHECKOUT

    license("BSD-2-Clause")

    version("0.1.0", branch="main")

    variant("tests", default=False, description="Build the unit tests")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type=("build", "run"))
    depends_on("ucx")
    depends_on("libuv")
    depends_on("openssl")
    depends_on("xxhash")
    depends_on("jansson")
    depends_on("libcap")
    depends_on("util-linux")  # libmount
    depends_on("libmicrohttpd")
    depends_on("liburing@2.3:")
    depends_on("check", when="+tests")
    # The system's fusermount3 mounts for users: a setuid program cannot come from Spack.

    @run_before("meson")
    def take_libfuse(self):
        files = join_path(self.stage.source_path, "subprojects", "packagefiles")
        mkdirp(files)
        for archive in find(join_path(CHECKOUT, "subprojects", "packagefiles"), "fuse3_*.orig.tar.gz"):
            install(archive, files)

    def meson_args(self):
        return ["-Dtests=" + ("enabled" if self.spec.satisfies("+tests") else "disabled")]

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            which("meson")("install", "--no-rebuild", "--skip-subprojects")

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", join_path(self.prefix, self.spec["python"].package.purelib))
