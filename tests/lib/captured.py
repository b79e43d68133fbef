# SPDX-License-Identifier: Apache-2.0
"""Messages that were captured between PURISTA's own programs, out of a file that is not ours, and how to compare one of
ours with one of them.

    for exchange in exchanges(messages(path)):
        ... exchange["command"].body ...
        eq(shape(got, instance), shape(exchange["response"]))

The file has a heading for each message ("### 1.3 title — command"), what the broker said beside it (subject, topic,
headers or properties, as JSON), and its body.
"""

import copy
import json
import re

from purista_bus import snake

KINDS = {"1": "nats", "2": "nats", "3": "mqtt", "4": "amqp"}
ENTRY = re.compile(r"^### (\d)\.(\d+) ([^\n]*)\n(.*?)^```json\n(\{.*?\})\n```$", re.M | re.S)
# What one version adds to each reply by mistake.
STRAY = ("sennder",)


class Captured:
    """name, headers, properties and body are those of purista_bus.Message."""

    def __init__(self, found):
        section, number, title, about, body = found
        self.kind = KINDS[section]
        self.title = f"{section}.{number} {title}"
        self.place = f"{section}.{number}"
        self.body = json.loads(body)
        address = re.search(r"^(?:subject|topic): `([^`]*)`", about, re.M)
        self.name = address[1] if address else None
        self.headers, self.properties = {}, {}
        extra = re.search(r"^(?:headers|properties): `(\{.*\})`$", about, re.M)
        if extra and self.kind == "nats":
            self.headers = json.loads(extra[1])
        elif extra:
            self.properties = json.loads(extra[1])
            self.headers = self.properties.pop("userProperties" if self.kind == "mqtt" else "headers")
            if "messageExpiryInterval" in self.properties:
                self.properties["expiry"] = self.properties.pop("messageExpiryInterval")


def messages(path):
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^(?=##)", f.read(), flags=re.M)
    found = [m.groups() for m in map(ENTRY.match, parts) if m and m[1] in KINDS]
    return [Captured(m) for m in found if '"messageType"' in m[4]]


def exchanges(found):
    """Commands with their responses, in the order of the file."""
    pairs = {}
    for m in found:
        what = {"command": "command", "commandSuccessResponse": "response",
                "commandErrorResponse": "response"}.get(m.body["messageType"])
        if what:
            pairs.setdefault(m.place, {})[what] = m
    assert all(len(p) == 2 for p in pairs.values()), pairs
    return list(pairs.values())


# --- what two messages that mean the same have in common ---

def _trace(text):
    """The part of a traceparent that stays the same along the way."""
    return text.split("-")[1]


def shape_of_body(body):
    """Without what is new in each message: ids of service instances, times, spans."""
    body = copy.deepcopy(body)
    for stray in STRAY:
        body.pop(stray, None)
    body["sender"]["instanceId"] = "SERVICE"
    assert isinstance(body.pop("timestamp"), int)
    announces = body["messageType"] == "infoServiceFunctionAdded"
    otp = json.loads(body.pop("otp"))
    if not announces:                           # those of ours belong to no trace
        body["otp"] = {"traceparent": _trace(otp["traceparent"])}
    trace = body.pop("traceId", None)
    assert trace is None or re.fullmatch("[0-9a-f]{32}", trace), trace
    if isinstance(body.get("payload"), dict) and "traceId" in body["payload"]:
        assert body["payload"].pop("traceId") == trace
    if "correlationId" not in body:             # not a reply: its ids are its own
        assert re.fullmatch("[0-9a-f]{32}", body.pop("id"))
    return body


def shape(message, kind):
    """Body, headers, address and what the broker has beside them, of a message of the service on this broker."""
    service = message.body["sender"]["instanceId"]
    is_reply = "correlationId" in message.body
    announces = message.body["messageType"] == "infoServiceFunctionAdded"
    headers, properties = dict(message.headers), dict(message.properties)
    headers["senderInstanceId"] = headers["senderInstanceId"].replace(service, "SERVICE")
    if announces:
        headers.pop("traceparent", None)
    else:
        headers["traceparent"] = _trace(headers["traceparent"])
    if kind == "nats":
        properties = {}
    if kind == "amqp":
        assert properties.pop("timestamp") == message.body["timestamp"]
        assert properties.pop("messageId") == message.body["id"]
        if is_reply:
            assert headers.pop("replyTo")
    name = None if kind == "amqp" or (kind == "nats" and is_reply) else message.name.replace(snake(service), "SERVICE")
    return {"name": name, "headers": headers, "properties": properties, "body": shape_of_body(message.body)}
