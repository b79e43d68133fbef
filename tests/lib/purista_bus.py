# SPDX-License-Identifier: Apache-2.0
"""PURISTA's side of a bus, in the words of each broker's own protocol: independent of the libraries that the bridge
uses, and as small as it can be.

    caller = connect(broker)
    reply = caller.call("executeBash", {...})       # Message: body, headers, name
    caller.published(lambda m: ...)                 # waits for an event or an announcement

Names (subjects, topics, headers) are written as PURISTA's own bridges write them; see snake().
"""

import json
import queue
import re
import secrets
import socket
import threading
import time

WAIT = 60
SNAKE = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z]+[0-9]*|\b)|[A-Z]?[a-z]+[0-9]*|[A-Z]|[0-9]+", re.A)
TARGETS = ["createSandbox", "ensureSandbox", "destroySandbox", "executeBash", "readFile", "writeFiles"]


def snake(text):
    return "_".join(w.lower() for w in SNAKE.findall(text)) or text


class Message:
    def __init__(self, name, body, headers, properties=None):
        self.name, self.raw, self.headers, self.properties = name, body, headers, properties or {}
        try:
            self.body = json.loads(body)
        except ValueError:
            self.body = None

    def __repr__(self):
        return f"{self.name} {self.headers} {self.properties} {self.raw[:2000]!r}"


def command(target, payload, instance, changes=(), **more):
    """The body of a command as PURISTA's adapter sends it."""
    body = {
        "sender": {"serviceName": "BashToolAdapter", "serviceVersion": "1", "serviceTarget": "executeCommand",
                   "instanceId": instance},
        "receiver": {"serviceName": "Sandbox", "serviceVersion": "1", "serviceTarget": target},
        "payload": {"payload": payload, "parameter": {}},
        "tenantId": "org-1", "principalId": "user-1",
        "contentType": "application/json", "contentEncoding": "utf-8",
        "id": secrets.token_hex(16), "correlationId": secrets.token_hex(16),
        "timestamp": int(time.time() * 1000), "messageType": "command",
        "otp": json.dumps({"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"}),
    }
    body.update(changes, **more)
    return {k: v for k, v in body.items() if v is not None}


def parts(body, none):
    """The address of a message: all that follows the prefix."""
    sender, receiver = body.get("sender", {}), body.get("receiver", {})
    words = [body["messageType"], body.get("principalId"), body.get("tenantId"), sender.get("instanceId"),
             sender.get("serviceName"), sender.get("serviceVersion"), sender.get("serviceTarget"),
             body.get("eventName"), receiver.get("instanceId"), receiver.get("serviceName"),
             receiver.get("serviceVersion"), receiver.get("serviceTarget")]
    return [snake(w) if w is not None else none for w in words]


