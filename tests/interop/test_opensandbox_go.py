#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Go SDK of OpenSandbox drives sandboxes.

usage: test_opensandbox_go.py HUTCHD_DIRECT HUTCH_EXECD BUILD_DIR
       test_opensandbox_go.py HUTCHD HUTCH_EXECD BUILD_DIR native|docker|podman

The scenario is built with the SDK into the build directory, once for each state of its sources. go.mod
names the version; that it is what everyone else gets is checked by the checksum database that go
is configured with.
"""

import os
import re
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sources = os.path.join(here, "opensandbox", "go")
sys.path[:0] = [os.path.join(here, "..", "lib"), os.path.join(here, "opensandbox")]
from installed import installed, installer, leave, need  # noqa: E402
from scenarios import run_everywhere  # noqa: E402

*programs, build_dir = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else None


def install(directory):
    """Builds in a copy, because go writes checksums beside go.mod."""
    work = f"{directory}/work"
    shutil.copytree(sources, work)
    env = {**os.environ, "GOFLAGS": "-mod=mod -modcacherw", "GOTOOLCHAIN": "local",
           "GOPATH": os.path.join(build_dir, "go", "path"),
           "GOCACHE": os.path.join(build_dir, "go", "cache")}
    installer(["go", "build", "-o", f"{directory}/scenario", "."], cwd=work, env=env)


need("go")
version = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
found = re.search(r"go(\d+)\.(\d+)", version)
if not found or (int(found[1]), int(found[2])) < (1, 20):
    leave(f"the SDK wants Go 1.20, this is {version.strip()}")
built = installed(build_dir, "go", [f"{sources}/go.mod", f"{sources}/main.go"], install, version)
run_everywhere(programs, [[f"{built}/scenario"]], build_dir, kind)
