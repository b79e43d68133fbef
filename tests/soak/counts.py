# SPDX-License-Identifier: Apache-2.0
"""What create/destroy cycles could leave behind: of hutchd and its helpers, of their cgroup, and of the kernel.

    counts = Counts(hutchd)
    before = counts.read()
    … sandboxes come and go …
    counts.grown(before, counts.read(), [OWN, MEMORY])

The scope of a count says what follows from it:

    OWN     processes, descriptors, directories, cgroups, mounts, links of ours: must be what it was
    MEMORY  of our processes and of our cgroup, in KiB: varies, but not with the number of cycles
    HOST    of the kernel, for everything on this host: comparable only if nothing else runs

A removed cgroup exists in the kernel as long as something is charged to it. cgroup v2 counts those of a parent; v1 counts
all of the host. But what they hold is charged to their parent as well, in both: page cache there without a sandbox is
that of removed cgroups.
"""

import contextlib
import os
import re

from leaks import descendants, name_of

OWN, MEMORY, HOST = "ours", "memory of ours, KiB", "all of the host"
CONTROLLERS = ("memory", "cpu", "pids", "freezer")
# Caches of the kernel, as in /proc/slabinfo: objects in use.
SLABS = ("mem_cgroup", "net_namespace", "mnt_cache")
# How much more there may be. Without an entry: nothing for OWN, anything for HOST.
MORE_MAX = {
    "hutchd": 256, "hutch-warden": 64, "hutch-launcher": 64, "hutch-janitor": 64, "hutch-netns": 64, "hutch-zygoted": 64,
    "page cache of our cgroup": 256, "kernel memory of our cgroup": 1024, "dying cgroups": 8,
    "cgroups of memory": 16, "cgroups of cpu": 16, "cgroups of pids": 16, "cgroups of freezer": 16,
    "mem_cgroup": 128, "net_namespace": 64, "mnt_cache": 1024, "slab, KiB": 16384, "unreclaimable slab, KiB": 8192,
}


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def numbers_of(path):
    """Of lines like "name 123" and "name: 123 kB"."""
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\S+?):?\s+(\d+)", text_of(path), re.M)}


class Counts:
    def __init__(self, hutchd):
        self.leftovers = hutchd.leftovers()         # waits until nothing changes
        self.data = hutchd.data

    def read(self):
        """{scope: {name: number}}"""
        while True:
            with contextlib.suppress(OSError):      # something ended while it was counted
                entries = sum(len(names) + len(files) for _, names, files in os.walk(self.data))
                return {OWN: {**self.leftovers.count(), "entries of the data directory": entries},
                        MEMORY: {**self._processes(), **self._cgroup()}, HOST: self._host()}

    def _processes(self):
        """Of those that stay: zygotes and agents are counted, not measured."""
        found = {}
        for pid in descendants(self.leftovers.roots["launcher"]):
            with contextlib.suppress(OSError, KeyError):
                name = name_of(pid)
                if name in MORE_MAX:
                    found[name] = max(found.get(name, 0), numbers_of(f"/proc/{pid}/status")["RssAnon"])
        return found

    def _cgroup(self):
        """Of the parent of all sandboxes."""
        v2, v1 = (f"/sys/fs/cgroup/{where}{self.leftovers.ours}" for where in ("", "memory/"))
        if os.path.isdir(v2):
            stat = numbers_of(f"{v2}/memory.stat")
            return {"page cache of our cgroup": stat["file"] // 1024,
                    "kernel memory of our cgroup": stat.get("kernel", stat["slab"]) // 1024,
                    "dying cgroups": numbers_of(f"{v2}/cgroup.stat")["nr_dying_descendants"]}
        return {"page cache of our cgroup": numbers_of(f"{v1}/memory.stat")["total_cache"] // 1024,
                "kernel memory of our cgroup": int(text_of(f"{v1}/memory.kmem.usage_in_bytes")) // 1024}

    def _host(self):
        groups = dict(re.findall(r"^(\w+)\s+\d+\s+(\d+)", text_of("/proc/cgroups"), re.M))
        memory = numbers_of("/proc/meminfo")
        slabs = {}
        with contextlib.suppress(OSError):
            slabs = numbers_of("/proc/slabinfo")
        negative = int(text_of("/proc/sys/fs/dentry-state").split()[4])     # names that do not exist
        return {**{f"cgroups of {name}": int(groups[name]) for name in CONTROLLERS if name in groups},
                **{name: slabs[name] for name in SLABS if name in slabs}, "negative dentries": negative,
                "slab, KiB": memory["Slab"], "unreclaimable slab, KiB": memory["SUnreclaim"],
                "per-CPU memory, KiB": memory.get("Percpu", 0), "available memory, KiB": memory["MemAvailable"]}

    @staticmethod
    def grown(before, after, scopes):
        """{name: (before, after)} of what is more than it may be."""
        found = {}
        for scope in scopes:
            for name, value in after[scope].items():
                was = before[scope].get(name, 0)
                bound = MORE_MAX.get(name, float("inf") if scope == HOST else 0)
                if value > was + bound:
                    found[name] = was, value
        return found
