#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd --driver docker and --driver podman as a whole, on a real engine that this test has started.

usage: test_engine.py docker|podman HUTCHD HUTCH_EXECD BUILD_DIR
"""

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from engine import Registry  # noqa: E402
from engine_hutchd import EngineHutchd, arguments, engine  # noqa: E402
from hutchd import Events, wait_gone  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

kind, programs, build_dir = arguments()
NO_NETWORK = {"network": "none"}        # which is the fast one


def start(**more):
    return EngineHutchd(programs, e, **{"setting": NO_NETWORK, **more})


# --- what clients do ---

def full_lifecycle(h):
    sandbox = h.create(env={"GREETING": "xyzzy-hello"}, metadata={"team": "one"})
    eq(h.output(sandbox, 'echo "$GREETING" > note; cat note'), "xyzzy-hello")
    reply = h.inside(sandbox, "GET", "/files/download?path=note")
    eq((reply.status, reply.body), (200, b"xyzzy-hello\n"))
    eq(h.call("POST", f"/v1/sandboxes/{sandbox}/pause").status, 202)
    eq((h.state(sandbox), h.containers()[sandbox]["State"]), ("Paused", "paused"))
    eq(h.call("POST", f"/v1/sandboxes/{sandbox}/resume").status, 202)
    eq(h.output(sandbox, "cat note"), "xyzzy-hello")
    h.delete(sandbox)
    eq((h.state(sandbox), h.listed(), h.containers()), (404, {}, {}))
    eq([name for where, _, names in os.walk(f"{h.data}/drivers") for name in names
        if sandbox in where], [], "files of it")


@test
def a_sandbox():
    """create, command, files, pause, resume, delete; nothing is left, neither with the engine nor with us"""
    with start() as h:
        full_lifecycle(h)


@test
def a_sandbox_on_the_bridge():
    """the same on the network that is ours, and where sandboxes do not see each other"""
    with start(setting={}) as h:
        full_lifecycle(h)
        one, other = h.create(), h.create()
        address = address_of(h, one)
        connect = ("python3 -c 'import socket; socket.create_connection((\"%s\", %d), 2)' "
                   "2>&1 | tail -n 1")
        serve = "exec python3 -u -m http.server 8000 2>&1"
        reply = h.inside(one, "POST", "/command", {"command": serve, "background": True})
        eq(reply.status, 200)
        follow = json.loads(reply.body.split(b"\n\n")[0])["text"]
        response = h.begin("GET", f"/v1/sandboxes/{one}/proxy/44772/command/{follow}/logs?follow=true")
        has(response.readline().decode(), "Serving HTTP")
        eq(h.output(one, connect % (address, 8000)), "")
        said = h.output(other, connect % (address, 8000))
        assert "timed out" in said or "rror" in said, f"a neighbour was reached: {said!r}"


def address_of(h, sandbox):
    """Its address, that is not the loopback's."""
    return h.output(sandbox, """python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.1", 9))
print(s.getsockname()[0])'""")


@test
def a_sandbox_that_the_engine_streams_to():
    """the same when the engine sees none of our directories, over its own streams"""
    with start(setting={"reach": "exec", **NO_NETWORK}) as h:
        full_lifecycle(h)
        sandbox = h.create()
        eq([m for m in h.container(sandbox)["Mounts"] if m["Type"] == "bind"], [])


@test
def several_drivers():
    """the first is the default, and another one can be asked for"""
    with start(config_more={"drivers": [kind, "fake"], "driver": None}) as h:
        ours, fake = h.create(), h.create(extensions={"hutch.driver": "fake"})
        eq(list(h.containers()), [ours])
        eq(h.listed(), {ours: "Running", fake: "Running"})
        h.restart()
        eq(h.listed()[ours], "Running")
        eq([(d["name"], d["default"], d["available"]) for d in drivers(h)],
           [(kind, True, True), ("fake", False, True)])


def drivers(h):
    reply = h.call("GET", "/v1/drivers")
    eq(reply.status, 200, reply.body)
    return reply.json["items"]


@test
def what_the_engine_has():
    """version, cgroups, storage, filter: as facts for operators"""
    with start() as h:
        found = drivers(h)
        eq([(d["name"], d["available"], d.get("reason")) for d in found], [(kind, True, None)])
        facts = {f["name"]: f for f in found[0]["facts"]}
        has(facts["engine"]["text"], f"{kind} ")
        has(facts["engine"]["text"], "API ")
        info = e.api("GET", "/info").json
        has(facts["storage"]["text"], info["Driver"])
        has(facts["cgroup version"]["text"], str(info["CgroupVersion"]))
        has(facts["rootless"]["text"], "root")
        eq({n: f["ok"] for n, f in facts.items() if n in ("seccomp", "limits")},
           {"seccomp": True, "limits": True})
        eq({"pause", "volumes", "limits", "isolation"} - set(found[0]["capabilities"]), set())


