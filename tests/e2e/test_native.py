#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real sandboxes through hutchd: who is killed and what lives on, who may what, what is refused.

usage: test_native.py HUTCHD
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Response, Connection, events, short  # noqa: E402
from hutchd import Events, Hutchd, end, wait_gone  # noqa: E402
from native import NEEDS, USER, Native, can_run, open_way  # noqa: E402
from tap import eq, has, run, scaled, skip, test  # noqa: E402

program = os.path.abspath(sys.argv[1])


def start(*arguments, **more):
    if not can_run():
        skip(NEEDS)
    return Native(program, *arguments, **more)


def command(h, sandbox, text):
    reply = h.inside(sandbox, "POST", "/command", {"command": text})
    eq(reply.status, 200, reply.body)
    return short(events(reply.body))


def refused(h, status, **create_request):
    reply = h.call("POST", "/v1/sandboxes", h.create_request(**create_request))
    eq(reply.status, status, reply.body)
    return reply.json["message"]


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


# --- who is killed ---

def check_alive(h, sandboxes):
    for sandbox in sandboxes:
        eq(h.state(sandbox), "Running", sandbox)
        eq(command(h, sandbox, "kill -0 $(cat pid) && echo alive")[2], ("stdout", "alive"))


def some_sandboxes(h):
    sandboxes = [h.create()["id"] for _ in range(3)]
    for sandbox in sandboxes:
        eq(command(h, sandbox, "sleep 1000 & echo $! > pid")[-1], "done")
    return sandboxes


@test
def hutchd_is_killed():
    """kill -9: its launcher starts it again, and all sandboxes are Running within a second"""
    with start() as h:
        sandboxes = some_sandboxes(h)
        agents = [h.agent_of(sandbox) for sandbox in sandboxes]
        took = []
        for _ in range(3):      # others run beside us, and one of these is not in their way
            h.drain_manager()
            at = time.monotonic()
            old = h.kill_hutchd()
            h.wait_ready()
            for sandbox in sandboxes:
                eq(h.state(sandbox), "Running", sandbox)
            took.append(time.monotonic() - at)
            assert h.hutchd != old
        assert min(took) < scaled(1), f"{took} s"
        check_alive(h, sandboxes)
        eq([h.agent_of(sandbox) for sandbox in sandboxes], agents)
        has(h.log(), "hutch-launcher: hutchd has ended (signal 9) and is restarted")


@test
def the_warden_is_killed():
    """kill -9: no one notices, and who asks for something gets it from the next one"""
    with start() as h:
        sandboxes = some_sandboxes(h)
        agents, took = [h.agent_of(sandbox) for sandbox in sandboxes], []
        for _ in range(3):
            at = time.monotonic()
            end(h.warden)
            for sandbox in sandboxes:
                eq(h.state(sandbox), "Running", sandbox)
            sandboxes.append(h.create()["id"])
            took.append(time.monotonic() - at)
            eq(command(h, sandboxes[-1], "sleep 1000 & echo $! > pid")[-1], "done")
        assert min(took) < scaled(1), f"{took} s"
        check_alive(h, sandboxes)
        eq([h.agent_of(sandbox) for sandbox in sandboxes[:3]], agents)
        for sandbox in sandboxes:
            eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        eq(h.processes(), {})
        eq(h.sandboxes(), set())


@test
def the_launcher_is_killed():
    """kill -9: what it has started ends by itself, and the next start finds all sandboxes"""
    with start() as h:
        sandboxes = some_sandboxes(h)
        left = [h.warden, h.hutchd]
        h.process.kill()
        for pid in left:
            wait_gone(pid)
        h._gone()
        h.drain_manager()
        h.start()
        has(h.log(), "3 adopted")
        check_alive(h, sandboxes)


class Client:
    """One request, one connection: for a thread of its own."""

    def __init__(self, h):
        self.socket = h.socket

    def call(self, method, path, body=None):
        connection = Connection(self.socket)
        try:
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Host": "localhost", "Content-Type": "application/json"})
            return Response(connection.getresponse())
        finally:
            connection.close()


@test
def the_warden_is_killed_again_and_again():
    """while clients create and delete: each answer is one, and nothing is left in the end"""
    with start() as h:
        over, strange = threading.Event(), []

        def work():
            mine = Client(h)
            while not over.is_set():
                reply = mine.call("POST", "/v1/sandboxes", h.create_request())
                if reply.status == 202 and reply.json["status"]["state"] == "Running":
                    reply = mine.call("DELETE", f"/v1/sandboxes/{reply.json['id']}")
                if reply.status not in (202, 204, 500, 503):
                    strange.append((reply.status, reply.body))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for _ in range(6):
            time.sleep(0.25)        # a random point is what is wanted
            if pid := h.warden:
                end(pid)
                wait_gone(pid)
        over.set()
        for t in threads:
            t.join()
        eq(strange, [])
        for item in h.call("GET", "/v1/sandboxes?pageSize=100").json["items"]:
            eq(h.call("DELETE", f"/v1/sandboxes/{item['id']}").status, 204)
        deadline = time.monotonic() + scaled(20)
        while (h.sandboxes() or h.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)        # what was undone is removed behind our back
        eq((h.sandboxes(), h.processes()), (set(), {}))


