# SPDX-License-Identifier: Apache-2.0
"""Real message brokers of Debian's packages, on a loopback port and in a directory of their own.

    with Nats(directory) as broker:
        ... broker.url ...
        broker.restart()

They are found by their commands, wherever the packages put them; Missing says that one is not there.
"""

import json
import os
import shutil
import signal
import socket
import subprocess

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/lib/rabbitmq/bin"


class Missing(Exception):
    pass


def program(name):
    found = shutil.which(name, path=PATH)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def certify(directory):
    """ca.pem, and cert.pem with key.pem for localhost, by that name only."""
    run = lambda *words: subprocess.run([program("openssl"), *words], cwd=directory, check=True, capture_output=True)
    with open(f"{directory}/ext", "w", encoding="ascii") as f:
        f.write("subjectAltName=DNS:localhost\n")
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=hutch test CA", "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout",
        "key.pem", "-out", "request.pem")
    run("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "cert.pem")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Broker:
    """kind, scheme: of URLs; ready: what its log says when it serves."""

    kind = scheme = ready = ""
    user, password = "bridge", "word"

    def __init__(self, directory, guarded=False, start=True):
        """guarded: TLS with a certificate of directory/ca.pem, and the user "bridge" with the password "word". RabbitMQ,
        which takes long to start, has both in any case, and its own user."""
        self.directory, self.port, self.guarded = directory, free_port(), guarded
        self.tls_port = self.port
        self.log_path = f"{directory}/{self.kind}.log"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.process = None
        self.prepare()
        if not start:
            return
        try:
            self.start()
        except BaseException:
            if self.process:
                self.process.kill()
            raise

    def prepare(self):
        pass

    def command(self):
        raise NotImplementedError

    def env(self):
        return dict(os.environ, PATH=PATH)

    def start(self):
        """Returns when it serves: its log is a pipe that we read until it says so, and copy on."""
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True, env=self.env(),
                                        start_new_session=True)
        said = []
        for line in self.process.stdout:
            said.append(line)
            if self.ready in line:
                break
        else:
            raise RuntimeError(f"{self.kind} did not start:\n{''.join(said)}")
        # Nothing reads from here on: the rest goes where it does no harm.
        self.rest = subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=60)
        self.process.stdout.close()
        self.rest.wait(timeout=60)

    def restart(self):
        self.stop()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.stop()


class Nats(Broker):
    kind, scheme, ready = "nats", "nats", "Server is ready"

    def command(self):
        guard = ["--tls", "--tlscert", f"{self.directory}/cert.pem", "--tlskey", f"{self.directory}/key.pem", "--user", "bridge",
                 "--pass", "word"] if self.guarded else []
        return [program("nats-server"), "-a", "127.0.0.1", "-p", str(self.port), *guard, *self.more()]

    def more(self):
        return []


class NatsWithRights(Nats):
    """Its users may do something and not something else: {name: subjects to publish to}."""

    RIGHTS = {"bridge": ["purista.>", "_INBOX.>"], "narrow": ["purista.>"]}

    def prepare(self):
        users = ", ".join(f'{{user: {name}, password: word, permissions: {{publish: {json.dumps(to)}, '
                          f'subscribe: ["purista.>", "_INBOX.>"]}}}}' for name, to in self.RIGHTS.items())
        with open(f"{self.directory}/nats.conf", "w", encoding="ascii") as f:
            f.write(f"authorization {{ users: [{users}] }}\n")

    def more(self):
        return ["-c", f"{self.directory}/nats.conf"]


class NatsBehindTls(Nats):
    """A server that asks for TLS (directory/ca.pem), in a cluster with another one."""

    ready = "Route connection created"

    def __init__(self, directory, other):
        self.other = other
        super().__init__(directory)

    def more(self):
        return ["--tls", "--tlscert", f"{self.directory}/cert.pem", "--tlskey", f"{self.directory}/key.pem", "--cluster_name", "hutch",
                "--cluster", f"nats://127.0.0.1:{free_port()}", "--routes", f"nats://127.0.0.1:{self.other.route_port}"]