@test
def the_busybox_image():
    """an image with sh only, and an entrypoint of its own"""
    with start() as h:
        sandbox = h.create(image={"uri": "busybox:1"}, entrypoint=["sleep", "1000"])
        eq(h.output(sandbox, "readlink -f /bin/ls; echo $0"), "/bin/busybox\nsh")


@test
def what_the_engine_is_told():
    """labels with all of the owner and expiry, limits, walls"""
    with start() as h:
        sandbox = h.create(resourceLimits={"cpu": "500m", "memory": "96Mi"}, metadata={"hutch.tenant": "x"})
        c = h.container(sandbox)
        labels, host = c["Config"]["Labels"], c["HostConfig"]
        eq(labels["hutch.sandbox"], sandbox)
        for name in "installation", "tenant", "organization", "project", "user", "scope", "expires":
            assert f"hutch.{name}" in labels, labels
        eq(labels["hutch.tenant"], "default")
        has(c["Name"], f"hutch-{sandbox}")
        has(c["Name"], labels["hutch.installation"])
        eq((host["Memory"], host["MemorySwap"]), (96 << 20, 96 << 20))
        eq(host["PidsLimit"], 192)              # in proportion to the memory
        eq(cpus_of(host), 0.5)
        eq((host["Privileged"], host["NetworkMode"]), (False, "none"))
        eq(host["PortBindings"] or {}, {})
        eq({k.split(":")[0].split("=")[0] for k in host["SecurityOpt"]} >= {"no-new-privileges"}, True)


def cpus_of(host):
    return host["NanoCpus"] / 1e9 if host.get("NanoCpus") else host["CpuQuota"] / host["CpuPeriod"]


@test
def secrets_are_not_kept_by_us():
    """neither values of variables nor credentials, in no file of ours, no log line, no label"""
    with start() as h, Registry(e, "user:hush-registry") as r:
        h.arguments.append("--log-level=debug")
        h.restart()
        sandbox = h.create(env={"PASSWORD": "hush-variable"}, image={
            "uri": f"{r.ADDRESS}/secret/one:1",
            "auth": {"username": "user", "password": "hush-registry"}})
        eq(h.output(sandbox, "echo $PASSWORD"), "hush-variable")
        labels = json.dumps(h.container(sandbox)["Config"]["Labels"])
        h.delete(sandbox)
        h.stop()
        files = [h.log_path] + [os.path.join(where, n) for where, _, names in os.walk(h.data)
                                for n in names]
        for path in files:
            with open(path, "rb") as f:
                content = f.read()
            for secret in "hush-variable", "hush-registry":
                assert secret.encode() not in content, f"{secret} is in {path}"
                assert secret not in labels, labels
        h.start()


# --- snapshots ---

def image_of(h, snapshot):
    """All that the engine knows about it."""
    tag, = [tag for tag in h.images() if tag.endswith(f"-{snapshot}")]
    return tag, e.api("GET", f"/images/{tag}/json").json


def said_by(tag, script):
    """What another user's container of an image prints."""
    made = e.api("POST", f"/containers/create?name=foreign-{os.urandom(4).hex()}", {
        "Image": tag, "Entrypoint": ["sh", "-c", script], "HostConfig": {"NetworkMode": "none"},
        "Tty": True}).json["Id"]
    e.api("POST", f"/containers/{made}/start")
    e.api("POST", f"/containers/{made}/wait", timeout=60)
    text = e.api("GET", f"/containers/{made}/logs?stdout=1&stderr=1").body.decode()
    e.api("DELETE", f"/containers/{made}?force=1")
    return text.split()


