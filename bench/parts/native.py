# SPDX-License-Identifier: Apache-2.0
"""Native sandboxes as the warden makes them, against a program that makes the same walls and nothing
else."""

import json
import os
import subprocess

from lib import Failure, Skip, result

ROUNDS = 100


def box(bench):
    """From the wish to the first answer. User and network namespaces are made ahead in all of them,
    and ours has its process prepared, too: that is what a seed is."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    argv = [bench.program("box_bench"), str(ROUNDS), bench.program("../hutch-execd"),
            bench.program("tiny_init")]
    run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failure(run.stderr.strip() or f"box_bench ended with {run.returncode}")
    r = json.loads(run.stdout)
    floor = r["floor"]["p50_us"]
    for key, text, bound in (("agent", "sandbox with its agent / floor", 2.0),
                             ("init", "  with a tiny init", None), ("seed", "  made ahead", None)):
        yield result(text, r[key]["p50_us"], floor, "us", r[key]["p50_us"] / floor, at_most=bound,
                     rounds=r)


ITEMS = {"box": box}
