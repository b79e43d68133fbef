# SPDX-License-Identifier: Apache-2.0
"""Native sandboxes through hutchd's API, against the floor: a program that sets up the same isolation and nothing
else (bench/instance_floor.h). Also beside bwrap and runc on the same kernel."""

import contextlib
import ctypes
import glob
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from lib import Failure, Skip, result
from parts.exec import run_json

NETWORKS = {"none": "no network", "private": "private network"}
CREATES = 200
BURST = 100
ZYGOTES = 128
FEW_ZYGOTES = 16
CROWD = 2000
CROWD_MOST = 10000
IDLE = 1000
WORKERS = 4
KIB = 1024


# --- where it happens ------------------------------------------------------------------------------


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


@contextlib.contextmanager
def own_network():
    """Moves this process, and what it starts, into a network namespace of its own for a time, so that links and
    rules of sandboxes stay there."""
    need_root()
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newnet = 0x40000000
    with open("/proc/self/ns/net", "rb") as before:
        if libc.unshare(clone_newnet) < 0:
            raise Skip(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            libc.setns(before.fileno(), clone_newnet)


CONFIG = """\
quotas: {{total: 20000}}
native: {{zygotes: {zygotes}, network: none, uids: 1310720000}}
"""


class Hutchd:
    """hutchd with the native driver, in the network namespace of the caller."""

    def __init__(self, bench, zygotes=ZYGOTES, more="", listen=None):
        """more: of the configuration; listen: another address, besides one of TCP."""
        self.bench = bench
        directory = tempfile.mkdtemp(dir=bench.directory)
        self.zygotes = zygotes
        self.data = os.path.join(directory, "data")
        config = os.path.join(directory, "hutchd.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(zygotes=zygotes) + more)
        for path in (bench.directory, directory):      # hutchd gives up root, and must still get there
            os.chmod(path, 0o755)
        bench.at_end(self.remove_all)
        self.server = bench.start("../hutchd", "--listen", "127.0.0.1:0",
                                  *(["--listen", listen] if listen else []), "--driver", "native",
                                  "--data", self.data, "--config", config,
                                  "--log-level", "error",
                                  cpus=bench.server_cpus | bench.load_cpus)
        self.port = self.server.host_port[1]

    def cycles(self, script, cycles, connections=1, network="none", ids=()):
        argv = [self.bench.program("sandbox_bench"), self.port, network, connections, cycles, script]
        run = subprocess.run([str(a) for a in argv], input="".join(f"{i}\n" for i in ids),
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failure(run.stderr.strip() or f"sandbox_bench ended with {run.returncode}")
        return json.loads(run.stdout)

    def fill(self, count, network):
        return self.cycles("c", count, 8, network)["ids"]

    def empty(self, ids):
        self.cycles("d", len(ids), 8, ids=ids)

    def wait_for_zygotes(self):
        """Zygotes are children of the warden, like running sandboxes."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            warden = child(self.server.pid, "hutch-warden")
            if sum(name_of(one) == "hutch-zygote" for one in children(warden)) >= self.zygotes:
                return
            time.sleep(0.1)
        raise Failure("the warden does not pre-create as many sandboxes as configured")

    def wait_until_idle(self):
        """A child of the warden creates networks and, after 3 s without a create or delete, removes returned
        ones. So it is idle when it has done nothing for longer. The kernel needs its time for removed
        cgroups: with 10,000 of them a minute and more."""
        netns_process = child(child(self.server.pid, "hutch-warden"), "hutch-netns")
        deadline = time.monotonic() + 300
        before = None
        while time.monotonic() < deadline:
            with open(f"/proc/{netns_process}/schedstat", encoding="ascii") as f:
                now = f.read(), memory_groups()
            if now == before:
                return
            before = now
            time.sleep(3.5)
        raise Failure("the warden and the kernel do not finish the removal of sandboxes")

    def remove_all(self):
        """Sandboxes keep running when hutchd exits. What a failed round has left would disturb what follows."""
        with open(os.path.join(self.data, "installation"), encoding="ascii") as f:
            name = f"hutch-{f.read().strip()}"
        groups = glob.glob(f"/sys/fs/cgroup/{name}") + glob.glob(f"/sys/fs/cgroup/*/{name}")
        for path in (f"{group}/cgroup.kill" for group in groups):
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as f:
                    f.write("1")
        deadline = time.monotonic() + 120
        while groups and time.monotonic() < deadline:
            groups = [group for group in groups if not remove_group(group)]
            time.sleep(0.05)
        shutil.rmtree(self.data, ignore_errors=True)


def remove_group(path):
    """Returns whether it is gone."""
    for where, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):      # of one whose last process has not ended yet
            os.rmdir(where)
    return not os.path.exists(path)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def memory_groups():
    """Memory cgroups of the host, including those that the kernel has not freed yet. None: not counted."""
    with open("/proc/cgroups", encoding="ascii") as f:
        return next((line.split()[2] for line in f if line.startswith("memory")), None)


def name_of(pid):
    """None if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def child(pid, name):
    """name: the beginning of it."""
    for one in children(pid):
        if (name_of(one) or "").startswith(name):
            return one
    raise Failure(f"{name} does not run")


@contextlib.contextmanager
def running(bench, **options):
    with own_network(), bench.scope():
        yield Hutchd(bench, **options)


def together(rounds, key):
    """All samples of several rounds."""
    return sorted(x for r in rounds for x in r[key]["all_us"])


# --- making one ------------------------------------------------------------------------------------


def sandbox(bench):
    """The warden alone, from the create request to the first reply. User and network namespaces are
    pre-created in all of them, and in Hutch also the process: that is a zygote."""
    need_root()
    r = run_json(bench, "instance_bench", 100, bench.program("../hutch-execd"), bench.program("tiny_init"))
    floor = r["floor"]["p50_us"]
    for key, text, bound in (("agent", "start a pre-created sandbox with its agent (vs. floor)", 2.0),
                             ("init", "  with a minimal init instead of the agent (vs. floor)", None),
                             ("zygote", "  pre-creating it, before any request (vs. floor)", None)):
        yield result(text, r[key]["p50_us"], floor, "us", r[key]["p50_us"] / floor, at_most=bound,
                     rounds=r)


def floors(bench):
    """What the kernel takes for the isolation, and for a command."""
    made = run_json(bench, "instance_bench", CREATES // bench.rounds + 1,
                    bench.program("../hutch-execd"), bench.program("tiny_init"))
    spawned = run_json(bench, "spawn_floor", 1, "bash", "-c", "echo hutch-was-here >/dev/null")
    return made["floor"]["p50_us"], spawned["p50_us"]


def create(bench):
    """One after the other, over a persistent connection. The floor has the host for itself: hutchd has
    pre-created everything by then."""
    cycles = CREATES // bench.rounds + 1

    def quiet_floors():
        hutchd.wait_for_zygotes()
        hutchd.wait_until_idle()
        return floors(bench)

    with running(bench) as hutchd:
        for network in NETWORKS:
            hutchd.cycles("cxd", 20, network=network)
            r = bench.interleave({
                "ours": lambda n=network: hutchd.cycles("cxd", cycles, network=n),
                "floor": quiet_floors})
            floor = statistics.median(x[0] for x in r["floor"])
            spawn = statistics.median(x[1] for x in r["floor"])
            made, output, removed = (statistics.median(together(r["ours"], key))
                                     for key in ("create", "output", "delete"))
            yield result(f"create, {NETWORKS[network]} (vs. floor)",
                         made, floor, "us", made / floor, at_most=2.0,
                         rounds=r)
            yield result(f"create until first output, {NETWORKS[network]} (vs. floor + spawn)",
                         output, floor + spawn, "us",
                         output / (floor + spawn), at_most=2.0)
            yield result(f"  delete, {NETWORKS[network]}", removed, None, "us")


def peers(bench):
    """What others take from the start to the output of the same command."""
    need_root()
    with running(bench) as hutchd:
        hutchd.cycles("cxd", 20)
        ours = statistics.median(hutchd.cycles("cxd", CREATES)["output"]["all_us"])
    for name, argv in (("bwrap", bwrap()), ("runc", runc(bench))):
        if argv is None:
            yield {"name": f"create until first output (vs. {name})", "passed": None,
                   "skipped": f"{name} is not installed"}
            continue
        theirs = statistics.median(time_of(argv) for _ in range(CREATES // 4))
        yield result(f"create until first output (vs. {name})", ours, theirs, "us", ours / theirs)


def time_of(argv):
    begin = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        said = process.stdout.readline()
        took = time.monotonic() - begin
    if said != b"hutch-was-here\n":
        raise Failure(f"{argv[0]} said {said!r}")
    return took * 1e6


COMMAND = ["/bin/bash", "-c", "echo hutch-was-here"]


def bwrap():
    if not shutil.which("bwrap"):
        return None
    links = [a for name in ("bin", "lib", "lib64") for a in ("--symlink", f"usr/{name}", f"/{name}")]
    return ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", *links, "--proc", "/proc", "--dev",
            "/dev", "--tmpfs", "/tmp", "--", *COMMAND]


def runc(bench):
    """A bundle as "runc spec" writes it, with the /usr of the host as its image."""
    if not shutil.which("runc"):
        return None
    bundle = tempfile.mkdtemp(dir=bench.directory)
    root = os.path.join(bundle, "rootfs")
    for name in ("usr", "proc", "dev", "sys", "tmp"):
        os.makedirs(os.path.join(root, name))
    for name in ("bin", "lib", "lib64"):
        os.symlink(f"usr/{name}", os.path.join(root, name))
    subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
    path = os.path.join(bundle, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    config["process"] |= {"terminal": False, "args": COMMAND}
    config["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr",
                             "options": ["rbind", "ro"]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return ["runc", "--root", os.path.join(bundle, "state"), "run", "--bundle", bundle,
            f"hutch-bench-{os.getpid()}"]


# --- many ------------------------------------------------------------------------------------------


def rate(bench):
    """Create, a command, delete; several at a time, and many more than were pre-created. The floor has the host
    for itself."""
    def quiet_floor(network):
        hutchd.wait_for_zygotes()
        hutchd.wait_until_idle()
        return run_json(bench, "floor_bench", "rate", bench.program("tiny_init"), network, WORKERS,
                        bench.seconds)

    with running(bench, zygotes=FEW_ZYGOTES) as hutchd:
        for network in NETWORKS:
            hutchd.cycles("cxd", 50, WORKERS, network)
            r = bench.interleave({
                "ours": lambda n=network: hutchd.cycles("cxd", 300, WORKERS, n),
                "floor": lambda n=network: quiet_floor(n)})
            ours = statistics.median(x["cycle"]["rate"] for x in r["ours"])
            floor = statistics.median(x["rate"] for x in r["floor"])
            yield result(f"create/command/delete cycles per second, {NETWORKS[network]} (vs. floor)",
                         ours, floor, "/s", ours / floor,
                         at_least=0.5, rounds=r)


def burst(bench):
    """All at once, with everything pre-created and with nothing."""
    for network in NETWORKS:
        with running(bench) as hutchd:
            times = []
            for _ in range(bench.rounds):
                hutchd.wait_for_zygotes()
                hutchd.wait_until_idle()
                times.append(hutchd.cycles("c|d", BURST, BURST, network)["reached"] * 1e3)
            yield result(f"{BURST} creates at once, all pre-created, {NETWORKS[network]}",
                         statistics.median(times), None, "ms",
                         at_most=500, rounds=times)
        with running(bench, zygotes=0) as hutchd:
            cold = statistics.median(hutchd.cycles("cd", 50, 1, network)["create"]["all_us"])
            times = [hutchd.cycles("c|d", BURST, BURST, network)["reached"] * 1e6 / BURST
                     for _ in range(bench.rounds)]
            each = statistics.median(times)
            yield result(f"  each of them, none pre-created, {NETWORKS[network]} (vs. one at a time)",
                         each, cold, "us", each / cold,
                         at_most=2.0, rounds=times)


def crowd(bench):
    """Whether the number of running sandboxes matters. Each time with as many pre-created."""
    def creates():
        hutchd.wait_for_zygotes()
        hutchd.wait_until_idle()
        return hutchd.cycles("cd", CREATES, 1, network)["create"]

    for network, bound, most in (("none", 2.0, CROWD_MOST), ("private", 3.0, None)):
        with running(bench) as hutchd:
            ids = []
            hutchd.cycles("cd", 20, 1, network)
            alone = creates()
            ids += hutchd.fill(CROWD, network)
            among = creates()
            yield result(f"create with {CROWD:,} running, {NETWORKS[network]} (vs. none running)",
                         among["p50_us"], alone["p50_us"],
                         "us", among["p50_us"] / alone["p50_us"], at_most=bound, alone=alone,
                         among=among)
            if most:
                ids += hutchd.fill(most - CROWD, network)
                among = creates()
                yield result(f"  with {most:,} running, {NETWORKS[network]} (vs. none running)",
                             among["p50_us"], alone["p50_us"], "us",
                             among["p50_us"] / alone["p50_us"], among=among)
            hutchd.empty(ids)


def pause(bench):
    with running(bench) as hutchd:
        r = hutchd.cycles("cprd", CREATES)
    for key in ("pause", "resume"):
        yield result(f"{key} a sandbox", r[key]["p50_us"] / 1e3, None, "ms", at_most=3.0, all=r[key])


# --- memory ----------------------------------------------------------------------------------------


def available():
    """The kernel caches freed memory; drop that first."""
    with contextlib.suppress(OSError), open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("2")
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))


def hold_floor(bench, count):
    """KiB of each."""
    argv = [bench.program("floor_bench"), "hold", bench.program("tiny_init"), "none", str(count)]
    before = available()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if not process.stdout.readline():
            raise Failure("floor_bench ended")
        return (before - available()) / count


def memory(bench):
    """Of the host, including what the kernel allocates for a sandbox."""
    need_root()
    floor = hold_floor(bench, IDLE)
    with running(bench) as hutchd:
        hutchd.wait_for_zygotes()
        before = available()
        ids = hutchd.fill(IDLE, "none")
        hutchd.wait_for_zygotes()
        ours = (before - available()) / IDLE
        hutchd.empty(ids)
    yield result(f"memory per idle sandbox, {IDLE:,} running (vs. floor)", ours, floor, "KiB", ours / floor)
    yield result("  beyond the floor", ours - floor, None, "KiB", at_most=300)


ITEMS = {"sandbox": sandbox, "create": create, "peers": peers, "rate": rate, "burst": burst, "pause": pause,
         "memory": memory, "crowd": crowd}
