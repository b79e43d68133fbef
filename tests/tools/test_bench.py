#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/lib.py: what it reads, how it judges, that it cleans up. No benchmark runs here."""

import contextlib
import importlib.machinery
import importlib.util
import os
import re
import resource
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import lib                          # noqa: E402
from tap import eq, run, runnable_directory, test       # noqa: E402

WRK = """Running 2s test @ http://127.0.0.1:1/json
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.10ms    1.40ms  15.98ms   89.43%
  Latency Distribution
     50%  290.00us
     75%    1.20ms
     90%    2.00ms
     99%    1.50s
  20410 requests in 2.00s, 3.31MB read
Requests/sec:  10201.50
Transfer/sec:      1.65MB
"""


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as e:
        return str(e)
    raise AssertionError(f"no {kind.__name__}")


@test
def reads_wrk():
    eq(lib.parse_wrk(WRK), {"rps": 10201.5, "requests": 20410, "p50_us": 290.0, "p99_us": 1.5e6})


@test
def refuses_wrk_with_errors():
    for line in ("  Non-2xx or 3xx responses: 7\n", "  Socket errors: connect 0, read 1\n"):
        raises(lib.Failure, lib.parse_wrk, WRK.replace("Requests/sec", line + "Requests/sec"))
    raises(lib.Failure, lib.parse_wrk, "", "unable to connect")


@test
def ratio_of_neighbours():
    eq(lib.median_ratio([10, 200, 30], [10, 100, 60]), 1)


def script(name):
    """One of bench/ that has no suffix, as a module."""
    path = os.path.join(HERE, "..", "..", "bench", name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


@test
def tables_say_what_was_measured():
    table = script("table")
    eq(table.cells(lib.result("a (vs. b)", 150, 100, "us", 1.5, at_most=2.0)),
       ["a (vs. b)", "150 us", "100 us", "1.50", "≤ 2.00"])
    eq(table.cells(lib.result("  c", 3, None, "ms", at_least=2)), ["– c", "3.00 ms", "", "", "≥ 2.00 ms"])
    eq(table.cells(lib.without_number("d", "skipped", "why")), ["d", "skipped", "", "", "why"])


@test
def tables_replace_their_own_part_only():
    page = "x\n<!-- bench:a -->\nold\n<!-- bench -->\ny\n<!-- bench:b -->\nkept\n<!-- bench -->\n"
    replace = script("table").replace
    eq(replace(page, "a", "new\n"), page.replace("old", "new"))
    eq(replace(page, "c", "new\n"), None)


@test
def the_page_has_a_place_for_each_part():
    with open(os.path.join(HERE, "..", "..", "docs", "benchmarks.md"), encoding="utf-8") as f:
        page = f.read()
    with open(os.path.join(HERE, "..", "..", "bench", "run"), encoding="utf-8") as f:
        parts = re.findall(r'"(\w+)": \w+', re.search(r"^PARTS = \{(.*?)\}", f.read(), re.S | re.M)[1])
    eq(sorted(re.findall(r"<!-- bench:(\w+) -->", page)), sorted(parts))


@test
def judges_by_bounds():
    eq(lib.result("a", 3, 4, ratio=0.75, at_least=0.75)["passed"], True)
    eq(lib.result("a", 3, 4, ratio=0.74, at_least=0.75)["passed"], False)
    eq(lib.result("a", 60, at_most=60)["passed"], True)
    eq(lib.result("a", 61, at_most=60)["passed"], False)
    eq(lib.result("a", 61)["passed"], None)
    eq(lib.without_number("a", "failed", "why")["passed"], False)
    eq(lib.without_number("a", "skipped", "why")["passed"], None)


@test
def rows():
    text = lib.row(lib.result("small", 90000, 100000, "req/s", 0.9, at_least=0.75))
    eq(text.split(), "small 90,000 req/s 100,000 req/s 0.90 >= 0.75 PASS".split())
    text = lib.row(lib.result("idle", 61.5, None, "MB", at_most=60))
    eq(text.split(), "idle 61.50 MB - - <= 60.00 MB FAIL".split())
    eq(lib.row(lib.without_number("x", "skipped", "no room")).split(), "x SKIP: no room".split())


@test
def too_few_descriptors_are_no_failure():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        raises(lib.Skip, lib.need_descriptors, hard + 1)


@contextlib.contextmanager
def bench_of(script):
    """With a build directory whose one program, "server", is a shell script."""
    with runnable_directory() as build:
        os.mkdir(os.path.join(build, "bench"))
        path = os.path.join(build, "bench", "server")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o700)
        bench = lib.Bench(build, rounds=3, seconds=1)
        yield bench
        bench.close()
        eq(os.path.exists(bench.directory), False, "directory left behind")


@test
def servers_end_with_their_scope():
    with bench_of("echo 'server: listening on http://127.0.0.1:81'; exec sleep 60") as bench:
        with bench.scope():
            server = bench.start("server")
            eq(server.host_port, ("127.0.0.1", 81))
            eq(server.memory()["rss"] > 0, True)
        eq(server.process.poll() is None, False, "still runs")


@test
def a_server_that_does_not_start():
    with bench_of("exit 1") as bench:
        eq("did not start" in raises(lib.Failure, bench.start, "server"), True)


@test
def order_turns_each_round():
    calls = []
    with bench_of("") as bench:
        values = bench.interleave({"a": lambda: calls.append("a") or len(calls),
                                   "b": lambda: calls.append("b") or len(calls)})
    eq("".join(calls), "abbaab")
    eq(values, {"a": [1, 4, 5], "b": [2, 3, 6]})


run()
