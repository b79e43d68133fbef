# SPDX-License-Identifier: Apache-2.0
"""The HTTP engine against libh2o and against what the kernel alone would take."""

import contextlib
import os
import random
import socket
import statistics
import struct
import time
import zlib

import lib
from lib import MB, MIB, Failure, median_ratio, result

# --- small answers ---------------------------------------------------------------------------------

WARM_UP_SECONDS = 1


def wrk_measure(bench, server, path):
    """A function that loads the server once and tells how it went, its processor time included."""
    url = server.url(path)
    bench.wrk(url, WARM_UP_SECONDS)

    def measure():
        before = server.cpu_seconds()
        r = bench.wrk(url)
        r["cpu_us"] = (server.cpu_seconds() - before) / r["requests"] * 1e6
        return r
    return measure


def column(rounds, key):
    return [r[key] for r in rounds]


def middle(rounds, key):
    return statistics.median(column(rounds, key))


def rate_result(name, ours, peer, **bounds):
    return result(name, middle(ours, "rps"), middle(peer, "rps"), "req/s",
                  median_ratio(column(ours, "rps"), column(peer, "rps")), **bounds,
                  rounds={"ours": ours, "peer": peer})


def json_response(bench):
    """Server and wrk have a processor each, so that both servers get the same one for themselves."""
    ours = bench.start("http_bench", "127.0.0.1:0", bench.directory)
    peer = bench.start("h2o_peer")
    r = bench.interleave({"ours": wrk_measure(bench, ours, "/json"),
                          "peer": wrk_measure(bench, peer, "/json")})
    yield rate_result("small JSON response, requests per second (vs. h2o)",
                      r["ours"], r["peer"], at_least=0.75)
    yield result("  CPU time per request (vs. h2o)", middle(r["ours"], "cpu_us"),
                 middle(r["peer"], "cpu_us"), "us",
                 median_ratio(column(r["ours"], "cpu_us"), column(r["peer"], "cpu_us")))
    yield result("  latency, median (vs. h2o)",
                 middle(r["ours"], "p50_us"), middle(r["peer"], "p50_us"), "us")
    yield result("  latency, 99th percentile (vs. h2o)",
                 middle(r["ours"], "p99_us"), middle(r["peer"], "p99_us"), "us")


def proxy(bench):
    """The proxy has a processor for itself; its upstream and wrk share the other: both do less for
    a request than the proxy, which thus is what limits. Both proxies have the same upstream."""
    path = os.path.join(bench.directory, "upstream")
    bench.start("http_bench", f"unix:{path}", bench.directory, cpus=bench.load_cpus)
    ours = bench.start("http_bench", "127.0.0.1:0", bench.directory, f"unix:{path}")
    peer = bench.start("h2o_peer", path)
    r = bench.interleave({"ours": wrk_measure(bench, ours, "/proxy/json"),
                          "direct": wrk_measure(bench, peer, "/json"),
                          "peer": wrk_measure(bench, peer, "/proxy/json")})
    yield rate_result("reverse proxy to a unix socket (vs. h2o without a proxy)",
                      r["ours"], r["direct"], at_least=0.35)
    yield rate_result("  the same (vs. h2o as reverse proxy)", r["ours"], r["peer"])
    yield result("  CPU time per request (vs. h2o)", middle(r["ours"], "cpu_us"),
                 middle(r["peer"], "cpu_us"), "us",
                 median_ratio(column(r["ours"], "cpu_us"), column(r["peer"], "cpu_us")))


# --- idle connections ------------------------------------------------------------------------------

IDLE = 5000
DESCRIPTORS = IDLE + 256
EVENTS_MAX = 60 * MB
IO_SECONDS = 30


def get(address, path):
    s = socket.create_connection(address, timeout=IO_SECONDS)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    return s


def open_idle(stack, server, path):
    """Connections that got their answer, or its first event, and wait for more."""
    for _ in range(IDLE):
        s = stack.enter_context(get(server.host_port, path))
        seen = b""
        while b'"ok"}' not in seen:
            piece = s.recv(4096)
            if not piece:
                raise Failure(f"{server.name} closed a connection: {seen!r}")
            seen += piece


def idle_growth(server, path):
    """What IDLE connections add to the process, by kind of memory."""
    with get(server.host_port, "/json") as s:
        s.recv(4096)
    before = server.memory()
    with contextlib.ExitStack() as stack:
        open_idle(stack, server, path)
        after = server.memory()
    return {k: after[k] - before[k] for k in after if k != "peak" and after[k] is not None}


def idle(bench):
    lib.need_descriptors(DESCRIPTORS)
    events = idle_growth(bench.start("http_bench", "127.0.0.1:0", bench.directory), "/events")
    yield result(f"memory of {IDLE:,} idle event streams", events["rss"] / MB, None, "MB",
                 at_most=EVENTS_MAX / MB, growth=events)
    yield result("  per stream", events["rss"] / IDLE, None, "B")
    ours = idle_growth(bench.start("http_bench", "127.0.0.1:0", bench.directory), "/json")
    peer = idle_growth(bench.start("h2o_peer"), "/json")
    yield result(f"memory of {IDLE:,} idle keep-alive connections (vs. h2o)",
                 ours["rss"] / MB, peer["rss"] / MB, "MB",
                 ours["rss"] / peer["rss"], growth={"ours": ours, "peer": peer})
    yield result("  per connection (vs. h2o)", ours["rss"] / IDLE, peer["rss"] / IDLE, "B")


