# SPDX-License-Identifier: Apache-2.0
"""A running hutch-bridge.

    with Bridge(program, broker, f"unix:{socket}", "--in-flight", "3") as bridge:
        bridge.said("connected")
        counted = bridge.stop()
"""

import os
import signal
import subprocess
import threading


class Bridge:
    def __init__(self, program, broker, hutchd, *arguments, url=None):
        self.instance = os.urandom(16).hex()
        self.lines, self.more = [], threading.Condition()
        self.process = subprocess.Popen(
            [program, f"--{broker.kind}", url or broker.url, "--hutchd", hutchd, "--instance", self.instance,
             "--log-level", "debug", *arguments], stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.more:
                self.lines.append(line)
                self.more.notify_all()

    def log(self):
        with self.more:
            return "".join(self.lines)

    def said(self, text):
        """Waits until it has logged this."""
        with self.more:
            assert self.more.wait_for(lambda: any(text in line for line in self.lines), 60), f"it never said {text}"

    def stop(self):
        """SIGTERM; what it counted."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.reader.join()
        assert status == 0, f"status {status}\n{self.log()}"
        last = next(line for line in reversed(self.log().splitlines()) if "msg=stopped" in line)
        return {k: int(v) for k, v in (f.split("=") for f in last.split() if f.split("=")[1].isdigit())}

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        if failure[0]:
            print("# " + self.log().replace("\n", "\n# "), flush=True)
