#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/build on a project of one file."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, has, run, runnable_directory, skip, test      # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "build")
_directory = runnable_directory()     # gone at exit
directory = _directory.name


def project(name):
    path = f"{directory}/{name}"
    os.mkdir(path)
    with open(f"{path}/meson.build", "w", encoding="ascii") as f:
        f.write("project('p', 'c')\nexecutable('p', 'p.c')\n")
    with open(f"{path}/meson_options.txt", "w", encoding="ascii") as f:
        f.write("option('extra', type: 'boolean', value: false)\n")
    with open(f"{path}/p.c", "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    return path


def build(path, *options, code=0, cc=None):
    env = {k: v for k, v in os.environ.items() if k != "CC"}
    p = subprocess.run([sys.executable, TOOL, "build", *options], cwd=path, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       env={**env, "CC": cc} if cc else env)
    eq(p.returncode, code, p.stdout)
    return p.stdout


def compiled_by(path):
    with open(f"{path}/build/compile_commands.json", encoding="utf-8") as f:
        return f.read()


BOTH = "configuring build\nbuilding build\n"


@test
def does_what_is_needed_and_no_more():
    path = project("plain")
    eq(build(path, "-Dextra=false"), BOTH)
    eq(build(path, "-Dextra=false"), "", "second time")
    eq(build(path), "", "without options")
    eq(build(path, "-Dextra=true"), "configuring build\n", "another option")
    eq(build(path, "-Dextra=true", "-Dwerror=false"), "", "the same options")


@test
def a_changed_description_is_no_occasion_for_noise():
    path = project("changed")
    build(path)
    with open(f"{path}/meson.build", "a", encoding="ascii") as f:
        f.write("message('hello')\n")
    eq(build(path), "configuring build\n")
    eq(build(path), "", "second time")
    with open(f"{path}/meson.build", "a", encoding="ascii") as f:
        f.write("error('it is broken')\n")
    has(build(path, code=1), "it is broken")


@test
def a_moved_tree_is_built_anew():
    path = project("before")
    build(path, "-Dextra=true")
    os.rename(path, path := f"{directory}/after")
    eq(build(path, "-Dextra=true"), BOTH)
    eq(build(path), "", "second time")


@test
def a_copied_tree_leaves_the_original_alone():
    path = project("original")
    build(path)
    os.remove(f"{path}/build/p")
    shutil.copytree(path, f"{directory}/copy")
    eq(build(f"{directory}/copy"), BOTH)
    assert os.path.exists(f"{directory}/copy/build/p"), "nothing was built"
    assert not os.path.exists(f"{path}/build/p"), "the original was built"


@test
def half_a_folder_is_no_obstacle():
    """a configuration that was cut short, or whose notes are unreadable"""
    path = project("half")
    build(path)
    os.remove(f"{path}/build/build.ninja")
    has(build(path), "configuring build\n")
    with open(f"{path}/build/meson-info/intro-targets.json", "w", encoding="ascii") as f:
        f.write("[")
    has(build(path), "configuring build\n")
    eq(build(path), "")


@test
def the_compiler_is_the_one_asked_for():
    if not shutil.which("clang") or not shutil.which("gcc"):
        skip("needs gcc and clang")
    path = project("compilers")
    build(path, cc="gcc")
    eq(build(path), "", "no compiler named")
    eq(build(path, cc="gcc"), "", "the same compiler")
    eq(build(path, cc="clang"), BOTH)
    has(compiled_by(path), "clang")
    eq(build(path), "", "no compiler named")


@test
def a_failure_is_shown():
    path = project("broken")
    with open(f"{path}/p.c", "w", encoding="ascii") as f:
        f.write("int main(void) { return nothing; }\n")
    has(build(path, code=1), "nothing")
    has(build(path, "-Dno-such-option=1", code=1), "no-such-option")


run()
