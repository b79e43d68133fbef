#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs rely on: the names that the library exports, and a header that every compiler takes.

src/client/libhutch.map is the promise. The header declares exactly what it names, the shared library
exports exactly that, and the static one defines nothing else that a program could run into.

usage: test_abi.py SOURCE_ROOT SHARED STATIC CC...
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import eq, run, skip, test  # noqa: E402

root, shared, static = map(os.path.abspath, sys.argv[1:4])
cc = sys.argv[4:]
headers = f"{root}/include/hutch"


def promised():
    with open(f"{root}/src/client/libhutch.map", encoding="ascii") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return set(re.findall(r"\b(hutch_\w+);", text))


def declared():
    names = set()
    for name in os.listdir(headers):
        with open(f"{headers}/{name}", encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        text = re.sub(r"^#define(.*\\\n)*.*\n", "", text, flags=re.M)
        names |= set(re.findall(r"\b(hutch_\w+)\(", text))
    return {n for n in names if not n.endswith("_fn")}


def defined(path, *options):
    out = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()
            if len(line.split()) == 3 and line.split()[1] in "TDBRVWi"}


@test
def the_header_declares_what_is_promised():
    eq(declared() - promised(), set(), "declared, not promised")
    eq(promised() - declared(), set(), "promised, not declared")


@test
def the_shared_library_exports_that_and_nothing_else():
    eq(defined(shared, "-D"), promised())


@test
def its_symbols_have_a_version():
    out = subprocess.run(["nm", "-D", "--defined-only", shared], capture_output=True, text=True,
                         check=True).stdout
    eq([line for line in out.splitlines() if " hutch_" in line and "@@HUTCH_0." not in line], [])


@test
def the_static_library_has_no_other_global_names():
    eq(defined(static, "--extern-only"), promised())


@test
def nothing_in_it_prints_or_ends_the_program():
    out = subprocess.run(["nm", "-D", "--undefined-only", shared], capture_output=True, text=True,
                         check=True).stdout
    used = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    if "__asan_init" in used or any(n.startswith("__ubsan") for n in used):
        skip("sanitizers print and abort themselves")
    bad = {"abort", "exit", "_exit", "printf", "fprintf", "__printf_chk", "__fprintf_chk", "puts",
           "perror", "stderr", "stdout", "syslog", "signal", "sigaction", "getenv", "secure_getenv",
           "setlocale", "fork", "system", "assert_failed", "xcalloc"}
    eq(used & bad, set())


def compiles(command, suffix, text):
    with tempfile.TemporaryDirectory(prefix="hutch-abi-") as directory:
        source = f"{directory}/x{suffix}"
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run([*command, f"-I{root}/include", "-c", source, "-o", f"{directory}/x.o"],
                              capture_output=True, text=True, check=False)
        eq(done.returncode, 0, done.stderr)


USE = """
int use(struct hutch_client *c);
int use(struct hutch_client *c)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options o = hutch_command_options_init();

        call.timeout_ms = 5;
        o.command = "true";
        return hutch_run_command(c, NULL, &o, NULL, &call);
}
"""


@test
def every_header_compiles_alone_as_c11():
    for name in sorted(os.listdir(headers)):
        compiles([*cc, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wstrict-prototypes"],
                 ".c", f"#include <hutch/{name}>\n#include <hutch/hutch.h>\n{USE}")


@test
def the_program_of_the_manual_compiles():
    with open(f"{root}/docs/man/hutch.3", encoding="utf-8") as f:
        program = re.search(r"^\.nf\n(#include <stdio.*?)^\.fi", f.read(), re.S | re.M)[1]
    program = program.replace(r"\-", "-").replace(r"\e", "\\")
    compiles([*cc, "-std=c11", "-Wall", "-Wextra", "-Werror"], ".c", program)


@test
def it_compiles_as_cpp17():
    for cxx in ("g++", "clang++"):
        try:
            subprocess.run([cxx, "--version"], stdout=subprocess.DEVNULL, check=True)
        except FileNotFoundError:
            continue
        compiles([cxx, "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror"], ".cc",
                 f"#include <hutch/hutch.h>\n{USE}")
        return
    skip("there is no C++ compiler: install g++")


@test
def the_static_library_meets_no_name_of_a_program():
    with tempfile.TemporaryDirectory(prefix="hutch-abi-") as directory:
        with open(f"{directory}/x.c", "w", encoding="utf-8") as f:
            f.write("#include <hutch/hutch.h>\nint buf_init(void);\nint buf_init(void) { return 0; }\n"
                    "int str_cmp(void);\nint str_cmp(void) { return 0; }\n"
                    "int main(void)\n{\n        struct hutch_client *c = NULL;\n"
                    "        int r = hutch_client_new(\"http://localhost\", NULL, NULL, &c);\n"
                    "        hutch_client_free(c);\n        return r + buf_init() + str_cmp();\n}\n")
        flags = subprocess.run(["pkg-config", "--libs", "libcurl", "jansson"], capture_output=True,
                               text=True, check=True).stdout.split()
        made = subprocess.run([*cc, f"-I{root}/include", f"{directory}/x.c", static, *flags, "-pthread",
                               "-o", f"{directory}/x"], capture_output=True, text=True, check=False)
        if "__asan" in made.stderr or "__ubsan" in made.stderr:
            skip("sanitized objects need a sanitized program")
        eq(made.returncode, 0, made.stderr)
        eq(subprocess.run([f"{directory}/x"], check=False).returncode, 0)


run()
