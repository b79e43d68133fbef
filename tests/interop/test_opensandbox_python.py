#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Python SDK of OpenSandbox, async and sync, drives sandboxes.

usage: test_opensandbox_python.py HUTCHD_DIRECT HUTCH_EXECD BUILD_DIR
       test_opensandbox_python.py HUTCHD HUTCH_EXECD BUILD_DIR native|docker|podman

The newest, and the last one before its first stable release. They are installed from PyPI into the
build directory, once for each requirements.txt.
"""

import importlib.util
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "lib"), os.path.join(here, "opensandbox")]
from installed import installed, installer, leave  # noqa: E402
from scenarios import run_everywhere  # noqa: E402

*programs, build_dir = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else None
requirements = os.path.join(here, "opensandbox", "requirements.txt")


VERSIONS = ["0.1.16", "1.1.1"]
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input",
       "--disable-pip-version-check", "--root-user-action", "ignore", "--retries", "1",
       "--timeout", "30", "--only-binary", ":all:"]


def install(directory):
    installer([*PIP, "--target", f"{directory}/needed", "--requirement", requirements])
    for version in VERSIONS:
        installer([*PIP, "--target", f"{directory}/{version}", "--no-deps",
                   f"opensandbox=={version}"])


if sys.version_info < (3, 10):
    leave(f"the SDK wants Python 3.10, this is {sys.version.split()[0]}")
if not importlib.util.find_spec("pip"):
    leave("pip is not installed")
packages = installed(build_dir, "pip", [requirements], install, f"{VERSIONS} {sys.version}")
commands = [
    [sys.executable, f"{here}/opensandbox/scenario.py", f"{packages}/{version}:{packages}/needed",
     flavour] for version, flavour in zip(VERSIONS + VERSIONS[-1:], ["sync", "sync", "async"])]
if kind == "native":
    commands.append([sys.executable, f"{here}/opensandbox/readme.py",
                     f"{packages}/{VERSIONS[-1]}:{packages}/needed", f"{here}/../../README.md"])
run_everywhere(programs, commands, build_dir, kind)
