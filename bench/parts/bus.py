# SPDX-License-Identifier: Apache-2.0
"""What a message bus adds to a command: executeBash of "true" through a broker and hutch-bridge, beside the same over
HTTP, and beside what the broker itself takes for a message there and back."""

import contextlib
import http.client
import json
import os
import statistics
import sys
import tempfile

from lib import Failure, Skip, make_important, result
from parts.exec import run_json
from parts.native import Hutchd, own_network

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "lib"))
import brokers  # noqa: E402
from bridge import Bridge  # noqa: E402

CALLS = 200         # of each, in a round
ROUND_TRIPS_MAX = 2
ZYGOTES = 2
CONFIG = """\
purista:
  image: host
  bridges:
  - {{uid: {uid}, tenants: ["*"]}}
"""


class QuickMosquitto(brokers.Mosquitto):
    """Without a log of each packet, and with TCP_NODELAY."""

    def prepare(self):
        super().prepare()
        with open(f"{self.directory}/mosquitto.conf", "a", encoding="ascii") as f:
            f.write("set_tcp_nodelay true\n")

    def command(self):
        return [word for word in super().command() if word != "-v"]


BROKERS = {"nats": brokers.Nats, "mqtt": QuickMosquitto, "amqp": brokers.RabbitMq}
NAMES = {"nats": "NATS", "mqtt": "MQTT", "amqp": "AMQP"}


def start_broker(bench, kind):
    try:
        broker = BROKERS[kind](tempfile.mkdtemp(dir=bench.directory))
    except brokers.Missing as e:
        raise Skip(str(e)) from e
    make_important(broker.process.pid)
    return broker


def start_hutchd(bench):
    """On TCP for HTTP clients, on a unix socket for the bridge, as in the manual."""
    path = os.path.join(bench.directory, "socket")
    hutchd = Hutchd(bench, ZYGOTES, more=CONFIG.format(uid=os.getuid()), listen=f"unix:{path}")
    hutchd.path = f"unix:{path}"
    return hutchd


def make_sandbox(hutchd):
    connection = http.client.HTTPConnection("127.0.0.1", hutchd.port, timeout=60)
    connection.request("POST", "/api/v1/sandbox", json.dumps({"projectId": "bench"}),
                       {"Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    if reply.status != 200:
        raise Failure(f"createSandbox: {reply.status} {text!r}")
    return json.loads(text)["sandboxId"]


@contextlib.contextmanager
def echo(bench, kind, broker):
    """Ends before its broker does."""
    server = bench.start("bus_bench", "echo", kind, str(broker.port),
                         cpus=bench.server_cpus | bench.load_cpus)
    try:
        yield
    finally:
        server.stop()


def overhead(side):
    """What the bus adds, in broker round trips."""
    return lambda x: (x["bus"]["p50_us"] - x["http"]["p50_us"]) / x[side]["p50_us"]


def results(kind, rounds):
    def middle(side, key="p50_us"):
        return statistics.median(x[side][key] for x in rounds)

    added = middle("bus") - middle("http")
    yield result(f"{NAMES[kind]}: added to executeBash over HTTP (vs. one broker round trip)",
                 added, middle("echo"), "us",
                 statistics.median(map(overhead("echo"), rounds)), at_most=ROUND_TRIPS_MAX,
                 rounds=rounds)
    yield result("  the same (vs. a round trip that is answered as late)", added, middle("late"), "us",
                 statistics.median(map(overhead("late"), rounds)))
    yield result("  executeBash over the bus (vs. over HTTP)", middle("bus"), middle("http"), "us",
                 statistics.median(x["bus"]["p50_us"] / x["http"]["p50_us"] for x in rounds))


def of(kind):
    def item(bench):
        if not os.path.exists(bench.program("bus_bench")):
            raise Skip("hutch-bridge is built without the library of one of the brokers")
        with own_network(), start_broker(bench, kind) as broker:
            hutchd = start_hutchd(bench)
            sandbox = make_sandbox(hutchd)
            with echo(bench, kind, broker), Bridge(bench.program("../hutch-bridge"), broker, hutchd.path,
                                                   "--log-level", "info") as bridge:
                bridge.said("connected")
                rounds = [run_json(bench, "bus_bench", "call", kind, broker.port, hutchd.port, sandbox, CALLS)
                          for _ in range(bench.rounds)]
        yield from results(kind, rounds)
    return item


ITEMS = {kind: of(kind) for kind in BROKERS}
