# SPDX-License-Identifier: Apache-2.0
"""A registry with one small image under whatever name is asked for, for engines to pull from.

usage: registry.py ARCHIVE PORT [USER:PASSWORD]

The image is the smallest one of the archive, with a file more, so that its layer has to be fetched. Says "listening",
and then a line for each request. Repositories whose name begins with "missing/" are not there.
"""

import base64
import hashlib
import http.server
import io
import json
import sys
import tarfile

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def smallest(path):
    """Its configuration and its one layer."""
    with tarfile.open(path) as tar:
        images = json.load(tar.extractfile("manifest.json"))
        one = min(images, key=lambda i: tar.getmember(i["Layers"][0]).size)
        config, layer = (tar.extractfile(n).read() for n in (one["Config"], one["Layers"][0]))
    with io.BytesIO(layer) as more:
        with tarfile.open(fileobj=more, mode="a") as tar:
            tar.addfile(tarfile.TarInfo("etc/pulled"), io.BytesIO())
        layer = more.getvalue()
    config = json.loads(config)
    config["rootfs"]["diff_ids"] = [digest(layer)]
    return json.dumps(config).encode(), layer


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    blobs, manifest, password = {}, b"", None

    def reply(self, status, body=b"", kind="application/json", **headers):
        print(self.command, self.path, status, flush=True)
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)),
                            "Docker-Distribution-Api-Version": "registry/2.0", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refused(self, status, code, **headers):
        self.reply(status, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(),
                    **headers)

    def knows_password(self):
        expected = "Basic " + base64.b64encode(self.password.encode()).decode()
        return self.headers.get("Authorization") == expected

    def do_GET(self):
        path = self.path.removeprefix("/v2/").split("?")[0]
        if self.password and not self.knows_password():
            return self.refused(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="test"')
        if path == "":
            return self.reply(200, b"{}")
        if path.startswith("missing/"):
            return self.refused(404, "MANIFEST_UNKNOWN")
        if "/manifests/" in path:
            return self.reply(200, self.manifest, MANIFEST,
                               Docker_Content_Digest=digest(self.manifest))
        blob = self.blobs.get(path.rsplit("/", 1)[1])
        if blob is None:
            return self.refused(404, "BLOB_UNKNOWN")
        return self.reply(200, blob, "application/octet-stream",
                           Docker_Content_Digest=digest(blob))

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def main():
    path, port, *password = sys.argv[1:]
    config, layer = smallest(path)
    Registry.blobs = {digest(b): b for b in (config, layer)}
    Registry.password = password[0] if password else None
    Registry.manifest = json.dumps({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json",
                   "size": len(config), "digest": digest(config)},
        "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                    "size": len(layer), "digest": digest(layer)}]}).encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Registry)
    print("listening", flush=True)
    server.serve_forever()


main()