# --- large bodies ----------------------------------------------------------------------------------

SIZE = 512 * MIB
BLOCK = MIB
GROWTH_MAX = 8 * MIB
LARGE_ROUNDS_MAX = 5
BOUNDARY = "hutch-bench-boundary"


def blocks():
    """SIZE bytes, in blocks that differ: a lost, doubled or moved piece changes the checksum."""
    block = bytearray(random.Random(1).randbytes(BLOCK))
    for i in range(SIZE // BLOCK):
        struct.pack_into("<Q", block, 0, i)
        yield block


def checksum(pieces):
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    return crc


def file_blocks(path):
    with open(path, "rb") as f:
        while piece := f.read(BLOCK):
            yield piece


def read_head(s):
    """The head of an answer and what came behind it."""
    seen = b""
    while b"\r\n\r\n" not in seen:
        piece = s.recv(65536)
        if not piece:
            raise Failure("the connection ended within the head")
        seen += piece
    head, rest = seen.split(b"\r\n\r\n", 1)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise Failure(f"answered with {head.splitlines()[0].decode(errors='replace')}")
    return head, rest


def send_form(address):
    """Uploads the blocks as the one file of a form; returns MB/s."""
    head = (f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
            "Content-Type: application/octet-stream\r\n\r\n").encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()
    length = len(head) + SIZE + len(tail)
    with socket.create_connection(address, timeout=IO_SECONDS) as s:
        start = time.perf_counter()
        s.sendall(f"POST /upload HTTP/1.1\r\nHost: bench\r\nContent-Type: multipart/form-data; "
                  f"boundary={BOUNDARY}\r\nContent-Length: {length}\r\n\r\n".encode() + head)
        for block in blocks():
            s.sendall(block)
        s.sendall(tail)
        read_head(s)
        return SIZE / MB / (time.perf_counter() - start)


def check_upload(path, expected):
    size = os.stat(path).st_size
    if size != SIZE or checksum(file_blocks(path)) != expected:
        raise Failure(f"the uploaded file is wrong: {size} bytes")


def upload(bench):
    """The sender, this process, has a processor for itself, as has the server."""
    directory = bench.data_dir(3 * SIZE)
    ours = bench.start("http_bench", "127.0.0.1:0", directory)
    floor = bench.start("copy_floor", os.path.join(directory, "floor"))
    expected = checksum(blocks())
    growths = []

    def measure_ours():
        ours.reset_peak()
        before = ours.memory()["rss"]
        speed = send_form(ours.host_port)
        after = ours.memory()
        growths.append((max(after["peak"], after["rss"]) - before) / MIB)
        check_upload(os.path.join(directory, "upload"), expected)
        return speed

    with get(ours.host_port, "/json") as s, lib.pinned(bench.load_cpus):
        read_head(s)
        r = {"ours": [], "floor": []}
        for _ in range(min(bench.rounds, LARGE_ROUNDS_MAX)):
            r["ours"].append(measure_ours())
            r["floor"].append(send_form(floor.host_port))
    yield result(f"growth of memory during an upload of {SIZE // MIB} MiB", max(growths), None, "MiB",
                 at_most=GROWTH_MAX / MIB, growths=growths)
    yield result("  upload throughput (vs. copying from socket to file)", statistics.median(r["ours"]),
                 statistics.median(r["floor"]), "MB/s", median_ratio(r["ours"], r["floor"]), rounds=r)


def receive(address, path):
    """Downloads and drops SIZE bytes; returns MB/s."""
    room = bytearray(256 * 1024)
    with get(address, path) as s:
        start = time.perf_counter()
        _, rest = read_head(s)
        left = SIZE - len(rest)
        while left > 0:
            n = s.recv_into(room, min(left, len(room)))
            if n == 0:
                raise Failure(f"the download ended {left} bytes early")
            left -= n
        return SIZE / MB / (time.perf_counter() - start)


def download(bench):
    """The reader, this process, has a processor for itself, as has the server."""
    directory = bench.data_dir(2 * SIZE)
    with open(os.path.join(directory, "file"), "wb") as f:
        for block in blocks():
            f.write(block)
    ours = bench.start("http_bench", "127.0.0.1:0", directory)
    floor = bench.start("sendfile_floor", os.path.join(directory, "file"))
    with lib.pinned(bench.load_cpus):
        receive(ours.host_port, "/file/file")
        r = bench.interleave({"ours": lambda: receive(ours.host_port, "/file/file"),
                              "floor": lambda: receive(floor.host_port, "/")})
    yield result("download throughput (vs. a bare sendfile loop)", statistics.median(r["ours"]),
                 statistics.median(r["floor"]), "MB/s", median_ratio(r["ours"], r["floor"]),
                 at_least=0.7, rounds=r)


ITEMS = {"json": json_response, "proxy": proxy, "idle": idle, "upload": upload, "download": download}
