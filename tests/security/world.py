# SPDX-License-Identifier: Apache-2.0
"""A real hutchd with real sandboxes, in a small world of the test's own, and looks at them from outside.

    with World(programs) as w:
        sandbox = w.sandbox(network="none", memory="64Mi")
        sandbox.probe("inside", 31)
        sandbox.pids()                      # of the host
        w.destroy(sandbox)

The host is a network namespace of this test; beyond it is another one, "outside". So addresses,
rules and links of the host that runs the test stay as they are.
"""

import contextlib
import copy
import ctypes
import http.client
import json
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Connection, events, short  # noqa: E402
from hutchd import wait_gone  # noqa: E402
from native import USER, Native  # noqa: E402
from tap import eq, skip  # noqa: E402

AGENT = 44772
PROBES = "/opt/probes"
RANGE = 65536
UIDS = 512 * RANGE      # how many; no other installation has the same
MACHINE4, OUTSIDE4, MACHINE6, OUTSIDE6 = "198.51.100.1", "198.51.100.2", "2001:db8:77::1", "2001:db8:77::2"

IN_DELETE, MNT_DETACH = 0x200, 2
KEY_SPEC_USER_KEYRING, KEYCTL_UNLINK = -4, 9
BEYOND4 = "203.0.113.1"                   # behind outside, where nothing answers
CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def unlink(path):
    """Another run may have done it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def mount_small(directory, mib, inodes):
    """A tmpfs; before Linux 6.3, which has no idmapped mounts of tmpfs, and layers are such mounts, an ext4."""
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 3):
        options = f"size={mib}m" + (f",nr_inodes={inodes}" if inodes else "")
        checked(libc.mount(b"small", directory.encode(), b"tmpfs", 0, options.encode()))
        return
    if not shutil.which("mke2fs"):
        skip("mke2fs is not installed")
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-m", "0", *(["-N", str(inodes)] if inodes else []),
                    f"{directory}.ext4", f"{mib}M"], check=True)
    subprocess.run(["mount", "-o", "loop", f"{directory}.ext4", directory], check=True)
    os.unlink(f"{directory}.ext4")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def read_or_none(path):
    try:
        return read(path)
    except OSError:
        return None


class Held:
    """A command that runs on: its first line is here, and closing it ends it."""

    def __init__(self, sandbox, argv, uid):
        body = {"argv": argv, "stdin": True, "attached": True}
        if uid:
            body["uid"] = uid
        self.connection = Connection(sandbox.world.hutchd.socket)
        self.connection.request("POST", f"/v1/sandboxes/{sandbox.id}/proxy/{AGENT}/command",
                                json.dumps(body), {"Host": "localhost", "Content-Type": "application/json"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.line, self.sandbox, self.command = None, sandbox, None
        for line in self.response:
            event = json.loads(line) if line.strip() else {}
            if event.get("type") == "init":
                self.command = event["text"]
            if event.get("type") == "stdout":
                self.line = event["text"].strip()
                break
            assert event.get("type") != "error", event
        assert self.line is not None, f"{argv}: the stream ended"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """It ends when its input does; a sandbox that is gone has ended it already."""
        self.sandbox.call("POST", f"/command/{self.command}/stdin?close=true", b"")
        with contextlib.suppress(http.client.HTTPException, OSError):
            self.response.read()
        self.connection.close()


class SandboxType:
    """One sandbox: acts inside, looks from outside."""

    def __init__(self, world, record):
        self.world, self.id = world, record["id"]
        self.namespace = None
        self.first = None

    # --- inside ---

    def call(self, method, path, body=None, **more):
        return self.world.hutchd.inside(self.id, method, path, body, **more)

    def run(self, argv, uid=0, **more):
        """What it wrote, and its end: None, or the error."""
        body = {"argv": argv, **more}
        if uid:
            body["uid"] = uid
        reply = self.call("POST", "/command", body)
        eq(reply.status, 200, reply.body)
        found = short(events(reply.body))
        text = "\n".join(x[1] for x in found if isinstance(x, tuple) and x[0] != "error")
        errors = [x[1] for x in found if isinstance(x, tuple) and x[0] == "error"]
        return text, (errors or [None])[0]

    def inspect(self, *words, uid=0):
        text, error = self.run([PROBES, "act", *map(str, words)], uid)
        assert error is None, (words, text, error)
        return text

    def bomb(self, name, most, uid=0):
        """(how far it came, how it ended)"""
        text, error = self.run([PROBES, "bomb", name, str(most)], uid)
        assert error is None and text, (name, text, error)
        return self.parse_bomb(name, text)

    @staticmethod
    def parse_bomb(name, text):
        found = re.fullmatch(rf"{name} (\d+) (\S+)", text.strip())
        assert found, text
        return int(found[1]), found[2]

    def hold(self, *words, uid=0):
        return Held(self, [PROBES, *map(str, words)], uid)

    def probe(self, *which, uid=0):
        """Attempts: [(number, name, verdict, what came of it)]"""
        text, error = self.run([PROBES, "inside", *map(str, which)], uid)
        lines = text.splitlines()
        assert error is None and lines and lines[-1] == "done", (text[-500:], error)
        return [attempt(x) for x in lines[:-1]]

    def send(self, path, data, mode=755):
        """Uploads it: the answer."""
        boundary = "hutch-security-boundary"
        head = (f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; filename="metadata"\r\n'
                f'Content-Type: application/json\r\n\r\n{json.dumps({"path": path, "mode": mode})}\r\n'
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n'
                f'Content-Type: application/octet-stream\r\n\r\n')
        return self.call("POST", "/files/upload", head.encode() + data + f"\r\n--{boundary}--\r\n".encode(),
                         headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})

    def upload(self, path, data, mode=755):
        reply = self.send(path, data, mode)
        eq(reply.status, 200, reply.body)

    def alive(self, uid=0):
        eq(self.inspect("whoami", uid=uid).split()[0], str(uid), "the neighbour's uid")

    # --- from outside ---

    def learn(self):
        """Who it is on the host."""
        self.namespace = self.inspect("namespace").strip()
        self.agent = next(p for p in self.pids() if number_inside(p) == "1")
        self.first = int(read(f"/proc/{self.agent}/uid_map").split()[1])
        self.groups = command_groups(read(f"/proc/{self.agent}/cgroup"))

    def pids(self):
        """Processes of its pid namespace."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/pid") == self.namespace:
                    found.append(int(pid))
        return sorted(found)

    def of_its_uids(self):
        """Processes of the host with its uids, wherever they are; but neither the test's witnesses nor those
        in which the warden prepares a next one, with the same uids once they are free."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                owner = os.stat(f"/proc/{pid}").st_uid
                if (self.first <= owner < self.first + RANGE and int(pid) not in self.world.witnesses
                        and os.readlink(f"/proc/{pid}/exe") != f"{self.world.programs}/hutch-warden"):
                    found.append(int(pid))
        return found

    def directory(self):
        return f"{self.world.hutchd.data}/drivers/native/boxes/{self.id}"

    def group(self, controller, name):
        """A file of the cgroup of its commands, of version 1 or 2; None if there is none. Without a controller: of 2."""
        for line in self.groups.splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                found = (read_or_none(f"/sys/fs/cgroup{path}/{name}")
                         or read_or_none(f"/sys/fs/cgroup/unified{path}/{name}"))
            elif controller in controllers.split(","):
                found = read_or_none(f"/sys/fs/cgroup/{controllers}{path}/{name}")
            else:
                continue
            if found is not None:
                return found
        return None

    def memory(self):
        """(limit, most that was used, with swap)"""
        limit = self.group("memory", "memory.limit_in_bytes") or self.group("memory", "memory.max")
        peak = self.group("memory", "memory.max_usage_in_bytes") or self.group("memory", "memory.peak")
        swap = self.group("memory", "memory.memsw.limit_in_bytes") or self.group("memory", "memory.swap.max")
        return int(limit), int(peak), int(swap) if swap else None

    def picture(self):
        """All that no attempt may change, as the host sees it."""
        agent = self.agent
        stat = read(f"/proc/{agent}/stat").rsplit(")", 1)[1].split()
        spaces = {(name, os.readlink(f"/proc/{agent}/ns/{name}")) for name in os.listdir(f"/proc/{agent}/ns")}
        return {
            "agent": (agent, stat[19]),                 # and when it was started
            "nice": stat[16], "priority": stat[15],
            "namespaces": sorted(spaces),
            "mounts": read(f"/proc/{agent}/mountinfo"),
            "groups": read(f"/proc/{agent}/cgroup"),
            "limits": read(f"/proc/{agent}/limits"),
            "memory killer": read(f"/proc/{agent}/oom_score_adj"),
            "affinity": sorted(os.sched_getaffinity(agent)),
            "capabilities": {k: v for k, v in status(agent).items() if k.startswith("Cap")},
            "program": os.stat(f"/proc/{agent}/exe").st_size,
        }

    def check_strays(self):
        """Each of its processes is in the agent's namespaces, and in its group or that of a command."""
        home = {n: os.readlink(f"/proc/{self.agent}/ns/{n}") for n in os.listdir(f"/proc/{self.agent}/ns")}
        home_groups = read(f"/proc/{self.agent}/cgroup")
        for pid in self.of_its_uids():
            with contextlib.suppress(OSError):
                for name, there in home.items():
                    eq(os.readlink(f"/proc/{pid}/ns/{name}"), there, f"{name} of process {pid}")
                is_in = re.sub(r"(?m)^0::(.*)/commands/\d+$", r"0::\1/commands", read(f"/proc/{pid}/cgroup"))
                # A supervisor is in the group of its command in version 2, and with the agent in version 1.
                supervised = re.sub(r"(?m)^0::.*$", re.search(r"(?m)^0::.*$", self.groups)[0], home_groups)
                assert is_in in (self.groups, home_groups, supervised), f"process {pid} is in {is_in}"