# --- how a sandbox ends ---

ENDS = "while ! test -e go; do sleep 0.01; done; exit %d"


@test
def the_agent_is_killed():
    """kill -9 of a sandbox's agent: Failed, with the reason, within a second"""
    with start() as h, Events(h) as reported:
        sandbox = h.create()["id"]
        at = time.monotonic()
        os.kill(h.agent_of(sandbox), signal.SIGKILL)
        reported.wait(sandbox, "Failed")
        assert time.monotonic() - at < scaled(1), f"{time.monotonic() - at} s"
        status = h.call("GET", f"/v1/sandboxes/{sandbox}").json["status"]
        eq((status["state"], status["reason"]), ("Failed", "SIGNALED"), str(status))
        has(status["message"], "SIGKILL")
        eq(h.processes(), {})


@test
def the_agent_is_killed_while_there_is_no_warden():
    """the next one finds out"""
    with start() as h, Events(h) as reported:
        sandbox, other = h.create()["id"], h.create()["id"]
        os.kill(h.warden, signal.SIGSTOP)       # so that it can't see it
        os.kill(h.agent_of(sandbox), signal.SIGKILL)
        end(h.warden)
        reported.wait(sandbox, "Failed")
        eq(h.state(other), "Running")


@test
def what_was_taken_over_ends():
    """a warden that was not there when it began knows how it ended, if the kernel tells"""
    with start() as h, Events(h) as reported:
        sandbox, other = h.create()["id"], h.create(entrypoint=["sh", "-c", ENDS % 7])["id"]
        end(h.warden)
        eq(h.create()["status"]["state"], "Running")        # by the next one
        os.kill(h.agent_of(sandbox), signal.SIGKILL)
        reported.wait(sandbox, "Failed")
        command(h, other, "touch go")
        reported.wait(other, "Failed")
        reasons = [h.call("GET", f"/v1/sandboxes/{x}").json["status"]["reason"] for x in (sandbox, other)]
        version = tuple(map(int, os.uname().release.split(".")[:2]))
        eq(reasons, ["SIGNALED", "EXITED"] if version >= (6, 15) else ["LOST", "LOST"])


@test
def an_entrypoint_ends():
    """its exit code is the reason; 0 is a good end"""
    with start() as h, Events(h) as reported:
        for code, state in (0, "Terminated"), (7, "Failed"):
            sandbox = h.create(entrypoint=["sh", "-c", ENDS % code])["id"]
            command(h, sandbox, "touch go")
            reported.wait(sandbox, state)
            status = h.call("GET", f"/v1/sandboxes/{sandbox}").json["status"]
            has(status.get("message", ""), f"exit code {code}")


# --- who may what ---

def helpers_of(pid):
    """The processes that the warden has started for itself, by name."""
    found = {}
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                found[comm.read().strip()] = int(child)
    return found


@test
def the_warden_has_a_seccomp_filter():
    """and its helpers have it as well; a sandbox has it below its own"""
    with start() as h:
        agent = h.agent_of(h.create()["id"])
        eq(status_of(h.warden)["Seccomp_filters"], "1")
        helpers = helpers_of(h.warden)
        assert {"hutch-netns", "hutch-zygoted"} <= set(helpers), helpers
        for name in "hutch-netns", "hutch-zygoted":
            eq(status_of(helpers[name])["Seccomp_filters"], "1", name)
        eq(status_of(agent)["Seccomp_filters"], "2")
        eq(status_of(h.process.pid)["Seccomp_filters"], "0", "the launcher, which starts hutchd as well")


@test
def hutchd_is_unprivileged():
    """another user, no capability in any set, no way to get one, and no way to the warden's directory"""
    with start() as h:
        found = status_of(h.hutchd)
        eq(found["Uid"].split(), [str(USER)] * 4)
        eq(found["Gid"].split(), [str(USER)] * 4)
        eq(found["Groups"].split(), [str(USER)])
        for name in "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
            eq(int(found[name], 16), 0, name)
        eq(found["NoNewPrivs"], "1")
        eq(found["Seccomp"], "2", "a seccomp filter")
        eq(status_of(h.warden)["Uid"].split(), ["0"] * 4)
        eq(status_of(h.process.pid)["Uid"].split(), ["0"] * 4)
        directory = f"{h.data}/drivers"
        for text in ("ls native", "mv native other", "mv ../drivers ../other", "rmdir native",
                     "ln -sfn / native/x"):
            done = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                                   "sh", "-c", f"cd {directory} && {text}"], check=False,
                                  capture_output=True)
            assert done.returncode != 0, text
        eq(oct(os.stat(f"{directory}/native").st_mode & 0o7777), oct(0o700))


