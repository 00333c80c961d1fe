"""A browser at the console: Chromium, driven by Playwright.

A walk is a function of a page; it runs in the browser's thread, because Playwright's calls wait.
Errors of the page fail the test. ConsoleCase serves a FakeService, whose virtual time runs faster
than the real.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Any
from unittest import SkipTest

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import LoopingCall
from twisted.internet.threads import blockingCallFromThread, deferToThreadPool
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import TestCase

from svcd.testing import Answer, FakeService
from tests.support.api import daemon_of
from tests.support.processes import reactor

CHROMIUM = shutil.which("chromium") or ""
WAIT_MS = 10_000
_TICK_S = 0.05
MASTER = ["namenode", "resourcemanager", "historyserver", "oozie"]
IGNORED = ("the server responded with a status of", "ERR_CONNECTION", "ERR_INCOMPLETE")
"""Messages of Chromium about answers that a test provokes."""
OF_HOME = ("icon.svg", "/cloud", "/images", "/plugins", "/plugins/fake/0.1")
"""Ends of the URLs that Home asks for besides: quotas change with each cluster; first steps."""
HOSTILE = "<b onclick=alert(1)>bold</b> \u202egpj.exe javascript:alert(1)"


def chosen(name: str, data: bytes = b"A = LOAD '$INPUT';") -> dict[str, Any]:
    """A file as a browser's file chooser gets it."""
    return {"name": name, "mimeType": "text/plain", "buffer": data}


class Held:
    """Requests of a page that get no answer until `answer`."""

    def __init__(self, page: Any, url: str, *methods: str) -> None:
        self.routes: list[Any] = []
        self.methods = methods
        page.route(url, self.hold)

    def hold(self, route: Any) -> None:
        if route.request.method in self.methods:
            self.routes.append(route)
        else:
            route.continue_()

    def answer(self, **answer: Any) -> None:
        for each in self.routes:
            each.fulfill(**answer)


class _Browser:
    """One Chromium for all walks of this process, in one thread: Playwright wants no other."""

    def __init__(self) -> None:
        self._threads = ThreadPool(1, 1, "browser")
        self._playwright: Any = None
        self._chromium: Any = None
        self._threads.start()
        reactor.addSystemEventTrigger("before", "shutdown", self._stop)

    def do(self, work: Callable[..., None], *given: Any) -> Deferred[None]:
        """Call `work` in the thread of the browser."""
        done: Deferred[None] = deferToThreadPool(reactor, self._threads, work, *given)
        return done

    def context(self, **options: Any) -> Any:
        """A window without the cookies, storage and cache of others."""
        if self._chromium is None or not self._chromium.is_connected():
            from playwright.sync_api import sync_playwright

            self._playwright = self._playwright or sync_playwright().start()
            self._chromium = self._playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        return self._chromium.new_context(**options)

    def _stop(self) -> Deferred[None]:
        def end() -> None:
            self._chromium.close()
            self._playwright.stop()

        done = self.do(end) if self._chromium else succeed(None)
        return done.addBoth(lambda _: self._threads.stop())


@cache
def _browser() -> _Browser:
    return _Browser()


def walk(**context: Any) -> Callable[[Callable[[Any, Any], None]], Any]:
    """Make a test of a function of a page. context: options of Playwright's new_context."""

    def decorated(test: Callable[[Any, Any], None]) -> Any:
        @wraps(test)
        async def run(case: BrowserCase) -> None:
            await case.walk(partial(test, case), **context)

        return run

    return decorated


class BrowserCase(TestCase):
    """Walks through the pages that `base` serves. ignored: parts of errors that a test provokes."""

    base = ""
    ignored: Sequence[str] = IGNORED

    def setUp(self) -> None:
        if not CHROMIUM:
            raise SkipTest("no Chromium: install the package `chromium`")
        if importlib.util.find_spec("playwright") is None:
            raise SkipTest("no playwright: pip install playwright")
        super().setUp()

    async def walk(self, walk: Callable[[Any], None], **context: Any) -> None:
        """Run `walk` with a page at `base`. context: options of Playwright's new_context."""
        await _browser().do(self._walked, walk, context)

    def _walked(self, walk: Callable[[Any], None], context: Mapping[str, Any]) -> None:
        wrong: list[str] = []

        def told(message: Any) -> None:
            text = message.text
            if message.type == "error" and not any(each in text for each in self.ignored):
                wrong.append(text)

        window = _browser().context(base_url=self.base, **context)
        window.set_default_timeout(WAIT_MS)
        page = window.new_page()
        page.on("console", told)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"a script ran: {dialog.message}"))
        try:
            walk(page)
        finally:
            window.close()
        self.assertEqual(wrong, [])


