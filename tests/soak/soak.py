#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py HUTCHD LOAD [options]: many create/destroy cycles, and what they leave on the host.

Starts a hutchd with real sandboxes, and with a data directory, a socket, a cgroup and a network namespace of its own.
Workers (load.c) create sandboxes, run a command, write and read a file, and delete them, in both network modes. Counts
(counts.py) are read before, after each tenth, and after the last cycle. Fails if a cycle fails, if something is left, or if
cycles get slower: the median of the last tenth is compared with that of the first, each divided by the median of a floor
that the workers measure at the same time, because other load on the host slows down both.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from counts import HOST, MEMORY, OWN, Counts  # noqa: E402
from native import NEEDS, can_run  # noqa: E402
from native_apart import Apart  # noqa: E402

ZYGOTES, UIDS = 16, 2048
WARM_UP = 50                # cycles of each worker
SLOWER_MAX = 1.05           # last tenth to first
SETTLE_SECONDS = 120


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("hutchd", type=os.path.abspath)
    p.add_argument("load", type=os.path.abspath)
    p.add_argument("--cycles", type=int, default=100000, help="in total (%(default)s)")
    p.add_argument("--seconds", type=int, default=0, help="end earlier, after this time (0: do not)")
    p.add_argument("--workers", type=int, default=4, help="at a time (%(default)s)")
    p.add_argument("--steps", default="xwr", help="of each cycle, as in load.c (%(default)s)")
    p.add_argument("--networks", default="none,private", help="in turn (%(default)s)")
    p.add_argument("--shared-host", action="store_true",
                   help="other programs run: judge neither the counts of the whole host nor the time")
    p.add_argument("--tap", action="store_true", help="print TAP, as a test; implies --shared-host")
    return p.parse_args()


# --- load ------------------------------------------------------------------------------------------


def run_load(args, hutchd, cycles, seconds=0):
    """Yields the results of each tenth, as it ends."""
    argv = [args.load, hutchd.socket, args.workers, cycles, seconds, args.steps, *args.networks.split(",")]
    with subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as process:
        words = (line.split(" ", 1)[1] for line in process.stdout)
        for errors in words:
            yield {"errors": int(errors), "cycle": json.loads(next(words)), "floor": json.loads(next(words))}
    if process.returncode != 0:
        raise RuntimeError(f"the load ended with status {process.returncode}")


def relative(part):
    return part["cycle"]["p50_us"] / max(part["floor"]["p50_us"], 1)


# --- what is printed -------------------------------------------------------------------------------

PROGRESS = "{:>7} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>7}   {:>9} {:>14} {:>9}"
HEAD = ("tenth", "cycles", "errors", "per s", "p50 ms", "p99 ms", "floor ms", "ratio", "processes", "memory cgroups",
        "slab MiB")


def print_progress(name, counts, part=None):
    numbers = ["-"] * 7
    if part:
        cycle = part["cycle"]
        numbers = [cycle["n"] + part["errors"], part["errors"], f"{cycle['rate']:.0f}",
                   *(f"{us / 1000:.2f}" for us in (cycle["p50_us"], cycle["p99_us"], part["floor"]["p50_us"])),
                   f"{relative(part):.2f}"]
    print(PROGRESS.format(name, *numbers, counts[OWN]["processes"], counts[HOST].get("cgroups of memory", "-"),
                          counts[HOST]["slab, KiB"] // 1024), flush=True)


def print_table(columns):
    """columns: (title, counts)"""
    for scope in columns[0][1]:
        print(f"\n{scope:<32}" + "".join(f"{title:>9}" for title, _ in columns))
        for name in columns[0][1][scope]:
            print(f"  {name:<30}" + "".join(f"{counts[scope].get(name, '-'):>9}" for _, counts in columns))


# --- the run ---------------------------------------------------------------------------------------


def settle(counts, before, scopes):
    """The counts when no more is left than may be, or when that is late. There is no event for it: the warden and the
    kernel remove in their own time."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        after = counts.read()
        if not counts.grown(before, after, scopes) or time.monotonic() > deadline:
            return after
        time.sleep(0.2)


def soak(args):
    """Returns what is wrong, as texts."""
    scopes = [OWN, MEMORY] if args.shared_host else [OWN, MEMORY, HOST]
    with Apart(args.hutchd, "--log-level", "warn", zygotes=ZYGOTES, uids=UIDS, network="none") as h:
        list(run_load(args, h, WARM_UP * args.workers))
        counts = Counts(h)
        before = counts.read()
        columns, parts = [("before", before)], []
        print(PROGRESS.format(*HEAD))
        print_progress("before", before)
        for part in run_load(args, h, args.cycles, args.seconds):
            parts.append(part)
            columns.append((f"{len(parts)}/10", counts.read()))
            print_progress(*columns[-1], part)
        columns.append(("after", settle(counts, before, scopes)))
        print_progress(*columns[-1])
        print_table(columns)
        left = counts.grown(before, columns[-1][1], scopes)
        log = h.log()
    wrong = [f"{name}: {was} before, {now} after" for name, (was, now) in left.items()]
    errors = sum(part["errors"] for part in parts)
    slower = relative(parts[-1]) / relative(parts[0])
    print(f"\n{sum(p['cycle']['n'] for p in parts):,} cycles, {errors} errors, {len(left)} counts grown, "
          f"p50 of the last tenth {slower:.3f} times that of the first, relative to the floor")
    if errors:
        wrong.append(f"{errors} cycles failed")
    if slower > SLOWER_MAX and not args.shared_host:
        wrong.append(f"the last tenth takes {slower:.3f} times as long as the first")
    if log:
        print(f"hutchd logged:\n{log}")
    return wrong


def run_as_test(args):
    """stdout is for TAP only."""
    args.shared_host = True
    if not can_run():
        print(f"1..0 # SKIP {NEEDS}")
        return 0
    tap, sys.stdout = sys.stdout, sys.stderr
    wrong = soak(args)
    for text in wrong:
        print(f"# {text}", file=tap)
    print(f"1..1\n{'not ' if wrong else ''}ok 1 - {args.cycles} cycles leave nothing", file=tap)
    return 1 if wrong else 0


def main():
    args = arguments()
    if args.tap:
        sys.exit(run_as_test(args))
    if not can_run():
        sys.exit(f"soak: {NEEDS}")
    wrong = soak(args)
    for text in wrong:
        print(f"FAIL: {text}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
