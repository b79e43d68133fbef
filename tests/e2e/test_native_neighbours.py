#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two installations of hutchd with private networks on one host do not collide.

usage: test_native_neighbours.py HUTCHD
"""

import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from native_apart import Apart, needs_native  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
UIDS = {"first": "268435456:4194304", "second": "272629760:4194304"}


class Host:
    """A network namespace that stands for the host both installations run on."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "--", "sh", "-c", "ip link set lo up; echo; exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def enter(self):
        return ("nsenter", f"--net=/proc/{self.process.pid}/ns/net", "--")

    def hutchd(self, which, **native):
        return Neighbour(program, network="private", native={"uids": UIDS[which], **native}, wrap=self.enter())


class Neighbour(Apart):
    def subnet(self):
        """The chosen one, as recorded in the data directory."""
        with open(f"{self.data}/drivers/native/subnet4", encoding="ascii") as f:
            return f.read().strip()


def check_network(h):
    """A sandbox gets an address of its installation's subnet and reaches its gateway."""
    sandbox = h.create()["id"]
    prefix = ".".join(h.subnet().split(".")[:2])
    addresses = h.run(sandbox, "cat /proc/net/fib_trie")
    assert f"{prefix}.".encode() in addresses, (prefix, addresses)


@test
@needs_native
def each_chooses_a_subnet_of_its_own():
    """each chooses a subnet of its own, and keeps it when it starts again"""
    with Host() as host, host.hutchd("first") as a, host.hutchd("second") as b:
        chosen = a.subnet(), b.subnet()
        assert chosen[0] != chosen[1], chosen
        for h in a, b, a:
            check_network(h)
        b.restart()
        eq((a.subnet(), b.subnet()), chosen)
        check_network(b)


@test
@needs_native
def both_start_at_once():
    with Host() as host:
        started = {}

        def start(which):
            started[which] = host.hutchd(which)

        threads = [threading.Thread(target=start, args=(which,)) for which in UIDS]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        with started["first"] as a, started["second"] as b:
            assert a.subnet() != b.subnet(), a.subnet()
            check_network(a)
            check_network(b)


@test
@needs_native
def a_configured_subnet_that_is_taken_is_refused_at_start():
    """a configured subnet that is taken is refused at start, with an error that names both"""
    with Host() as host, host.hutchd("first", subnet4="10.77.0.0/16") as a:
        a.create()
        try:
            host.hutchd("second", subnet4="10.77.0.0/16").stop()
        except RuntimeError as e:
            has(str(e), "the subnet 10.77.0.0/16 of private networks is in use on this host: it overlaps the "
                        "route to 10.77.")
            has(str(e), "set native.subnet4 in hutchd.yaml to a free one")
        else:
            raise AssertionError("it started")
        eq(len(a.list()), 1)


run()
