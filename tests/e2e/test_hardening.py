#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hardening that SECURITY.md promises is in the program, not only in the build description.

usage: test_hardening.py BUILD_DIR PROGRAM OTHER_PROGRAM...
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import eq, has, run, test  # noqa: E402

build, program, *others = sys.argv[1:]
del sys.argv[1:]


def readelf(*options, of=program):
    return subprocess.run(["readelf", "--wide", *options, of], text=True, check=True,
                          capture_output=True, timeout=30, env={**os.environ, "LC_ALL": "C"}).stdout


def segments(kind=r"\w+"):
    """(type, flags) of the program headers of a kind."""
    row = rf"^\s+({kind})\s+(?:0x[0-9a-f]+\s+){{5}}([R ][W ][E ])\s+0x[0-9a-f]+$"
    return [(m[1], m[2].replace(" ", "")) for m in re.finditer(row, readelf("--program-headers"),
                                                               re.M)]


def imports():
    """Names of the functions that other libraries give us."""
    return set(re.findall(r"\bUND (\w+)", readelf("--dyn-syms")))


@test
def position_independent():
    """PIE: loaded at another address each time"""
    has(readelf("--file-header"), "DYN (Position-Independent Executable")
    has(readelf("--dynamic"), "PIE")


@test
def full_relro():
    """full RELRO: the table of foreign functions is filled at start and read-only afterwards"""
    eq(segments("GNU_RELRO"), [("GNU_RELRO", "R")])
    assert re.search(r"\(FLAGS\)\s+BIND_NOW|\(FLAGS_1\)\s+Flags:.* NOW\b", readelf("--dynamic"))


@test
def no_executable_stack():
    eq(segments("GNU_STACK"), [("GNU_STACK", "RW")])


@test
def nothing_is_writable_and_executable():
    found = segments()
    assert ("LOAD", "RE") in found, f"no code found: {found}"
    eq([s for s in found if "W" in s[1] and "E" in s[1]], [])


@test
def no_relocations_in_code_and_no_search_path():
    """neither TEXTREL nor RPATH"""
    dynamic = readelf("--dynamic")
    has(dynamic, "(NEEDED)")
    eq(re.findall(r"TEXTREL|RPATH|RUNPATH", dynamic), [])


@test
def stack_protector():
    has(imports(), "__stack_chk_fail")


@test
def fortified():
    """_FORTIFY_SOURCE: the checking variants of libc's functions are the ones called"""
    # Which ones is the compiler's choice: it leaves out those it can prove to be safe.
    checking = {name for name in imports() if name.endswith("_chk")}
    assert len(checking) >= 3, f"only {sorted(checking)}"


@test
def control_flow_protection():
    """compiled for indirect branch tracking and shadow stacks: then every program is marked so, else none"""
    with open(f"{build}/compile_commands.json", encoding="utf-8") as f:
        commands = [x["command"] for x in json.load(f) if x["file"].endswith("/src/hutchd/main.c")]
    assert commands, "no command compiles hutchd"
    for path in (program, *others):
        eq("x86 feature: IBT, SHSTK" in readelf("--notes", of=path), "-fcf-protection=full" in commands[0],
           f"mark of {path}")


run()