class Socket:
    """Bytes, and a thread that reads them."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.closing = False

    def write(self, data):
        with self.lock:
            self.socket.sendall(data)

    def exactly(self, n):
        data = self.file.read(n)
        if len(data) != n:
            raise EOFError("the broker closed the connection")
        return data

    def close(self):
        self.closing = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


class Caller:
    """What all three have: replies by correlation, and everything else that is published."""

    def __init__(self, broker, instance):
        self.broker = broker
        self.instance = instance or secrets.token_hex(16)
        self.replies, self.others = {}, queue.Queue()
        self.kept = []
        self.lock = threading.Lock()
        self.connect()

    def start(self, reader):
        def read(wire):
            try:
                while True:
                    reader(wire)
            except (OSError, EOFError, ValueError):
                if not wire.closing:
                    wire.closing = True
        threading.Thread(target=read, args=(self.wire,), daemon=True).start()

    def expect(self, correlation):
        with self.lock:
            return self.replies.setdefault(correlation, queue.Queue())

    def take_reply(self, message, correlation=None):
        self.expect(correlation or (message.body or {}).get("correlationId")).put(message)

    def take_other(self, message):
        self.others.put(message)

    # --- for tests ---

    def send(self, target, payload, changes=(), timeout=None, **more):
        """Sends a command, with the seconds that the caller waits if the bus has a place for them: its body."""
        body = command(target, payload, self.instance, changes, **more)
        self.send_body(body, **({} if timeout is None else {"timeout": timeout}))
        return body

    def reply_of(self, body, wait=WAIT):
        return self.expect(body["correlationId"]).get(timeout=wait)

    def call(self, target, payload, **more):
        return self.reply_of(self.send(target, payload, **more))

    def bash(self, text, **more):
        return self.call("executeBash", {"sandboxId": SANDBOX, "command": text}, **more)

    def published(self, wanted):
        """The first message that matches, of those that arrive or that no one has taken yet."""
        for m in self.kept:
            if m.body is not None and wanted(m.body):
                self.kept.remove(m)
                return m
        while True:
            m = self.others.get(timeout=WAIT)
            if m.body is not None and wanted(m.body):
                return m
            self.kept.append(m)

    def announcements(self, instance):
        """One round of all six, by target."""
        found = {}
        while len(found) < len(TARGETS):
            m = self.published(lambda b: b["messageType"] == "infoServiceFunctionAdded"
                               and b["sender"]["instanceId"] == instance)
            found[m.body["sender"]["serviceTarget"]] = m
        return found

    def reconnect(self):
        self.wire.close()
        self.connect()

    def close(self):
        self.wire.close()


SANDBOX = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"


# --- NATS ---

class NatsCaller(Caller):
    limit = 1 << 20

    def connect(self):
        self.wire = Socket(self.broker.port)
        assert self.wire.file.readline().startswith(b"INFO ")
        self.inbox = getattr(self, "inbox", f"_INBOX.{secrets.token_hex(11)}")
        self.pongs = queue.Queue()
        self.wire.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n'
                        + f"SUB {self.inbox}.* 1\r\nSUB purista.info_service_function_added.> 2\r\n"
                          "SUB purista.custom_message.> 3\r\n".encode())
        self.start(self.read)
        self.flush()

    def flush(self):
        self.wire.write(b"PING\r\n")
        self.pongs.get(timeout=WAIT)

    def read(self, wire):
        line = wire.file.readline()
        if not line:
            raise EOFError
        word, *rest = line.decode().split()
        if word == "PING":
            wire.write(b"PONG\r\n")
        elif word == "PONG":
            self.pongs.put(None)
        elif word in ("MSG", "HMSG"):
            head = int(rest[-2]) if word == "HMSG" else 0
            data = wire.exactly(int(rest[-1]) + 2)[:-2]
            lines = data[:head].decode().split("\r\n")
            headers = dict(h.split(": ", 1) for h in lines[1:] if ": " in h)
            # 503 in the head's first line: no bridge serves this command.
            message = Message(rest[0], data[head:], headers, {"status": lines[0], "reply": len(rest) > 3})
            if rest[1] == "1":
                self.take_reply(message, rest[0].rsplit(".", 1)[1])
            else:
                self.take_other(message)

    def send_body(self, body, reply=True, name=None, timeout=None):
        """PURISTA's callers do not say on NATS how long they wait."""
        subject = name or ".".join(["purista", *parts(body, "empty")])
        self.send_raw(subject, json.dumps(body).encode(),
                      f"{self.inbox}.{body['correlationId']}" if reply else "")

    def send_raw(self, subject, data, reply=""):
        self.wire.write(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def send_unaddressed(self, body):
        self.send_body(body, reply=False)

    def name_of(self, target):
        return f"purista.command.empty.empty.empty.empty.empty.empty.empty.empty.sandbox.1.{snake(target)}"


# --- MQTT 5 ---

def number(n):
    """A length as MQTT writes it."""
    data = b""
    while True:
        n, low = n >> 7, n & 127
        data += bytes([low | (128 if n else 0)])
        if not n:
            return data


def text(s):
    data = s.encode() if isinstance(s, str) else s
    return len(data).to_bytes(2, "big") + data


class Bytes:
    """Reads what MQTT wrote."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def int(self, n):
        return int.from_bytes(self.take(n), "big")

    def text(self):
        return self.take(self.int(2))

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.int(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def properties(self):
        """(headers, properties) of a PUBLISH."""
        end = self.number()
        end += self.at
        headers, found = {}, {}
        while self.at < end:
            kind = self.int(1)
            if kind == 38:
                key = self.text().decode()
                headers[key] = self.text().decode()
            elif kind in (3, 8, 9):
                found[{3: "contentType", 8: "responseTopic", 9: "correlationData"}[kind]] = self.text().decode()
            elif kind == 2:
                found["expiry"] = self.int(4)
            elif kind == 11:
                self.number()
            else:
                raise ValueError(f"property {kind}")
        return headers, found


class MqttCaller(Caller):
    limit = 1 << 20

    def connect(self):
        self.wire = Socket(self.broker.port)
        self.mid, self.acks = 0, queue.Queue()
        # Clean start, no keep-alive; and as many messages at once as may come.
        self.packet(0x10, text("MQTT") + b"\x05\x02\x00\x00" + b"\x03\x21\xff\xff" + text(self.instance))
        assert self.next(self.wire)[0] == 0x20
        self.start(self.read)
        own = snake(self.instance)
        self.subscribe(f"purista/+/+/+/+/+/+/+/+/{own}/+/+/+")
        self.subscribe("purista/info_service_function_added/#")
        self.subscribe("purista/custom_message/#")

    def packet(self, kind, data):
        self.wire.write(bytes([kind]) + number(len(data)) + data)

    def next(self, wire):
        kind = wire.exactly(1)[0]
        size, shift = 0, 0
        while True:
            byte = wire.exactly(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, wire.exactly(size)

    def subscribe(self, topic):
        self.mid += 1
        self.packet(0x82, self.mid.to_bytes(2, "big") + b"\x00" + text(topic) + b"\x01")
        self.acks.get(timeout=WAIT)

    def read(self, wire):
        kind, data = self.next(wire)
        if kind == 0x90:
            self.acks.put(None)
        if kind >> 4 != 3:
            return
        b = Bytes(data)
        topic = b.text().decode()
        if kind & 6:
            self.packet(0x40, b.take(2))
        headers, properties = b.properties()
        message = Message(topic, data[b.at:], headers, properties)
        if "_response/" in topic:
            self.take_reply(message)
        else:
            self.take_other(message)

    def send_body(self, body, name=None, timeout=None):
        self.send_raw(name or "/".join(["purista", *parts(body, "none")]), json.dumps(body).encode(),
                      body.get("correlationId"), timeout)

    def send_raw(self, topic, data, correlation=None, timeout=None):
        properties = b"\x03" + text("application/json")
        if timeout is not None:
            properties += b"\x02" + timeout.to_bytes(4, "big")
        if correlation:
            properties += b"\x09" + text(correlation)
        with self.lock:
            self.mid = self.mid % 65535 + 1
            mid = self.mid
        self.packet(0x32, text(topic) + mid.to_bytes(2, "big") + number(len(properties)) + properties + data)

    def send_unaddressed(self, body):
        correlation = body.pop("correlationId")
        self.send_raw("/".join(["purista", *parts(body, "none")]), json.dumps(body).encode())
        body["correlationId"] = correlation

    def name_of(self, target):
        return f"purista/command/none/none/none/none/none/none/none/none/sandbox/1/{snake(target)}"


# --- AMQP 0-9-1 ---

def short(s):
    data = s.encode()
    return bytes([len(data)]) + data


def long(data):
    return len(data).to_bytes(4, "big") + data


def table(entries):
    return long(b"".join(short(k) + b"S" + long(v.encode()) for k, v in entries.items()))


def u16(n):
    return n.to_bytes(2, "big")


class AmqpBytes(Bytes):
    def short(self):
        return self.take(self.int(1)).decode()

    def table(self):
        inner = AmqpBytes(self.take(self.int(4)))
        found = {}
        while inner.at < len(inner.data):
            key, kind = inner.short(), inner.take(1)
            found[key] = {b"S": lambda: inner.take(inner.int(4)).decode("utf-8", "replace"),
                          b"F": inner.table, b"t": lambda: inner.int(1), b"I": lambda: inner.int(4),
                          b"l": lambda: inner.int(8)}[kind]()
        return found


class AmqpCaller(Caller):
    """One channel; a queue for replies, which keeps its name, and one for events and announcements."""

    limit = 1 << 20

    def connect(self):
        self.wire = Socket(self.broker.port)
        self.wire.write(b"AMQP\x00\x00\x09\x01")
        self.method_frames = queue.Queue()
        self.pending = None
        self.until(10, 10)
        self.method(0, 10, 11, table({}) + short("PLAIN") + long(b"\0guest\0guest") + short("en_US"))
        self.until(10, 30)
        self.method(0, 10, 31, u16(2047) + (131072).to_bytes(4, "big") + u16(0))
        self.method(0, 10, 40, short("/") + short("") + b"\0")
        self.until(10, 41)
        self.start(self.read)
        self.send_request(20, 10, short(""))
        self.send_request(40, 10, u16(0) + short("purista") + short("headers") + b"\x02" + table({}))
        self.reply_queue = getattr(self, "reply_queue", f"reply-{self.instance}")
        self.queue(self.reply_queue, {"x-match": "all", "replyTo": self.reply_queue})
        for kind in ("infoServiceFunctionAdded", "customMessage"):
            self.queue(f"{kind}-{secrets.token_hex(8)}", {"x-match": "all", "messageType": kind})

    def queue(self, name, match):
        self.send_request(50, 10, u16(0) + short(name) + b"\x04" + table({}))         # exclusive
        self.send_request(50, 20, u16(0) + short(name) + short("purista") + short("") + b"\0" + table(match))
        self.send_request(60, 20, u16(0) + short(name) + short(name) + b"\x02" + table({}))   # no acknowledgements

    # --- frames ---

    def frame(self, kind, channel, data):
        return bytes([kind]) + u16(channel) + long(data) + b"\xce"

    def method(self, channel, cls, number_, data):
        self.wire.write(self.frame(1, channel, u16(cls) + u16(number_) + data))

    def send_request(self, cls, number_, data):
        self.method(1, cls, number_, data)
        self.method_frames.get(timeout=WAIT)

    def next(self, wire):
        head = wire.exactly(7)
        return head[0], wire.exactly(int.from_bytes(head[3:], "big") + 1)[:-1]

    def until(self, cls, number_):
        while True:
            kind, data = self.next(self.wire)
            if kind == 1 and data[:4] == u16(cls) + u16(number_):
                return

    def read(self, wire):
        kind, data = self.next(wire)
        if kind == 8:
            return
        if kind == 1:
            name = data[:4]
            if name == u16(60) + u16(60):
                b = AmqpBytes(data[4:])
                self.pending = {"queue": b.short(), "size": None, "data": b""}
            elif name in (u16(20) + u16(40), u16(10) + u16(50)):
                raise ValueError(data)
            else:
                self.method_frames.put(data)
            return
        if kind == 2:
            self.pending["size"] = int.from_bytes(data[4:12], "big")
            self.pending["properties"] = self.properties(AmqpBytes(data[12:]))
        elif kind == 3:
            self.pending["data"] += data
        if len(self.pending["data"]) == self.pending["size"]:
            self.arrived(self.pending)

    def properties(self, b):
        flags, found = b.int(2), {}
        for bit, name, read in ((15, "contentType", b.short), (14, "contentEncoding", b.short),
                                (13, "headers", b.table), (12, "deliveryMode", lambda: b.int(1)),
                                (11, "priority", lambda: b.int(1)), (10, "correlationId", b.short),
                                (9, "replyTo", b.short), (8, "expiration", b.short), (7, "messageId", b.short),
                                (6, "timestamp", lambda: b.int(8)), (5, "type", b.short)):
            if flags & 1 << bit:
                found[name] = read()
        return found

    def arrived(self, pending):
        properties = pending["properties"]
        message = Message(pending["queue"], pending["data"], properties.pop("headers", {}), properties)
        if pending["queue"] == self.reply_queue:
            self.take_reply(message)
        else:
            self.take_other(message)

    # --- sending ---

    def send_body(self, body, name=None, reply=True, timeout=None):
        sender, receiver = body["sender"], body["receiver"]
        headers = {"messageType": "command", "senderServiceName": sender["serviceName"],
                   "senderServiceVersion": sender["serviceVersion"], "senderServiceTarget": sender["serviceTarget"],
                   "senderInstanceId": sender["instanceId"], "receiverServiceName": receiver["serviceName"],
                   "receiverServiceVersion": receiver["serviceVersion"],
                   "receiverServiceTarget": name or receiver["serviceTarget"]}
        self.publish(headers, json.dumps(body).encode(), body, reply, timeout)

    def publish(self, headers, data, body=None, reply=True, timeout=None):
        flags, properties = 0xF000, short("application/json") + short("utf-8") + table(headers) + b"\x02"
        if body:
            flags |= 1 << 10
            properties += short(body["correlationId"])
        if body and reply:
            flags |= 1 << 9
            properties += short(self.reply_queue)
        if timeout is not None:
            flags |= 1 << 8
            properties += short(str(timeout * 1000))
        out = self.frame(1, 1, u16(60) + u16(40) + u16(0) + short("purista") + short("") + b"\0")
        out += self.frame(2, 1, u16(60) + u16(0) + len(data).to_bytes(8, "big") + u16(flags) + properties)
        for at in range(0, len(data), 100000):
            out += self.frame(3, 1, data[at:at + 100000])
        self.wire.write(out)

    def send_raw(self, name, data):
        self.publish({"messageType": "command", "receiverServiceName": "Sandbox", "receiverServiceVersion": "1",
                      "receiverServiceTarget": name}, data)

    def send_unaddressed(self, body):
        self.send_body(body, reply=False)

    def name_of(self, target):
        return target


def connect(broker, instance=None):
    return {"nats": NatsCaller, "mqtt": MqttCaller, "amqp": AmqpCaller}[broker.kind](broker, instance)
