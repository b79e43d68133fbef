# SPDX-License-Identifier: Apache-2.0
"""Foreign packages that tests need, installed once below the build directory.

    directory = installed("npm", [lock], install)

The directory is named by what is installed, so that a second run needs no network, and it is there as
a whole or not at all.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

# What installers say when there is no way to their registry, or when it does not hand out the
# package; anything else is a failure of the test.
NO_REGISTRY = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E40[137]|E50\d"
    r"|SELF_SIGNED|CERT_|certificate|\bnetwork\b|NewConnectionError|ConnectTimeout|ReadTimeout"
    r"|no such host|connection refused|i/o timeout"
    r"|40[137] [A-Z]|50\d [A-Z]|module lookup disabled", re.I)


class CannotInstall(Exception):
    """A reason to skip."""


def leave(reason):
    """Ends the whole program as skipped."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            leave(f"{program} is not installed")


def installer(command, timeout=240, **options):
    """Runs a program that gets things from a registry; raises CannotInstall if it is out of reach."""
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                           **options)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{command[0]}: the registry does not answer") from None
    if p.returncode == 0:
        return
    said = (p.stderr + p.stdout).strip()
    found = [line.strip() for line in said.splitlines() if NO_REGISTRY.search(line)]
    if not found:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said}")
    raise CannotInstall(f"the registry can't be reached or does not have it: {found[0][:200]}")


def installed(build_dir, kind, inputs, install, also=""):
    """The directory that install(fresh directory) has filled for these input files, now or earlier."""
    digest = hashlib.sha256(also.encode())
    for path in inputs:
        with open(path, "rb") as f:
            digest.update(hashlib.sha256(f.read()).digest())
    target = os.path.join(build_dir, kind, f"opensandbox-{digest.hexdigest()[:16]}")
    if os.path.isdir(target):
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    fresh = tempfile.mkdtemp(prefix="fresh-", dir=os.path.dirname(target))
    try:
        install(fresh)
        os.rename(fresh, target)
    except CannotInstall as e:
        leave(str(e))
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
