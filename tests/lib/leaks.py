# SPDX-License-Identifier: Apache-2.0
"""What native sandboxes could leave behind on a host, counted from outside.

    before = Leftovers(hutchd)
    … sandboxes come and go …
    before.wait_for_no_more()

hutchd's warden prepares sandboxes and networks ahead, and takes away what was used in its own time. So the
numbers are compared when it has come to rest: when they are what they were, or after a time in which they
should have been, with what differs.
"""

import contextlib
import os
import re
import time

from tap import scaled

TIMEOUT_SECONDS = 30
REST_SECONDS = 4          # longer than what was used is kept to be closed with others
HIERARCHIES = "/sys/fs/cgroup"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        return f.read().strip()


def descendants(pid):
    found = [pid]
    for one in children(pid):
        try:
            found += descendants(one)
        except OSError:
            pass
    return found


def lines(path):
    with open(path, encoding="utf-8") as f:
        return sum(1 for _ in f)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def namespaces(pids):
    """Those that processes are in, and those that they hold open."""
    found = set()
    for pid in pids:
        for directory in (f"/proc/{pid}/ns", f"/proc/{pid}/fd"):
            try:
                links = [os.readlink(f"{directory}/{name}") for name in os.listdir(directory)]
            except OSError:
                continue
            found |= {link for link in links if re.fullmatch(r"\w+:\[\d+\]", link)}
    return len(found)


def groups(ours):
    """Of all hierarchies, below our own."""
    count = 0
    for root in [HIERARCHIES, *(f"{HIERARCHIES}/{name}" for name in os.listdir(HIERARCHIES))]:
        if os.path.isdir(f"{root}/{ours}"):
            count += sum(len(directories) for _, directories, _ in os.walk(f"{root}/{ours}"))
    return count


class Leftovers:
    """`roots`: process ids of the programs that stay, by name. `data`: the warden's directory. `ours`: the
    name of the cgroup."""

    def __init__(self, roots, data, ours):
        self.roots, self.data, self.ours = roots, data, ours
        self.before = self._at_rest()

    def _at_rest(self):
        """When nothing has changed for a while."""
        deadline = time.monotonic() + scaled(TIMEOUT_SECONDS)
        self.before, since = self.count(), time.monotonic()
        while time.monotonic() - since < REST_SECONDS:
            if self.differences():
                assert time.monotonic() < deadline, "it does not come to rest"
                since = time.monotonic()
                with contextlib.suppress(OSError):      # something ended while it was looked at
                    self.before = self.count()
            time.sleep(0.05)
        return self.before

    def count(self):
        pids = {pid for root in self.roots.values() for pid in descendants(root)}
        found = {"processes": len(pids), "namespaces": namespaces(pids),
                 "cgroups": groups(self.ours), "mounts": lines("/proc/self/mountinfo"),
                 "links": lines(f"/proc/{self.roots['warden']}/net/dev")}
        for name, pid in self.roots.items():
            found[f"descriptors of {name}"] = descriptors(pid)
            found[f"mounts of {name}"] = lines(f"/proc/{pid}/mountinfo")
        for directory in ("boxes", "trash"):
            found[f"{directory}"] = len(os.listdir(f"{self.data}/{directory}"))
        return found

    def differences(self):
        try:
            now = self.count()
        except OSError as e:        # something ended while it was looked at
            return {"look": str(e)}
        return {key: (value, now[key]) for key, value in self.before.items() if now[key] != value}

    def grown(self):
        return {key: pair for key, pair in self.differences().items()
                if key == "look" or pair[1] > pair[0]}

    def wait_for_no_more(self, seconds=TIMEOUT_SECONDS):
        """There is no event for "nothing is left": the kernel takes its things away when it likes."""
        deadline = time.monotonic() + scaled(seconds)
        while found := self.grown():
            if time.monotonic() > deadline:
                raise AssertionError(f"left behind (before, now): {found}")
            time.sleep(0.05)
