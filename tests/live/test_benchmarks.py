"""The proxies of the cloud's benchmark, over sockets."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from twisted.trial.unittest import TestCase

from benchmarks.cloud import Refused, asked
from benchmarks.cloud_proxy import Proxies


class ProxyTests(TestCase):
    def setUp(self) -> None:
        server = HTTPServer(("127.0.0.1", 0), _Service)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.origin = f"http://127.0.0.1:{server.server_port}"

    def test_calls_are_counted_by_path(self) -> None:
        """Ids are one; the query is not looked at; refusals count too."""
        proxies = Proxies({"compute": f"{self.origin}/v2.1"})
        self.addCleanup(proxies.stop)
        base = proxies.url(f"{self.origin}/v2.1")
        self.assertNotIn(self.origin, base)
        for number in (1, 2):
            server = f"{base}/servers/00000000-0000-4000-8000-00000000000{number}?a=b"
            self.assertEqual(asked("GET", server)[0]["path"][:14], "/v2.1/servers/")
        self.assertEqual(asked("POST", f"{base}/servers", {"a": 1})[0]["body"], '{"a": 1}')
        self.assertRaises(Refused, asked, "DELETE", f"{base}/servers")
        self.assertEqual(
            proxies.calls,
            {
                "compute GET /v2.1/servers/{id}": 2,
                "compute POST /v2.1/servers": 1,
                "compute DELETE /v2.1/servers": 1,
            },
        )

    def test_the_catalog_names_the_proxies(self) -> None:
        """So that the calls to the services go through them as well."""
        proxies = Proxies({"identity": self.origin})
        self.addCleanup(proxies.stop)
        told = asked("GET", proxies.url(f"{self.origin}/v3"))[0]["url"]
        self.assertEqual(told, proxies.url(self.origin))


class _Service(BaseHTTPRequestHandler):
    """Tells what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        url = f"http://127.0.0.1:{self.server.server_port}"
        text = '{"path": "%s", "url": "%s", "body": %s}'
        quoted = '"' + body.replace('"', '\\"') + '"'
        content = (text % (self.path, url, quoted)).encode()
        self.send_response(404 if self.command == "DELETE" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
