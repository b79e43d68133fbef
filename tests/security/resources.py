# SPDX-License-Identifier: Apache-2.0
"""Resources: 1 to 18, 121."""

import http.client
import os
import socket
import subprocess
import time

from world import BEYOND4, MACHINE4, OUTSIDE4, libc, read
from tap import eq, scaled

MIB = 1 << 20


def small(w, **more):
    return w.sandbox(**{"memory": "64Mi", "pids": "64", **more})


def counted(sandbox, controller, name, key):
    """A number out of a file of "key number" lines."""
    found = dict(x.split() for x in sandbox.group(controller, name).splitlines())
    return int(found[key])


def others_work(w, sandbox=None):
    w.neighbour.alive(1000)
    eq(w.hutchd.call("GET", f"/v1/sandboxes/{w.neighbour.id}").status, 200)
    if sandbox:
        eq(sandbox.call("GET", "/ping").status, 200, "the agent's answer")


def fork_bomb(w):
    sandbox = small(w)
    with sandbox.hold("bomb", "fork", 1000, uid=1000) as held:
        reached, end = sandbox.parse_bomb("fork", held.line)
        eq(end, "EAGAIN")
        assert 0 < reached < 64, reached
        assert int(sandbox.group("pids", "pids.current")) <= 64
        others_work(w, sandbox)
    w.destroy(sandbox)
    sandbox = small(w)
    with sandbox.hold("bomb", "fork-on", uid=1000):
        assert int(sandbox.group("pids", "pids.current")) <= 64
        assert counted(sandbox, "pids", "pids.events", "max") > 0
        others_work(w, sandbox)
        w.destroy(sandbox)


def thread_bomb(w):
    sandbox = small(w)
    with sandbox.hold("bomb", "threads", 1000, uid=1000) as held:
        reached, end = sandbox.parse_bomb("threads", held.line)
        eq(end, "EAGAIN")
        assert 0 < reached < 64, reached
        others_work(w, sandbox)
    w.destroy(sandbox)


def memory_bomb(w, name="memory", ends=("KILL",), lasting=False):
    """Memory that lasts longer than its process takes the rest of the sandbox along, and nothing else."""
    sandbox = small(w, memory="32Mi")
    try:
        reached, end = sandbox.bomb(name, 512, 1000)
    except (AssertionError, http.client.HTTPException):
        reached, end = 0, "KILL"            # who was to tell of it, too
    limit, most, _ = sandbox.memory()
    eq(limit, 32 * MIB)
    assert most <= limit, (most, limit)
    assert end in ends and reached < 512, (name, reached, end)
    others_work(w, None if lasting else sandbox)
    w.destroy(sandbox)


def memory_otherwise(w):
    """Where it ends depends on what it is: its own limit, or the group's. With cgroup v1 a system call that finds no
    memory fails, even the one by which the bomb tells so ("exit")."""
    for name, ends in (("tmpfs", ("ENOSPC", "ENOMEM", "KILL", "exit")), ("memfd", ("KILL", "EFBIG", "ENOMEM", "exit")),
                       ("sysv", ("KILL", "ENOSPC", "ENOMEM", "exit")),
                       ("pipes", ("KILL", "EMFILE", "ENFILE", "ENOMEM", "exit")),
                       ("sockets", ("KILL", "EMFILE", "ENFILE", "ENOMEM", "exit")),
                       ("page-tables", ("KILL", "ENOMEM", "exit"))):
        memory_bomb(w, name, ends, name == "sysv")


def socket_buffers(w):
    """Of TCP and UDP, and of connections that no process has any more. With cgroup v1 they end at a part of the memory
    limit. With v2 they are memory like any other, and the bomb counts some of it twice: at both ends of a connection.
    The neighbour's connections go on."""
    listener = w.in_outside(lambda: socket.create_server((OUTSIDE4, 0)))
    for name in "tcp", "udp", "orphans":
        sandbox = w.sandbox(memory="128Mi", pids="64")
        v2 = sandbox.group("memory", "memory.max") is not None
        with sandbox.hold("bomb", name, 512, uid=1000) as held:
            reached, end = sandbox.parse_bomb(name, held.line)
            assert end in ("EAGAIN", "ENOBUFS", "ENOMEM", "KILL") and 0 < reached < (256 if v2 else 128), held.line
            limit, most, _ = sandbox.memory()
            # At the limit the kernel still gives a socket a few pages, and counts them.
            assert most <= limit + (MIB if v2 else 0), (most, limit)
            eq(connects(w, w.neighbour, OUTSIDE4, listener.getsockname()[1]), "connected")
            others_work(w, sandbox)
        w.destroy(sandbox)
    listener.close()


