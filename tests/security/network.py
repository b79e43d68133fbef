# SPDX-License-Identifier: Apache-2.0
"""Where a sandbox gets to: 70, 71, 78, 124."""

import contextlib
import ipaddress
import socket
import subprocess

from world import MACHINE4, MACHINE6, OUTSIDE4, OUTSIDE6, read_or_none
from tap import eq, scaled

METADATA = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fe80::a9fe:a9fe"]


@contextlib.contextmanager
def listening(make, *addresses):
    """A listener on each: [(address, port)]"""
    with contextlib.ExitStack() as stack:
        found = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            s = stack.enter_context(make(lambda a=address, f=family: socket.create_server((a, 0), family=f)))
            found.append((address, s.getsockname()[1]))
        yield found


def reached(sandbox, places):
    """Those to which a connection can be made."""
    return [place for place in places if sandbox.inspect("connect", *place, uid=1000) == "connected"]


def addresses_of(sandbox):
    text, _ = sandbox.run(["/bin/sh", "-c", "grep -B1 'host LOCAL' /proc/net/fib_trie | grep -oE '[0-9.]{7,}'"])
    return sorted({x for x in text.split() if not x.startswith("127.")})


def metadata(w):
    """Not even when the host has such an address and a process listens there: it is not reached."""
    for network in "none", "private":
        sandbox = w.sandbox(network=network)
        eq(reached(sandbox, [(address, 80) for address in METADATA]), [], network)
        w.destroy(sandbox)


def host_and_neighbours(w):
    with listening(w.in_outside, OUTSIDE4, OUTSIDE6) as outside, \
            listening(lambda make: make(), MACHINE4, MACHINE6, "127.0.0.1", "0.0.0.0") as host_info:
        ports = {port for _, port in host_info}
        private, none = w.sandbox(network="private"), w.sandbox(network="none")
        eq(reached(private, outside), outside, "a private network leads outside")
        eq(reached(none, outside), [], "none does not")
        neighbours = addresses_of(w.neighbour)
        assert neighbours, "the neighbour has an address"
        with w.neighbour.hold("act", "listen", 4711):
            for sandbox in private, none:
                eq(reached(sandbox, host_info), [], "the host")
                ends = [str(ipaddress.ip_address(int(ipaddress.ip_address(x)) ^ 1)) for x in addresses_of(sandbox)]
                eq(reached(sandbox, [(end, port) for end in ends for port in ports]), [], "its end of the link")
                eq(reached(sandbox, [(n, 4711) for n in neighbours]), [], "the neighbour")
            eq(reached(w.neighbour, [("127.0.0.1", 4711)]), [("127.0.0.1", 4711)], "it does listen")
        w.destroy(private)
        w.destroy(none)


def spoofed(w):
    """A datagram with another's address does not leave; one with its own does."""
    receiver = w.in_outside(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    with receiver:
        receiver.bind((OUTSIDE6, 0))
        receiver.settimeout(scaled(20))
        port = receiver.getsockname()[1]
        for network in "none", "private":
            sandbox = w.sandbox(network=network)
            for source in "2001:db8::bad", MACHINE6, OUTSIDE6, "fd00::1":
                sandbox.inspect("spoof", source, OUTSIDE6, port, uid=1000)
            if network == "private":
                eq(sandbox.inspect("spoof", "::", OUTSIDE6, port), "sent", "from its own address")
                data, sender = receiver.recvfrom(100)
                eq((data, sender[0]), (b"spoofed", MACHINE6), "the first that arrives")
            w.destroy(sandbox)


def table_fulls():
    """How often the kernel had no room for a neighbour: [IPv4, IPv6]. Only the host's first network namespace says."""
    found = []
    for name in "arp_cache", "ndisc_cache":
        head, *rows = (read_or_none(f"/proc/1/net/stat/{name}") or "table_fulls").splitlines()
        found.append(sum(int(row.split()[head.split().index("table_fulls")], 16) for row in rows))
    return found


def neighbour_table(w):
    """Addresses on its link that no one has. The table is one for all; the host, on behalf of a neighbour, still
    resolves what it has never resolved."""
    listener = w.in_outside(lambda: socket.create_server((OUTSIDE4, 0)))
    for network in "private", "none":
        sandbox = w.sandbox(network=network)
        before = table_fulls()
        with sandbox.hold("bomb", "neighbours", 3000, uid=1000) as held:
            subprocess.run(["ip", "neigh", "flush", "dev", "way-out"], check=True, stderr=subprocess.DEVNULL)
            eq(reached(w.neighbour, [(OUTSIDE4, listener.getsockname()[1])]),
               [(OUTSIDE4, listener.getsockname()[1])], "what the neighbour reaches")
            eq(table_fulls(), before, f"times that the table was full ({held.line})")
        w.destroy(sandbox)
    listener.close()


SCENARIOS = [
    (70, "credentials of clouds can't be reached", metadata),
    (71, "neither can the host, its end of the link, nor a neighbour", host_and_neighbours),
    (124, "addresses that no one has do not fill the table of neighbours", neighbour_table),
    (78, "datagrams with another's address do not leave", spoofed),
]
