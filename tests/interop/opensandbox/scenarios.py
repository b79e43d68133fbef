# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios, programs that use an SDK and speak TAP, against a real hutchd."""

import os
import subprocess
import sys

from deployment import Deployment
from deployment_native import NativeDeployment as Native
from engine_hutchd import engine, settings
from installed import leave
from native import NEEDS, can_run

KEYS = {"user": ("acme", "user"), "other": ("rival", "user"), "admin": ("ops", "admin")}


def run_one(d, command):
    """The SDKs read where the server is, and the key, from these variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPEN_SANDBOX_")}
    env.update(OPEN_SANDBOX_DOMAIN=d.domain, SCENARIO_MODE="keys" if d.keys else "no keys")
    if d.keys:
        env.update(OPEN_SANDBOX_API_KEY=d.keys["user"], SCENARIO_PROXY="1")
    sys.stdout.flush()
    good = subprocess.run([*d.client, *command], env={**env, **d.scenario}, check=False).returncode == 0
    if not good:
        print("# what hutchd has logged:", *d.log().splitlines()[-40:], sep="\n# ", flush=True)
    return good


def run_all(programs, rounds, chosen=None, kind=Deployment):
    """rounds: (keys, commands) pairs. Whether all is good.

    With keys the SDKs are configured to use the server as a proxy, which they do anyway: they
    then send other headers, and their uploads differ.
    """
    good = True
    for keys, commands in rounds:
        with kind(programs, keys, chosen) as d:
            for command in commands:
                good &= run_one(d, command)
    return good


def run_everywhere(programs, commands, build_dir, kind=None):
    """With sandboxes that are plain processes: each without keys, and with the key of a tenant's user beside that of
    another; the same with native ones. With those of this kind of engine, which take longer: each once. Then exits."""
    if not kind:
        sys.exit(0 if run_all(programs, [(None, commands), (KEYS, commands)]) else 1)
    if kind == "native" and not can_run():
        leave(NEEDS)
    if kind == "native":
        sys.exit(0 if run_all(programs, [(None, commands), (KEYS, commands)], None, Native) else 1)
    rounds = [(None, commands[:1]), (KEYS, commands[1:])]
    os.environ["SCENARIO_SNAPSHOTS"] = "1"      # these drivers take them
    with engine(kind, build_dir) as e:
        sys.exit(0 if run_all(programs, rounds, settings(e, network="none")) else 1)
