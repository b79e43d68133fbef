#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd as an operator meets it.

usage: test_hutchd.py HUTCHD SOURCE_ROOT
"""

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

hutchd, root = os.path.abspath(sys.argv[1]), sys.argv[2]
_directory = tempfile.TemporaryDirectory()     # gone at exit
directory = _directory.name
_count = itertools.count()


def data():
    """Arguments for a data directory of its own."""
    return ["--data", f"{directory}/data{next(_count)}"]


def get(server, path):
    requested = b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode()
    head, _, body = server.send_request(requested).partition(b"\r\n\r\n")
    return head.decode(), body.decode()


def refused(*arguments):
    p = subprocess.run([hutchd, *data(), *arguments], capture_output=True, text=True, timeout=30)
    return p.returncode, p.stderr


@test
def says_the_one_line_and_serves():
    """/health, /version and /metrics"""
    with Server(hutchd, *data(), "--listen", "127.0.0.1:0") as s:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", s.address), s.address
        head, body = get(s, "/health")
        has(head, "HTTP/1.1 200 OK")
        has(head, "X-Request-ID: ")
        eq(json.loads(body), {"status": "healthy"})
        eq(list(json.loads(get(s, "/version")[1])), ["version"])
        head, body = get(s, "/metrics")
        has(head, "Content-Type: text/plain; version=0.0.4")
        found = re.search(r"^hutch_http_requests_total (\d+)$", body, re.M)
        eq(int(found[1]), 3, "requests counted")
        eq(s.stop(), 0, "exit status")


@test
def listens_on_several_addresses():
    """TCP and a unix socket, whose file goes with it"""
    path = f"{directory}/hutchd.sock"
    with Server(hutchd, *data(), "--listen", f"unix:{path}", "--listen=127.0.0.1:0") as s:
        eq(s.address, f"unix:{path}")
        has(get(s, "/health")[1], "healthy")
        has(s.process.stdout.readline(), "hutchd: listening on http://127.0.0.1:")
        eq(s.stop(), 0, "exit status")
    assert not os.path.exists(path), "the socket file is still there"


@test
def a_killed_one_leaves_a_socket_that_the_next_takes_over():
    path = f"{directory}/killed.sock"
    with Server(hutchd, *data(), "--listen", f"unix:{path}") as s:
        code, said = refused("--listen", f"unix:{path}")
        eq(code, 1, "exit status of the second")
        has(said, "cannot listen")
        s.process.kill()
        s.process.wait()
        with Server(hutchd, *data(), "--listen", f"unix:{path}") as second:
            has(get(second, "/health")[1], "healthy")


@test
def errors_are_json_with_an_id():
    with Server(hutchd, *data(), "--listen", "127.0.0.1:0") as s:
        head, body = get(s, "/nothing/here")
        has(head, "404 Not Found")
        eq(json.loads(body)["code"], "NOT_FOUND")
        reply = s.send_request(b"DELETE /health HTTP/1.1\r\nHost: h\r\nX-Request-ID: my-id\r\n"
                      b"Connection: close\r\n\r\n").decode()
        has(reply, "405 Method Not Allowed")
        has(reply, "Allow: GET, HEAD, OPTIONS")
        has(reply, "X-Request-ID: my-id")


@test
def log_options():
    """--access-log and --log-format json, with foreign text escaped"""
    log = f"{directory}/log"
    with open(log, "wb") as f:
        p = subprocess.Popen([hutchd, *data(), "--listen", f"unix:{directory}/l.sock", "--access-log",
                              "--log-format=json"], stderr=f, stdout=subprocess.PIPE, text=True)
    with p.stdout:
        p.stdout.readline()
        subprocess.run(["curl", "-s", "--unix-socket", f"{directory}/l.sock",
                        "http://h/%22%0a-%1b31m"], check=True, timeout=30, capture_output=True)
        p.terminate()
        eq(p.wait(timeout=30), 0)
    with open(log, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    line = next(x for x in lines if x["msg"] == "request")
    eq((line["status"], line["method"], line["path"]), (404, "GET", "/%22%0a-%1b31m"))
    eq(len(line["request"]), 32)


@test
def a_second_signal_ends_it_at_once():
    with Server(hutchd, *data(), "--listen", "127.0.0.1:0", "--drain-timeout=1h") as s, s.connect() as c:
        c.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")
        while "hutch_http_connections 2" not in (metrics := get(s, "/metrics")[1]):
            has(metrics, "hutch_http_connections ")
        s.process.terminate()
        try:
            while s.connect():      # until it has heard and listens no more
                pass
        except (ConnectionRefusedError, ConnectionResetError):     # reset: it was still in the queue
            pass
        eq(s.process.poll(), None, "status while a request is unfinished")
        s.process.terminate()
        eq(s.process.wait(timeout=30), 0, "exit status")


@test
def wrong_options_are_explained():
    """every error names the argument and what to do; status 2"""
    for arguments, words in [
        (["--listen"], "needs a value"),
        (["--listen", "nowhere"], "try 127.0.0.1:8080"),
        (["--log-level=loud"], "try debug"),
        (["--drain-timeout=10"], "try 10s"),
        (["--max-connections", "0"], "from 1 to"),
        (["--access-log=yes"], "takes no value"),
        (["--frobnicate"], "unknown option"),
        (["stray"], "unexpected argument"),
    ]:
        code, said = refused(*arguments)
        eq(code, 2, f"exit status of {arguments}")
        has(said, words)
        has(said, "hutchd --help")


@test
def help_and_version():
    shown = subprocess.run([hutchd, "--help"], capture_output=True, text=True, timeout=30)
    eq(shown.returncode, 0)
    for option in ["--listen", "--data", "--driver", "--config", "--check-config", "--insecure",
                   "--log-level", "--log-format", "--access-log", "--max-connections",
                   "--drain-timeout"]:
        has(shown.stdout, option)
    has(subprocess.run([hutchd, "--version"], capture_output=True, text=True,
                       timeout=30).stdout, "hutchd ")


# --- configuration ---

def written(text, mode=0o600):
    path = f"{directory}/hutchd.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


@test
def the_sample_configuration_is_right():
    """as it is, and with everything that is commented out"""
    sample = f"{root}/packaging/hutchd.yaml"
    p = subprocess.run([hutchd, "--check-config", "--config", sample], capture_output=True, text=True,
                       timeout=30)
    eq((p.returncode, p.stdout), (0, "hutchd: configuration OK\n"), p.stderr)
    with open(sample, encoding="utf-8") as f:
        lines = f.read().partition("# ---")[2].splitlines()[1:]
    # "# key:" is an example; where one stands, what it stands for has to go.
    examples = [re.sub(r"^( *)# (?=[a-z_]+:|- |  )", r"\1", x) for x in lines]
    assert sum(a != b for a, b in zip(lines, examples)) > 15, "examples found"
    text = "\n".join(x for x in examples
                     if not re.match(r"(keys: \[\]|  default: \{\}|  tenants: \[\]|#)", x))
    eq(refused("--check-config", "--config", written(text))[0], 0, text)


@test
def check_config_names_line_and_key():
    for text, words in [
        ("listen: []\nlog:\n  level: loud\n", ':3: log.level: "loud": expected debug'),
        ("listen: [\n", ":2: "),
        ("nonsense: 1\n", ':1: "nonsense": unknown key'),
    ]:
        code, said = refused("--check-config", "--config", written(text))
        eq(code, 1, text)
        has(said, f"hutchd: {directory}/hutchd.yaml{words}")


@test
def a_file_with_keys_is_for_its_owner_alone():
    keys = "keys: [{key: 0123456789abcdef}]\n"
    eq(refused("--check-config", "--config", written(keys))[0], 0)
    code, said = refused("--check-config", "--config", written(keys, 0o644))
    eq(code, 1)
    has(said, "chmod 600")


@test
def without_keys_only_this_machine_is_served():
    for arguments in ["--listen=0.0.0.0:0"], ["--listen=127.0.0.1:0", "--listen=[::]:0"]:
        code, said = refused(*arguments)
        eq(code, 1, str(arguments))
        has(said, "there is no API key")
        has(said, "--insecure")
    with Server(hutchd, *data(), "--listen=0.0.0.0:0", "--insecure"):
        pass
    with Server(hutchd, *data(), "--listen=0.0.0.0:0",
                env={**os.environ, "HUTCH_API_KEY": "0123456789abcdef"}) as s:
        with open(f"/proc/{s.pid}/environ", "rb") as f:
            environment = f.read()
        assert b"0123456789abcdef" not in environment, "the key is still in the environment"
        assert b"PATH=" in environment, environment


@test
def drivers_are_asked_for_by_name():
    code, said = refused("--listen=127.0.0.1:0", "--driver", "frob")
    eq(code, 1)
    has(said, 'unknown driver "frob"; there are: native (')
    eq(refused("--check-config", "--driver", "frob"), (code, said))


@test
def one_data_folder_one_hutchd():
    """the second says so; a killed one leaves no lock"""
    same = data()
    with Server(hutchd, *same, "--listen=127.0.0.1:0") as s:
        code, said = refused(*same, "--listen=127.0.0.1:0")
        eq(code, 1)
        has(said, f"is in use by another hutchd, process {s.pid}")
        s.process.kill()
        s.process.wait()
    with Server(hutchd, *same, "--listen=127.0.0.1:0"):
        pass


@test
def damaged_files_are_reported():
    """each file of the data directory, and what to do"""
    for name, words in [("secret", "is damaged"), ("installation", "is damaged"),
                        ("store.sqlite", "store.sqlite")]:
        same = data()
        with Server(hutchd, *same, "--listen=127.0.0.1:0"):
            pass
        with open(f"{same[1]}/{name}", "r+b") as f:
            f.truncate(7)
        code, said = refused(*same, "--listen=127.0.0.1:0")
        eq(code, 1, name)
        has(said, words)
        eq(os.path.getsize(f"{same[1]}/{name}"), 7, "size of what is damaged")


# --- the service manager ---

@test
def the_service_manager_is_notified():
    """READY, RELOADING, STOPPING"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{directory}/notify")
        manager.settimeout(20)

        def reported():
            lines = manager.recv(4096).decode().splitlines()
            return lines if not lines[0].startswith("STATUS=") else reported()

        with Server(hutchd, *data(), "--listen=127.0.0.1:0",
                    env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify"}) as s:
            eq(reported(), ["READY=1"])
            s.process.send_signal(signal.SIGHUP)
            lines = reported()
            eq(lines[0], "RELOADING=1")
            has(lines[1], "MONOTONIC_USEC=")
            eq(reported(), ["READY=1"])
            s.process.terminate()
            eq(reported(), ["STOPPING=1"])
            eq(s.stop(), 0)


@test
def the_unit_is_right():
    """as far as systemd can tell without running it"""
    if not shutil.which("systemd-analyze"):
        skip("no systemd-analyze")
    with open(f"{root}/packaging/systemd/hutchd.service.in", encoding="utf-8") as f:
        text = f.read()
    for line in ["Type=notify", "KillMode=process", "Delegate=yes", "Restart=on-failure"]:
        has(text, f"\n{line}\n")
    with open(f"{directory}/hutchd.service", "w", encoding="utf-8") as f:
        f.write(text.replace("@sbindir@/hutchd", hutchd).replace("man:hutchd(8) man:hutchd.yaml(5)",
                                                                 "https://example.org"))
    p = subprocess.run(["systemd-analyze", "verify", f"{directory}/hutchd.service"], text=True,
                       capture_output=True, timeout=60)
    eq([x for x in p.stderr.splitlines() if "hutchd.service" in x], [])


@test
def completion_knows_every_option():
    for typed, expected in [(["--chec"], ["--check-config"]),
                            (["--log-level", "d"], ["debug"]),
                            (["--log-format", "=", ""], ["logfmt", "json"])]:
        words = " ".join(f"'{w}'" for w in [hutchd, *typed])
        p = subprocess.run(
            ["bash", "-c", f"source '{root}/packaging/completions/hutchd'; COMP_WORDS=({words}); "
             f"COMP_CWORD={len(typed)}; _hutchd; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
            capture_output=True, text=True, timeout=30)
        eq(p.stdout.split(), expected, f"{typed} {p.stderr}")


run()
