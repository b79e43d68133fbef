#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libhutch and a hutchd at a unix socket.

usage: test_local.py HUTCHD_DIRECT HUTCH_EXECD PROGRAM
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402

hutchd, execd, program = map(os.path.abspath, sys.argv[1:4])
with Hutchd(hutchd, config=f"agent: {execd}\ndriver: direct\n", env={"HUTCH_TEST_DIRECT": "1"}) as h:
    status = subprocess.run([program, h.socket], check=False).returncode
sys.exit(status)
