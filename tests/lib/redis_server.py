# SPDX-License-Identifier: Apache-2.0
"""A redis-server of a test's own, and hutchd's configuration for it."""

import os
import shutil
import subprocess
import tempfile

from tap import skip

PASSWORD = "a-password-of-redis"
DATABASE = 2


class Redis:
    """A redis-server on a unix socket, every write on disk before it is acknowledged."""

    def __init__(self, start=True):
        if not shutil.which("redis-server"):
            skip("there is no redis-server")
        self._directory = tempfile.TemporaryDirectory(prefix="redis-")
        self.directory = self._directory.name
        self.socket = f"{self.directory}/socket"
        with open(f"{self.directory}/redis.conf", "w", encoding="ascii") as f:
            f.write(f"port 0\nunixsocket {self.socket}\ndir {self.directory}\nsave \"\"\nappendonly yes\n"
                    f"appendfsync always\nrequirepass {PASSWORD}\n")
        with open(os.open(f"{self.directory}/password", os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as f:
            f.write(PASSWORD + "\n")
        self.process = None
        if start:
            self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", f"{self.directory}/redis.conf"],
                                        stdout=subprocess.PIPE, text=True)
        while "eady to accept" not in (line := self.process.stdout.readline()):
            assert line, "redis-server did not start"

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._directory.cleanup()

    def cli(self, *words):
        """What redis-cli says to a command, in the database that hutchd uses; None: nothing."""
        p = subprocess.run(["redis-cli", "-s", self.socket, "-n", str(DATABASE), "--raw", *words],
                           env={**os.environ, "REDISCLI_AUTH": PASSWORD}, capture_output=True,
                           check=True, text=True, timeout=30)
        return p.stdout[:-1] or None

    def config(self, wait="5s"):
        return (f"driver: fake\nstore:\n  kind: redis\n  address: unix:{self.socket}\n"
                f"  password_file: {self.directory}/password\n  database: {DATABASE}\n  wait: {wait}\n")
