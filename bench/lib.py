# SPDX-License-Identifier: Apache-2.0
"""Shared by all benchmarks: processes to measure, load generators, medians, and the table of results."""

import contextlib
import datetime
import json
import os
import platform
import re
import resource
import select
import shutil
import statistics
import subprocess
import tempfile

MIB = 1024 * 1024
MB = 1000 * 1000
# A start, a stop, or wrk beyond its time that takes longer than this hangs.
TIMEOUT_SECONDS = 20
# Reduces the influence of other processes. Needs root, and is skipped without it.
NICENESS = -10


class Skip(Exception):
    """Cannot be measured on this host; the text is the reason."""


class Failure(Exception):
    """The measured program failed: there is no number."""


# --- processors ------------------------------------------------------------------------------------


def processors():
    """Two sets of processors, for what is measured and for what makes the load."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return set(cpus), set(cpus)
    return {cpus[0]}, {cpus[1]}


@contextlib.contextmanager
def pinned(cpus):
    """This process, for a time."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def important():
    """This process and its children go before others. With the kernel's autogroups, niceness counts
    within a session only, and the session has one of its own; it outlives us, so it is put back."""
    group = "/proc/self/autogroup"
    before = None
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    with contextlib.suppress(OSError), open(group, "r+", encoding="ascii") as f:
        before = f.read().split()[-1]
        f.write(str(NICENESS))
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError), open(group, "w", encoding="ascii") as f:
                f.write(before)


def make_important(pid):
    """One that was started in a session of its own: its niceness counts there only."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as f:
        f.write(str(NICENESS))


def need_descriptors(n):
    """Raises the soft limit, which children inherit; skips if the hard one is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n:
        raise Skip(f"needs {n} open files, the hard limit is {hard}")
    if soft != resource.RLIM_INFINITY and soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))


# --- processes -------------------------------------------------------------------------------------


def memory_of(pid):
    """Bytes: rss, its peak, the part without a file, and, where the kernel tells, pss and private.
    The rollup counts the pages; status sums counters of each processor that lag behind by up to 64
    pages."""
    found = {}
    for path in (f"/proc/{pid}/status", f"/proc/{pid}/smaps_rollup"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            found |= {m[1]: int(m[2]) * 1024 for m in re.finditer(r"(\w+):\s+(\d+) kB", f.read())}
    private = [found[k] for k in ("Private_Clean", "Private_Dirty") if k in found]
    return {"rss": found.get("Rss", found["VmRSS"]), "peak": found["VmHWM"],
            "anonymous": found.get("Anonymous", found["RssAnon"]),
            "pss": found.get("Pss"), "private": sum(private) if private else None}


class Server:
    """A server of ours or a peer, from its "listening on" line to its end."""

    def __init__(self, argv, cpus):
        self.name = os.path.basename(argv[0])
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.pid = self.process.pid
        try:
            self.address = self._wait_for_address()
        except Failure:
            self.stop()
            raise

    def _wait_for_address(self):
        # The line is written at once. Or the file ends, when the process does.
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_SECONDS)
        line = self.process.stdout.readline().decode() if ready else "it says nothing"
        m = re.search(r"listening on (?:http://)?(\S+)", line)
        if not m:
            raise Failure(f"{self.name} did not start: {line.strip() or 'it ended'}")
        return m[1]

    @property
    def host_port(self):
        host, port = self.address.rsplit(":", 1)
        return host, int(port)

    def url(self, path):
        return f"http://{self.address}{path}"

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9

    def memory(self):
        return memory_of(self.pid)

    def reset_peak(self):
        """Without it the peak is an upper bound only, and that is how it is used."""
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/clear_refs", "w",
                                                encoding="ascii") as f:
            f.write("5")

    def stop(self):
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bench:
    """A temporary directory, the servers started in it, and how long to measure."""

    def __init__(self, build, rounds, seconds):
        self.build, self.rounds, self.seconds = build, rounds, seconds
        self.server_cpus, self.load_cpus = processors()
        self.directory = tempfile.mkdtemp(prefix="hutch-bench-")
        self._stack = contextlib.ExitStack()
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)

    def close(self):
        self._stack.close()

    @contextlib.contextmanager
    def scope(self):
        """What is started within ends with it."""
        outer, self._stack = self._stack, contextlib.ExitStack()
        try:
            with self._stack:
                yield
        finally:
            self._stack = outer

    def at_end(self, function, *arguments):
        """Called at the end of the scope."""
        self._stack.callback(function, *arguments)

    def program(self, name):
        """One of the benchmarks', by its absolute path."""
        return os.path.abspath(os.path.join(self.build, "bench", name))

    def start(self, program, *arguments, cpus=None):
        """A name as of program()."""
        server = Server([self.program(program), *arguments], cpus or self.server_cpus)
        self._stack.callback(server.stop)
        return server

    def data_dir(self, size):
        """In memory if it has room: then files cost no disk, neither in time nor in wear."""
        for parent in ("/dev/shm", tempfile.gettempdir()):
            if os.access(parent, os.W_OK) and shutil.disk_usage(parent).free > size:
                directory = tempfile.mkdtemp(prefix="hutch-bench-", dir=parent)
                self._stack.callback(shutil.rmtree, directory, ignore_errors=True)
                return directory
        raise Skip(f"no directory with {size // MIB} MiB free")

    def wrk(self, url, seconds=None, connections=64):
        """Requests per second and latencies, from wrk with one thread."""
        seconds = seconds or self.seconds
        argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url]
        try:
            run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=seconds + TIMEOUT_SECONDS,
                                 preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpus))
        except subprocess.TimeoutExpired as e:
            raise Failure("wrk does not end") from e
        return parse_wrk(run.stdout, run.stderr)

    def interleave(self, measures):
        """Calls each of the named functions once a round, in turning order; lists by name."""
        values = {name: [] for name in measures}
        for i in range(self.rounds):
            for name in list(measures)[::1 if i % 2 == 0 else -1]:
                values[name].append(measures[name]())
        return values


