#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libhutch and a stock OpenSandbox server: the package from PyPI, with a Docker of its own.

usage: test_stock.py HUTCH_EXECD BUILD_DIR SCENARIO

Needs root, dockerd and a way to PyPI; what is missing is said. The package is installed into the build
directory, once.
"""

import importlib.util
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from installed import installed, installer, leave  # noqa: E402
from stock import IMAGE, StockServer, apart, missing  # noqa: E402

agent, build_dir, scenario = map(os.path.abspath, sys.argv[1:4])
VERSION = "1.1.1"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
       "--root-user-action", "ignore", "--retries", "1", "--timeout", "30", "--only-binary", ":all:"]


def install(directory):
    installer([*PIP, "--target", directory, f"opensandbox-server=={VERSION}"])


def inside(packages):
    """In namespaces of our own."""
    with StockServer(packages, agent) as s:
        status = subprocess.run([scenario, s.url, s.key, IMAGE], check=False).returncode
        if status != 0:
            print("#", s.log().replace("\n", "\n# "), flush=True)
    return status


if len(sys.argv) > 4:
    sys.exit(inside(sys.argv[4]))
if reason := missing():
    leave(reason)
if sys.version_info < (3, 10):
    leave(f"the server wants Python 3.10, this is {sys.version.split()[0]}")
if not importlib.util.find_spec("pip"):
    leave("pip is not installed")
directory_ = installed(build_dir, "pip-server", [], install, f"{VERSION} {sys.version}")
sys.exit(apart([sys.executable, os.path.abspath(__file__), *sys.argv[1:4], directory_]))
