#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of this directory against a real hutchd with real agents; its points are ours.

usage: test_scenario.py HUTCHD_DIRECT HUTCH_EXECD [VALGRIND...] -- PROGRAM [ARGUMENT...]

The program gets the server's URL, an admin's key and an image in front of its arguments. What stands before
the -- (valgrind and its options) is put in front of all that.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deployment import Deployment  # noqa: E402

split = sys.argv.index("--")
programs, command = sys.argv[1:3], sys.argv[split + 1:]
before = sys.argv[3:split]              # valgrind and its options

with Deployment(programs, keys={"admin": ("ops", "admin")}) as h:
    program, *arguments = command
    status = subprocess.run([*before, os.path.abspath(program), f"http://{h.domain}", h.keys["admin"],
                             "debian:12", *arguments], check=False).returncode
    if status != 0:
        print("#", h.log()[-3000:].replace("\n", "\n# "), flush=True)
sys.exit(status)
