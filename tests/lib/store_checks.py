# SPDX-License-Identifier: Apache-2.0
"""What tests of hutchd ask of its stores, whichever they are."""

import subprocess
import tempfile
import threading

from hutchd import Hutchd
from tap import eq, has


class Patient(Hutchd):
    """Calls `begin`, which starts the store, once it has said that it waits for one."""

    def __init__(self, program, begin, **more):
        self.begin = begin
        super().__init__(program, **more)

    def start(self):
        thread = threading.Thread(target=self._watch)
        thread.start()
        super().start()
        thread.join()

    def _watch(self):
        while b"waiting for the store" not in self.manager.recv(4096):
            pass
        self.begin()


def check_configurations(program, rows):
    """Rows are a text and what is said to be wrong with it, or None."""
    with tempfile.TemporaryDirectory() as directory:
        for text, wrong in rows:
            with open(f"{directory}/c.yaml", "w", encoding="ascii") as f:
                f.write(text + "\n")
            p = subprocess.run([program, "--config", f"{directory}/c.yaml", "--data", f"{directory}/data",
                                "--check-config"], capture_output=True, text=True, timeout=30)
            eq(p.returncode == 0, wrong is None, f"{text}: {p.stderr}")
            has(p.stderr, wrong or "")
