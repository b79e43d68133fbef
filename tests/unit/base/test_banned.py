#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must not compile: each function of base/banned.h, tables with wrong types, printed secrets.

usage: test_banned.py SRC_DIR COMPILER [ARGS...]
"""

import pathlib
import re
import subprocess
import sys

src, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]

HEAD = "#include \"base/base.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n"
TABLE = (
    '#include "base/json.h"\nstruct t { %s m; bool has; };\n'
    'const struct json_field f[];\n'
    'const struct json_field f[] = {\n'
    '        JSON_I64(struct t, m, "m", 0, JSON_HAS(struct t, %s)), JSON_END };\n'
)
# Each is one statement with a secret s and a log context c.
SECRET = (
    '#include "base/base.h"\n#include "base/json.h"\n#include "base/secret.h"\n'
    'void f(struct secret *s, struct log_ctx *c, struct buf *b, struct err *e);\n'
    'void f(struct secret *s, struct log_ctx *c, struct buf *b, struct err *e) { %s; }\n'
)
LEAKS = [
    'printf("%s", s)',
    'log_info(c, "%s", s)',
    'log_fields(c, LOG_INFO, "x", LOG_F_STR("token", s))',
    'log_ctx_add_str(c, "token", s)',
    'buf_addf(b, "%s", s)',
    'buf_add_quoted(b, s)',
    '(void) err_set(e, ERR_INVALID, "%s", s)',
    'buf_add(b, s, sizeof(*s))',
]


def compiles(source):
    """True if the source is accepted, else what the compiler said."""
    command = compiler + ["-std=gnu17", "-D_GNU_SOURCE", f"-I{src}", "-fsyntax-only", "-xc", "-"]
    r = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return True if r.returncode == 0 else r.stderr


names = re.findall(r"^#define (\w+)\(\.\.\.\)", (src / "base/banned.h").read_text(), re.M)
points = [("control: a clean file compiles", compiles(HEAD + "int f(void);\n") is True)]
for name in names:
    said = compiles(HEAD + f"void f(void);\nvoid f(void) {{ (void) {name}(0); }}\n")
    points.append((f"{name} is banned", said is not True and f"sorry_{name}_is_banned" in said))
right, other, no_bool = TABLE % ("int64_t", "has"), TABLE % ("int", "has"), TABLE % ("int64_t", "m")
points += [
    ("the list was found", len(names) > 20),
    ("control: a table with the right types compiles", compiles(right) is True),
    ("a table refuses a member of another type", compiles(other) is not True),
    ("a table refuses a has_ member that is no bool", compiles(no_bool) is not True),
]
points.append(("control: a secret that is freed compiles",
               compiles(SECRET % "secret_free(s)") is True))
for leak in LEAKS:
    points.append((f"refused: {leak}", compiles(SECRET % leak) is not True))

print(f"1..{len(points)}")
for i, (what, ok) in enumerate(points, 1):
    print(f"{'ok' if ok else 'not ok'} {i} - {what}")
sys.exit(0 if all(ok for _, ok in points) else 1)
