# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios, programs that use an SDK and speak TAP, against a real hutchd."""

import os
import subprocess
import sys

from deployment import Deployment

KEYS = {"user": ("acme", "user"), "other": ("rival", "user"), "admin": ("ops", "admin")}


def run_one(d, command):
    """The SDKs read where the server is, and the key, from these variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPEN_SANDBOX_")}
    env.update(OPEN_SANDBOX_DOMAIN=d.domain, SCENARIO_MODE="keys" if d.keys else "no keys")
    if d.keys:
        env.update(OPEN_SANDBOX_API_KEY=d.keys["user"], SCENARIO_PROXY="1")
    sys.stdout.flush()
    good = subprocess.run(command, env=env, check=False).returncode == 0
    if not good:
        print("# what hutchd has logged:", *d.log().splitlines()[-40:], sep="\n# ", flush=True)
    return good


def run_everywhere(programs, commands):
    """Without keys, and with the key of a tenant's user beside that of another; then exits.

    With keys the SDKs are told to come through the server, which is where they come anyway: they
    then send other headers, and their uploads differ.
    """
    good = True
    for keys in [None, KEYS]:
        with Deployment(programs, keys) as d:
            for command in commands:
                good &= run_one(d, command)
    sys.exit(0 if good else 1)
