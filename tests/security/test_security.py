#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile tenant tries, in sandboxes that were made through the API, looked at from outside.

docs/internals/security-tests.md says what is tried and how it is judged.

usage: test_security.py BUILD_DIR SOURCE_DIR      runs it
       test_security.py --table                         prints the tables of that paper
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from world import World, attempt  # noqa: E402
import contents  # noqa: E402
import images  # noqa: E402
import network  # noqa: E402
import processes  # noqa: E402
import resources  # noqa: E402
from tap import diag, eq, run, skip, test  # noqa: E402

CELLS = [(user, uid, net) for net in ("none", "private") for user, uid in (("root", 0), ("user", 1000))]


def controls(probes):
    """Attempts that work on this host outside of sandboxes, and those it has nothing for: (set, dict)."""
    text = subprocess.run([probes, "outside"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = [attempt(x) for x in text.splitlines()[:-1]]
    works = {(number, name) for number, name, verdict, _ in found if verdict == "works"}
    return works, {(number, name): got for number, name, verdict, got in found if verdict != "works"}


class Attempts:
    """All attempts of one cell, made once, judged by case."""

    def __init__(self, world, uid, net, lacking):
        self.world, self.uid, self.network, self.lacking = world, uid, net, lacking
        self.found = None

    def make(self):
        if self.found is not None:
            return
        self.found = {}
        sandbox = self.world.sandbox(network=self.network)
        witness = [self.world.witness(sandbox.first), self.world.witness(sandbox.first + 1000)]
        before, host_info = sandbox.picture(), self.world.picture()
        neighbour = self.world.neighbour.picture()
        for number, name, verdict, got in sandbox.probe(uid=self.uid):
            self.found.setdefault(number, []).append((name, verdict, got))
        sandbox.check_strays()
        eq(sandbox.picture(), before, "the sandbox, as the host sees it")
        eq(self.world.picture(), host_info, "the host")
        eq(self.world.neighbour.picture(), neighbour, "the neighbour")
        sandbox.alive(self.uid)
        eq([w.poll() for w in witness], [None, None], "processes of the host with the same uids")
        eq([x for p in sandbox.pids() for x in contents.secrets_of(self.world, p)], [], "secrets")
        self.world.destroy(sandbox)

    def judge(self, number):
        self.make()
        found = self.found.get(number, [])
        wrong = [f"{name}: {got}" for name, verdict, got in found if verdict == "DEVIATION"]
        assert not wrong, "; ".join(wrong)
        shown = [name for name, verdict, _ in found if verdict == "ok" and (number, name) not in self.lacking]
        lacks = [f"{name}: {got.removeprefix('lacks ') if verdict == 'lacks' else self.lacking[number, name]}"
                 for name, verdict, got in found
                 if verdict == "lacks" or (number, name) in self.lacking]
        if lacks:
            diag(f"this kernel or its root lacks: {'; '.join(lacks)}")
        if not shown:
            skip(f"this kernel lacks it: {'; '.join(lacks)}")


def add(title, function):
    def point():
        function()
    point.__doc__ = title
    test(point)


def add_matrix(world, probes, lacking):
    listed = subprocess.run([probes, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    numbers = sorted({int(x.split()[0]) for x in listed.splitlines()[:-1]})
    for user, uid, net in CELLS:
        cell = Attempts(world, uid, net, lacking)
        for number in numbers:
            add(f"{number} [{user}, {net}] {cases.CASES[number][1]}",
                lambda cell=cell, number=number: cell.judge(number))
    return set(numbers)


def add_scenarios(world, modules):
    numbers = set()
    for module in modules:
        for number, title, function in module.SCENARIOS:
            add(f"{number} {title}", lambda function=function: function(world))
            if isinstance(number, int):
                numbers.add(number)
    return numbers


def check_docs_table(source, tried):
    path = os.path.join(source, "docs/internals/security-tests.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert cases.table() in text, f"{path} is not what test_security.py --table prints"
    eq(sorted(tried), sorted(cases.CASES), "cases that are tried")


def main():
    if sys.argv[1:] == ["--table"]:
        print(cases.table(), end="")
        return
    if os.geteuid() != 0:
        print("1..0 # skip sandboxes need root")
        return
    build, source = map(os.path.abspath, sys.argv[1:3])
    probes = f"{build}/tests/security/probes"
    _, lacking = controls(probes)
    with World(build) as world:
        world.neighbour = world.sandbox(network="private")
        world.meeting_inside = world.stack.enter_context(world.neighbour.hold("bomb", "meeting-places"))
        modules = (processes, contents, images, network, resources)
        tried = add_matrix(world, probes, lacking) | add_scenarios(world, modules)
        add("the docs page has these cases, and all are tried", lambda: check_docs_table(source, tried))
        run()


main()
