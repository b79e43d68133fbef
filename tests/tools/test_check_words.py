#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check-words on made-up repositories."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, run, test       # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "check-words")
ENV = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
SPDX = "SPDX-License-Identifier: Apache-2.0"
NO_SPDX = f"no line '{SPDX}'"


def check(path, data, *want, tracked=True):
    """Runs the tool on a repository of one file; want: the lines it must print, no others."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(root, path), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        subprocess.run(["git", "init", "-q", root], check=True, env=ENV)
        if tracked:
            subprocess.run(["git", "-C", root, "add", "-A"], check=True, env=ENV)
        p = subprocess.run([sys.executable, TOOL, "--root", root], text=True, env=ENV,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    eq(p.stdout.splitlines(), [f"{path}:{line}" for line in want], "output")
    eq(p.returncode, 1 if want else 0, "exit status")


@test
def clean_files():
    check("a.c", f"/* {SPDX} */\nint x;\n")
    check("tools/x", f"#!/bin/sh\n# {SPDX}\n")
    check("README.md", "An overlay needs %s/work/ and /workspace/.\n")
    check("empty", "")


@test
def words_of_the_workshop():
    check("a.md", "x\nsee iss" + "ue #7 in /wo" + "rk/x\n",
          "2: this does not belong in the tree: iss" + "ue #",
          "2: this does not belong in the tree: /wo" + "rk/")


@test
def retired_words_in_names():
    check("a.c", f"/* {SPDX} */\nint native_" + "ask(void);\n",
          '2: "ask" in native_' + "ask: request")
    check("a.c", f"/* {SPDX} */\nint " + "asker;\n/* \"told\", as a word */\n",
          '2: "asker" in ' + "asker: requester")
    check("tests/a.py", f"# {SPDX}\n# a_sentence_with_what_is_told\n")
    check("a.py", f"# {SPDX}\nx = the_" + "ticket\n", '2: "ticket" in the_' + "ticket: request id")
    check("a.c", f"/* {SPDX} */\nint ftell(void);\n")


@test
def retired_words_in_prose():
    check("a.md", "a data fol" + "der\n", '1: "fol' + 'der": directory')
    check("a.md", "cgroups: control " + "groups of version 2\n",
          '1: "control ' + 'groups of version 2": cgroup v1, cgroup v2', '1: "control ' + 'groups": cgroup')
    check("a.md", "The host, a virtual machine, a state machine, the user `nobody`, chgrp nobody:nogroup.\n")
    check("a.md", "it and hi" + "s\n", '1: "hi' + 's": the caller, the process')


@test
def an_excuse():
    check("a.c", f"/* {SPDX} */\nint box; /* check-words: box */\n")


@test
def spaces_and_newlines():
    check("a.md", "x \ny",
          "1: space at the end of the line", "2: no newline at the end of the file")
    check("a.md", "x\r\n", "1: space at the end of the line")


@test
def missing_licence():
    check("a.c", "int x;\n", "1: " + NO_SPDX)
    check("src/meson.build", "x = 1\n", "1: " + NO_SPDX)
    check("tools/x", "#!/bin/sh\n", "1: " + NO_SPDX)


@test
def what_is_not_text_of_ours():
    check("a.bin", b"x \0")
    check("tests/fuzz/corpus/http/a", "GET / \r\n")
    check("a.c", "x", tracked=False)


run()
