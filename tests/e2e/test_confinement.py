#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd is confined by Landlock to what its configuration names, and still does all that it has to.

usage: test_confinement.py HUTCHD AGENT WORKER

WORKER is confined_worker, which hutchd starts in place of hutch-engine: what it can reach, hutchd can reach.
"""

import ctypes
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from tap import Skip, eq, has, run, test  # noqa: E402

program, agent, worker = (os.path.abspath(x) for x in sys.argv[1:4])
CREATE_RULESET, GET_VERSION = 444, 1


def abi():
    return max(0, ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), GET_VERSION))


def needs_landlock(version=1):
    if abi() < version:
        raise Skip(f"this kernel has no Landlock of version {version}")


class Confined(Hutchd):
    """Its audit log is in a directory of its own."""

    def prepare(self):
        os.mkdir(f"{self.directory}/logs")

    def configure(self, text):
        super().configure(f"agent: {agent}\naudit: {{file: {self.directory}/logs/audit}}\n{text}")

    def replace(self, text):
        """As editors and configuration tools do: another file takes its name."""
        old = f"{self.directory}/hutchd.yaml"
        os.rename(old, f"{old}.old")
        self.configure(text)

    def audited(self):
        with open(f"{self.directory}/logs/audit", encoding="utf-8") as f:
            return f.read()


class Attacked(Confined):
    """With a worker that attacks. Without a real one hutchd does not become ready; the test reads what the first one
    reports."""

    def prepare(self):
        super().prepare()
        os.mkdir(self.data, 0o700)
        os.mkfifo(f"{self.data}/report")

    def configure(self, text):
        super().configure(f"docker: {{worker: {worker}}}\n{text}")

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*self.command(), "--driver", "docker"], stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=self.env)
        with open(f"{self.data}/report", encoding="utf-8") as f:
            self.found = dict(line.strip().split(": ", 1) for line in f)


WORKS, REFUSED = "works", "Permission denied"


@test
def only_what_the_configuration_names():
    """a process in hutchd's domain reaches what the configuration names, and nothing else"""
    needs_landlock()
    with Attacked(program, config="") as h:
        found = h.found
        for name in "create in the data directory", "read the store", "read the configuration", \
                "create in the directory of the audit log":
            eq(found[name], WORKS, name)
        for name in "write the configuration", "create beside the configuration", "read /etc/passwd", "list /etc", \
                "create in /tmp", "list the root directory", "execute a program":
            eq(found[name], REFUSED, name)


@test
def no_other_ports_and_processes():
    """neither other TCP ports nor processes outside"""
    needs_landlock(6)
    with Attacked(program, config="") as h:
        found = h.found
        eq(found["bind a port"], REFUSED)
        eq(found["connect to a port"], REFUSED)
        eq(found["signal to process 1"], "Operation not permitted")


@test
def off():
    """landlock: off leaves hutchd what its user may reach"""
    with Attacked(program, config="landlock: off\n") as h:
        for name in "read /etc/passwd", "list /etc", "create beside the configuration", "bind a port":
            eq(h.found[name], WORKS, name)
        eq(h.found["connect to a port"], "Connection refused")


@test
def a_reload_finds_what_was_replaced():
    """SIGHUP reads a configuration that was replaced, and opens a log that was rotated"""
    with Confined(program, "--driver", "fake", config="landlock: required\n" if abi() else "") as h:
        os.rename(f"{h.directory}/logs/audit", f"{h.directory}/logs/audit.1")
        h.replace("keys: [{key: 0123456789abcdef0, tenant: t, role: admin}]\n")
        has(h.reload(), "reloaded: 1 keys")
        eq(h.call("GET", "/v1/sandboxes").status, 401)
        eq(h.call("POST", "/v1/sandboxes", h.create_request(), key="0123456789abcdef0").status, 202)
        h.stop()        # lines are written together
        has(h.audited(), "create")


@test
def a_reload_cannot_leave_its_directories():
    """an audit log in another directory needs a restart, and the log says so"""
    needs_landlock()
    with Confined(program, "--driver", "fake", config="") as h:
        os.mkdir(f"{h.directory}/other")
        Hutchd.configure(h, f"agent: {agent}\naudit: {{file: {h.directory}/other/audit}}\n")
        has(h.reload(), f"open the log file {h.directory}/other/audit; if it is in another directory than at the "
                        "start, restart hutchd: Permission denied")
        h.restart()
        h.create()
        h.stop()
        assert os.path.getsize(f"{h.directory}/other/audit") > 0


@test
def what_it_needs_later():
    """metrics, a store that grows, drivers' probes and the removal of its socket work inside"""
    with Confined(program, "--driver", "fake", config="") as h:
        for _ in range(20):
            h.create()
        text = h.call("GET", "/metrics").body.decode()
        has(text, "process_resident_memory_bytes")
        has(text, "process_open_fds")
        eq(h.call("GET", "/v1/drivers").status, 200)
        h.stop()
        assert not os.path.exists(h.socket)
        h.start()
        eq(h.call("GET", "/v1/sandboxes").status, 200)


@test
def a_check_reports_a_kernel_without_it():
    """--check-config reports a kernel without Landlock, and refuses one if it is required"""
    # A seccomp filter stands for such a kernel.
    code = ("import ctypes, errno, os, sys\n"
            "sys.path.insert(0, sys.argv.pop(1))\n"
            "import without_landlock\n"
            "without_landlock.enter()\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n")
    here = os.path.dirname(os.path.abspath(__file__))

    def check(text):
        with open(f"{directory}/c.yaml", "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(f"{directory}/c.yaml", 0o600)
        return subprocess.run([sys.executable, "-c", code, f"{here}/../lib", program, "--check-config", "--config",
                               f"{directory}/c.yaml"], capture_output=True, text=True, check=False, timeout=20)

    with tempfile.TemporaryDirectory() as directory:
        done = check("")
        eq((done.returncode, done.stdout), (0, "hutchd: configuration OK\nhutchd: this kernel has no Landlock: hutchd "
                                               "will not be confined to its own files\n"), done.stderr)
        eq(check("landlock: off\n").stdout, "hutchd: configuration OK\n")
        done = check("landlock: required\n")
        eq(done.returncode, 1)
        has(done.stderr, "this kernel has no Landlock, which the configuration requires; enable it")


run()