@test
def a_snapshot():
    """what was written is there in a sandbox made of it, with owners and modes, when the first one is gone"""
    with start() as h:
        sandbox = h.create(env={"PASSWORD": "hush-variable"})
        h.output(sandbox, "echo kept >/srv/note; chmod 640 /srv/note; chown 5:6 /srv/note; ln -s note /srv/link")
        snapshot = h.keep(sandbox, name="before")
        eq(h.kept(snapshot), "Ready")
        eq(h.output(sandbox, "echo later >/srv/note; cat /srv/note"), "later")
        h.delete(sandbox)
        sandbox = h.create(image=None, snapshotId=snapshot)
        eq(h.call("GET", f"/v1/sandboxes/{sandbox}").json["snapshotId"], snapshot)
        eq(h.output(sandbox, "cat /srv/note; stat -c '%a %u %g' /srv/note; readlink /srv/link"),
           "kept\n640 5 6\nnote")
        eq(h.output(sandbox, 'echo "<$PASSWORD> $HOSTNAME $(hostname)"').split(), ["<>", sandbox, sandbox])
        eq(h.output(sandbox, "pwd"), "/root", "the directory of the image")
        # One of what was made of one, and its own end.
        second = h.keep(sandbox)
        eq(h.kept(second), "Ready")
        reply = h.call("DELETE", f"/v1/snapshots/{snapshot}")
        eq((reply.status, reply.json["code"]), (409, "SNAPSHOT::DELETE_CONFLICT"))
        h.delete(sandbox)
        eq(h.call("DELETE", f"/v1/snapshots/{snapshot}").status, 204)
        sandbox = h.create(image=None, snapshotId=second)
        eq(h.output(sandbox, "cat /srv/note"), "kept")
        h.delete(sandbox)
        eq(h.call("DELETE", f"/v1/snapshots/{second}").status, 204)
        eq((h.call("GET", "/v1/snapshots").json["items"], h.images()), ([], {}))


@test
def what_is_in_the_image_of_a_snapshot():
    """the image's own configuration; no value of a variable, no agent, no socket, no record"""
    with start() as h:
        sandbox = h.create(env={"PASSWORD": "hush-variable", "PATH": "/usr/bin:/bin:/hush-path"})
        eq(h.output(sandbox, "test -S /.hutch/run/agent.sock && echo there"), "there")
        snapshot = h.keep(sandbox)
        eq(h.kept(snapshot), "Ready")
        tag, image = image_of(h, snapshot)
        text = json.dumps([image, e.api("GET", f"/images/{tag}/history").json])
        assert "hush-" not in text, text
        own = e.api("GET", "/images/debian:12/json").json["Config"]
        config = image["Config"]
        for name in "Entrypoint", "Cmd", "WorkingDir", "User":
            eq(config[name] or None, own[name] or None, name)
        eq([v for v in config["Env"] if not v.endswith("=") and v.split("=")[0] not in OF_PODMAN], own["Env"])
        eq({k for k, v in config["Labels"].items() if v}, {
            "hutch.snapshot", "hutch.snapshot.installation", "hutch.snapshot.sandbox", "hutch.snapshot.tenant"})
        eq(said_by(tag, "stat -c %s /.hutch/execd; ls -A /.hutch/run; echo end"), ["0", "end"])
        # What another user has made of it is no one's sandbox, and no snapshot.
        other = e.foreign("foreign-of-snapshot", Image=tag)
        h.restart()
        eq((set(h.listed()), [i["id"] for i in h.call("GET", "/v1/snapshots").json["items"]]),
           ({sandbox}, [snapshot]))
        e.api("DELETE", f"/containers/{other}?force=1")


OF_PODMAN = ["TERM", "container", "HOSTNAME", "HOME"]


@test
def a_snapshot_that_somebody_else_removes():
    """is Failed after the next look; a sandbox can't be made of it"""
    with start(config_more={"reconcile": "1s"}) as h:
        snapshot = h.keep(h.create())
        eq(h.kept(snapshot), "Ready")
        e.api("DELETE", f"/images/{image_of(h, snapshot)[0]}")
        until = time.monotonic() + 30
        while h.kept(snapshot) != "Failed":
            assert time.monotonic() < until, h.log()[-3000:]
        reply = h.create_async(image=None, snapshotId=snapshot)
        eq((reply.status, reply.json["code"]), (409, "SNAPSHOT::NOT_READY"))


# --- volumes ---

def volume(path, **more):
    return {"name": "work", "host": {"path": path}, "mountPath": "/mnt/work", **more}


@test
def folders_of_the_host():
    """those that are allowed, for reading or for writing, and parts of them"""
    with allowed() as (h, directory):
        os.makedirs(f"{directory}/part")
        sandbox = h.create(volumes=[volume(directory, subPath="part")])
        eq(h.output(sandbox, "echo written > /mnt/work/file && cat /mnt/work/file"), "written")
        with open(f"{directory}/part/file", encoding="ascii") as f:
            eq(f.read(), "written\n")
        reader = h.create(volumes=[volume(directory, readOnly=True)])
        eq(h.output(reader, "cat /mnt/work/part/file"), "written")
        has(h.output(reader, "echo > /mnt/work/part/file"), "Read-only")
        for sandbox in h.listed():
            h.delete(sandbox)
        eq(os.path.exists(f"{directory}/part/file"), True)


