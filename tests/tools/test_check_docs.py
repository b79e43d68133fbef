#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check-docs on a made-up repository of one page and some code."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, run, test       # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "check-docs")
ENV = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
FILES = {
    "src/base/buf.h": "void buf_add(int x);\n#define BUF_MAX 3\n",
    "docs/internals/other.md": "# The other page\n\n## How it is `done`\n",
    "tools/lint": "#!/bin/sh\n",
}


def check(page, *want, path="docs/internals/page.md"):
    """Runs the tool on a page; want: the lines it must print about it, no others."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**FILES, path: page}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)) or root, exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run(["git", "init", "-q", root], check=True, env=ENV)
        subprocess.run(["git", "-C", root, "add", "-A"], check=True, env=ENV)
        p = subprocess.run([sys.executable, TOOL, root], text=True, env=ENV,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    eq(p.stdout.splitlines(), [f"{path}:{line}" for line in want], "output")
    eq(p.returncode, 1 if want else 0, "exit status")


@test
def what_exists():
    check("src/base/buf.h, `base/buf.h`, `tools/lint`, src/base/ and `other.md`.\n")
    check("See [this](other.md), [here](other.md#how-it-is-done), [up](../../src/base),\n"
          "[out](https://example.org/x.c).\n")
    check("Call `buf_add(1)` with `BUF_MAX`, from (src/base/buf.h).\n")


@test
def what_does_not():
    check("One.\nIt is in src/base/bug.h.\n", "2: src/base/bug.h: no such file")
    check("`base/bug.c`\n", "1: base/bug.c: no such file")
    check("`tools/lin`\n", "1: tools/lin: no such file")
    check("[a](another.md)\n", "1: link to another.md: no such file")
    check("[a](other.md#why)\n", "1: link to other.md#why: no such heading")
    check("[a](#nowhere)\n", "1: link to #nowhere: no such heading")
    check("`buf_sub()` and `BUF_MIN`\n", "1: buf_sub: no such name in the sources",
          "1: BUF_MIN: no such name in the sources")


@test
def code_blocks():
    """paths count there, names and brackets do not"""
    check("```c\nfoo_bar(src/base/bug.h); a[1](x)\n```\n[a](b.md)\n",
          "2: src/base/bug.h: no such file", "4: link to b.md: no such file")


@test
def the_root_has_pages_too():
    check("[a](docs/internals/other.md) src/base/bug.h\n", "1: src/base/bug.h: no such file",
          path="README.md")


@test
def what_is_no_mention():
    """patterns, placeholders, libraries' names, and what is to come"""
    check("src/*/x.c, `docs/NNNN-x.md`, tests/unit/<layer>/x.c, `uv_tcp_t`, `x_init`, a/b\n")
    check("`include/hutch/hutch.h` and `hutch_create` (to come)\n")
    check("https://example.org/src/base/none.c\n")


run()
