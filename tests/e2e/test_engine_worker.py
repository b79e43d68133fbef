#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutch-engine by itself: what others of its user can find out about it, and how its units start it.

usage: test_engine_worker.py HUTCH_ENGINE HUTCHD HUTCH_EXECD BUILD_DIR
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import eq, has, run, skip, test  # noqa: E402

worker, hutchd, agent, build_dir = map(os.path.abspath, sys.argv[1:5])
del sys.argv[1:5]
# The rights of a user over its processes, also if that is root.
PLAIN = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []
INSPECT = """
cd /proc/$1 && shift && for name; do
        if [ -L "$name" ]; then readlink "$name"; else true < "$name"; fi > /dev/null 2>&1 && echo "$name"
done; true"""


def inspect(pid):
    """What another process of the same user can open of it."""
    names = ["mem", "fd/0", "environ", "maps", "auxv", "cwd", "root"]
    said = subprocess.run([*PLAIN, "sh", "-c", INSPECT, "sh", str(pid), *names], text=True, check=True,
                          capture_output=True).stdout
    return set(said.split())


def protocol_version():
    """That hutchd and its worker have to agree on."""
    with open(f"{os.path.dirname(__file__)}/../../src/engine/protocol.h", encoding="utf-8") as f:
        return int(re.search(r"ENGINE_PROTOCOL_VERSION (\d+)", f.read())[1])


@contextlib.contextmanager
def running(directory):
    """A worker that has answered, and who speaks with it."""
    os.mkdir(f"{directory}/run")
    ours, theirs = socket.socketpair()
    with subprocess.Popen([*PLAIN, worker, "--engine=docker", f"--directory={directory}/run", f"--agent={agent}",
                           f"--socket={directory}/nobody.sock"], stdin=theirs) as process:
        theirs.close()
        with ours:
            hello = json.dumps({"call": "hello", "request_id": 1, "version": protocol_version(),
                                "installation": "1" * 32}).encode()
            ours.sendall(struct.pack("<I", len(hello)) + hello)
            has(ours.recv(4096).decode(errors="replace"), f'"version":{protocol_version()}')
            yield process
    eq(process.returncode, 0)


@test
def others_of_its_user_see_nothing_of_it():
    """neither memory nor descriptors nor environment: who takes over hutchd later does not get what passes through"""
    with tempfile.TemporaryDirectory() as directory, running(directory) as process, \
            subprocess.Popen([*PLAIN, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as plain:
        try:
            os.write(plain.stdin.fileno(), b"ready\n")
            eq(plain.stdout.readline(), b"ready\n")
            eq({"fd/0", "environ"} - inspect(plain.pid), set(), "not seen of a program that does not care")
        finally:
            plain.stdin.close()
        eq(inspect(process.pid), set(), "what could be opened")


# --- the units ---

def installed_as():
    """The programs by the paths that they have in units."""
    with open(f"{build_dir}/packaging/hutch-engine-docker@.service", encoding="utf-8") as f:
        text = f.read()
    libexec = re.search(r"^ExecStart=(\S+)/hutch-engine ", text, re.M)[1]
    found = {f"{libexec}/hutch-engine": worker, f"{libexec}/hutch-execd": agent}
    for name in "hutchd", "hutch-bridge":
        with open(f"{build_dir}/packaging/{name}.service", encoding="utf-8") as f:
            path = re.search(r"^ExecStart=(\S+)", f.read(), re.M)[1]
        found[path] = f"{os.path.dirname(hutchd)}/{name}"
    return found


def units():
    """{name: text}, with programs that are there."""
    found = {}
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "systemd")
    for directory in f"{build_dir}/packaging", source:
        for name in os.listdir(directory):
            if name.endswith((".service", ".socket")):
                with open(f"{directory}/{name}", encoding="utf-8") as f:
                    found[name] = f.read()
    for path, program in installed_as().items():
        found = {name: text.replace(path, program) for name, text in found.items()}
    return found


@test
def systemd_takes_the_units():
    """all of what is in them, without a word"""
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed")
    with tempfile.TemporaryDirectory() as directory:
        for name, text in units().items():
            with open(f"{directory}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        eq(len(os.listdir(directory)), 6)
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", *sorted(
            f"{directory}/{n}" for n in os.listdir(directory))], text=True, capture_output=True, check=False)
        ours = [line for line in said.stderr.splitlines() if "hutch" in line]
        if said.returncode != 0 and not ours:
            skip(f"systemd-analyze can't look at units here: {said.stderr.strip()[-200:]}")
        eq((ours, said.returncode), ([], 0))


@test
def the_worker_takes_what_its_units_say():
    """options that it knows: it comes as far as to the socket that is not there"""
    for name, text in units().items():
        if not name.startswith("hutch-engine") or name.endswith(".socket"):
            continue
        command = shlex.split(re.search(r"^ExecStart=(.*)$", text, re.M)[1])
        said = subprocess.run(command, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        eq(said.returncode, 1, (name, said.stderr))
        has(said.stderr, "standard input is not a socket")
        kind = re.search("docker|podman", name)[0]
        eq({f"--engine={kind}", f"--directory=/var/lib/hutch-engine/{kind}"} - set(command), set(), name)
        eq(re.search(r"^StateDirectory=(.*)$", text, re.M)[1], f"hutch-engine/{kind}")


run()
