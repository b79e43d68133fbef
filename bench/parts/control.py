# SPDX-License-Identifier: Apache-2.0
"""hutchd's own work, without that of a driver: records, rules, store and API. The driver is the fake one."""

import json
import statistics
import subprocess
import tempfile

from lib import Failure, median_ratio, result
from parts.http import column, middle, rate_result, wrk_measure

CONNECTIONS = 64
FEW, MANY = 100, 10000


def start_hutchd(bench):
    """With the fake driver, and the store where a store is: on a disk, if there is one."""
    data = tempfile.mkdtemp(dir=bench.directory)
    return bench.start("../hutchd", "--listen", "127.0.0.1:0", "--data", data, "--driver", "fake",
                       "--log-level", "error")


def load(bench, mode, server, number):
    argv = [bench.program("control_bench"), mode, str(server.host_port[1]), str(CONNECTIONS),
            str(number)]
    run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failure(run.stderr.strip() or f"control_bench ended with {run.returncode}")
    return run.stdout.splitlines()


def fill(bench, server, count):
    """Returns the id of one of them."""
    return load(bench, "fill", server, count)[1]


def get(bench):
    """A record by its id, through routing, rights and the encoder, against a constant from the bare
    engine."""
    server = start_hutchd(bench)
    one = fill(bench, server, FEW)
    bare = bench.start("http_bench", "127.0.0.1:0", bench.directory)
    r = bench.interleave({"ours": wrk_measure(bench, server, f"/v1/sandboxes/{one}"),
                          "peer": wrk_measure(bench, bare, "/json")})
    yield rate_result("GET one sandbox, requests per second (vs. a constant response)",
                      r["ours"], r["peer"], at_least=0.5)
    yield result("  CPU time per request (vs. a constant response)", middle(r["ours"], "cpu_us"),
                 middle(r["peer"], "cpu_us"), "us",
                 median_ratio(column(r["ours"], "cpu_us"), column(r["peer"], "cpu_us")))


def cycle(bench):
    """Create and delete, each with its intent and its outcome in SQLite."""
    server = start_hutchd(bench)
    load(bench, "cycle", server, 1)
    rounds = [json.loads(load(bench, "cycle", server, bench.seconds)[0])
              for _ in range(bench.rounds)]
    rates = [x["rate"] for x in rounds]
    yield result(f"create + delete cycles, {CONNECTIONS} connections", statistics.median(rates), None, "/s",
                 at_least=2000, rounds=rounds)
    for key, text in (("p50_us", "  latency of both, median"), ("p99_us", "  latency of both, 99th percentile")):
        yield result(text, statistics.median(x[key] for x in rounds), None, "us")


def page(bench):
    """The first page and one from the middle, of many records and of few."""
    few, many = start_hutchd(bench), start_hutchd(bench)
    fill(bench, few, FEW)
    fill(bench, many, MANY)
    for name, query in (("first page", ""), ("middle page", "&page={}"),
                        ("first page of a label", "&metadata=suite%3Dbench")):
        path = "/v1/sandboxes?pageSize=20" + query
        r = bench.interleave({"few": wrk_measure(bench, few, path.format(FEW // 40)),
                              "many": wrk_measure(bench, many, path.format(MANY // 40))})
        yield result(f"list, {name}: CPU time with {MANY:,} sandboxes (vs. {FEW})",
                     middle(r["many"], "cpu_us"),
                     middle(r["few"], "cpu_us"), "us",
                     median_ratio(column(r["many"], "cpu_us"), column(r["few"], "cpu_us")),
                     at_most=2.0, rounds=r)


def memory(bench):
    """What a record costs while it is kept."""
    server = start_hutchd(bench)
    fill(bench, server, FEW)
    before = server.memory()
    fill(bench, server, MANY)
    after = server.memory()
    yield result(f"memory per sandbox record, {MANY:,} records",
                 (after["rss"] - before["rss"]) / MANY, None, "B",
                 growth={k: after[k] - before[k] for k in after if after[k] is not None})


ITEMS = {"get": get, "cycle": cycle, "page": page, "memory": memory}
