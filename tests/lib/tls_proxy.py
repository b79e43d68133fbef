# SPDX-License-Identifier: Apache-2.0
"""What stands in front of hutchd where others can reach it: it speaks TLS, and passes on what it hears.

    with TlsProxy(directory, hutchd.socket) as door:
        ... https://localhost:{door.port} ...

The directory has cert.pem and key.pem (brokers.certify).
"""

import contextlib
import socket
import socketserver
import ssl
import threading


def copy(source, to):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(ssl.SSLError), socket.socket(socket.AF_UNIX) as inside, \
                self.server.context.wrap_socket(self.request, server_side=True) as outside:
            inside.connect(self.server.path)
            back = threading.Thread(target=copy, args=(inside, outside), daemon=True)
            back.start()
            copy(outside, inside)
            back.join()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        pass                                        # a client that left


class TlsProxy:
    def __init__(self, directory, path):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.path = path
        self.server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.context.load_cert_chain(f"{directory}/cert.pem", f"{directory}/key.pem")
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
