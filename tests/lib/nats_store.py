# SPDX-License-Identifier: Apache-2.0
"""A nats-server with JetStream, as a store of hutchd's."""

import os
import signal
import tempfile

from brokers import Missing, NatsWithJetStream, certify
from tap import skip


class Nats:
    """A nats-server, and a directory that all may enter: hutchd may run as another user."""

    def __init__(self, start=True, guarded=False):
        self._directory = tempfile.TemporaryDirectory(prefix="nats-")
        self.directory = self._directory.name
        if guarded:
            certify(self.directory)
        with open(os.open(f"{self.directory}/password", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(NatsWithJetStream.password + "\n")
        try:
            self.server = NatsWithJetStream(self.directory, guarded, start)
        except Missing as e:
            skip(str(e))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        self._directory.cleanup()

    def start(self):
        self.server.start()

    def kill(self):
        self.server.stop(signal.SIGKILL)

    def config(self, wait="5s"):
        if not self.server.guarded:
            return f"driver: fake\nstore:\n  kind: nats\n  url: {self.server.url}\n  wait: {wait}\n"
        return (f"driver: fake\nstore:\n  kind: nats\n  url: tls://localhost:{self.server.port}\n  bucket: guarded\n"
                f"  ca_file: {self.directory}/ca.pem\n  user: {self.server.user}\n"
                f"  password_file: {self.directory}/password\n  wait: {wait}\n")
