#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile program tries in a sandbox that is a container, made through the API.

usage: test_engine_walls.py docker|podman HUTCHD HUTCH_EXECD BUILD_DIR
"""

import os
import platform
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from engine_hutchd import EngineHutchd, arguments, engine  # noqa: E402
from engine_walls import CASES, INT80, PRELUDE  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

kind, programs, build_dir = arguments()
UNPRIVILEGED = 65534


def start():
    return EngineHutchd(programs, e, setting={"network": "none"})


def upload(h, sandbox, path, text):
    body = (f'--b\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n\r\n'
            f'{{"path":"{path}","mode":644}}\r\n'
            f'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
            f"{text}\r\n--b--\r\n")
    eq(h.inside(sandbox, "POST", "/files/upload", body,
                headers={"Content-Type": "multipart/form-data; boundary=b"}).status, 200)


def attempt(h, sandbox, number, command, **options):
    """What it printed, without the last line's end."""
    if not command.startswith("py:"):
        return h.output(sandbox, command, **options)
    upload(h, sandbox, f"/tmp/case{number}.py", PRELUDE + INT80 + command.removeprefix("py:"))
    said = h.output(sandbox, f"cd /tmp; python3 case{number}.py 2>&1", **options)
    return "denied" if "Bad system call" in said else said


def try_all(h, sandbox, wanted=lambda command: True, **options):
    wrong = []
    for number, (name, command, expected) in enumerate(CASES):
        if wanted(command):
            got = attempt(h, sandbox, number, command, **options)
            if got.strip() != expected.strip():
                wrong.append(f"{name}: {got!r}, not {expected!r}")
    assert not wrong, "\n".join(wrong)


@test
def root_in_a_sandbox_gets_nowhere():
    if platform.machine() != "x86_64":
        skip("the numbers of system calls are those of x86-64")
    with start() as h:
        sandbox = h.create()
        try_all(h, sandbox)
        eq(h.output(sandbox, "echo alive"), "alive")


@test
def nor_does_another_user():
    if platform.machine() != "x86_64":
        skip("the numbers of system calls are those of x86-64")
    with start() as h:
        try_all(h, h.create(), lambda command: command.startswith("py:"), uid=UNPRIVILEGED, cwd="/tmp")


# --- what there is only so much of ---

THREADS = """
import threading
threading.stack_size(65536)
hold = threading.Event()
n = 0
try:
    while n < 10000:
        threading.Thread(target=hold.wait, daemon=True).start()
        n += 1
except RuntimeError:
    pass
print("ended before 4096:", n < 4096, flush=True)
import os
os._exit(0)
"""


@test
def a_bomb_of_threads():
    """ends at the limit of processes; the agent and the neighbour go on"""
    with start() as h:
        sandbox = h.create(resourceLimits={"cpu": "1", "memory": "512Mi"})
        neighbour = h.create()
        upload(h, sandbox, "/tmp/bomb.py", THREADS)
        eq(h.output(sandbox, "python3 /tmp/bomb.py"), "ended before 4096: True")
        for one in sandbox, neighbour:
            eq(h.output(one, "echo alive"), "alive")


@test
def a_bomb_of_memory():
    """ends the command, and neither the sandbox nor its neighbour"""
    with start() as h:
        sandbox, neighbour = h.create(), h.create()
        for hog in "x = bytearray(1 << 30)", "import os; os.write(os.memfd_create('x'), bytes(1 << 30))":
            found = h.run(sandbox, f"python3 -c \"{hog}\"")
            has(str(found[-1]), "killed")
        for one in sandbox, neighbour:
            eq((h.output(one, "echo alive"), h.state(one)), ("alive", "Running"))


@test
def a_deep_tree():
    """does not keep a sandbox from being destroyed"""
    with start() as h:
        sandbox = h.create()
        upload(h, sandbox, "/tmp/deep.py", "import os\nfor i in range(3000):\n    os.mkdir('d' * 200)\n"
                                       "    os.chdir('d' * 200)\nprint('made')\n")
        for where in "/root", "/.hutch/run":
            eq(h.output(sandbox, f"cd {where} && python3 /tmp/deep.py"), "made")
        h.delete(sandbox)
        eq((h.listed(), h.containers()), ({}, {}))
        directories = [where for where, _, _ in os.walk(f"{h.data}/drivers") if sandbox in where]
        eq(directories, [], "directories of it")


with engine(kind, build_dir) as e:
    run()
