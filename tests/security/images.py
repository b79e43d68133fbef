# SPDX-License-Identifier: Apache-2.0
"""Images made to lead the one who mounts them astray, and what is ours on the host."""

import os
import shutil
import stat

from world import read
from tap import eq, has

# In an image of layers /usr is part of the writable root, and there is no /usr/bin/env.
NOT_SO = {"change-usr", "create-in-read-only", "dirty-pipe"}


def layer(w, name, make):
    """A root directory as an import leaves it, made by hand."""
    directory = f"{w.hutchd.data}/drivers/native/layers/{name}"
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory, 0o755)
    for part in "bin", "etc", "opt", "root", "tmp", "usr", "var":
        os.mkdir(f"{directory}/{part}", 0o755)
    os.chmod(f"{directory}/tmp", 0o1777)
    make(directory)
    return directory


def link(name, target):
    def make(directory):
        os.symlink(target, f"{directory}/{name}")
    return make


def file(name):
    def make(directory):
        with open(f"{directory}/{name}", "w", encoding="ascii") as f:
            f.write("not a directory")
    return make


def directory_with(name, inside):
    def make(directory):
        os.mkdir(f"{directory}/{name}", 0o755)
        inside(directory)
    return make


def check_image(w, what, make):
    """Either there is no such sandbox, with a reason, or one with walls as all have them."""
    trap = f"{w.directory.name}/trap"
    os.makedirs(trap, exist_ok=True)
    os.chmod(trap, 0o777)
    name = "hostile-" + "".join(c if c.isalnum() else "-" for c in what)
    directory = layer(w, name, make)
    before, host_info = snapshot(directory), w.picture()
    reply = w.create(image=name)
    if reply.status == 202 and reply.json["status"]["state"] == "Running":
        w.hutchd.call("DELETE", f"/v1/sandboxes/{reply.json['id']}")
        sandbox = w.sandbox(image=name)
        mounts = types_of_mounts(sandbox)
        eq([mounts.get(path) for path in ("/proc", "/sys", "/dev/shm")], ["proc", "sysfs", "tmpfs"], what)
        found = sandbox.probe(31, 33, 34, 36, 38, 39, 40, 41, 43, 44, 53, 59, 60)
        eq([x for x in found if x[2] == "DEVIATION" and x[1] not in NOT_SO], [], what)
        w.destroy(sandbox)
    else:
        assert reply.status >= 400 or reply.json["status"]["state"] == "Failed", (what, reply.body)
        has(reply.body.decode(), "message")
    eq(os.listdir(trap), [], f"{what}: the host's directory")
    eq(snapshot(directory), before, f"{what}: the image")
    eq(w.picture(), host_info, f"{what}: the host")
    shutil.rmtree(directory)


def types_of_mounts(sandbox):
    """Of file systems, by the directory they are seen at."""
    found = {}
    for line in read(f"/proc/{sandbox.agent}/mountinfo").splitlines():
        words = line.split()
        found[words[4]] = words[words.index("-") + 1]
    return found


def snapshot(directory):
    found = []
    for where, directories, files in os.walk(directory):
        for name in directories + files:
            st = os.lstat(os.path.join(where, name))
            found.append((where, name, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns))
    return sorted(found)


def proc_and_sys(w):
    trap = f"{w.directory.name}/trap"
    for what, make in {
        "proc is a link": link("proc", trap),
        "proc is a link inside": link("proc", "/tmp"),
        "proc is a link upward": link("proc", "../../../../../../.." + trap),
        "proc is a file": file("proc"),
        "sys is a link": link("sys", trap),
        "sys is a link to proc": link("sys", "proc"),
        "proc has a false self": directory_with("proc", lambda f: os.symlink(trap, f"{f}/proc/self")),
    }.items():
        check_image(w, what, make)


def dev(w):
    trap = f"{w.directory.name}/trap"

    def null_is_link(directory):
        os.symlink("/proc/sys/kernel/core_pattern", f"{directory}/dev/null")
        os.symlink("/proc/sysrq-trigger", f"{directory}/dev/console")
        os.symlink("/proc/sys/kernel/core_pattern", f"{directory}/dev/ptmx")

    for what, make in {
        "dev is a link": link("dev", trap),
        "dev is a link inside": link("dev", "/proc"),
        "dev is a file": file("dev"),
        "null and console are links": directory_with("dev", null_is_link),
        "pts is a link": directory_with("dev", lambda f: os.symlink(trap, f"{f}/dev/pts")),
        "shm is a link": directory_with("dev", lambda f: os.symlink(trap, f"{f}/dev/shm")),
    }.items():
        check_image(w, what, make)


def other_directories(w):
    trap = f"{w.directory.name}/trap"
    for what, make in {
        "workspace is a link": link("workspace", trap),
        "workspace is a link upward": link("workspace", "../../../../../.." + trap),
        "workspace is a file": file("workspace"),
        "home is a link": link("home", trap),
    }.items():
        check_image(w, what, make)


def layers_stay(w):
    """What a sandbox writes is its own; the next one from the same image sees the image."""
    directory = layer(w, "plain", lambda f: None)
    before = snapshot(directory)
    sandbox = w.sandbox(image="plain")
    sandbox.upload("/etc/evil", b"evil")
    sandbox.upload("/bin/sh", b"evil")
    eq(snapshot(directory), before, "the image")
    other = w.sandbox(image="plain")
    eq(other.inspect("cat", "/etc/evil"), "ENOENT")
    w.destroy(other)
    w.destroy(sandbox)
    shutil.rmtree(directory)


def programs(w):
    """No program of ours gives its caller more than it has; hutchd itself has given everything up."""
    for name in "hutchd", "hutch-execd", "hutch-warden", "hutch-launcher":
        path = f"{w.programs}/{name}"
        eq(stat.S_IMODE(os.stat(path).st_mode) & 0o6000, 0, path)
        assert "security.capability" not in os.listxattr(path), path
    hutchd = next(p for p in w.servers() if read(f"/proc/{p}/comm").strip() == "hutchd")
    lines = dict(x.split(":\t", 1) for x in read(f"/proc/{hutchd}/status").splitlines() if ":\t" in x)
    eq([lines[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], [""] * 5)
    eq(lines["NoNewPrivs"], "1")
    assert "0" not in lines["Uid"].split(), lines["Uid"]


SCENARIOS = [
    ("CVE-2019-19921, 2023-27561, 2023-28642, 2025-52881", "/proc and /sys of an image are no directories",
     proc_and_sys),
    ("CVE-2025-31133, 2025-52565, 2025-62161, 2026-41579", "/dev of an image is not what it seems", dev),
    ("CVE-2021-30465, 2024-45310", "other directories of an image are links", other_directories),
    ("CVE-2021-30465", "an image is never changed by a sandbox", layers_stay),
    ("CVE-2020-5291", "no program of ours is set-user-ID, and hutchd keeps no capability", programs),
]
