# SPDX-License-Identifier: Apache-2.0
"""A deployment whose sandboxes are native, in a network namespace of its own: programs that are to reach it go
there."""

import os

from deployment import Deployment
from hutchd import Hutchd
from native import USER, Native
from native_apart import ENTER


class NativeDeployment(Deployment, Native):
    scenario = {"SCENARIO_IMAGE": "host"}

    def __init__(self, programs, keys=None, settings=None):
        native = {"network": "private", "zygotes": 2, "networks": 8}
        super().__init__(programs, keys, {"driver": "native", "native": native, **(settings or {})})

    def command(self):
        return [*ENTER, *super().command()]

    def configure(self, text):
        Hutchd.configure(self, text)
        os.chown(f"{self.directory}/hutchd.yaml", USER, USER)

    @property
    def client(self):
        return ("nsenter", "--target", str(self.process.pid), "--net", "--")