def fill(w, bomb, mib, inodes=None):
    """What a sandbox fills up is the file system of the data directory. The service goes on, says no to what it
    can't do, and is well again when that sandbox is gone."""
    with w.on_small_disk(mib, inodes) as other:
        sandbox = other.sandbox()
        reached, end = sandbox.bomb(bomb, 1_000_000, 1000)
        eq(end, "ENOSPC")
        assert reached > 0
        eq(sandbox.call("GET", "/ping").status, 200)
        eq(other.hutchd.call("GET", f"/v1/sandboxes/{sandbox.id}").status, 200)
        reply = other.create()
        assert reply.status == 202 or reply.status >= 400 and b"message" in reply.body, reply.body
        if reply.status == 202:
            other.hutchd.call("DELETE", f"/v1/sandboxes/{reply.json['id']}")
        others_work(w)
        other.destroy(sandbox)
        other.wait_for_janitors()
        again = other.sandbox()
        again.alive(1000)
        other.destroy(again)


def full_disk(w):
    reply = w.create(disk="1Gi")
    assert reply.status in range(400, 502), "a limit that is not kept is not promised"
    fill(w, "disk", 128)


def no_inodes(w):
    fill(w, "inodes", 512, 30000)


def all_descriptors(w):
    sandbox = small(w)
    with sandbox.hold("bomb", "files", 4_000_000, uid=1000) as held:
        _, end = sandbox.parse_bomb("files", held.line)
        assert end in ("EMFILE", "ENFILE", "KILL", "ENOMEM"), held.line
        limit, most, _ = sandbox.memory()
        assert most <= limit, (most, limit)
        eq(w.neighbour.bomb("files", 500, 1000), (500, "ok"))
        os.close(os.open("/dev/null", os.O_RDONLY))
        others_work(w, sandbox)
    w.destroy(sandbox)