class ConsoleCase(BrowserCase):
    """A FakeService behind a socket, and pages that show it.

    speed: virtual seconds in a real one.
    """

    timeout = 55
    speed = 8.0
    settings: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}

    def setUp(self) -> None:
        super().setUp()
        self.svcd = FakeService({"embedded.boot_s": "6", **self.settings})
        self.addCleanup(self.svcd.close)
        self.port: Any = None
        self.number = 0
        self.listen()
        self.addCleanup(self.deaf)
        clock = LoopingCall(lambda: self.svcd.advance(_TICK_S * self.speed))
        clock.clock = reactor
        clock.start(_TICK_S)
        self.addCleanup(clock.stop)

    def listen(self) -> None:
        """Serve the daemon that runs now, at the same port as before."""
        self.site = daemon_of(self.svcd).site
        self.site.noisy = False
        self.port = reactor.listenTCP(self.number, self.site, interface="127.0.0.1")
        self.number = self.port.getHost().port
        self.base = f"http://127.0.0.1:{self.number}"

    async def deaf(self) -> None:
        """Listen no more, and cut all connections."""
        port, self.port = self.port, None
        if port is not None:
            await port.stopListening()
        for each in list(self.site._channels):
            each.abort()

    def call(self, method: str, path: str, body: object = None) -> Answer:
        """A request to the API from the thread of a walk."""
        answer: Answer = blockingCallFromThread(
            reactor,
            lambda: self.svcd.call(
                method, f"/v1.1/{self.svcd.tenant}{path}", json=body, headers=self.headers
            ),
        )
        if answer.status >= 400:
            raise AssertionError(answer.body)
        return answer

    def in_reactor(self, action: Callable[[], Any]) -> Any:
        """Run `action` in the reactor's thread."""
        return blockingCallFromThread(reactor, action)

    def make(self, name: str = "etl", workers: int = 2, **more: object) -> str:
        """Create a cluster; its id."""
        group = {"flavor_id": self.svcd.flavor_id}
        body = {
            "name": name,
            "user_keypair_id": self.svcd.keypair,
            "default_image_id": self.svcd.image_id,
            "node_groups": [
                {"name": "master", "count": 1, "node_processes": MASTER, **group},
                {
                    "name": "worker",
                    "count": workers,
                    "node_processes": ["datanode", "nodemanager"],
                    **group,
                },
            ],
            "plugin_name": "fake",
            "engine_version": "0.1",
            **more,
        }
        return str(self.call("POST", "/clusters", body).json["cluster"]["id"])

    def active(self, **more: Any) -> str:
        """Create a cluster, and let the time pass that it takes; its id."""
        made = self.make(**more)
        self.in_reactor(lambda: self.svcd.advance(60))
        return made

    def job(self, name: str) -> str:
        """Create a job of one script; its id."""
        path = f"/v1.1/{self.svcd.tenant}/job-binary-internals/a.pig"
        kept = self.in_reactor(lambda: self.svcd.call("PUT", path, data=b"A = LOAD '$INPUT';"))
        url = f"internaldb://{kept.json['job_binary_internal']['id']}"
        binary = self.call("POST", "/job-binaries", {"name": f"{name}.pig", "url": url}).json
        body = {"name": name, "type": "Pig", "mains": [binary["job_binary"]["id"]]}
        return str(self.call("POST", "/jobs", body).json["job"]["id"])

    def run_job(self, job: str, cluster: str, **configs: str) -> str:
        """Execute a job; the id of the run. configs: `svcd__fake__outcome` and so on."""
        sources = [
            self.call(
                "POST",
                "/data-sources",
                {"name": f"s{n}-{len(self.svcd.requests)}", "type": "hdfs", "url": f"hdfs://x/{n}"},
            ).json["data_source"]["id"]
            for n in "io"
        ]
        given = {key.replace("__", "."): value for key, value in configs.items()}
        body = {
            "cluster_id": cluster,
            "input_id": sources[0],
            "output_id": sources[1],
            "job_configs": {"configs": given},
        }
        return str(self.call("POST", f"/jobs/{job}/execute", body).json["job_execution"]["id"])

    def change_project(self, page: Any, project: str) -> None:
        """On a page without a login."""
        page.get_by_role("button", name="Change project").click()
        page.get_by_label("Project id").fill(project)
        page.get_by_role("button", name="Show the project").click()
