# SPDX-License-Identifier: Apache-2.0
"""Keeps a container engine for a test, and leaves nothing of it, however the test ends.

usage: engine_supervisor.py docker|podman DIRECTORY [OPTION...]

It starts engine_inside.py in pid, mount, network, ipc and cgroup namespaces of its own, below cgroups of
its own, with our stdin: when that ends, because the test says so or was killed, the namespaces end, and this process
removes the groups and the directory. It is in a session of its own, so that whoever kills the test's process group does
not kill it. What it
says is said by engine_inside.py, whose first line is its pid as seen from outside.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys

kind, directory, *options = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
PREFIX = "hutch-engine-"


def hierarchies():
    """Where this process is in each hierarchy of cgroups, as directories."""
    mounts = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            kind_of, _, options = fields[fields.index("-") + 1:][:3]
            if kind_of == "cgroup2":
                mounts.setdefault("", (fields[3], fields[4]))
            elif kind_of == "cgroup":
                for option in options.split(","):
                    mounts.setdefault(option, (fields[3], fields[4]))
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f:
            _, names, path = line.strip().split(":", 2)
            name = names.split(",", maxsplit=1)[0]
            if name in mounts and not path.startswith("/.."):
                root, at = mounts[name]
                yield at + path.removeprefix(root.rstrip("/"))


def sweep(group):
    """Removes the cgroups of supervisors that were killed themselves."""
    for name in os.listdir(group):
        found = re.fullmatch(PREFIX + r"(\d+)", name)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            remove(f"{group}/{name}")


def remove(group):
    """Groups go from the leaves up; one that has processes still stays."""
    for where, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(where)


def make_groups():
    made = []
    for group in hierarchies():
        sweep(group)
        path = f"{group.rstrip('/')}/{PREFIX}{os.getpid()}"
        os.mkdir(path)
        made.append(path)
        for name in ["cpuset.cpus", "cpuset.mems"]:     # empty in a new group of version 1
            if os.path.exists(f"{path}/{name}") and os.path.exists(f"{path}/tasks"):
                with open(f"{group}/{name}", encoding="ascii") as source, \
                        open(f"{path}/{name}", "w", encoding="ascii") as target:
                    target.write(source.read())
    return made


def enter(groups):
    for group in groups:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")


def main():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)           # the end of stdin is what counts
    groups = make_groups()
    try:
        with subprocess.Popen(
                ["unshare", "--pid", "--mount", "--net", "--ipc", "--cgroup", "--fork", "--kill-child",
                 "--propagation", "private", sys.executable, f"{here}/engine_inside.py", kind, directory, *options],
                preexec_fn=lambda: enter(groups)):
            pass
    finally:
        for group in groups:
            remove(group)
        subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=False)


main()
