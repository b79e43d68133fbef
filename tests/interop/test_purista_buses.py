#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npm's nats, mqtt and amqplib, which PURISTA's event bridges are made of, as callers of two hutch-bridges.

usage: test_purista_buses.py BRIDGE BUILD_DIR

The packages are installed from npm into the build directory, once for each package-lock.json.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
packages = os.path.join(here, "purista")
sys.path.insert(0, os.path.join(here, "..", "lib"))
import brokers  # noqa: E402
from bridge import Bridge  # noqa: E402
from fake_hutchd import FakeHutchd  # noqa: E402
from installed import installed, installer, need  # noqa: E402
from tap import eq, run, skip, test  # noqa: E402

program, build_dir = map(os.path.abspath, sys.argv[1:3])
NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
       "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000"]
COUNT = 200


def install(directory):
    for name in ["package.json", "package-lock.json"]:
        shutil.copy(f"{packages}/{name}", directory)
    installer(NPM, cwd=directory)


def served(kind):
    with tempfile.TemporaryDirectory(prefix="hutch-bus-") as directory:
        try:
            broker = kind(directory)
        except brokers.Missing as missing:
            skip(str(missing))
        with broker, FakeHutchd(directory) as hutchd:
            address = f"unix:{hutchd.path}"
            with Bridge(program, broker, address) as one, Bridge(program, broker, address) as two:
                one.said("connected")
                two.said("connected")
                out = subprocess.run(["node", f"{packages}/callers.mjs", broker.kind, str(broker.port),
                                      f"{modules}/node_modules", str(COUNT)], capture_output=True, text=True,
                                     timeout=60, check=False)
                eq((out.returncode, out.stderr), (0, ""))
                replies = [json.loads(line) for line in out.stdout.splitlines()]
                eq([r["payload"]["stdout"] for r in replies], [str(i) for i in range(COUNT)])
                eq({r["sender"]["instanceId"] for r in replies}, {one.instance, two.instance})
                eq(one.stop()["succeeded"] + two.stop()["succeeded"], COUNT)


@test
def nats():
    """nats"""
    served(brokers.Nats)


@test
def mqtt():
    """mqtt"""
    served(brokers.Mosquitto)


@test
def amqplib():
    """amqplib"""
    served(brokers.RabbitMq)


need("node", "npm")
modules = installed(build_dir, "npm-purista", [f"{packages}/package-lock.json"], install)
run()
