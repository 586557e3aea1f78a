"""A proxy of an object store that forwards requests, answers 503, or refuses connections."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from support.patience import seconds
from support.service.components import free_port

Mode = Literal["open", "busy", "unavailable"]

SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
)
"""The response body of S3 when it throttles requests."""

ONE_HOP = {"connection", "expect", "keep-alive", "transfer-encoding"}
"""Hop-by-hop headers, which a proxy does not forward (RFC 9110, section 7.6.1)."""


class Proxy:
    """An HTTP proxy on a free port for the local server at port `target`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = free_port()
        self.mode: Mode = "open"
        self.turned_away = 0
        self._listen()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Answer every request with 503 SlowDown inside the block."""
        self.mode = "busy"
        try:
            yield
        finally:
            self.mode = "open"

    @contextmanager
    def unavailable(self) -> Iterator[None]:
        """Refuse connections inside the block, and close open connections without a response."""
        self.mode = "unavailable"
        self.close()
        try:
            yield
        finally:
            self.mode = "open"
            self._listen()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _listen(self) -> None:
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy", daemon=True).start()


class _Server(ThreadingHTTPServer):
    request_queue_size = 100

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", proxy.port), _Handler)

    def handle_error(self, *_: Any) -> None:
        """Ignore errors: tests kill clients at any moment."""


class _Handler(BaseHTTPRequestHandler):
    """Handler of one connection: read each request completely, then forward or refuse it."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server.proxy
        if proxy.mode != "open":
            proxy.turned_away += 1
        if proxy.mode == "unavailable":
            self.close_connection = True
        elif proxy.mode == "busy":
            self._respond(503, [("Content-Type", "application/xml")], SLOW_DOWN)
        else:
            self._forward(body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  (http.server's names)

    def _forward(self, body: bytes) -> None:
        """Forward the request unchanged; the signatures of S3 cover the Host header too."""
        server = http.client.HTTPConnection("127.0.0.1", self.server.proxy.target, timeout=seconds(60))
        try:
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ONE_HOP:
                    server.putheader(name, value)
            server.endheaders(body or None)
            answer = server.getresponse()
            content = answer.read()
        except OSError:  # the store itself cannot be reached
            self.close_connection = True
            return
        finally:
            server.close()
        self._respond(answer.status, answer.getheaders(), content)

    def _respond(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        kept = [(name, value) for name, value in headers if name.lower() not in ONE_HOP]
        if "content-length" not in {name.lower() for name, _ in kept}:
            kept.append(("Content-Length", str(len(content))))
        self.send_response_only(status)
        for name, value in kept:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
