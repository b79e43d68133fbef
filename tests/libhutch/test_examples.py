#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ do what they say, against a real hutchd with real agents.

usage: test_examples.py HUTCHD_DIRECT HUTCH_EXECD EXAMPLES_DIR
"""

import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deployment import Deployment  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

programs, directory = sys.argv[1:3], os.path.abspath(sys.argv[3])
hutchd = Deployment(programs, keys={"user": ("acme", "user"), "admin": ("ops", "admin")})


def start(name, *arguments, **more):
    env = {**os.environ, "HUTCH_URL": f"http://{hutchd.domain}", "HUTCH_API_KEY": hutchd.keys["user"]}
    return subprocess.Popen([f"{directory}/{name}", *arguments], env={**env, **more.pop("env", {})}, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def example(name, *arguments, stdin="", **more):
    """(status, output, errors)"""
    p = start(name, *arguments, **more)
    out, err = p.communicate(stdin, timeout=60)
    return p.returncode, out, err


def sandboxes():
    return hutchd.call("GET", "/v1/sandboxes", key="user").json["items"]


@test
def first_sandbox():
    eq(example("first_sandbox"), (0, "hello from Linux\n", ""))
    eq(example("first_sandbox", "echo out; echo err >&2; exit 7"), (7, "out\n", "err\n"))
    eq(sandboxes(), [], "sandboxes left")


@test
def what_first_sandbox_says_when_it_cannot():
    status, out, err = example("first_sandbox", env={"HUTCH_API_KEY": "wrong"})
    eq((status, out), (1, ""))
    has(err, "first_sandbox: ")
    has(err, "401")
    status, out, err = example("first_sandbox", env={"HUTCH_URL": "http://127.0.0.1:1"})
    eq((status, out), (1, ""))
    has(err, "127.0.0.1")
    status, out, err = example("first_sandbox", env={"HUTCH_URL": "nonsense://"})
    eq((status, out), (1, ""))
    has(err, "HUTCH_URL")


@test
def build_log():
    sandbox = hutchd.create(key="user")["id"]
    status, out, err = example("build_log", sandbox, "echo one; echo $WHAT >&2; printf three; exit 5", "WHAT=two")
    eq(status, 5, err)
    lines = sorted(line.split(maxsplit=1)[1] for line in out.splitlines())
    eq(lines, ["err two", "out one", "out three"])
    has(err, "build_log: 3 lines, exit status 5")
    eq(example("build_log", "no-such-box", "true")[0], 1)
    hutchd.call("DELETE", f"/v1/sandboxes/{sandbox}", key="user")


@test
def build_log_comes_while_the_build_runs_and_ends_by_interrupt():
    sandbox = hutchd.create(key="user")["id"]
    p = start("build_log", sandbox, "echo begun; exec sleep 1000")
    has(p.stdout.readline(), "out begun")
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    eq((p.returncode, out, err), (130, "", "build_log: canceled\n"))
    hutchd.call("DELETE", f"/v1/sandboxes/{sandbox}", key="user")


@test
def parallel_map():
    lines = "".join(f"{i}\n" for i in range(20))
    status, out, err = example("parallel_map", "4", "echo $((LINE * LINE))", stdin=lines)
    eq((status, err), (0, ""))
    eq(out, "".join(f"{i * i}\n" for i in range(20)))
    status, out, err = example("parallel_map", "2", '[ "$LINE" = bad ] && exit 1; echo $LINE', stdin="a\nbad\nb\n")
    eq((status, out, err), (1, "a\nb\n", ""))
    eq(example("parallel_map", "3", "true")[:2], (0, ""), "no input")
    eq(sandboxes(), [], "sandboxes left")


@test
def file_sync():
    sandbox = hutchd.create(key="user")["id"]
    there = next(e["text"] for e in hutchd.run(sandbox, "pwd", key="user") if e["type"] == "stdout") + "/work"
    with tempfile.TemporaryDirectory() as here:
        def put(name, text, mode=0o644):
            os.makedirs(os.path.dirname(f"{here}/{name}"), exist_ok=True)
            with open(f"{here}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(f"{here}/{name}", mode)

        def sync():
            status, out, err = example("file_sync", sandbox, here, there)
            eq((status, err), (0, ""), out)
            return sorted(out.splitlines())

        put("a.txt", "first")
        put("deep/er/run.sh", "#!/bin/sh\necho it runs\n", 0o755)
        put("large", "x" * 3_000_000)
        put("empty", "")
        os.symlink("a.txt", f"{here}/link")
        eq(sync(), ["+ a.txt", "+ deep/er/run.sh", "+ empty", "+ large", "4 uploaded, 0 deleted, 0 unchanged"])
        eq(sync(), ["0 uploaded, 0 deleted, 4 unchanged"])
        put("a.txt", "second, longer")
        os.remove(f"{here}/empty")
        eq(sync(), ["+ a.txt", "- empty", "1 uploaded, 1 deleted, 2 unchanged"])
    said = [e.get("text") for e in hutchd.run(sandbox, "cat work/a.txt; echo; work/deep/er/run.sh; "
                                                   "wc -c < work/large; ls work", key="user")
            if e["type"] == "stdout"]
    eq("\n".join(said).split(), "second, longer it runs 3000000 a.txt deep large".split())
    hutchd.call("DELETE", f"/v1/sandboxes/{sandbox}", key="user")


@test
def agent_loop():
    status, out, err = example("agent_loop", "ada", stdin="write note.txt some words\nbash cat note.txt; exit 4\n"
                                                          "read note.txt\nread missing\ndance\n")
    eq((status, err), (0, ""), out)
    lines = out.splitlines()
    eq(lines[:6], ["new sandbox", "written", "exit 4", "  some words", "10 bytes", "  some words"])
    assert re.match(r"error: .*missing", lines[6]), lines[6]
    has(lines[7], "unknown action 'dance'")
    eq(len(sandboxes()), 1)


@test
def agent_loop_finds_its_sandbox_again():
    status, out, err = example("agent_loop", "ada", stdin="bash cat note.txt\n")
    eq((status, out, err), (0, "existing sandbox\nexit 0\n  some words\n", ""))
    status, out, err = example("agent_loop", "bob", stdin="bash ls\ndestroy\n")
    eq((status, out, err), (0, "new sandbox\nexit 0\ndestroyed\n", ""))
    status, out, err = example("agent_loop", "ada", stdin="destroy\nbash never\n")
    eq((status, out, err), (0, "existing sandbox\ndestroyed\n", ""))
    eq(sandboxes(), [], "sandboxes left")


with hutchd:
    run()