@contextlib.contextmanager
def allowed():
    """hutchd that may give away one directory, and that directory."""
    with tempfile.TemporaryDirectory() as directory, \
            start(config_more={"volumes": {"host_directories": [directory]}}) as h:
        yield h, directory


@test
def other_folders_of_the_host():
    """are refused: neighbours, parents, what is not there, and what a sandbox has made a link to"""
    with allowed() as (h, directory):
        os.makedirs(f"{directory}/shared")
        sandbox = h.create(volumes=[volume(directory)])
        eq(h.output(sandbox, "cd /mnt/work && ln -s /etc out && ln -s /etc shared/out && "
                         "ln -s / root && echo linked"), "linked")
        for wrong in [volume("/etc"), volume(directory + "x"), volume(os.path.dirname(directory)),
                      volume(f"{directory}/../"), volume(directory, subPath="../"),
                      volume(directory, subPath="out"), volume(f"{directory}/out"),
                      volume(directory, subPath="shared/out"), volume(directory, subPath="root/etc"),
                      volume(directory, subPath="not-there")]:
            reply = h.create_async(volumes=[wrong])
            assert 400 <= reply.status < 500, (wrong, reply.status, reply.body)
        eq(list(h.listed()), [sandbox])
        eq(list(h.containers()), [sandbox])


@test
def volumes_inside_of_volumes():
    """a directory of the host in a named volume, and a named one in a directory; not where no one could tell"""
    def named(path):
        return {"name": "named", "pvc": {"claimName": "outer"}, "mountPath": path}

    with allowed() as (h, directory):
        os.makedirs(f"{directory}/part")
        for other, inner in ("/mnt", "/mnt/work"), ("/mnt/work/deep", "/mnt/work/deep"):
            sandbox = h.create(volumes=[volume(directory), named(other)])
            eq(h.output(sandbox, f"echo x > {inner}/file && ls /mnt/work"), {"/mnt": "file\npart"}.get(
                other, "deep\nfile\npart"))
            h.delete(sandbox)
        more = {**volume(directory, subPath="part"), "name": "more"}
        for wrong in "/mnt/work", "/mnt/work/part", "/.hutch/run", "/.hutch":
            reply = h.create_async(volumes=[volume(directory), {**more, "mountPath": wrong}])
            assert 400 <= reply.status < 500 or reply.status == 501, (wrong, reply.status, reply.body)
        eq(h.containers(), {})
    e.api("DELETE", "/volumes/outer")


