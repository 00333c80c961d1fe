"""The page in Chromium, at a FakeService with 1,000 clusters and 10,000 runs; a log of many lines.

First paint: from the request for the page to the first contents, without anything in the browser's
cache. A view: from the change of the address to the frame that shows it. An update: from the
request for a change, which precedes its commit, to the frame that shows it. Size: all files that
the page loads, for all views, as they come over the network.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.client import connect, request
from benchmarks.figures import Figure, quantile
from benchmarks.lives import MASTER, WORKER
from benchmarks.processes import Server
from svcd.resources._console_files import PAGE, SCRIPT, STYLE, files
from svcd.testing import FakeService

_COUNT: Final = 1000
_PAINT_MS: Final = 300.0
_VIEW_MS: Final = 150.0
_UPDATE_MS: Final = 300.0
_SIZE_KIB: Final = 70.0
_WAIT_MS: Final = 60_000
_APART_S: Final = 0.4
_PATH: Final = "/v1.1/demo"

_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_ACT: Final = """async ([address, shown]) => {
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const began = performance.now();
  ACT
  while (!document.querySelector(shown)) await frame();
  await frame();
  return performance.now() - began;
}"""
_VIEW: Final = _ACT.replace("ACT", "location.hash = address;")
_SEEN: Final = """(name) => new Promise((resolve) => {
  const look = () => {
    const found = [...document.querySelectorAll("tbody th")].some((e) => e.textContent === name);
    if (found) resolve(performance.timeOrigin + performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""


_LOG: Final = "".join(f"line {number}\n" for number in range(200_000))
_RUN: Final = "20000000-0000-4000-8000-000000000000"
_FIND: Final = """
  const field = document.querySelector("#main input[type=search]");
  field.value = "line 123456";
  field.dispatchEvent(new Event("input"));"""
_SCROLL: Final = "document.querySelector('pre.log').scrollTop = 40000;"


class NotInstalled(Exception):
    """What is missing, and the command that installs it."""


def run(quick: bool) -> list[Figure]:
    """All figures."""
    sizes = [len(files()[name].packed) for name in (PAGE, SCRIPT, STYLE, "icon.svg")]
    found = [_figure("size of the page", "KiB", [sum(sizes) / 1024], _SIZE_KIB)]
    chromium = shutil.which("chromium")
    if chromium is None:
        raise NotInstalled("Chromium is not installed: apt-get install chromium")
    count = _COUNT // 10 if quick else _COUNT
    with tempfile.TemporaryDirectory(prefix="svcd-console-") as name:
        ready = Path(name) / "console.port"
        command = ["-m", "benchmarks.console_peer", str(count), str(ready)]
        server = Server("console", command, Path(name))
        try:
            server.wait(ready.exists)
            server.port = int(ready.read_text())
            found += _figures(chromium, server, 3 if quick else 7)
        finally:
            server.stop()
    return found


def _figures(chromium: str, server: Server, rounds: int) -> Iterator[Figure]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NotInstalled("playwright is not installed: pip install playwright") from None
    base = f"http://127.0.0.1:{server.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        paints, loads = [], []
        for _ in range(rounds):
            page = browser.new_context(base_url=base).new_page()
            page.set_default_timeout(_WAIT_MS)
            began = time.perf_counter()
            page.goto("/console/")
            page.locator("tbody tr").first.wait_for()
            loads.append((time.perf_counter() - began) * 1000)
            paints.append(page.evaluate(_PAINT))
            page.context.close()
        yield _figure("first paint", "ms", paints, _PAINT_MS)
        yield _figure("first row of all clusters", "ms", loads, None)
        page = browser.new_context(base_url=base).new_page()
        page.set_default_timeout(_WAIT_MS)
        page.goto("/console/")
        page.locator("tbody tr").first.wait_for()
        yield from _views(page, rounds)
        yield from _updates(page, server, rounds)
        yield from _log(page, rounds)
        browser.close()


def _views(page: Any, rounds: int) -> Iterator[Figure]:
    homes, runs = [], []
    for _ in range(rounds):
        runs.append(page.evaluate(_VIEW, ["#/runs", ".grid"]))
        homes.append(page.evaluate(_VIEW, ["#/clusters", ".filters + .table"]))
    yield _figure("view of 1,000 clusters", "ms", homes, _VIEW_MS)
    yield _figure("view of 10,000 runs", "ms", runs, None)


def _log(page: Any, rounds: int) -> Iterator[Figure]:
    """From the change of the address, of the text to find and of the place to the frame."""
    headers = {"X-Log-Offset": str(len(_LOG)), "X-Log-Complete": "true"}
    page.route("**/log?*", lambda route: route.fulfill(body=_LOG, headers=headers))
    opened, found, scrolled = [], [], []
    for _ in range(rounds):
        page.evaluate(_VIEW, ["#/", "#clusters"])
        opened.append(page.evaluate(_VIEW, [f"#/runs/{_RUN}", "a[aria-label='Line 200000']"]))
        found.append(page.evaluate(_ACT.replace("ACT", _FIND), ["", "mark"]))
        scroll = _ACT.replace("ACT", _SCROLL)
        scrolled.append(page.evaluate(scroll, ["", "a[aria-label='Line 2001']"]))
    yield _figure("log of 200,000 lines, opened", "ms", opened, None)
    yield _figure("log of 200,000 lines, searched", "ms", found, None)
    yield _figure("log of 200,000 lines, scrolled", "ms", scrolled, None)


def _updates(page: Any, server: Server, rounds: int) -> Iterator[Figure]:
    writer = connect(server.port)
    waits = []
    group = {"name": "all", "count": 1, "flavor_id": FakeService.flavor_id}
    new = {
        "plugin_name": "fake",
        "engine_version": "0.1",
        "default_image_id": FakeService.image_id,
        "user_keypair_id": FakeService.keypair,
        "node_groups": [{**group, "node_processes": [*MASTER, *WORKER]}],
    }
    for number in range(rounds * 3):
        name = f"new-{number}"
        body = {**new, "name": name}
        page.evaluate(f"window.seen = ({_SEEN})({json.dumps(name)}), null")
        began = time.time() * 1000
        writer.exchange(request("POST", f"{_PATH}/clusters", json.dumps(body).encode()))
        waits.append(page.evaluate("window.seen") - began)
        time.sleep(_APART_S)
    writer.close()
    yield _figure("change to frame, p50", "ms", [quantile(waits, 0.5)], _UPDATE_MS)
    yield _figure("change to frame, the longest", "ms", [max(waits)], None)


def _figure(name: str, unit: str, rounds: list[float], target: float | None) -> Figure:
    return Figure(benchmark="console", name=name, unit=unit, rounds=tuple(rounds), target=target)