def kernel_tables(w):
    sandbox = w.sandbox(memory="128Mi")
    for name, most, few in (("inotify", 1_000_000, 20), ("epoll", 300_000, 20), ("timers", 1_000_000, 100),
                            ("queues", 10_000, 4)):
        for uid in 0, 1000:
            with sandbox.hold("bomb", name, most, uid=uid) as held:
                reached, end = sandbox.parse_bomb(name, held.line)
                assert end in ("EMFILE", "ENOSPC", "EAGAIN", "ENFILE", "ENOMEM", "KILL"), held.line
                assert reached > 0, held.line
                eq(w.neighbour.bomb(name, few, uid), (few, "ok"), f"{name} of the neighbour")
                on_host = subprocess.run([w.probes(), "bomb", name, str(few)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, text=True, check=True,
                                            preexec_fn=lambda: libc.unshare(0x08000000)).stdout
                eq(on_host, f"{name} {few} ok\n", f"{name} of the host")
    w.destroy(sandbox)


def seconds_used(sandbox):
    """Every group of version 2 counts it, whether its controllers are in use or not."""
    return counted(sandbox, "", "cpu.stat", "usage_usec") / 1e6


def processors(w):
    """A quarter of one, and what may be left of a period at the begin and the end. A host that has not even
    that to give holds no one back."""
    sandbox = w.sandbox(cpu="250m")
    used, since = seconds_used(sandbox), time.monotonic()
    with sandbox.hold("bomb", "spin", 600, uid=1000):
        others_work(w, sandbox)
    used, since = seconds_used(sandbox) - used, time.monotonic() - since
    assert used <= 0.25 * since + 0.1, (used, since)
    w.destroy(sandbox)


def fsync_storm(w):
    sandbox = small(w)
    with sandbox.hold("bomb", "fsync", 300, uid=1000) as held:
        reached, _ = sandbox.parse_bomb("fsync", held.line)
        assert reached > 0, held.line
        others_work(w, sandbox)
    w.destroy(sandbox)


def names_not_there(w):
    sandbox = small(w)
    eq(sandbox.bomb("dentries", 150_000, 1000), (150_000, "ok"))
    limit, most, _ = sandbox.memory()
    assert most <= limit, (most, limit)
    others_work(w, sandbox)
    w.destroy(sandbox)


def deep_directories(w):
    sandbox = w.sandbox()
    eq(sandbox.bomb("deep", 10_000), (10_000, "ok"))
    w.destroy(sandbox)
    w.wait_for_janitors()


def sparse_file(w):
    sandbox = w.sandbox()
    size, end = sandbox.bomb("sparse", 1)
    eq(end, "ok")
    assert size >= 1 << 40, size
    reply = sandbox.call("GET", "/files/download?path=/var/tmp/sparse", headers={"Range": "bytes=0-9"})
    eq((reply.status, len(reply.body)), (206, 10))
    eq(reply.headers["Content-Range"], f"bytes 0-9/{size}")
    reply = sandbox.call("GET", "/files/download?path=/var/tmp/sparse", headers={"Range": f"bytes={size - 5}-"})
    eq((reply.status, reply.body), (206, bytes(5)))
    whole = w.hutchd.begin("GET", f"/v1/sandboxes/{sandbox.id}/proxy/44772/files/download?path=/var/tmp/sparse")
    eq((whole.status, int(whole.headers["Content-Length"])), (200, size))
    eq(whole.read(4 * MIB), bytes(4 * MIB))
    whole.kept.close()
    _, most, _ = sandbox.memory()
    assert most < 200 * MIB, most
    others_work(w, sandbox)
    w.destroy(sandbox)


def left_behind(w):
    sandbox = w.sandbox()
    eq(sandbox.bomb("meeting-places", 1), (6, "ok"))
    eq([x[2] for x in sandbox.probe(66)].count("DEVIATION"), 6, "attempts that find it, in the sandbox itself")
    assert str(0x48555443) not in read("/proc/sysvipc/shm"), "the host sees it"
    w.destroy(sandbox)
    again = w.sandbox()
    eq({x[2] for x in again.probe(66)}, {"ok"}, "attempts of the next sandbox")
    w.destroy(again)


def connects(w, sandbox, address, port):
    return sandbox.inspect("connect", address, port, uid=1000)


def ports(w):
    """Ports of one's own network, and flows that the host has to remember."""
    for network in "none", "private":
        sandbox = w.sandbox(network=network)
        with sandbox.hold("bomb", "ports", 70_000, uid=1000) as held:
            _, end = sandbox.parse_bomb("ports", held.line)
            assert end in ("EADDRINUSE", "EMFILE", "EAGAIN", "KILL", "ENOMEM", "ok"), held.line
            eq(w.neighbour.bomb("ports", 100, 1000), (100, "ok"))
        w.destroy(sandbox)
    listener = w.in_outside(lambda: socket.create_server((OUTSIDE4, 0)))
    port = listener.getsockname()[1]
    sandbox = w.sandbox(network="private")
    with sandbox.hold("bomb", "flows", 300_000, BEYOND4, uid=1000):
        eq(connects(w, w.neighbour, OUTSIDE4, port), "connected")
        with socket.create_connection((OUTSIDE4, port), timeout=10, source_address=(MACHINE4, 0)):
            pass
    listener.close()
    w.destroy(sandbox)


def swap(w):
    sandbox = w.sandbox()
    limit, _, with_swap = sandbox.memory()
    if with_swap is not None:
        assert with_swap in (limit, 0), (limit, with_swap)
    w.destroy(sandbox)


def orphans(w):
    sandbox = w.sandbox()
    eq(sandbox.bomb("zombies", 500, 1000), (500, "ok"))
    sandbox.alive(1000)
    zombies = [p for p in sandbox.pids() if read(f"/proc/{p}/stat").rsplit(")", 1)[1].split()[0] == "Z"]
    assert len(zombies) < 5, zombies        # of 10,000: those that ended a moment ago
    w.destroy(sandbox)


def short_ones(w):
    sandbox = w.sandbox()
    with sandbox.hold("bomb", "short", 500, uid=1000) as held:
        reached, _ = sandbox.parse_bomb("short", held.line)
        assert reached > 100 / scaled(1), held.line
        others_work(w, sandbox)
    sandbox.alive()
    assert len(sandbox.pids()) < 5, sandbox.pids()
    w.destroy(sandbox)


SCENARIOS = [
    (1, "fork bomb", fork_bomb),
    (2, "thread bomb", thread_bomb),
    (3, "memory bomb", memory_bomb),
    (4, "memory by tmpfs, memfd, System V, pipes, sockets, page tables", memory_otherwise),
    (5, "full disk", full_disk),
    (6, "no inodes left", no_inodes),
    (7, "all descriptors", all_descriptors),
    (8, "inotify, epoll, timers, queues", kernel_tables),
    (9, "all processors", processors),
    (10, "fsync storm", fsync_storm),
    (11, "names that are not there", names_not_there),
    (12, "10,000 levels of directories", deep_directories),
    (13, "largest sparse file", sparse_file),
    (14, "System V objects left behind", left_behind),
    (15, "ports and tracked connections", ports),
    (16, "swap is counted", swap),
    (17, "orphans that end", orphans),
    (18, "short processes", short_ones),
    (121, "buffers of sockets", socket_buffers),
]
