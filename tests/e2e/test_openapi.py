#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What hutchd says about its routes, compared with what it serves and with the published
descriptions of the API, when these are at hand.

usage: test_openapi.py HUTCHD SOURCE_ROOT

The directory of the descriptions (sandbox-lifecycle.yml, diagnostic-api.yml) is taken from HUTCH_SPECS.
"""

import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from tap import eq, run, skip, test  # noqa: E402

hutchd, root = sys.argv[1:3]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SPECS = ("sandbox-lifecycle.yml", "diagnostic-api.yml")


def send_request(server, method, path):
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head, _, body = server.send_request(request.encode()).partition(b"\r\n\r\n")
    return head.decode(), body


def description(server):
    head, body = send_request(server, "GET", "/openapi.json")
    assert head.startswith("HTTP/1.1 200 "), head
    return json.loads(body)


def specs_dir():
    given = os.environ.get("HUTCH_SPECS")
    for directory in [given] if given else [os.path.join(root, "..", "shared", "specs"),
                                         os.path.join(root, "..", "..", "shared", "specs")]:
        for place in (directory, os.path.join(directory, "opensandbox")):
            if os.path.exists(os.path.join(place, SPECS[0])):
                return place
    return skip("the published descriptions are not at hand: set HUTCH_SPECS to their directory")


def read_paths(text):
    """The operations of a description in YAML: {(path, method): {"statuses": …, "params": …}}.

    Not a reader of YAML: it knows the two-space indentation in which these files are written.
    """
    operations, path, method, shared, section = {}, None, None, set(), None
    inside = False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if indent == 0:
            inside = word == "paths:"
        elif not inside:
            continue
        elif indent == 2 and word.startswith("/"):
            path, method, shared, section = word.rstrip(":"), None, set(), None
        elif indent == 4:
            method = word.rstrip(":") if word.rstrip(":") in METHODS else None
            section = None if method else word.rstrip(":")
            if method:
                operations[path, method] = {"statuses": set(), "params": set(shared)}
        elif indent == 6 and method:
            section = word.split(":")[0]
        elif section == "responses" and indent == 8 and (m := re.match(r"'(\d+)':", word)):
            operations[path, method]["statuses"].add(m[1])
        elif section == "parameters" and (m := re.match(r"- name: (\S+)", word)):
            (operations[path, method]["params"] if method else shared).add(m[1])
    return operations


@test
def describes_itself():
    """/openapi.json is complete in itself: every reference leads somewhere, every name is used once"""
    with tempfile.TemporaryDirectory() as data, \
            Server(hutchd, "--data", data, "--listen", "127.0.0.1:0") as s:
        doc = description(s)
    schemas = doc["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(doc)):
        assert name in schemas, f"there is no schema {name}"
    ids = [o["operationId"] for p in doc["paths"].values() for o in p.values()]
    eq(len(ids), len(set(ids)), "operation ids")
    for path, item in doc["paths"].items():
        for method, operation in item.items():
            wanted = set(re.findall(r"\{(\w+)\}", path))
            eq({p["name"] for p in operation["parameters"] if p["in"] == "path"}, wanted, path)
            assert any(s.startswith("2") for s in operation["responses"]), (path, method)


@test
def what_is_described_is_served():
    """each described operation is among what its path allows"""
    with tempfile.TemporaryDirectory() as data, \
            Server(hutchd, "--data", data, "--listen", "127.0.0.1:0") as s:
        for path, item in description(s)["paths"].items():
            head, _ = send_request(s, "OPTIONS", re.sub(r"\{\w+\}", "x", path))
            allow = re.search(r"^Allow: (.*)$", head, re.M | re.I)
            assert allow, f"{path}: {head}"
            for method in item:
                assert method.upper() in allow[1], f"{method} {path}: {allow[1]}"


@test
def serves_what_is_published():
    """every published operation, bare and under /v1, with the same success and parameters"""
    directory = specs_dir()
    with tempfile.TemporaryDirectory() as data, \
            Server(hutchd, "--data", data, "--listen", "127.0.0.1:0") as s:
        ours = description(s)["paths"]
        checked = 0
        for name in SPECS:
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                published = read_paths(f.read())
            assert published, f"{name}: no operations were found"
            for (path, method), operation in published.items():
                found = ours.get("/v1" + path, {}).get(method)
                assert found, f"{name}: {method} {path} is not described"
                eq({c for c in found["responses"] if c.startswith("2")},
                   {c for c in operation["statuses"] if c.startswith("2")}, f"{method} {path}")
                have = {p["name"] for p in found["parameters"]}
                # What answers 501 whatever is asked has no parameters to speak of.
                if "501" not in found["responses"] or "diagnostics" in path:
                    missing = operation["params"] - have
                    eq(missing, set(), f"parameters of {method} {path} that are not ours")
                if path != "/metrics/events":
                    head, _ = send_request(s, "OPTIONS", re.sub(r"\{\w+\}", "x", path))
                    assert method.upper() in head, f"{method} {path} without /v1: {head}"
                checked += 1
        assert checked >= 16, f"only {checked} operations"


@test
def the_reader_reads():
    """the reader of descriptions finds paths, methods, statuses and parameters"""
    eq(read_paths("""openapi: 3.1.0
paths:
  /a/{b}:
    parameters:
      - name: b
        in: path
    get:
      parameters:
        - name: q
          in: query
      responses:
        '200':
          description: fine
        '404':
          $ref: x
    delete:
      responses:
        '204':
          description: gone
components:
  x:
    get:
"""), {("/a/{b}", "get"): {"statuses": {"200", "404"}, "params": {"b", "q"}},
       ("/a/{b}", "delete"): {"statuses": {"204"}, "params": {"b"}}})


run()
