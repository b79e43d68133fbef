#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md and docs/getting-started.md work as printed and print what is promised.

`make run` itself needs the fixed port and a build of its own; here hutchd is started as it would be,
and every other command is taken from the text and run.

usage: test_readme.py README HUTCHD HUTCH_EXECD MAN_DIR
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from native import NEEDS, can_run, open_way, remove_groups  # noqa: E402
from server import Server  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

readme_path, hutchd, hutch_execd, man_dir = sys.argv[1:5]


def commands_of(text):
    """The lines of the blocks of shell commands."""
    return [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
            for line in block.splitlines() if line.strip()]


with open(readme_path, encoding="utf-8") as f:
    readme = f.read()
with open(f"{os.path.dirname(os.path.abspath(readme_path))}/docs/getting-started.md", encoding="utf-8") as f:
    guide = f.read()
commands = commands_of(readme) + commands_of(guide)
_directory = tempfile.TemporaryDirectory()     # gone at exit
directory = _directory.name


def shell(command):
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)


def split(line):
    """A command and the answer promised behind it."""
    command, _, promise = line.partition("  # ")
    return command.strip(), promise.strip()


@test
def curl_commands_say_what_is_promised():
    requested = [split(c) for c in commands if re.match("curl http://127.0.0.1:8080/[a-z]+ ", c)]
    eq(len(requested), 3, "curl commands found")
    with Server(hutchd, "--data", f"{directory}/d1", "--listen", "127.0.0.1:0") as s:
        for command, promise in requested:
            p = shell(command.replace("http://127.0.0.1:8080", s.url))
            eq(p.returncode, 0, command)
            if promise.startswith("{"):
                eq(p.stdout, promise, command)
            else:
                has(p.stdout, "# TYPE hutch_")


@test
def the_unix_socket_commands_work():
    start, send_request = [c for c in commands if "/tmp/hutchd.sock" in c]
    arguments = start.replace("/tmp/hutchd", f"{directory}/s").split()
    eq(arguments[0], "build/hutchd")
    with Server(hutchd, *arguments[1:]):
        p = shell(send_request.replace("/tmp/hutchd", f"{directory}/s"))
        eq(p.stdout, '{"status":"healthy"}')


@test
def the_first_sandbox_is_as_shown():
    """one after the other, as one would type them"""
    typed = [[c for c in commands_of(text) if "127.0.0.1:8080/v1" in c] for text in (readme, guide)]
    assert min(map(len, typed)) >= 6, typed
    if not can_run():
        skip(NEEDS)
    known = ""
    open_way(directory)
    with open(f"{directory}/d2.yaml", "w", encoding="ascii") as f:
        f.write("native: {network: none, private: off}\n")     # the host's rules are left alone
    with Server(hutchd, "--data", f"{directory}/d2", "--listen", "127.0.0.1:0", "--driver", "native",
                "--config", f"{directory}/d2.yaml") as s:
        for line in typed[0] + typed[1]:
            command, promise = split(line.replace("http://127.0.0.1:8080", s.url))
            p = shell(f"set -e; {known} {command}")
            eq(p.returncode, 0, command)
            has(p.stdout, promise.replace("127.0.0.1:8080", s.url.removeprefix("http://")))
            if command.startswith("ID="):       # the shell goes on, and knows it
                known = f"ID='{shell(command + '; echo $ID').stdout.strip()}';"
    assert len(known) > 10, known
    remove_groups(f"{directory}/d2")


@test
def keys_are_as_shown():
    start, *requested = [c for c in commands if "hutchd-keys" in c or ":8081/" in c]
    words = start.replace("/tmp/hutchd-keys", f"{directory}/d3").replace("127.0.0.1:8081",
                                                                       "127.0.0.1:0").split()
    name, _, value = words[0].partition("=")
    eq(words[1], "build/hutchd")
    eq(len(requested), 2)
    with Server(hutchd, *words[2:], env={**os.environ, name: value}) as s:
        for command, promise in map(split, requested):
            has(shell(command.replace("http://127.0.0.1:8081", s.url)).stdout, promise)


@test
def make_targets_exist():
    source_root = os.path.dirname(os.path.abspath(readme_path))
    for line in commands:
        command, _ = split(line)
        if command.startswith("make "):
            p = subprocess.run([*shlex.split(command), "--dry-run"], cwd=source_root, text=True,
                               capture_output=True, timeout=60)
            eq(p.returncode, 0, command)


@test
def the_ready_line_is_the_one_shown():
    has(readme, "hutchd: listening on http://127.0.0.1:8080")
    with Server(hutchd, "--data", f"{directory}/d4", "--listen", "127.0.0.1:0") as s:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", s.address), s.address


@test
def the_agents_commands_say_what_is_promised():
    start, *requested = [c for c in commands if "/tmp/execd.sock" in c]
    arguments = start.replace("/tmp/execd.sock", f"{directory}/a").split()
    eq(arguments[0], "build/hutch-execd")
    assert len(requested) >= 3, requested
    with Server(hutch_execd, *arguments[1:]):
        for command, promise in map(split, requested):
            p = shell(command.replace("/tmp/execd.sock", f"{directory}/a"))
            eq(p.returncode, 0, command)
            has(p.stdout, promise)


def agree(program):
    shown = set(re.findall(r"^  --([a-z-]+)", shell(f"{program} --help").stdout, re.M))
    with open(f"{man_dir}/{os.path.basename(program)}.8", encoding="utf-8") as f:
        text = f.read().replace("\\-", "-")
    written = set(re.findall(r"^(?:\\fB|\.B )--([a-z-]+)", text, re.M))
    assert len(shown) > 5, shown
    eq(sorted(written), sorted(shown))


@test
def help_and_manual_agree():
    """each option of --help is in the manual, and the other way round"""
    agree(hutchd)
    agree(hutch_execd)
    agree(f"{os.path.dirname(os.path.abspath(hutchd))}/hutch-warden")


@test
def the_manual_has_the_reference_of_the_table():
    """tools/update-config-reference writes it"""
    with open(f"{man_dir}/hutchd.yaml.5", encoding="utf-8") as f:
        page = f.read()
    has(page, shell(f"{hutchd} --print-config-reference").stdout)


@test
def the_sample_has_every_key():
    """of the configuration file"""
    root = os.path.dirname(os.path.abspath(readme_path))
    reference = shell(f"{hutchd} --print-config-reference").stdout
    keys = {name for path in re.findall(r"^\.B (\S+)$", reference, re.M) for name in re.findall(r"[a-z_0-9]+", path)}
    assert len(keys) > 60, keys
    with open(f"{root}/packaging/hutchd.yaml", encoding="utf-8") as f:
        words = set(re.findall(r"[a-z_0-9]+", f.read()))
    eq(sorted(keys - words - {"key"}), [])


run()
