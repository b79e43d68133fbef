#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limits that an installation sets: defaults, maxima, quotas of tenants, and what the host keeps for itself.

usage: test_native_limits.py HUTCHD
"""

import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import events, short  # noqa: E402
from hutchd import end  # noqa: E402
from native import NEEDS, Native, can_run, groups_of  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
MIB = 1 << 20
CAP_SYS_RESOURCE = 24


def start(native=None, **config):
    if not can_run():
        skip(NEEDS)
    return Native(program, native=native, config="".join(f"{k}: {json.dumps(v)}\n" for k, v in config.items()))


def command(h, sandbox, text):
    reply = h.inside(sandbox, "POST", "/command", {"command": text})
    eq(reply.status, 200, reply.body)
    return short(events(reply.body))


def create(h, limits, key=None, status=202):
    reply = h.call("POST", "/v1/sandboxes", h.create_request(resourceLimits=limits), key=key)
    eq(reply.status, status, reply.body)
    return reply.json["id"] if status == 202 else reply.json["message"]


def read(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read()


# --- what the kernel enforces ---

def number_in(path):
    """The number that a file begins with; None if there is no such file, or no limit in it."""
    try:
        word = read(path).split()[0]
    except OSError:
        return None
    return int(word) if word.isdigit() and int(word) < 1 << 60 else None


def directories_of(h, pid):
    """Of the cgroups of a process, in all hierarchies, from its own up to that of its sandbox."""
    tops = groups_of(h.data)
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        path = line.split(":", 2)[2]
        for top in tops:
            parent, name = os.path.split(top)
            directory = parent + path
            while f"/{name}/" in directory and os.path.isdir(directory):
                yield directory
                directory = os.path.dirname(directory)


def command_lines():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            yield int(pid), read(f"/proc/{pid}/cmdline").replace("\0", " ")


def in_force(h, sandbox):
    """The tightest limits of a command of the sandbox: thousandths of a CPU, bytes, processes."""
    seconds = str(10 ** 6 + int(sandbox[:6], 16))           # that no one else sleeps for
    eq(command(h, sandbox, f"sleep {seconds} & until grep -q ^sleep /proc/$!/cmdline; do :; done")[-1], "done")
    pid = next(pid for pid, line in command_lines() if line == f"sleep {seconds} ")
    found = {"cpu": [], "memory": [], "pids": []}
    for directory in directories_of(h, pid):
        quota = number_in(f"{directory}/cpu.max") or number_in(f"{directory}/cpu.cfs_quota_us")
        memory = number_in(f"{directory}/memory.max") or number_in(f"{directory}/memory.limit_in_bytes")
        found["cpu"].append(quota and quota // 100)
        found["memory"].append(memory)
        found["pids"].append(number_in(f"{directory}/pids.max"))
    end(pid)
    return {kind: min((x for x in values if x), default=None) for kind, values in found.items()}


# --- defaults and maxima ---

@test
def a_create_without_limits_gets_the_defaults():
    """a create without limits gets those that are configured, in the kernel and in what is shown"""
    with start(resource_limits={"default": {"cpu": "1500m", "memory": "96Mi"}}) as h:
        sandbox = create(h, {})
        eq(in_force(h, sandbox), {"cpu": 1500, "memory": 96 * MIB, "pids": 192})
        shown = h.call("GET", f"/v1/sandboxes/{sandbox}/diagnostics/summary").body.decode()
        for part in "\"cpu\"=\"1500m\"", "\"memory\"=\"96Mi\"", "\"pids\"=\"192\"":
            has(shown.replace(" ", ""), part)
        sandbox = create(h, {"cpu": "500m", "pids": "77"})
        eq(in_force(h, sandbox), {"cpu": 500, "memory": 96 * MIB, "pids": 77})
        # What a record says holds for a hutchd that has other defaults, too.
        h.configure("resource_limits: {default: {memory: 32Mi}}\n")
        h.restart()
        eq(in_force(h, sandbox), {"cpu": 500, "memory": 96 * MIB, "pids": 77})


@test
def nothing_is_unlimited():
    """without any configuration a create without limits has all of them"""
    with start() as h:
        found = in_force(h, create(h, {}))
        cpus = len(os.sched_getaffinity(0))
        eq(found["cpu"], 1000 * min(cpus, 2))
        assert found["memory"] and found["memory"] <= 2 << 30, found
        eq(found["pids"], min(max(found["memory"] // (512 << 10), 128), 4096))


@test
def processes_are_in_proportion_to_memory():
    """and few under a small CPU limit, where many that are runnable keep all CPUs busy with throttling"""
    with start() as h:
        for limits, pids in (({"memory": "256Mi", "cpu": "1"}, 512), ({"memory": "32Mi", "cpu": "1"}, 128),
                             ({"memory": "4Gi", "cpu": "1"}, 4096), ({"memory": "4Gi", "cpu": "900m"}, 1024)):
            eq(in_force(h, create(h, limits))["pids"], pids, limits)


@test
def a_fork_bomb_ends_at_the_default():
    """at the default number of processes fork fails, in this sandbox only"""
    with start() as h:
        bomb, neighbour = create(h, {"memory": "64Mi"}), create(h, {"memory": "64Mi"})
        out = command(h, bomb, "i=0; while [ $i -lt 300 ] && sleep 5 & do i=$((i+1)); done; echo $i")
        assert any("fork" in str(x) or "Resource" in str(x) for x in out), out
        eq(command(h, neighbour, "for i in 1 2 3 4 5; do sh -c true || exit 1; done; echo fine")[2], ("stdout", "fine"))


@test
def absurd_limits_are_refused():
    """with the limit and the key that sets it, and nothing is made"""
    with start() as h:
        for kind, value in ("memory", "1Pi"), ("cpu", "4096"), ("pids", "100000"):
            text = create(h, {"memory": "64Mi", kind: value}, status=400)
            has(text, f'resource "{kind}": "{value}" is more than this server allows')
            has(text, f"resource_limits.max.{kind} in hutchd.yaml")
        eq(h.call("GET", "/v1/sandboxes").json["items"], [])
    with start(resource_limits={"max": {"memory": "64Mi", "cpu": "1", "pids": "100"}}) as h:
        has(create(h, {"memory": "65Mi"}, status=400), "which is 64Mi")
        sandbox = create(h, {"memory": "64Mi", "cpu": "1", "pids": "100"})
        eq(in_force(h, sandbox), {"cpu": 1000, "memory": 64 * MIB, "pids": 100})
        # Defaults are never above the maxima.
        eq(in_force(h, create(h, {})), {"cpu": 1000, "memory": 64 * MIB, "pids": 100})


# --- tenants ---

@test
def a_tenant_has_a_quota_of_processes():
    """429 that names it; another tenant does not notice, and what is deleted can be used again"""
    keys = [{"key": f"{name}-0123456789abcdef", "tenant": name} for name in ("a", "b")]
    with start(keys=keys, quotas={"default": {"pids": 300}}) as h:
        a, b = (k["key"] for k in keys)
        first = create(h, {"memory": "64Mi"}, a)             # 128 processes
        create(h, {"memory": "64Mi"}, a)
        has(create(h, {"memory": "64Mi"}, a, 429), "the tenant's quota of pids is used up: 256 of 300")
        has(create(h, {}, b, 429), "quota of pids")          # more than it may have at all
        create(h, {"memory": "64Mi"}, b)
        create(h, {"memory": "64Mi", "pids": "44"}, a)
        eq(h.call("DELETE", f"/v1/sandboxes/{first}", key=a).status, 204)
        h.restart()                                          # counted anew
        has(create(h, {"memory": "64Mi", "pids": "129"}, a, 429), "172 of 300")
        create(h, {"memory": "64Mi"}, a)


# --- the host ---

def total_memory():
    line = next(x for x in read("/proc/meminfo").splitlines() if x.startswith("MemTotal:"))
    return int(line.split()[1]) << 10


def top_limit(h):
    limits = [number_in(f"{top}/{name}") for top in groups_of(h.data)
              for name in ("memory.max", "memory.limit_in_bytes")]
    return next((x for x in limits if x), None)


@test
def all_sandboxes_together_leave_the_host_a_reserve():
    total = total_memory()
    with start() as h:
        assert top_limit(h), "no limit"
        eq(top_limit(h) // MIB, (total - max(total // 20, 512 * MIB)) // MIB)
    with start(native={"memory_reserve": "700Mi"}) as h:
        eq(top_limit(h) // MIB, (total - 700 * MIB) // MIB)
    try:
        start(native={"memory_reserve": "512Ti"}).stop()
    except RuntimeError as e:
        has(str(e), "set native.memory_reserve to less")
    else:
        raise AssertionError("it started")


@test
def the_host_is_full_of_sandboxes():
    """each is below its own limit: a command ends, no one of ours does, and others go on"""
    ceiling = 256 * MIB
    with start(native={"memory_reserve": str(total_memory() - ceiling)}) as h:
        first, second, neighbour = (create(h, {"memory": "240Mi"}) for _ in range(3))
        ours = h.process.pid, h.warden, h.hutchd
        agents = [h.agent_of(x) for x in (first, second, neighbour)]
        out = command(h, first, "mkfifo p; (head -c 120m /dev/zero; echo > p; sleep 1000) | tail > /dev/null & "
                                "read x < p; echo full")
        eq(out[2], ("stdout", "full"))
        out = command(h, second, "head -c 200m /dev/zero | tail > /dev/null; echo ${PIPESTATUS[*]}; jobs")
        eq(out[-1], "done")
        killed = sum(kills_of(top) for top in groups_of(h.data))
        assert killed > 0, (killed, out)
        eq((h.process.pid, h.warden, h.hutchd), ours)
        eq([h.agent_of(x) for x in (first, second, neighbour)], agents)
        for sandbox in first, second, neighbour:
            eq(h.state(sandbox), "Running")
            eq(command(h, sandbox, "echo fine")[2], ("stdout", "fine"))


def kills_of(top):
    """Processes that the OOM killer has ended below a cgroup."""
    found = 0
    for where, _, names in os.walk(top):
        name = next((x for x in ("memory.events.local", "memory.events", "memory.oom_control") if x in names), None)
        lines = read(f"{where}/{name}").splitlines() if name else []
        found += sum(int(x.split()[1]) for x in lines if x.startswith("oom_kill "))
    return found


@test
def the_oom_killer_takes_ours_last():
    """launcher and warden last of all, then hutchd; what runs in a sandbox can't get there"""
    if not int(read("/proc/self/status").split("CapEff:")[1].split()[0], 16) & 1 << CAP_SYS_RESOURCE:
        skip("CAP_SYS_RESOURCE is needed to be taken last")
    with start() as h:
        sandbox = create(h, {})

        def score(pid):
            return int(read(f"/proc/{pid}/oom_score_adj"))

        eq((score(h.process.pid), score(h.warden), score(h.hutchd)), (-900, -900, -800))
        eq(score(h.agent_of(sandbox)), 0)
        out = command(h, sandbox, "cat /proc/self/oom_score_adj; echo -1 2>&1 > /proc/self/oom_score_adj || echo refused")
        eq(out[2][0], "stdout")
        assert int(out[2][1]) > 0, out
        has(str(out), "refused")
        h.kill_hutchd()
        h.wait_ready()
        eq(score(h.hutchd), -800)


run()
