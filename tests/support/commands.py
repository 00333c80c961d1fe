"""The commands of `svcd` in this process, alone or against a FakeService on a port."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import followed_execution, waiting
from svcd.cli.main import main
from svcd.testing import CLOUD_URL, FakeService, FakeServiceMixin
from tests.support.fakes import Api

PLACES = ("--input", "hdfs:///in", "--output", "hdfs:///out")

_HOP = frozenset({"content-length", "transfer-encoding", "connection", "host", "date", "server"})


@frozen(kw_only=True)
class Said:
    """How a command ended, and what it has printed."""

    code: int
    out: str
    err: str


def svcd(*arguments: str, stdout: IO[str] | None = None) -> Said:
    """Run a command to its end."""
    out, err = stdout or io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    said = out.getvalue() if isinstance(out, io.StringIO) else ""
    return Said(code=code, out=said, err=err.getvalue())


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
        more = ["--state-dir", str(self._folder)] if known else []
        at = arguments.index("--") if "--" in arguments else len(arguments)
        return svcd(*arguments[:at], *more, *arguments[at:], stdout=stdout)

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
                self.send_response_only(answer.status)
                self.send_header("Date", formatdate(shown.fake.clock.seconds(), usegmt=True))
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


class RunCase(FakeServiceMixin, SynchronousTestCase):
    """A cluster `first` that runs jobs, a folder for files, and the commands against them."""

    def setUp(self) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "SVCD_"))}
        self.patch(os, "environ", kept)
        self.patch(followed_execution, "_LOOK_S", 0.0)
        self.patch(waiting, "_LOOK_S", 0.0)
        self.fake = self.fake_service()
        self.api = Api(self.fake)
        self.cluster_id = self.api.active_cluster("first")
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.shown = Shown(self.fake, self.folder / "state")
        self.addCleanup(self.shown.stop)

    def done(self, *arguments: str) -> Said:
        """A command that must end well."""
        said = self.shown.run(*arguments)
        self.assertEqual(said.code, 0, said)
        return said

    def refused(self, code: int, *arguments: str) -> str:
        """The one line of a command that must end with `code` and print nothing."""
        said = self.shown.run(*arguments)
        self.assertEqual((said.code, said.out, said.err.count("\n")), (code, "", 1), said)
        return said.err

    def file(self, name: str, content: str | bytes = "-- does nothing\n") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def pig(self, *more: str, content: str = "-- does nothing\n") -> Said:
        """`svcd run` of a Pig script on the cluster."""
        file = self.file("count.pig", content)
        return self.shown.run("run", file, "--on", "first", *PLACES, *more)

    def executions(self) -> list[Any]:
        return list(self.api.get("/job-executions")["job_executions"])