class NatsWithBothDoors(Nats):
    """Without TLS, and in a cluster with one that has it, on tls_port: the library knows no server that does both."""

    def prepare(self):
        self.route_port = free_port()

    def more(self):
        return ["--cluster_name", "hutch", "--cluster", f"nats://127.0.0.1:{self.route_port}"]

    def start(self):
        super().start()
        self.behind = NatsBehindTls(self.directory, self)
        self.tls_port = self.behind.port

    def stop(self, how=signal.SIGTERM):
        self.behind.stop(how)
        super().stop(how)


class NatsWithJetStream(Nats):
    """Keeps streams in its directory."""

    def more(self):
        return ["--jetstream", "--store_dir", self.directory]


class Mosquitto(Broker):
    kind, scheme, ready = "mqtt", "mqtt", "running"

    def prepare(self):
        with open(f"{self.directory}/mosquitto.conf", "w", encoding="ascii") as f:
            f.write(f"listener {self.port} 127.0.0.1\nallow_anonymous {'false' if self.guarded else 'true'}\npersistence false\n"
                    "message_size_limit 1048576\nmax_queued_messages 10000\nmax_inflight_messages 100\n")
            if os.geteuid() == 0:
                f.write("user root\n")
            if self.guarded:
                f.write(f"certfile {self.directory}/cert.pem\nkeyfile {self.directory}/key.pem\n"
                        f"password_file {self.directory}/passwords\n")
        if self.guarded:
            subprocess.run([program("mosquitto_passwd"), "-b", "-c", f"{self.directory}/passwords", "bridge", "word"],
                           check=True, capture_output=True)

    def command(self):
        return [program("mosquitto"), "-v", "-c", f"{self.directory}/mosquitto.conf"]


class MosquittoWithBothDoors(Mosquitto):
    """With TLS (directory/ca.pem) on tls_port, and without."""

    def prepare(self):
        super().prepare()
        self.tls_port = free_port()
        with open(f"{self.directory}/mosquitto.conf", "a", encoding="ascii") as f:
            f.write(f"listener {self.tls_port} 127.0.0.1\ncertfile {self.directory}/cert.pem\nkeyfile {self.directory}/key.pem\n")


class RabbitMq(Broker):
    kind, scheme, ready = "amqp", "amqp", "Server startup complete"
    user = password = "guest"

    def prepare(self):
        self.dist, self.epmd, self.tls_port = free_port(), free_port(), free_port()
        certify(self.directory)
        with open(f"{self.directory}/rabbitmq.conf", "w", encoding="ascii") as f:
            f.write(f"listeners.tcp.local = 127.0.0.1:{self.port}\nlisteners.ssl.local = 127.0.0.1:{self.tls_port}\n"
                    f"ssl_options.certfile = {self.directory}/cert.pem\nssl_options.keyfile = {self.directory}/key.pem\n"
                    "log.console = true\nlog.console.level = info\nlog.file = false\nmax_message_size = 1048576\n")
        with open(f"{self.directory}/enabled_plugins", "w", encoding="ascii") as f:
            f.write("[].\n")

    def env(self):
        mine = {
            "HOME": self.directory,
            "RABBITMQ_NODENAME": f"hutch{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self.dist),
            "ERL_EPMD_PORT": str(self.epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": f"{self.directory}/mnesia",
            "RABBITMQ_LOG_BASE": f"{self.directory}/log",
            "RABBITMQ_CONFIG_FILE": f"{self.directory}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.directory}/enabled_plugins",
            "RABBITMQ_PID_FILE": f"{self.directory}/pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}",
        }
        return {**super().env(), **mine}

    def command(self):
        # The script of Debian's wants to become another user; the one behind it does not.
        for path in ("/usr/lib/rabbitmq/bin/rabbitmq-server",):
            if os.access(path, os.X_OK):
                return [path]
        raise Missing("rabbitmq-server is not installed")

    def stop(self, how=signal.SIGTERM):
        super().stop(how)

    def __exit__(self, *_):
        super().__exit__()
        # epmd was started by it, on a port of ours, and outlives it.
        subprocess.run(["epmd", "-port", str(self.epmd), "-kill"], env=self.env(), check=False,
                       capture_output=True)
