#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official JavaScript SDK of OpenSandbox, the oldest and the newest, drives sandboxes.

usage: test_opensandbox_js.py HUTCHD_DIRECT HUTCH_EXECD BUILD_DIR
       test_opensandbox_js.py HUTCHD HUTCH_EXECD BUILD_DIR native|docker|podman

The SDK is installed from npm into the build directory, once for each package-lock.json.
"""

import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
packages = os.path.join(here, "opensandbox")
sys.path[:0] = [os.path.join(here, "..", "lib"), packages]
from installed import installed, installer, leave, need  # noqa: E402
from scenarios import run_everywhere  # noqa: E402

*programs, build_dir = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else None

# Left alone npm tries for more than a minute, and waits five for a registry that says nothing.
NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
       "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000"]


def install(directory):
    for name in ["package.json", "package-lock.json"]:
        shutil.copy(f"{packages}/{name}", directory)
    installer(NPM, cwd=directory)


need("node", "npm")
node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
if int(node.lstrip("v").partition(".")[0]) < 20:
    leave(f"the SDK wants Node 20, this is {node.strip()}")
modules = installed(build_dir, "npm", [f"{packages}/package-lock.json"], install)
run_everywhere(programs, [["node", f"{packages}/scenario.mjs", f"{modules}/node_modules/{which}"]
                          for which in ["oldest", "newest"]], build_dir, kind)
