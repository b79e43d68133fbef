#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two installations of hutchd on one host do not collide: neither their private networks nor their uids.

usage: test_native_neighbours.py HUTCHD
"""

import os
import pwd
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from native_apart import Apart, needs_native  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

program = os.path.abspath(sys.argv[1])


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

    def hutchd(self, **native):
        return Neighbour(program, network="private", native=native, wrap=self.enter())


class Neighbour(Apart):
    def subnet(self):
        """The chosen one, as recorded in the data directory."""
        with open(f"{self.data}/drivers/native/subnet4", encoding="ascii") as f:
            return f.read().strip()


    def uids(self):
        """BASE and COUNT, as recorded in the data directory."""
        with open(f"{self.data}/uids", encoding="ascii") as f:
            base, count = f.read().split(":")
        return range(int(base), int(base) + int(count))

    def own_uid(self):
        return os.stat(f"/proc/{self.hutchd}").st_uid


def uids_of(h, sandbox):
    """Of a sandbox, as the kernel maps them."""
    with open(f"/proc/{h.agent_of(sandbox)}/uid_map", encoding="ascii") as f:
        _, first, count = map(int, f.read().split())
    return range(first, first + count)


def overlap(a, b):
    return a.start < b.stop and b.start < a.stop


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
    with Host() as host, host.hutchd() as a, host.hutchd() as b:
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
            started[which] = host.hutchd()

        threads = [threading.Thread(target=start, args=(which,)) for which in ("first", "second")]
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
    with Host() as host, host.hutchd(subnet4="10.77.0.0/16") as a:
        a.create()
        try:
            host.hutchd(subnet4="10.77.0.0/16").stop()
        except RuntimeError as e:
            has(str(e), "the subnet 10.77.0.0/16 of private networks is in use on this host: it overlaps the "
                        "route to 10.77.")
            has(str(e), "set native.subnet4 in hutchd.yaml to a free one")
        else:
            raise AssertionError("it started")
        eq(len(a.list()), 1)


# --- uids ---

def alone(**more):
    """Without the user hutch, and without a network namespace to tell installations apart."""
    return Neighbour(program, native={"private": "off", "uids": 64 * 65536, **more}, wrap=(), user=None)


@test
@needs_native
def uids_of_their_own():
    """without a user hutch, neither the two hutchd nor their sandboxes have the same uids"""
    with alone() as a, alone() as b:
        if "hutch" in (pwd.getpwuid(h.own_uid()).pw_name if h.own_uid() < 65536 else "" for h in (a, b)):
            skip("this host has the user hutch")
        assert a.own_uid() != b.own_uid(), a.own_uid()
        sandboxes = [(h, uids_of(h, h.create()["id"])) for h in (a, b) for _ in range(3)]
        for h, uids in sandboxes:
            assert uids.start in h.uids() and uids.stop - 1 in h.uids(), (uids, h.uids())
        for h, uids in sandboxes:
            for other, theirs in sandboxes:
                assert h is other or not overlap(uids, theirs), (uids, theirs)
            assert a.own_uid() not in uids and b.own_uid() not in uids
        before = [(h.own_uid(), h.uids()) for h in (a, b)]
        b.restart()
        a.restart()
        eq([(h.own_uid(), h.uids()) for h in (a, b)], before)
        eq([len(h.list()) for h in (a, b)], [3, 3])


@test
@needs_native
def configured_uids_that_are_taken_are_refused():
    """configured uids that another installation has are refused at start, with an error that names both"""
    with alone() as a:
        taken = f"{a.uids().start}:{len(a.uids())}"
        a.create()
        try:
            alone(uids=taken).stop()
        except RuntimeError as e:
            has(str(e), f"the uids {taken} of sandboxes overlap {taken}, those of the installation in {a.data}; set "
                        "native.uids in hutchd.yaml to other ones, or leave it out")
        else:
            raise AssertionError("it started")
        eq(len(a.list()), 1)


run()
