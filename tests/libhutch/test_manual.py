#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual of the library has all that its header has, in the same words.

usage: test_manual.py SOURCE_ROOT
"""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import eq, run, skip, test  # noqa: E402

root = sys.argv[1]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


header = "\n".join(re.sub(r"/\*.*?\*/", "", read(p), flags=re.S)
                   for p in sorted(glob.glob(f"{root}/include/hutch/*.h")))
pages = {os.path.basename(p).removesuffix(".3"): read(p).replace("\\-", "-")
         for p in sorted(glob.glob(f"{root}/docs/man/*.3"))}


def functions(text):
    """Declarations by name, in one line each."""
    found = re.findall(r"^(?!typedef|return)((?:const )?[a-z]\w*[\w ]*?[ *]+(hutch_\w+)\([^;{}]*\);)", text,
                       re.M)
    return {name: re.sub(r"\( ", "(", " ".join(whole.split())) for whole, name in found}


def section(page, title):
    found = re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", page, re.M | re.S)
    return found[1] if found else ""


def members(struct):
    """Names of a struct's members that a program sets or reads."""
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", header, re.M | re.S)[1]
    callbacks = re.findall(r"\(\*(\w+)\)\(", body)
    plain = re.sub(r"[^;]*\(\*\w+\)\([^;]*;", "", body)
    names = [n for line in plain.split(";") for n in re.findall(r"(\w+)(?:\[\w+\])?\s*(?=,|$)", line.strip())]
    return [n for n in callbacks + names if n != "size" and not n.startswith("_")]


@test
def every_function_has_a_page():
    """every function has a page, with the declaration of the header"""
    declared, described = functions(header), {}
    for name, page in pages.items():
        for function, words in functions(section(page, "SYNOPSIS")).items():
            assert function not in described, f"{function} is in two pages"
            described[function] = words
            assert re.search(rf"^\.BR {function} \(", section(page, "DESCRIPTION"), re.M), \
                f"{name}(3) declares {function} and does not speak of it"
    assert len(declared) > 60, declared
    eq(sorted(set(declared) - set(described)), [], "without a page")
    eq(sorted(set(described) - set(declared)), [], "not in the header")
    eq({n: w for n, w in described.items() if declared[n] != w}, {}, "declared otherwise in the header")


@test
def names_and_links_are_those_of_the_synopsis():
    table = dict(re.findall(r"^  '(\w+)': \[(.*?)\]", read(f"{root}/docs/man/meson.build"), re.M | re.S))
    eq(sorted(table), sorted(pages), "pages that are installed")
    for name, page in pages.items():
        names = section(page, "NAME").partition(" - ")[0].replace("\n", " ").split(", ")
        eq(names[0], name)
        links = re.findall(r"'(\w+)'", table[name])
        eq(sorted(names[1:]), sorted(links), f"links to {name}(3)")
        eq(sorted(set(functions(section(page, "SYNOPSIS"))) - set(names)), [], f"names of {name}(3)")


@test
def members_are_described():
    where = {"hutch_client_options": "hutch_client_new", "hutch_sandbox_options": "hutch_create_sandbox",
             "hutch_command_options": "hutch_run_command", "hutch_command_result": "hutch_run_command",
             "hutch_call": "hutch_call", "hutch_error": "hutch_call", "hutch_loop_options": "hutch_loop_new",
             "hutch_event_watch": "hutch_watch_events", "hutch_source": "hutch_upload_files",
             "hutch_download": "hutch_upload_files", "hutch_file_upload": "hutch_upload_files"}
    for struct, name in where.items():
        names = members(struct)
        assert names, struct
        words = set(re.findall(r"\w+", pages[name]))
        eq([n for n in names if n not in words], [], f"members of {struct} that {name}(3) lacks")


@test
def every_code_is_described():
    codes = re.findall(r"^\s+(HUTCH_\w+) = -\d+", header, re.M)
    assert len(codes) > 15, codes
    eq([c for c in codes if f".B {c}\n" not in section(pages["hutch_call"], "ERRORS")], [], "missing codes")


@test
def references_lead_somewhere():
    there = set(pages) | {f for page in pages.values() for f in functions(section(page, "SYNOPSIS"))}
    for name, page in pages.items():
        for reference in re.findall(r"\b(hutch\w*) \(3\)", page):
            assert reference in there, f"{name}(3): there is no {reference}(3)"
        for mentioned in re.findall(r"\b(hutch_\w+) ?\(\)?", page):
            assert mentioned in there or mentioned.endswith("_init"), f"{name}(3): no function {mentioned}"


@test
def groff_has_no_complaints():
    if not shutil.which("groff"):
        skip("groff is not installed")
    for path in sorted(glob.glob(f"{root}/docs/man/*.[1-9]")):
        p = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", path], capture_output=True, text=True,
                           timeout=60, check=False)
        eq((p.returncode, p.stderr), (0, ""), path)


run()
