#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check-layers on made-up trees."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, run, test       # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "check-layers")


def check(files, *want):
    """Runs the tool on a tree of {path: text}; want: the lines it must print, no others."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        p = subprocess.run([sys.executable, TOOL, root], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    eq(p.stdout.splitlines(), list(want), "output")
    eq(p.returncode, 1 if want else 0, "exit status")


@test
def good_tree():
    check({
        "src/meson.build": "",
        "src/base/buf.h": "#include <stddef.h>\n",
        "src/base/buf.c": '/* x */\n#include "base/buf.h"\n\n#include <string.h>\n',
        "src/net/loop.c": '#include <net/if.h>\n#include "base/buf.h"\n#include "os/fd.h"\n',
        "src/driver/native/launch.c": '#include "driver/driver.h"\n#  include "plan/plan.h"\n',
        "src/hutchd/main.c": '#include "api/api.h"\n#include "store/store.h"\n',
        "src/cli/main.c": '#include <hutch/hutch.h>\n#include "base/str.h"\n',
        "src/client/client.c": '#include "hutch/hutch.h"\n',
        "include/hutch/hutch.h": "#include <stdint.h>\n",
        "tests/unit/http/test_route.c": '#include <cmocka.h>\n#include "http/route.h"\n'
                                        '#include "base/buf.h"\n#include "tests/lib/t.h"\n',
    })


@test
def bans_hold_everywhere():
    want = 'include "base/banned.h" or "base/base.h"'
    check({"src/base/banned.h": "", "src/base/a.c": '#include "base/banned.h"\n',
           "src/net/b.c": '#include <a.h>\n#include "base/base.h"\n',
           "src/net/c.c": '#include "base/buf.h"\n', "src/net/d.h": "",
           "src/os/e.c": "int x;\n"},
          f"src/net/c.c:1: {want}", f"src/os/e.c:1: {want}")


@test
def empty_tree():
    check({"README.md": ""})


@test
def upward_include():
    check({"src/http/conn.c": '#include <a.h>\n\n#include "service/x.h"\n'},
          'src/http/conn.c:3: http may not include service ("service/x.h")')


@test
def include_of_a_lower_layer_that_is_not_granted():
    check({"src/api/a.c": '#include "driver/driver.h"\n'},
          'src/api/a.c:1: api may not include driver ("driver/driver.h")')
    check({"src/registry/r.c": '#include "driver/driver.h"\n'},
          'src/registry/r.c:1: registry may not include driver ("driver/driver.h")')


@test
def public_header_is_for_clients_only():
    check({"src/http/a.c": "#include <hutch/hutch.h>\n"},
          'src/http/a.c:1: http may not include hutch ("hutch/hutch.h")')
    check({"src/cli/a.c": '#include "client/client.h"\n'},
          'src/cli/a.c:1: cli may not include client ("client/client.h")')


@test
def public_header_includes_nothing_of_src():
    check({"include/hutch/hutch.h": '#include "base/buf.h"\n'},
          'include/hutch/hutch.h:1: the public header may not include base ("base/buf.h")')


@test
def headers_are_named_from_src():
    check({"src/base/a.c": '#include "buf.h"\n'},
          'src/base/a.c:1: not a header named from src/ ("buf.h")')
    check({"src/os/a.c": '#include "../base/buf.h"\n'},
          'src/os/a.c:1: no "..": name headers from src/ ("../base/buf.h")')


@test
def own_headers_go_in_quotes():
    check({"src/base/buf.h": "", "src/os/a.c": "#include <base/buf.h>\n"},
          'src/os/a.c:1: our own headers go in quotes ("base/buf.h")')


@test
def own_header_comes_first():
    check({"src/base/buf.h": "", "src/base/buf.c": '#include <string.h>\n#include "base/buf.h"\n'},
          'src/base/buf.c:1: include "base/buf.h" first')
    check({"src/base/buf.h": "", "src/base/buf.c": "int x;\n"},
          'src/base/buf.c:1: include "base/buf.h" first')
    check({"src/driver/fake/f.h": "", "src/driver/fake/f.c": '#include "driver/fake/f.h"\n'})


@test
def unknown_directory():
    check({"src/util/a.c": ""},
          "src/util/a.c:1: src/util is no known layer (tools/check-layers has the table)")
    check({"src/a.c": ""},
          "src/a.c:1: src/a.c is no known layer (tools/check-layers has the table)")


@test
def unit_tests_see_their_layer_and_below():
    # api may include service, service registry, registry store.
    check({"tests/unit/api/test_a.c": '#include "store/store.h"\n'})
    check({"tests/unit/http/test_a.c": '#include "model/model.h"\n'},
          'tests/unit/http/test_a.c:1: tests/unit/http may not include model ("model/model.h")')
    check({"tests/unit/util/test_a.c": ""},
          "tests/unit/util/test_a.c:1: tests/unit/util mirrors no layer of src/")


@test
def product_does_not_include_tests():
    check({"src/base/a.c": '#include "tests/lib/t.h"\n'},
          'src/base/a.c:1: base may not include tests ("tests/lib/t.h")')


run()
