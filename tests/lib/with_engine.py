#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with a container engine that was started for it.

usage: with_engine.py docker|podman BUILD_DIR PROGRAM [ARGUMENT...]

The program finds the engine's socket in HUTCH_TEST_ENGINE_SOCKET. Where there can be no engine the
program is skipped, and the reason is told.
"""

import os
import subprocess
import sys

from engine import Engine, why_not
from installed import CannotInstall, leave

kind, build_dir, *command = sys.argv[1:]
if reason := why_not(kind):
    leave(reason)
try:
    with Engine(kind, os.path.abspath(build_dir)) as e:
        status = subprocess.run(command, check=False, env={
            **os.environ, "HUTCH_TEST_ENGINE": kind, "HUTCH_TEST_ENGINE_SOCKET": e.socket}).returncode
        if status != 0:
            lines = [line for line in e.log().splitlines() if "level=info" not in line]
            print("# what the engine has logged:", *lines[-20:], sep="\n# ")
except CannotInstall as e:
    leave(f"the image can't be made: {e}")
sys.exit(status if status >= 0 else 128 - status)
