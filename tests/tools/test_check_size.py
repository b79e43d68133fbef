#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check-size on made-up trees."""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, has, run, skip, test        # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "check-size")
# A hook or a worktree may have pointed git somewhere else.
ENV = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


class Tree:
    """A made-up tree; a repository after the first commit()."""

    def __init__(self):
        if not shutil.which("ctags"):
            skip("ctags is not installed")
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name

    def write(self, path, text):
        os.makedirs(os.path.join(self.root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as f:
            f.write(text)

    def allow(self, text):
        self.write("tools/size-allow", "# why\n" + text)

    def commit(self):
        for args in (["init", "-q"], ["add", "-A"],
                     ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", self.root, *args], check=True, env=ENV)

    def check(self, *want):
        """want: the errors and warnings, in any order; the summary's lines are returned."""
        p = subprocess.run([sys.executable, TOOL, self.root], text=True, env=ENV,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = p.stdout.splitlines()
        eq(sorted(line for line in lines if not line.startswith("sizes:")), sorted(want), "output")
        eq(p.returncode, int(any(": warning:" not in line for line in want)), "exit status")
        return [line for line in lines if line.startswith("sizes:")]


def function(name, lines, parameters="void"):
    return f"int {name}({parameters})\n{{\n" + "        g();\n" * (lines - 3) + "}\n"


@test
def empty_tree():
    Tree().check()


@test
def short_functions_pass_and_are_summed_up():
    t = Tree()
    t.write("src/base/a.c", function("a", 100) + function("b", 10) + function("c", 10))
    sizes = ("3 functions, median 10 lines, p90 100, longest 100, 33.3 % above 60; "
             "0 % of 0 static ones have one user; 1 files, 0 under 60 lines, "
             "longest src/base/a.c 120")
    eq(t.check(), ["sizes: src: " + sizes, "sizes: all: " + sizes], "summary")


@test
def src_is_summed_up_apart():
    t = Tree()
    t.write("src/base/a.c", function("a", 20))
    t.write("src/base/a.h", "int a(void);\n")
    t.write("tests/unit/base/test_a.c", function("test_a", 60))
    src, everything = t.check()
    has(src, "src: 1 functions, median 20 lines")
    has(src, "2 files, 2 under 60 lines, longest src/base/a.c 20")
    has(everything, "all: 2 functions, median 40 lines")
    has(everything, "3 files, 2 under 60 lines, longest tests/unit/base/test_a.c 60")


@test
def static_functions_with_one_user_are_counted():
    t = Tree()
    t.write("src/base/a.c", "static int declared(void);\n"
            "static " + function("once", 5)
            + "static int twice(int v)\n{\n        return v; /* once( */\n}\n"
            "static " + function("table", 5)
            + "static int declared(void)\n{\n        return twice(1) + once();\n}\n"
            "int (*const f[])(void) = { table };\n"
            "int all(void)\n{\n        return declared() + twice(2);\n}\n")
    has(t.check()[0], "75 % of 4 static ones have one user")


@test
def long_function():
    t = Tree()
    t.write("src/base/a.c", "int x;\n" + function("a", 101))
    t.write("tests/unit/base/test_a.c", function("test_a", 102))
    t.check("src/base/a.c:2: a() has 101 lines, at most 100 are allowed",
            "tests/unit/base/test_a.c:1: test_a() has 102 lines, at most 100 are allowed")


@test
def long_inline_function_in_a_header():
    t = Tree()
    t.write("src/base/a.h", "static inline " + function("a", 101))
    t.check("src/base/a.h:1: a() has 101 lines, at most 100 are allowed")


@test
def long_file():
    t = Tree()
    t.write("src/base/a.c", "int x;\n" * 800)
    t.write("src/base/b.c", "int x;\n" * 801)
    t.check("src/base/b.c: file has 801 lines, at most 800 are allowed")


@test
def parameters_are_only_a_warning():
    t = Tree()
    t.write("src/base/a.c", function("a", 5, "int a, int b, int c, int d, void (*f)(int, int)"))
    t.check()
    t.write("src/base/a.c", function("a", 5, "int a, int b, int c, int d, int e, int f"))
    t.check("src/base/a.c:1: warning: a() has 6 parameters, aim at 5")


@test
def allowed_exceptions():
    t = Tree()
    t.write("src/base/a.c", function("a", 120) + "int x;\n" * 780)
    t.allow("src/base/a.c:a 120\nsrc/base/a.c 900\n")
    t.check()


@test
def exception_grown():
    t = Tree()
    t.write("src/base/a.c", function("a", 121))
    t.allow("src/base/a.c:a 120\n")
    t.check("src/base/a.c:1: a() has 121 lines, tools/size-allow grants it 120")


@test
def exception_to_be_lowered_or_removed():
    t = Tree()
    t.write("src/base/a.c", function("a", 110) + function("b", 100))
    t.allow("src/base/a.c:a 120\nsrc/base/a.c:b 120\nsrc/base/a.c:c 120\n")
    t.check("tools/size-allow: src/base/a.c:a is down to 110 lines: lower it to 110",
            "tools/size-allow: src/base/a.c:b is down to 100 lines: remove it",
            "tools/size-allow: src/base/a.c:c is gone: remove it")


@test
def exceptions_are_not_added_or_raised():
    t = Tree()
    t.write("src/base/a.c", function("a", 110) + function("b", 110))
    t.allow("src/base/a.c:a 105\n")
    t.commit()
    t.allow("src/base/a.c:a 110\nsrc/base/a.c:b 110\n")
    want = ("tools/size-allow: src/base/a.c:a was raised from 105 to 110: this list only shrinks",
            "tools/size-allow: src/base/a.c:b was added: this list only shrinks")
    t.check(*want)
    t.commit()
    t.check(*want)      # nor does committing it help


@test
def exceptions_may_shrink():
    t = Tree()
    t.write("src/base/a.c", function("a", 105) + function("b", 90))
    t.allow("src/base/a.c:a 110\nsrc/base/a.c:b 110\n")
    t.commit()
    t.allow("src/base/a.c:a 105\n")
    t.check()


run()