@test
def no_secret_reaches_the_warden():
    """neither hutchd's key nor its environment"""
    with start(env={"HUTCH_API_KEY": "key-0123456789abcdef", "SOME_SECRET": "xyzzy"}) as h:
        h.key = "key-0123456789abcdef"
        h.create()
        with open(f"/proc/{h.warden}/environ", "rb") as f:
            environ = f.read()
        assert b"xyzzy" not in environ and b"key-0123" not in environ, environ
        with open(f"/proc/{h.hutchd}/environ", "rb") as f:
            assert b"key-0123" not in f.read()


@test
def without_root():
    """a message that says what to do"""
    done = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                           program, "--driver", "native", "--data", "/tmp/none"],
                          check=False, capture_output=True, text=True) \
        if os.geteuid() == 0 else \
        subprocess.run([program, "--driver", "native", "--data", "/tmp/none"], check=False,
                       capture_output=True, text=True)
    eq(done.returncode, 1, done.stderr)
    has(done.stderr, "sudo make run")
    has(done.stderr, "--driver fake")


@test
def one_launcher_for_a_folder():
    with start() as h:
        done = subprocess.run([*h.command(), "--listen", "127.0.0.1:0"], check=False, timeout=60,
                              capture_output=True, text=True)
        eq(done.returncode, 1, done.stderr)
        has(done.stderr, "in use by another hutchd")


@test
def what_root_had_becomes_the_users():
    """a data directory of a hutchd that ran as root before"""
    if not can_run():
        skip(NEEDS)
    with Hutchd(program, "--driver", "fake") as h:
        open_way(h.directory)
        h.stop()
        with open(f"{h.data}/installation", encoding="ascii") as f:
            before = f.read()
        with Native(program, directory=make_directory(h)) as n:
            with open(f"{n.data}/installation", encoding="ascii") as f:
                eq(f.read(), before)
            n.create()


def make_directory(h):
    """Another directory for its parts, with the same data."""
    path = f"{h.directory}/second"
    os.mkdir(path)
    os.rename(h.data, f"{path}/data")
    os.mkdir(h.data)
    return path


# --- what is refused ---

@test
def what_cant_be_given_is_refused():
    """and says what"""
    limits = {"cpu": "500m", "memory": "64Mi"}
    with start() as h:
        has(refused(h, 501, resourceLimits={**limits, "disk": "1Gi"}), "disk")
        has(refused(h, 501, resourceLimits={**limits, "gpu": "1"}), "gpu")
        has(refused(h, 501, volumes=[{"name": "v", "mountPath": "/v", "pvc": {"claimName": "c"}}]),
            "volumes")
        has(refused(h, 501, networkPolicy={"defaultAction": "deny", "egress": []}), "network")
        has(refused(h, 400, image={"uri": "no/such:image"}), "no/such:image")
        has(refused(h, 501, extensions={"hutch.network": "bridge"}), "bridge")
        has(refused(h, 400, extensions={"hutch.nothing": "x"}), "hutch.nothing")
        has(refused(h, 501, extensions={"bootstrap.execd.isolation": "enable"}), "isolation")
        has(refused(h, 501, extensions={"hutch.network": "private"}), "private")
        has(refused(h, 400, resourceLimits={**limits, "io": "1"}), "from 64Ki")
        if not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            has(refused(h, 501, resourceLimits={**limits, "io": "10Mi"}), "cgroup v2")
            has(refused(h, 501, resourceLimits={**limits, "iops": "100"}), "cgroup v2")
        eq(h.sandboxes(), set())
        h.create(extensions={"hutch.network": "none"}, resourceLimits={**limits, "pids": "100"})


@test
def what_the_machine_has():
    """as facts for operators"""
    with start() as h:
        reply = h.call("GET", "/v1/drivers")
        eq(reply.status, 200, reply.body)
        found = reply.json["items"]
        eq([(d["name"], d["default"], d["available"]) for d in found], [("native", True, True)])
        facts = {f["name"]: f["ok"] for f in found[0]["facts"]}
        eq(facts, dict.fromkeys(["warden", "kernel", "cgroups", "overlay", "user namespaces"], True))


@test
def limits_hold():
    """processes, and memory: what is killed for it is told, and the sandbox goes on"""
    with start() as h:
        sandbox = h.create(resourceLimits={"cpu": "1", "memory": "64Mi", "pids": "40"})["id"]
        out = command(h, sandbox, "for i in $(seq 100); do sleep 5 & done 2>&1 | tail -1; true")
        assert any("fork" in str(x) or "Resource" in str(x) for x in out), out
        sandbox = h.create(resourceLimits={"cpu": "1", "memory": "64Mi"})["id"]
        command(h, sandbox, "head -c 300m /dev/zero | tail > /dev/null; echo $?")
        eq(command(h, sandbox, "echo still here")[2], ("stdout", "still here"))


run()
