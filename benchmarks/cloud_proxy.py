"""Proxies before the services of an OpenStack that count the calls; catalogs name the proxies."""

from __future__ import annotations

import http.client
import re
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

_ID: Final = re.compile(r"/[0-9a-f]{8}-[0-9a-f-]{27}|/(AUTH_)?[0-9a-f]{32}")
_HOP: Final = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")
_TIMEOUT_S: Final = 120.0


class Proxies:
    """One for each service. calls: `service METHOD path` -> how often; to be `clear`ed by users."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self.calls: Counter[str] = Counter()
        self._servers = []
        self._origins: dict[str, str] = {}
        for service, url in urls.items():
            origin = "/".join(url.split("/")[:3])
            server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(service, origin))
            server.daemon_threads = True
            self._origins[origin] = f"http://127.0.0.1:{server.server_address[1]}"
            self._servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def url(self, url: str) -> str:
        """The same by its proxy."""
        for origin, proxy in self._origins.items():
            url = url.replace(origin, proxy)
        return url

    def stop(self) -> None:
        """Answer no more."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _handler(self, service: str, origin: str) -> type[BaseHTTPRequestHandler]:
        proxies = self
        target = urlsplit(origin)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                self.behind = http.client.HTTPConnection(
                    target.hostname or "", target.port, timeout=_TIMEOUT_S
                )

            def finish(self) -> None:
                self.behind.close()
                super().finish()

            def handle_one_request(self) -> None:
                self.close_connection = True
                self.raw_requestline = self.rfile.readline(65_537)
                if self.raw_requestline and self.parse_request():
                    self.close_connection = False
                    try:
                        self.forward()
                    except ConnectionError:  # whoever asked has gone
                        self.close_connection = True

            def forward(self) -> None:
                path = _ID.sub("/{id}", self.path.partition("?")[0])
                proxies.calls[f"{service} {self.command} {path}"] += 1
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                sent = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
                self.behind.request(self.command, self.path, body or None, sent)
                answer = self.behind.getresponse()
                content = answer.read()
                if service == "identity":
                    content = proxies.url(content.decode()).encode()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.headers.items():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        return Handler