# --- load ------------------------------------------------------------------------------------------

UNITS = {"us": 1, "ms": 1000, "s": 1000000}


def parse_wrk(out, err=""):
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if not rate or re.search(r"Socket errors|Non-2xx", out):
        raise Failure(f"wrk: {(out + err).strip()}")
    usec = {m[1]: float(m[2]) * UNITS[m[3]]
            for m in re.finditer(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", out, re.M)}
    return {"rps": float(rate[1]), "requests": int(re.search(r"(\d+) requests in", out)[1]),
            "p50_us": usec.get("50"), "p99_us": usec.get("99")}


def median_ratio(ours, peer):
    """Of neighbours in time: what disturbs the host for a while disturbs both."""
    return statistics.median(a / b for a, b in zip(ours, peer))


# --- results ---------------------------------------------------------------------------------------


def result(name, ours, peer=None, unit="", ratio=None, at_least=None, at_most=None, **details):
    """name: what was measured and, in parentheses, what it is compared with; a leading indent marks a detail of
    the row above. The bounds apply to the ratio, or to ours where there is none; without bounds the row is for
    information."""
    passed = None
    value = ours if ratio is None else ratio
    if at_least is not None:
        passed = value >= at_least
    elif at_most is not None:
        passed = value <= at_most
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio,
            "at_least": at_least, "at_most": at_most, "passed": passed, "details": details}


def without_number(name, verdict, reason):
    """verdict: "skipped", or "failed", which is one."""
    return {"name": name, "passed": False if verdict == "failed" else None, verdict: reason}


ROW = "{:<72} {:>14} {:>14} {:>7} {:>12}  {}"


def number(value, unit):
    if value is None:
        return "-"
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.2f} {unit}"


def row(r):
    if "skipped" in r or "failed" in r:
        reason = r.get("skipped") or r["failed"]
        return f"{r['name']:<72} {'SKIP' if 'skipped' in r else 'FAIL'}: {reason}"
    required = ""
    for sign, bound in ((">=", r["at_least"]), ("<=", r["at_most"])):
        if bound is not None:
            required = f"{sign} {number(bound, r['unit'] if r['ratio'] is None else '')}"
    verdict = {True: "PASS", False: "FAIL", None: "info"}[r["passed"]]
    ratio = "-" if r["ratio"] is None else f"{r['ratio']:.2f}"
    return ROW.format(r["name"], number(r["ours"], r["unit"]), number(r["peer"], r["unit"]), ratio,
                      required, verdict)


def print_head():
    print(ROW.format("measured", "Hutch", "vs.", "ratio", "required", "verdict"), flush=True)


def host_info():
    model = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as f:
        m = re.search(r"model name\s*: (.*)", f.read())
        model = m[1] if m else model
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()}


def write_json(path, part, results, settings, before):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"part": part, "date": datetime.date.today().isoformat(), "host": before,
                   "settings": settings, "results": results}, f, indent=2)
        f.write("\n")
