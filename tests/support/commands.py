"""The commands of `svcd` in this process, against a FakeService and its cloud on a port."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from attrs import frozen

from svcd.cli.main import main
from svcd.testing import CLOUD_URL, FakeService

_HOP = frozenset({"content-length", "transfer-encoding", "connection", "host", "date", "server"})


@frozen(kw_only=True)
class Said:
    """How a command ended, and what it has printed."""

    code: int
    out: str
    err: str


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing on stderr, which is the command's in this process."""


class Shown:
    """A fake on a port, and `endpoints.json` in a folder. Its clock moves with each request.

    before: called with method and path of each request, for example to break it; a status that it
    returns is the answer. step_s: virtual seconds between two requests.
    """

    def __init__(self, fake: FakeService, folder: Path, step_s: float = 1.0) -> None:
        self.fake = fake
        self.step_s = step_s
        self.before: Callable[[str, str], int | None] = lambda method, path: None
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []
        self._folder = folder
        self._one = ThreadPoolExecutor(1)  # the fake lives in one thread, like a daemon
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        user = "demo"
        known = {
            "api": self.url,
            "identity": f"{self.url}/identity/v3",
            "image": f"{self.url}/image",
            "object_store": f"{self.url}/object-store/v1/AUTH_{fake.tenant}",
            "tenant": fake.tenant,
            "username": user,
            "password": fake.cloud.core.users_by_name[user].password,
            "images": [{"id": fake.image_id, "name": "plain"}],
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "endpoints.json").write_text(json.dumps(known))

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._one.shutdown()

    def run(self, *arguments: str, known: bool = True, stdout: IO[str] | None = None) -> Said:
        """Run a command to its end. known: with the folder of `endpoints.json`."""
        out, err = stdout or io.StringIO(), io.StringIO()
        more = ["--state-dir", str(self._folder)] if known else []
        command = list(arguments)
        at = command.index("--") if "--" in command else len(command)
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*command[:at], *more, *command[at:]])
        said = out.getvalue() if isinstance(out, io.StringIO) else ""
        return Said(code=code, out=said, err=err.getvalue())

    def body(self, *arguments: str) -> Any:
        """The JSON that a command prints; it must end well."""
        said = self.run(*arguments, "-o", "json")
        if said.code:
            raise AssertionError(f"{arguments}: {said}")
        return json.loads(said.out)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        shown = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body go out together, so no acknowledgement is waited for

            def _do(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(size) if size else None
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
                shown.asked.append((self.command, self.path, headers))
                try:
                    status = shown.before(self.command, self.path)
                    if status is not None:
                        self.send_response(status)
                        self.send_header("X-Request-Id", "broken")
                        self.send_header("Content-Length", "0")
                        self.end_headers()
                        return
                    answer = shown._answer(self.command, self.path, data, headers)
                except ConnectionError:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                body = answer.body
                if "/identity/" in self.path:  # the catalog names the port
                    body = body.replace(CLOUD_URL.encode(), shown.url.encode())
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _do

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler

    def _answer(self, method: str, path: str, data: bytes | None, headers: Any) -> Any:
        return self._one.submit(self._one_answer, method, path, data, headers).result()

    def _one_answer(self, method: str, path: str, data: bytes | None, headers: Any) -> Any:
        self.fake.advance(self.step_s)
        url = path if path.startswith(("/v1", "/openapi")) else CLOUD_URL + path
        return self.fake.call(method, url, data=data, headers=headers)
