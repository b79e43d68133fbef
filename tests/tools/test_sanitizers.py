#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_sanitizers.py CANARY: a build with sanitizers catches what it is there to catch.

Without this, a lost compiler flag would turn "make asan" into a second "make test".
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import has, run, test      # noqa: E402

CANARY = sys.argv[1]


def caught(mistake, report):
    p = subprocess.run([CANARY, mistake], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    has(p.stdout, report)
    assert p.returncode not in (0, 2), f"exit status {p.returncode}"


@test
def heap_overflow():
    caught("heap-overflow", "AddressSanitizer: heap-buffer-overflow")


@test
def use_after_free():
    caught("use-after-free", "AddressSanitizer: heap-use-after-free")


@test
def leak():
    caught("leak", "LeakSanitizer: detected memory leaks")


@test
def signed_overflow():
    caught("signed-overflow", "signed integer overflow")


@test
def null_pointer():
    caught("null-pointer", "null pointer")


run()