class Between:
    """The engine's socket, for hutchd; something happens before a container is started."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = f"{self.directory.name}/engine.sock"
        self.before_start = lambda: None
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(e.socket)
                for ends in (client, there, True), (there, client, False):
                    threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, target, requests):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if requests and b"/start HTTP/1.1" in data:
                    self.before_start()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.directory.cleanup()


ENTERS = ["sh", "-c", "touch /mnt/work/was-here; exec sleep 1000"]


def swap_tests(h, between, create_request, top):
    """top/part is checked; when the engine looks for it there is something else."""
    with tempfile.TemporaryDirectory() as decoy:
        def link():
            os.rename(f"{top}/part", f"{top}/kept")
            os.symlink(decoy, f"{top}/part")

        def another():
            os.rename(f"{top}/part", f"{top}/kept")
            os.rename(f"{top}/other", f"{top}/part")

        for swap in link, another:
            for name in "part", "other":
                os.makedirs(f"{top}/{name}", exist_ok=True)
            between.before_start = swap
            reply = h.create_async(volumes=[create_request], entrypoint=ENTERS)
            eq(reply.status, 400, reply.body)
            has(reply.json["message"], "something else was mounted")
            eq((os.listdir(decoy), h.containers()), ([], {}))
            eq([n for _, _, names in os.walk(top) for n in names if n == "was-here"], [])
            (os.unlink if os.path.islink(f"{top}/part") else os.rmdir)(f"{top}/part")
            os.rename(f"{top}/kept", f"{top}/part")
        between.before_start = lambda: None
        h.delete(h.create(volumes=[create_request], entrypoint=ENTERS))
        eq(sorted(os.listdir(f"{top}/part")), ["was-here"])


@test
def a_folder_that_is_swapped():
    """after it was checked and before the engine mounts it: nothing runs in such a sandbox"""
    with Between() as between, tempfile.TemporaryDirectory() as directory, \
            start(setting={**NO_NETWORK, "socket": between.path},
                  config_more={"volumes": {"host_directories": [directory]}}) as h:
        swap_tests(h, between, volume(directory, subPath="part"), directory)
        part = {"name": "work", "pvc": {"claimName": "swapped"}, "subPath": "part", "mountPath": "/mnt/work"}
        h.delete(h.create(volumes=[part]))
        swap_tests(h, between, part, e.api("GET", "/volumes/swapped").json["Mountpoint"])
    e.api("DELETE", "/volumes/swapped")


@test
def parts_of_named_volumes():
    """only that part is seen; a missing one is made; links in a volume lead nowhere"""
    def part(path, **more):
        return [{"name": "work", "pvc": {"claimName": "parted", **more}, "mountPath": "/mnt/work",
                 **({"subPath": path} if path else {})}]

    with start() as h:
        sandbox = h.create(volumes=part(None))
        eq(h.output(sandbox, "cd /mnt/work && mkdir -p data/train && echo marker > data/train/file && echo x > top && "
                         "ln -s / out && ln -s ../../../.. data/up && ln -s data/train fine && echo made"), "made")
        h.delete(sandbox)
        sandbox = h.create(volumes=part("data/train"))
        eq(h.output(sandbox, "ls -A /mnt/work; ls -A /mnt/work/..; cat /mnt/work/file; echo more >> /mnt/work/file"),
           "file\nwork\nmarker")
        reader = h.create(volumes=[{**part("data/train")[0], "readOnly": True}])
        has(h.output(reader, "echo > /mnt/work/file"), "Read-only")
        eq(h.output(reader, "cat /mnt/work/file"), "marker\nmore")
        for wrong in "out", "out/etc", "data/up", "data/up/etc", "fine", "../x", "/etc", "top/x":
            reply = h.create_async(volumes=part(wrong))
            assert 400 <= reply.status < 500, (wrong, reply.status, reply.body)
        eq(h.create_async(volumes=part("missing", createIfNotExists=False)).status, 400)
        fresh = h.create(volumes=part("missing/one"))
        eq(h.output(fresh, "ls -A /mnt/work; stat -c %U /mnt/work"), "root")
        for sandbox in list(h.listed()):
            h.delete(sandbox)
    e.api("DELETE", "/volumes/parted")


@test
def a_volume_goes_with_its_last_sandbox():
    """if it was made for one and is to go; also when only parts of it are mounted"""
    def part(path):
        return [{"name": "work", "mountPath": "/mnt/work", "subPath": path,
                 "pvc": {"claimName": "passing", "deleteOnSandboxTermination": True}}]

    with start() as h:
        one, other = h.create(volumes=part("one")), h.create(volumes=part("other"))
        h.delete(one)
        eq(h.output(other, "echo still > /mnt/work/file; cat /mnt/work/file"), "still")
        e.api("GET", "/volumes/passing")
        h.delete(other)
        eq(e.api("GET", "/volumes/passing", good=[404]).status, 404)


@test
def named_volumes():
    """are kept from one sandbox to the next, and belong to their tenant"""
    def create_request(name):
        return [{"name": "work", "pvc": {"claimName": name}, "mountPath": "/mnt/work"}]

    with start() as h:
        h.delete(write_into(h, h.create(volumes=create_request("kept"))))
        eq(h.output(h.create(volumes=create_request("kept")), "cat /mnt/work/file"), "written")
        e.api("POST", "/volumes/create", {"Name": "somebodys"})
        reply = h.create_async(volumes=create_request("somebodys"))
        assert 400 <= reply.status < 500, reply.body
    for name in "kept", "somebodys":
        e.api("DELETE", f"/volumes/{name}")


def write_into(h, sandbox):
    eq(h.output(sandbox, "echo written > /mnt/work/file && echo done"), "done")
    return sandbox


# --- images ---

def changed_image(name, script, *changes):
    """Debian after a script has run in it, with a configuration of its own."""
    ident = e.foreign(f"makes-{name}", Image="debian:12", Cmd=["sh", "-c", script])
    e.api("POST", f"/containers/{ident}/wait")
    query = "".join(f"&changes={quote(c)}" for c in changes)
    e.api("POST", f"/commit?container={ident}&repo=docker.io/library/{name}&tag=1{query}", {})
    e.api("DELETE", f"/containers/{ident}?force=1")
    return {"uri": f"{name}:1"}


@test
def images_of_others():
    """with a user and a directory of their own, and with links where ours would go"""
    with start() as h:
        sandbox = h.create(image=changed_image(
            "owned", "mkdir /srv/app && chown 1000:1000 /srv/app", "USER 1000:1000", "WORKDIR /srv/app"))
        eq(h.output(sandbox, "id -u; pwd; echo > file && stat -c %u file"), "1000\n/srv/app\n1000")
        for setting in NO_NETWORK, {"reach": "exec", **NO_NETWORK}:
            with start(setting=setting) as other:
                image = changed_image("linked", "ln -s /tmp /.hutch; mkdir -p /tmp/run; "
                                                "ln -sf /etc/passwd /tmp/execd")
                reply = other.create_async(image=image)
                if reply.status == 202:        # engines resolve links within the root
                    has(other.output(reply.json["id"], "head -n 1 /etc/passwd"), "root:")
                else:
                    has(reply.json["message"], "container")
                    eq(list(other.containers()), [sandbox])


@test
def an_image_is_pulled_once_for_many():
    with start() as h, Registry(e) as r:
        h.create(image={"uri": f"{r.ADDRESS}/lone/image:1"})
        replies = h.create_many(8, image={"uri": f"{r.ADDRESS}/shared/image:1"})
        eq([a.status for a in replies], [202] * 8, [a.body for a in replies])
        lines = r.lines()
        requested = {n: len([x for x in lines if f"/{n}/image/manifests/" in x]) for n in ("lone", "shared")}
        assert requested["lone"] > 0, lines
        eq(requested["shared"], requested["lone"], "requests for the manifest")


@test
def an_image_that_is_not_there_is_named():
    with start() as h, Registry(e, "user:hush-registry") as r:
        for wanted, uri, auth in [
                ("missing", f"{r.ADDRESS}/missing/image:1", ("user", "hush-registry")),
                ("forbidden", f"{r.ADDRESS}/some/image:1", ("user", "wrong-password")),
                ("nobody", "127.0.0.1:1/none/image:1", None)]:
            image = {"uri": uri}
            if auth:
                image["auth"] = dict(zip(("username", "password"), auth))
            reply = h.create_async(image=image)
            assert 400 <= reply.status < 600, (wanted, reply.status)
            assert reply.status != 500, (wanted, reply.body)
            has(reply.json["message"], uri)
            assert "password" not in reply.body.decode().lower(), reply.body
        eq((h.listed(), h.containers()), ({}, {}))


# --- restarts ---

def survive(gently):
    with start() as h:
        sandboxes = running, paused, deleted = [h.create() for _ in range(3)]
        h.run(running, "sleep 1000 & echo $! > pid")
        eq(h.call("POST", f"/v1/sandboxes/{paused}/pause").status, 202)
        h.delete(deleted)
        before = h.listed()
        eq(before, {running: "Running", paused: "Paused"})
        h.restart(gently)
        eq(h.listed(), before, "what is listed")        # by the very first answer
        eq(h.output(running, "kill -0 $(cat pid) && echo alive"), "alive")
        eq(h.call("POST", f"/v1/sandboxes/{paused}/resume").status, 202)
        eq(h.output(paused, "echo back"), "back")
        for sandbox in sandboxes[:2]:
            h.delete(sandbox)
        eq(h.containers(), {})


@test
def sandboxes_survive_a_restart():
    survive(gently=True)


@test
def sandboxes_survive_a_crash():
    survive(gently=False)


@test
def what_ended_meanwhile_is_known():
    """while no hutchd runs one is killed and one is removed"""
    with start() as h:
        killed, removed, kept = [h.create() for _ in range(3)]
        found = h.containers()
        h.kill()
        e.api("POST", f"/containers/{found[killed]['Id']}/kill?signal=KILL")
        e.api("POST", f"/containers/{found[killed]['Id']}/wait")
        e.api("DELETE", f"/containers/{found[removed]['Id']}?force=1")
        h.start()
        for sandbox in killed, removed:
            status = h.status(sandbox)
            assert status["state"] in ("Failed", "Terminated") and status["reason"], status
        eq(h.listed(), {kept: "Running"})


# --- ends ---

def trigger(h, sandbox):
    """Lets the entrypoint go on that waits for it; what the command says is cut off by the end."""
    h.inside(sandbox, "POST", "/command", {"command": "mkfifo /tmp/go 2>/dev/null; echo > /tmp/go",
                                       "background": True})


ENDS = [
    ("with 0", "exit 0", "Terminated", "EXITED", ""),
    ("with 3", "exit 3", "Failed", "EXITED", "3"),
    ("by a signal", "kill -9 $$", "Failed", None, ""),
    ("without memory", "exec python3 -c 'x = bytearray(1 << 30)'", "Failed", "OOM_KILLED", ""),
]


def engine_reports_oom():
    """Podman does not on every kernel."""
    ident = e.foreign("hungry", Image="debian:12", HostConfig={"Memory": 64 << 20},
                      Cmd=["python3", "-c", "x = bytearray(1 << 30)"])
    e.api("POST", f"/containers/{ident}/wait")
    reported = e.api("GET", f"/containers/{ident}/json").json["State"]["OOMKilled"]
    e.api("DELETE", f"/containers/{ident}?force=1")
    return reported


@test
def how_a_sandbox_ended_is_told():
    """exit codes, signals, out of memory"""
    with start() as h, Events(h) as reported:
        for what, script, state, reason, message in ENDS:
            if reason == "OOM_KILLED" and not engine_reports_oom():
                reason = "SIGNALED"
            sandbox = h.create(resourceLimits={"cpu": "1", "memory": "64Mi"}, entrypoint=[
                "sh", "-c", f"mkfifo /tmp/go 2>/dev/null; read x < /tmp/go; {script}"])
            trigger(h, sandbox)
            reported.wait(sandbox, "Failed", "Terminated")
            status = h.status(sandbox)
            eq(status["state"], state, (what, status))
            if reason:
                eq(status["reason"], reason, (what, status))
            has(status.get("message") or "", message)
        eq(h.listed(), {})


@test
def what_is_done_behind_our_back_is_noticed():
    """a container that is killed, stopped, or removed"""
    with start() as h, Events(h) as reported:
        for method, path in [("POST", "/kill?signal=KILL"), ("POST", "/stop?t=1"),
                             ("DELETE", "?force=1")]:
            sandbox = h.create()
            ident = h.containers()[sandbox]["Id"]
            began = threading.Thread(target=e.api, args=[method, f"/containers/{ident}{path}"])
            began.start()
            reported.wait(sandbox, "Failed", "Terminated")
            began.join()
            assert h.status(sandbox)["reason"], path
        eq(h.listed(), {})


@test
def a_worker_that_is_killed():
    """another one goes on; sandboxes notice nothing, and their ends are noticed"""
    with start() as h, Events(h) as reported:
        sandbox, other = h.create(), h.create()
        for pid in h.workers():
            os.kill(pid, signal.SIGKILL)
            wait_gone(pid)
        fresh = until_created(h)
        for one in sandbox, fresh:
            eq(h.output(one, "echo here"), "here")
        e.api("POST", f"/containers/{h.containers()[other]['Id']}/kill?signal=KILL")
        reported.wait(other, "Failed", "Terminated")
        eq(h.listed(), {sandbox: "Running", fresh: "Running"})


# --- others on the same engine ---

@test
def others_are_left_alone():
    """foreign containers, look-alikes, and those of another hutchd"""
    with start() as h, start() as other:
        theirs = other.create()
        installation = h.installation()
        like = {"Labels": {"hutch.sandbox": "sb-like", "hutch.installation": installation + "0"}}
        foreign = {e.foreign("plain"), e.foreign("hutch-like"), e.foreign("hutch-other", **like)}
        mine = h.create()
        eq((list(h.listed()), list(other.listed())), ([mine], [theirs]))
        eq(h.call("DELETE", f"/v1/sandboxes/{theirs}").status, 404)
        h.restart(gently=False)
        h.delete(mine)
        h.restart()
        eq((h.listed(), other.listed()), ({}, {theirs: "Running"}))
        eq(other.output(theirs, "echo here"), "here")
        states = {c["Id"]: c["State"] for c in e.containers().values()}
        eq({i: states.get(i) for i in foreign}, {i: "running" for i in foreign})
        for ident in foreign:
            e.api("DELETE", f"/containers/{ident}?force=1")


# --- the engine goes away ---

def refused(h):
    reply = h.create_async()
    eq(reply.status, 503, reply.body)
    return reply.json["message"]


@test
def an_engine_that_is_away_at_the_start():
    """hutchd stays up and says why; it works as soon as the engine does"""
    e.stop()
    try:
        with start() as h:
            has(refused(h).lower(), kind)
            e.start()
            sandbox = until_created(h)
            eq(h.output(sandbox, "echo there"), "there")
    finally:
        if not e.replies():
            e.start()


def until_created(h):
    """hutchd looks for the engine again by itself; how soon is its business."""
    until = time.monotonic() + 30
    while True:
        reply = h.create_async()
        if reply.status == 202:
            return reply.json["id"]
        eq(reply.status, 503, reply.body)
        assert time.monotonic() < until, f"still away: {reply.body!r}\n{h.log()[-3000:]}"


def settled(h, sandbox):
    """How it is doing when it is clear: the state, in the end."""
    with Events(h) as reported:
        state = h.state(sandbox)
        if state == "Running":
            reply = h.inside(sandbox, "GET", "/ping")
            if reply.status != 200:
                return reported.wait(sandbox, "Failed", "Terminated")["state"]
    return state


@test
def an_engine_that_keeps_containers():
    """live-restore: the sandbox is at work all the time"""
    if kind != "docker":
        skip("podman always does: see below")
    with engine(kind, build_dir, "--live-restore") as other, \
            EngineHutchd(programs, other, setting=NO_NETWORK) as h:
        sandbox = h.create()
        h.run(sandbox, "sleep 1000 & echo $! > pid")
        other.kill()
        eq(h.output(sandbox, "echo without an engine"), "without an engine")
        other.start()
        fresh = until_created(h)
        eq(h.listed(), {sandbox: "Running", fresh: "Running"})
        eq(h.output(sandbox, "kill -0 $(cat pid) && echo kept"), "kept")
        h.delete(sandbox)
        eq(list(h.containers()), [fresh])


@test
def an_engine_that_goes_away_later():
    """503 with the reason meanwhile; afterwards sandboxes are Failed or run, as the engine has kept them"""
    with start() as h:
        sandbox = h.create()
        e.kill()
        try:
            has(refused(h).lower(), kind)
            eq(h.call("GET", f"/v1/sandboxes/{sandbox}").status, 200)
            away = drivers(h)[0]
            eq(away["available"], False)
            has(away["reason"], e.socket)
        finally:
            e.start()
        fresh = until_created(h)
        eq(h.output(fresh, "echo fresh"), "fresh")
        kept = h.containers().get(sandbox, {}).get("State") == "running"
        eq(settled(h, sandbox), "Running" if kept else "Failed")
        if kept:
            eq(h.output(sandbox, "echo kept"), "kept")
        else:
            assert h.status(sandbox)["reason"], h.status(sandbox)
        for one in h.listed():
            h.delete(one)
        eq(h.containers().keys() - {sandbox}, set())


# --- a hostile container ---

class Decoy:
    """A socket on the host that no one may be led to."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.socket.setblocking(False)

    def visited(self):
        with contextlib.suppress(BlockingIOError):
            self.socket.accept()
            return True
        return False


