#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engines that tests start: real, alone, and gone afterwards, however the test ends.

usage: test_engine.py BUILD_DIR
"""

import os
import re
import select
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from engine import NAMES, Engine, why_not  # noqa: E402
from tap import eq, run, skip, test  # noqa: E402

build_dir = os.path.abspath(sys.argv.pop(1))

# A test that has an engine with a running container, says so, and waits for ever.
VICTIM = """
import sys
sys.path.insert(0, sys.argv[1])
from engine import Engine
e = Engine(sys.argv[2], sys.argv[3])
e.foreign("left-behind")
print(e.directory, e.pid, e.supervisor.pid, flush=True)
sys.stdin.read()
"""


# Others do things on this host, too.
ENGINES = re.compile("docker|podman|containe|libpod|conmon|runc|cni|netns|overlay")


def of_engines(lines):
    return sorted(line for line in lines if ENGINES.search(line) and "hutch-engine-" not in line)


def host():
    """What an engine would change if it were not apart."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        yield of_engines(f)
    with open("/proc/sys/net/ipv4/ip_forward", encoding="ascii") as f:
        yield f.read()
    yield of_engines(where for where, _, _ in os.walk("/sys/fs/cgroup"))
    for directory in "/run", "/etc", "/etc/docker", "/etc/containers", "/var/lib":
        yield of_engines(os.listdir(directory)) if os.path.isdir(directory) else None
    for command in ["ip", "-o", "link"], ["ip", "route"], ["iptables-save"]:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        yield of_engines(found.splitlines())


def groups_of(supervisor):
    return [where for where, _, _ in os.walk("/sys/fs/cgroup") if f"hutch-engine-{supervisor}" in where]


def wait_gone(pidfd):
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(60_000), "it is still there"


def check_apart(kind):
    if reason := why_not(kind):
        skip(reason)
    before = list(host())
    with Engine(kind, build_dir) as e:
        e.foreign("one")
        eq(e.containers()["one"]["State"], "running")
        eq(list(host()), before)
        supervisor, directory = e.supervisor.pid, e.directory
    eq(groups_of(supervisor), [])
    eq(os.path.exists(directory), False)
    eq(list(host()), before)


def check_killed(kind):
    if reason := why_not(kind):
        skip(reason)
    lib = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
    with subprocess.Popen([sys.executable, "-c", VICTIM, lib, kind, build_dir], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        directory, inside, supervisor = victim.stdout.readline().split()
        ends = [os.pidfd_open(int(pid)) for pid in (inside, supervisor)]
        victim.kill()
    for pidfd in ends:
        wait_gone(pidfd)
        os.close(pidfd)
    eq(os.path.exists(directory), False)
    eq(groups_of(supervisor), [])


@test
def docker_is_apart():
    """docker is apart: the host's networks, mounts, groups and directories are as they were"""
    check_apart("docker")


@test
def podman_is_apart():
    """podman is apart: the same"""
    check_apart("podman")


@test
def nothing_is_left_by_a_test_that_was_killed():
    """a test that was killed leaves not a process, not a directory, not a cgroup"""
    for kind in NAMES:
        check_killed(kind)


run()
