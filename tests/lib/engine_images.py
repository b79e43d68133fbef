# SPDX-License-Identifier: Apache-2.0
"""Images for engines, as an archive that both take, made once for a build directory.

    with Cache(build_dir) as c:
        c.archive()             the path of a tar in the format of `docker save`

It has a minimal Debian with Python, made by mmdebstrap from the sources that apt is configured with, under the
names that tests and SDKs ask for; and busybox.

The agent is static and runs in any root, but not that of a sanitized build: for that one the images have the libraries
that it wants.
"""

import fcntl
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile

from execd import is_sanitized
from installed import installer

RECIPE = 1                  # to be counted up when what is done below changes
HUB = "docker.io/library/"
DEBIAN = [HUB + "debian:12", HUB + "python:3.11"]
BUSYBOX = [HUB + "busybox:1"]
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PACKAGES = ["python3"]
SANITIZER_PACKAGES = ["libasan8", "libubsan1"]
# No leaks are looked for: that takes ptrace, which sandboxes don't have. What was freed is kept, but not much.
SANITIZER_ENV = "ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1"
WITHOUT = ["doc", "locale", "man"]


def debian(path, agent):
    packages = PACKAGES + (SANITIZER_PACKAGES if agent else [])
    installer(["mmdebstrap", "--quiet", "--variant=essential", "--mode=root",
               f"--include={','.join(packages)}",
               *[f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in WITHOUT], "bookworm", path], timeout=600)


def busybox(path, agent):
    names = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True)
    with tarfile.open(path, "w") as tar:
        for directory in ["bin", "etc", "root", "proc", "sys", "dev"]:
            add_directory(tar, directory)
        add_directory(tar, "tmp", 0o1777)
        tar.add("/bin/busybox", "bin/busybox")
        for name in names.stdout.split():
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        add_file(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        add_file(tar, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        for library in libraries(agent) if agent else []:
            tar.add(os.path.realpath(library), library.lstrip("/"))


def libraries(program):
    """What it is linked with when it starts, its loader included."""
    found = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", found)


def add_directory(tar, name, mode=0o755):
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    tar.addfile(info)


def add_file(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def digest_of(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def config_of(diff_id, command, agent):
    host_info = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return json.dumps({
        "architecture": host_info, "os": "linux", "created": "2024-01-01T00:00:00Z",
        "config": {"Env": [PATH, SANITIZER_ENV] if agent else [PATH], "Cmd": command,
                   "WorkingDir": "/root"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created": "2024-01-01T00:00:00Z", "created_by": "test"}]}).encode()


def write_archive(path, directory, agent):
    manifest = []
    with tarfile.open(path, "w") as tar:
        for make, names, command in [(debian, DEBIAN, ["bash"]), (busybox, BUSYBOX, ["sh"])]:
            layer = f"{directory}/{make.__name__}.tar"
            make(layer, agent)
            diff_id = digest_of(layer)
            config = config_of(diff_id, command, agent)
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            add_file(tar, config_name, config)
            tar.add(layer, f"{diff_id}.tar")
            manifest.append({"Config": config_name, "RepoTags": names, "Layers": [f"{diff_id}.tar"]})
        add_file(tar, "manifest.json", json.dumps(manifest).encode())


def sanitized_agent(build_dir):
    """The agent of the build directory, if it is one that does not run in any root."""
    agent = f"{build_dir}/hutch-execd"
    return agent if os.path.exists(agent) and is_sanitized(agent) else None


def recipe(build_dir):
    """Changes when the images would."""
    agent = sanitized_agent(build_dir)
    parts = [RECIPE, DEBIAN, BUSYBOX, PACKAGES, WITHOUT, platform.machine()]
    if agent:
        parts += [SANITIZER_PACKAGES, SANITIZER_ENV, libraries(agent)]
    return hashlib.sha256(str(parts).encode()).hexdigest()[:16]


class Cache:
    """A directory below the build directory that belongs to one test at a time, without what is out of date.

        with Cache(build_dir) as c:
            c.path                  what names of files begin with
            c.archive()             the path of a tar in the format of `docker save`
    """

    def __init__(self, build_dir):
        self.build_dir = build_dir
        self.directory = os.path.join(build_dir, "engine-images")
        self.path = f"{self.directory}/{recipe(build_dir)}"
        os.makedirs(self.directory, exist_ok=True)

    def __enter__(self):
        self.lock = open(f"{self.directory}/lock", "w", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        for name in os.listdir(self.directory):
            if name != "lock" and not f"{self.directory}/{name}".startswith(self.path):
                subprocess.run(["rm", "-rf", "--", f"{self.directory}/{name}"], check=True)
        return self

    def __exit__(self, *_):
        self.lock.close()

    def archive(self):
        """Made if it is not there; CannotInstall."""
        path, work = f"{self.path}.tar", f"{self.path}-work"
        if not os.path.exists(path):
            os.makedirs(work, exist_ok=True)
            write_archive(f"{work}/all.tar", work, sanitized_agent(self.build_dir))
            os.rename(f"{work}/all.tar", path)
            shutil.rmtree(work)
        return path
