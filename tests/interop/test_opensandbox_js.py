#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent under the official JavaScript SDK of OpenSandbox, the oldest and the newest.

usage: test_opensandbox_js.py HUTCH_EXECD BUILD_DIR

The SDK is installed from npm into the build folder, once for each package-lock.json. It wants a
lifecycle API, too: a thin one is played here, whose only sandbox is the agent.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from server import Server  # noqa: E402

execd, build_dir = sys.argv[1:3]
packages = os.path.join(here, "opensandbox")
TOKEN = "token-of-the-sandbox"
API_KEY = "key-of-the-operator"

# Left alone npm tries for more than a minute, and waits five for a registry that says nothing.
NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
       "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000"]

# What npm says when there is no way to the registry; anything else is a failure of the test.
NO_REGISTRY = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH"
                         r"|ENOTCACHED|E40[137]|E50\d|network|SELF_SIGNED|CERT_")


def leave(reason):
    """Ends the whole program as skipped."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def install():
    """The folder in which the packages of package-lock.json lie under node_modules."""
    for program in ["node", "npm"]:
        if not shutil.which(program):
            leave(f"{program} is not installed")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if int(node.lstrip("v").partition(".")[0]) < 20:
        leave(f"the SDK wants Node 20, this is {node.strip()}")
    with open(f"{packages}/package-lock.json", "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()[:16]
    target = os.path.join(build_dir, "npm", f"opensandbox-{digest}")
    if os.path.isdir(target):
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    fresh = tempfile.mkdtemp(prefix="opensandbox-", dir=os.path.dirname(target))
    for name in ["package.json", "package-lock.json"]:
        shutil.copy(f"{packages}/{name}", fresh)
    try:
        p = subprocess.run(NPM, cwd=fresh, capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(fresh, ignore_errors=True)
        leave("the npm registry does not answer")
    if p.returncode:
        shutil.rmtree(fresh)
        if NO_REGISTRY.search(p.stderr):
            leave("the npm registry can't be reached: "
                  + next((s for s in p.stderr.splitlines() if "code" in s), "").strip())
        sys.exit(f"npm ci failed:\n{p.stderr}")
    os.rename(fresh, target)        # whole or not at all
    return target


class Lifecycle(BaseHTTPRequestHandler):
    """As much of the lifecycle API as SDKs need to get at an agent."""

    protocol_version = "HTTP/1.1"
    agent = ""                      # host:port
    created = datetime.now(timezone.utc)

    def answer(self, status, document=None):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def sandbox(self):
        return {"id": "box-1", "image": {"uri": "whatever:1"},
                "entrypoint": ["tail", "-f", "/dev/null"], "metadata": {},
                "status": {"state": "Running"}, "createdAt": self.created.isoformat(),
                "expiresAt": (self.created + timedelta(seconds=600)).isoformat()}

    def endpoint(self, port):
        if port == "44772":
            return {"endpoint": self.agent, "headers": {"X-EXECD-ACCESS-TOKEN": TOKEN}}
        return {"endpoint": f"{self.agent}/proxy/{port}", "headers": {}}

    def handle_request(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0].removeprefix("/v1")
        if self.headers.get("OPEN-SANDBOX-API-KEY") != API_KEY:
            return self.answer(401, {"code": "UNAUTHORIZED", "message": "wrong key"})
        if (self.command, path) == ("POST", "/sandboxes"):
            return self.answer(202, self.sandbox())
        if (self.command, path) == ("GET", "/sandboxes/box-1"):
            return self.answer(200, self.sandbox())
        if (self.command, path) == ("DELETE", "/sandboxes/box-1"):
            return self.answer(204)
        if (self.command, path) == ("POST", "/metrics/events"):
            return self.answer(204)
        if m := re.fullmatch(r"/sandboxes/box-1/endpoints/(\d+)", path):
            return self.answer(200, self.endpoint(m[1]))
        return self.answer(404, {"code": "NOT_FOUND", "message": path})

    do_GET = do_POST = do_DELETE = handle_request

    def log_message(self, *_):
        pass


def main():
    modules = install()
    failed = False
    for which in ["oldest", "newest"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            env = {**os.environ, "EXECD_ACCESS_TOKEN": TOKEN, "TMPDIR": folder}
            with Server(execd, "--listen", "127.0.0.1:0", "--workspace", folder, env=env) as agent:
                Lifecycle.agent = f"127.0.0.1:{agent.port}"
                lifecycle = ThreadingHTTPServer(("127.0.0.1", 0), Lifecycle)
                threading.Thread(target=lifecycle.serve_forever, daemon=True).start()
                p = subprocess.run(
                    ["node", f"{packages}/agent.mjs", f"{modules}/node_modules/{which}",
                     f"127.0.0.1:{lifecycle.server_port}", f"{folder}/work"],
                    check=False)
                lifecycle.shutdown()
                failed |= p.returncode != 0
    sys.exit(1 if failed else 0)


main()