def command_groups(agents):
    """Where the commands of a sandbox are, from /proc/PID/cgroup of its agent: beside it in version 2, in a group of
    the sandbox's name in version 1, where all agents share one."""
    name = re.search(r"(?m)^0::.*/([^/\n]+)/agent$", agents)[1]
    return re.sub(r"(?m)/agents$", f"/{name}", re.sub(r"(?m)^(0::.*)/agent$", r"\1/commands", agents))


def status(pid):
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)


def number_inside(pid):
    try:
        return status(pid)["NSpid"].split()[-1]
    except (OSError, KeyError):             # it has ended
        return None


def attempt(line):
    number, name, verdict, got, *more = line.split(" ", 4)
    return int(number), name, verdict, " ".join([got, *more]).strip()


class World:
    def __init__(self, programs):
        self.programs = programs            # directory with what we build, and the probes
        self.witnesses = set()
        self.sandboxes = []
        self.directory = tempfile.TemporaryDirectory(prefix="hutch-security-")
        self.hutchd = None
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.directory)
            self._make_network(stack)
            self._plant(stack)
            self._start(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *failure):
        return self.stack.__exit__(*failure)

    # --- what is around ---

    def _make_network(self, stack):
        """This process moves; what it starts is in there, too."""
        checked(libc.unshare(CLONE_NEWNET | CLONE_NEWNS))
        checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        self.outside = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(self.outside.wait)
        stack.callback(self.outside.kill)
        while os.readlink(f"/proc/{self.outside.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            os.sched_yield()
        enter = ["nsenter", "--net", "--target", str(self.outside.pid)]
        for command in (["ip", "link", "set", "lo", "up"],
                        ["ip", "link", "add", "way-out", "type", "veth", "peer", "name", "way-in",
                         "netns", str(self.outside.pid)],
                        ["ip", "addr", "add", f"{MACHINE4}/24", "dev", "way-out"],
                        ["ip", "addr", "add", f"{MACHINE6}/64", "dev", "way-out", "nodad"],
                        ["ip", "link", "set", "way-out", "up"],
                        ["ip", "route", "add", "default", "via", OUTSIDE4],
                        ["ip", "-6", "route", "add", "default", "via", OUTSIDE6],
                        [*enter, "ip", "link", "set", "lo", "up"],
                        [*enter, "ip", "addr", "add", f"{OUTSIDE4}/24", "dev", "way-in"],
                        [*enter, "ip", "addr", "add", f"{OUTSIDE6}/64", "dev", "way-in", "nodad"],
                        [*enter, "ip", "link", "set", "way-in", "up"]):
            subprocess.run(command, check=True)

    def in_outside(self, make):
        """Runs it in the outside's network namespace: sockets made there stay there."""
        here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = os.open(f"/proc/{self.outside.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            checked(libc.setns(there, CLONE_NEWNET))
            return make()
        finally:
            checked(libc.setns(here, CLONE_NEWNET))
            os.close(here)
            os.close(there)

    def _plant(self, stack):
        """What a sandbox must not find."""
        self.secret = secrets.token_hex(16)
        self.canary = f"hutch-security-{secrets.token_hex(4)}"
        self.canaries = [f"{where}/{self.canary}" for where in ("/etc", "/root", "/var/tmp", "/dev/shm")]
        for path in self.canaries:
            stack.callback(os.unlink, path)
            with open(path, "w", encoding="ascii") as f:
                f.write(self.secret)
            os.chmod(path, 0o666)
        self.meeting = stack.enter_context(
            subprocess.Popen([self.probes(), "bomb", "meeting-places"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, preexec_fn=lambda: libc.unshare(0x08000000)))
        eq(self.meeting.stdout.readline(), "meeting-places 6 ok\n")
        stack.callback(unlink, "/dev/shm/hutch-security-meeting")
        stack.callback(self.meeting.stdin.close)

        self._plant_key(stack)

    @staticmethod
    def _plant_key(stack):
        """In the keyring of the user that starts the service."""
        add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]  # check-words: machine
        ring = ctypes.c_int(KEY_SPEC_USER_KEYRING)
        key = checked(libc.syscall(add_key, b"user", b"hutch-security-witness", b"secret", 6, ring))
        stack.callback(libc.syscall, keyctl, KEYCTL_UNLINK, ctypes.c_int(key), ring)

    def _start(self, stack):
        directory = os.path.join(self.directory.name, "hutchd")
        os.mkdir(directory)
        os.chmod(self.directory.name, 0o755)
        self._serve(stack, directory)

    def _serve(self, stack, directory):
        os.chown(directory, USER, USER)
        self.hutchd = stack.enter_context(Native(
            f"{self.programs}/hutchd", directory=directory, config=f"agent: {self.programs}/hutch-execd\n",
            native={"uids": UIDS, "network": "private", "private": "on", "zygotes": 4, "networks": 8},
            env={"HUTCH_SECURITY_CANARY": self.secret}))
        stack.callback(self.destroy_all)
        self.launcher = self.hutchd.process.pid

    @contextlib.contextmanager
    def on_small_disk(self, mib, inodes=None):
        """The same world, with another hutchd whose data directory is on a small file system of its own."""
        other = copy.copy(self)
        other.sandboxes = []
        directory = os.path.join(self.directory.name, "small")
        os.makedirs(directory, exist_ok=True)
        mount_small(directory, mib, inodes)
        try:
            with contextlib.ExitStack() as stack:
                other._serve(stack, directory)
                yield other
        finally:
            checked(libc.umount2(directory.encode(), MNT_DETACH))
            os.rmdir(directory)

    def probes(self):
        return f"{self.programs}/tests/security/probes"

    def witness(self, uid):
        """A process of the host with a sandbox's uid."""
        process = subprocess.Popen(["sleep", "infinity"], user=uid, group=uid, extra_groups=[])
        self.witnesses.add(process.pid)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    # --- sandboxes ---

    def create(self, network="none", image="host", **limits):
        """The answer to the create_request."""
        return self.hutchd.call("POST", "/v1/sandboxes", {
            "image": {"uri": image}, "timeout": 3600, "entrypoint": ["sleep", "infinity"],
            "resourceLimits": {"cpu": "2", "memory": "256Mi", "pids": "512", **limits},
            "extensions": {"hutch.network": network}})

    def sandbox(self, **create_request):
        reply = self.create(**create_request)
        assert reply.status == 202, f"create: {reply.status} {reply.body!r}\n{self.hutchd.log()[-2000:]}"
        sandbox = SandboxType(self, reply.json)
        self.sandboxes.append(sandbox)
        with open(self.probes(), "rb") as f:
            sandbox.upload(PROBES, f.read())
        sandbox.learn()
        return sandbox

    def destroy(self, sandbox):
        """Nothing is left of it: no process, no group, no directory."""
        reply = self.hutchd.call("DELETE", f"/v1/sandboxes/{sandbox.id}")
        eq((reply.status, reply.body), (204, b""))
        self.sandboxes.remove(sandbox)
        for pid in sandbox.pids():
            wait_gone(pid)
        eq(sandbox.of_its_uids(), [], "processes of its uids")
        assert not os.path.exists(sandbox.directory()), sandbox.directory()

    def destroy_all(self):
        """At the end: also those of points that failed."""
        for sandbox in self.sandboxes:
            self.hutchd.call("DELETE", f"/v1/sandboxes/{sandbox.id}")
            for pid in sandbox.pids() if sandbox.namespace else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.sandboxes.clear()

    def wait_for_janitors(self):
        """Until what was put aside for removal is removed."""
        trash = f"{self.hutchd.data}/drivers/native/trash"
        watch = checked(libc.inotify_init1(os.O_CLOEXEC))
        try:
            checked(libc.inotify_add_watch(watch, trash.encode(), IN_DELETE))
            while os.listdir(trash):
                assert select.select([watch], [], [], 60)[0], f"left to be removed: {os.listdir(trash)}"
                os.read(watch, 65536)
        finally:
            os.close(watch)

    # --- the host ---

    def picture(self):
        """What of the host no attempt may change."""
        files = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
                 "/proc/sys/kernel/panic", "/proc/sys/kernel/sysrq", "/proc/swaps",
                 "/proc/sys/kernel/random/boot_id", "/proc/sys/net/ipv4/ip_forward"]
        formats = "/proc/sys/fs/binfmt_misc"
        found = {path: read_or_none(path) for path in files}
        # Only their names: how often they are used changes with every sandbox. The warden loads one when it removes the
        # first private network.
        modules = (read_or_none("/proc/modules") or "").splitlines()
        found["modules"] = {x.split()[0] for x in modules} - {"nf_conntrack_netlink"}
        found["formats"] = sorted(os.listdir(formats)) if os.path.isdir(formats) else None
        found["canaries"] = [read(path) for path in self.canaries]
        found["hutchd"] = [(p, read(f"/proc/{p}/stat").split()[21]) for p in self.servers()]
        found["/usr/bin/env"] = os.stat("/usr/bin/env")[:7]
        return found

    def servers(self):
        """hutch-launcher, and warden and hutchd below it."""
        children = read(f"/proc/{self.launcher}/task/{self.launcher}/children").split()
        return [self.launcher, *map(int, children)]