SWAPS = [
    ("a link to the engine", "ln -s {engine} {agent}"),
    ("a link to another socket", "ln -s {decoy} {agent}"),
    ("a link through /proc", "ln -s /proc/1/root{decoy} {agent}"),
    ("a file", "echo > {agent}"),
    ("a directory", "mkdir {agent}"),
    ("a pipe", "mkfifo {agent}"),
    ("nothing", "true"),
]


@test
def the_agents_socket_is_swapped():
    """by the container's root for a link to the engine's own socket: no one follows it"""
    with start() as h:
        decoy = Decoy(f"{h.directory}/decoy")
        for what, swap in SWAPS:
            sandbox = h.create()
            agent = h.output(sandbox, "echo /.hutch/run/*.sock")
            assert "*" not in agent, agent
            said = h.output(sandbox, f"rm -f {agent} && " + swap.format(
                engine=e.socket, decoy=decoy.path, agent=agent) + " && echo swapped")
            eq(said, "swapped", what)
            h.disconnect()
            h.restart(gently=False)         # no connection from before is left
            for path in "/ping", "/_ping", "/version", "/containers/json":
                reply = h.inside(sandbox, "GET", path)
                assert reply.status >= 400, (what, path, reply.status, reply.body)
                assert b"ApiVersion" not in reply.body, (what, reply.body)
            eq(decoy.visited(), False, what)
            h.delete(sandbox)
        sandbox = h.create()
        eq(h.output(sandbox, "echo fine"), "fine")


with engine(kind, build_dir) as e:
    run()
