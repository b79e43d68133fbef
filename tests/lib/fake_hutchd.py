# SPDX-License-Identifier: Apache-2.0
"""What hutchd is to a bridge: one route, on a unix socket, that carries out PURISTA's commands.

    with FakeHutchd(directory) as hutchd:
        ... --hutchd unix:{hutchd.path}

It has one sandbox at most and runs nothing, but answers as hutchd does. Some commands are for tests: "wait NAME",
which may also be the project of ensureSandbox, goes on when release(NAME) is called, "hang NAME" when the bridge breaks
the request off, "big N" prints N bytes, "too large" is a request that hutchd does not take, "crash" ends the connection
without an answer, and "crash in it" in the middle of one.
"""

import http.server
import json
import socketserver
import threading

SANDBOX = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
NO_IDENTITY = "Sandbox commands require message tenantId and principalId for ownership enforcement."


class Refusal(Exception):
    def __init__(self, status, message, data=None, handled=True):
        super().__init__(message)
        self.error = {"status": status, "message": message, "handled": handled}
        if data is not None:
            self.error["data"] = data


class Service:
    def __init__(self):
        self.owner = None
        self.lock = threading.Lock()
        self.waits = {}
        self.here = threading.local()
        self.users = {("org-1", "user-1")}
        self.seen = []
        self.running, self.most = 0, 0

    def gate(self, name):
        """A pair of events: a command arrived there, and it may go on."""
        with self.lock:
            return self.waits.setdefault(name, (threading.Event(), threading.Event()))

    def wait_at(self, name):
        arrived, released = self.gate(name)
        arrived.set()
        assert released.wait(60)

    def carry_out(self, request, connection):
        self.here.connection = connection
        with self.lock:
            self.seen.append(request)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            payload, events = getattr(self, request["command"])(request)
            return {"ok": True, "payload": payload, "events": events}
        except Refusal as r:
            return {"ok": False, "error": r.error}
        finally:
            with self.lock:
                self.running -= 1

    # --- what all of them ask for ---

    def identity(self, request):
        who = request.get("tenantId"), request.get("principalId")
        if not all(who):
            raise Refusal(401, NO_IDENTITY)
        return who

    def sandbox(self, request, *needed):
        """The payload, with what only the path and the query of a gateway have."""
        payload = {**request.get("parameter", {}), **(request.get("payload") or {})}
        issues = [] if payload.get("sandboxId") else [
            {"message": "String must contain at least 1 character(s)", "path": ["sandboxId"]}]
        issues += [{"message": "Required", "path": [n]} for n in needed if n not in payload]
        if issues:
            raise Refusal(400, "input validation for payload failed:", issues)
        who = self.identity(request)
        if payload["sandboxId"] != SANDBOX:
            raise Refusal(404, f"Sandbox {payload['sandboxId']} not found in registry")
        if who not in self.users:
            raise Refusal(403, "Caller is not allowed to access this sandbox.",
                          {"sandboxId": SANDBOX, "organizationId": "org-1", "userId": "user-1"})
        return payload

    # --- the six ---

    def createSandbox(self, request):
        tenant, principal = self.identity(request)
        with self.lock:
            if self.owner:
                raise Refusal(409, f"Sandbox {SANDBOX} already exists for this owner. Use ensureSandbox to reuse it.",
                              {"sandboxId": SANDBOX})
            self.owner = tenant, principal
        started = {"sandboxId": SANDBOX, "organizationId": tenant, "projectId": request["payload"]["projectId"],
                   "userId": principal}
        return {"sandboxId": SANDBOX, "status": "starting"}, [{"name": "SandboxStarted", "payload": started}]

    def ensureSandbox(self, request):
        self.identity(request)
        word, _, rest = request["payload"].get("projectId", "").partition(" ")
        if word == "wait":
            self.wait_at(rest)
        return {"sandboxId": SANDBOX, "status": "ready", "created": False}, []

    def destroySandbox(self, request):
        self.sandbox(request)
        self.owner = None
        return {"sandboxId": SANDBOX, "destroyed": True}, []

    def executeBash(self, request):
        payload = self.sandbox(request, "command")
        word, _, rest = payload["command"].partition(" ")
        if word == "boom":
            raise Refusal(500, "the driver says: no space left on /secret/path", handled=False)
        if word == "wait":
            self.wait_at(rest)
        if word == "hang":
            arrived, ended = self.gate(rest)
            arrived.set()
            assert not self.here.connection.recv(1)
            ended.set()
        if word == "big":
            return {"stdout": "x" * int(rest), "stderr": "", "exitCode": 0}, []
        return {"stdout": rest if word == "echo" else "", "stderr": "", "exitCode": 0}, []

    def readFile(self, request):
        self.sandbox(request, "path")
        return "file content\n", []

    def writeFiles(self, request):
        return {"updated": len(self.sandbox(request, "files")["files"])}, []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/api/v1/purista/command", self.path
        if b'"command":"crash' in body.replace(b": ", b":"):
            if b"crash in it" in body:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            self.close_connection = True
            return
        too_large = b'"command": "too large"' in body or b'"command":"too large"' in body
        reply = json.dumps({"status": 413, "message": "so large"} if too_large
                            else self.server.service.carry_out(json.loads(body), self.connection)).encode()
        self.send_response(413 if too_large else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def address_string(self):
        return "unix"

    def log_message(self, format, *args):
        pass


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass                                        # a bridge that left


class FakeHutchd:
    def __init__(self, directory):
        self.path = f"{directory}/hutchd.sock"
        self.server = Server(self.path, Handler)
        self.service = self.server.service = Service()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def arrived(self, name):
        """Waits until a command "wait NAME" or "hang NAME" runs."""
        assert self.service.gate(name)[0].wait(60), f"no command reached {name}"

    def ended(self, name):
        """Waits until the bridge has broken "hang NAME" off."""
        assert self.service.gate(name)[1].wait(60), f"{name} goes on"

    def release(self, name):
        self.service.gate(name)[1].set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
