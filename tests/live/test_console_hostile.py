"""The console in a real browser among hostile texts, and beside a hostile page."""

from __future__ import annotations

import json
import re
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import Site

from tests.support.console import HOSTILE, IGNORED, ConsoleCase, walk
from tests.support.processes import reactor

TEXT = (
    "<img src=/x onerror=alert(1)><script>alert(2)</script><a href=javascript:alert(3)>a</a>"
    " \u202egpj.exe\u2066 \x1b[31mred\x1b[0m\x07 javascript:alert(4) http://evil.example/ "
)
NAMED = (
    "name", "instance_name", "machine", "step", "username", "internal_ip", "node_processes",
    "flavor_id", "init_scripts",
)  # fmt: skip
TOLD = ("description", "status_description", "text", "url")
"""Fields of records that get hostile texts; the second ones are of any length."""
INFO = {"HDFS": {"Web": "javascript:alert(5)", TEXT: "data:text/html,<script>alert(6)</script>"},
        "YARN": {"Web": "http://10.0.0.1:8088/", "RPC": " vbscript:alert(7)"}}  # fmt: skip
ACTIVE = (
    "img:not([src='/console/icon.svg']), script:not([src]), iframe, object, embed, form[action]"
)
SIGNS = re.compile("[\u202a-\u202e\u2066-\u2069\x1b\x07]")
LONG = 1 << 20

FOREIGN = """<!doctype html><title>foreign</title><iframe src="%(console)s"></iframe>
<img src="%(api)s/clusters"><script src="%(api)s/clusters"></script>
<form method=post enctype=text/plain action="%(api)s/data-sources" target=sink>
<input name='%(head)s' value='%(tail)s'></form><iframe name=sink></iframe>"""
"""A page that frames the console, and loads answers as images and scripts; its form posts JSON."""
TRIES = 6
READ = """async (api) => {
    const JSON_TYPE = { "Content-Type": "application/json" };
    const tries = [
        ["/clusters", {}],
        ["/clusters", { mode: "no-cors" }],
        ["/clusters", { headers: { "X-Auth-Token": "t" } }],
        ["/data-sources", { method: "POST", mode: "no-cors", body: BODY }],
        ["/data-sources", { method: "POST", body: BODY, headers: JSON_TYPE }],
        ["/clusters/x", { method: "DELETE" }],
    ];
    const read = [];
    for (const [path, options] of tries) {
        read.push(await fetch(api + path, options).then((r) => r.text(), () => ""));
    }
    return read;
}""".replace("BODY", json.dumps(json.dumps({"name": "x", "type": "hdfs", "url": "hdfs:///x"})))


def poisoned(value: Any, key: str = "") -> Any:
    """A record of the API in which all texts are hostile."""
    if isinstance(value, dict):
        return {k: INFO if k == "info" and not v.get("status") else poisoned(v, k)
                for k, v in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [poisoned(each, key) for each in value]
    if not isinstance(value, str) or key not in NAMED + TOLD:
        return value
    return TEXT if key in NAMED else TEXT + "W" * 300


class TextTests(ConsoleCase):
    def poison(self, page: Any) -> None:
        """Let all answers to reading have hostile texts."""

        def answer(route: Any) -> None:
            if route.request.method != "GET" or "/watch" in route.request.url:
                return route.continue_()
            response = route.fetch()
            if response.status != 200:
                return route.fulfill(response=response)
            return route.fulfill(response=response, json=poisoned(response.json()))

        page.route(re.compile("/v1.1/demo/(?!plugins|.*/log)"), answer)

    @walk(viewport={"width": 360, "height": 780})
    def test_texts_of_others_are_shown_as_texts(self, page: Any) -> None:
        """In each view, at a phone too: no element, no link, no sign that acts, no request."""
        cluster, job = self.active(), self.job("report")
        run = self.run_job(job, cluster, svcd__fake__outcome="fail", svcd__fake__error=HOSTILE)
        self.in_reactor(lambda: self.svcd.advance(30))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        self.poison(page)
        views = {
            "": ".table",
            "clusters": ".table",
            f"clusters/{cluster}": ".gantt",
            "runs": ".grid",
            f"runs/{run}": ".log",
            "jobs": ".table",
            "jobs?show=sources": ".table",
            "jobs?show=binaries": ".table",
            f"jobs/{job}?run=1": ".sheet",
            "run": ".sheet",
            "events": ".events",
            "images": ".sheet",
        }
        for view, shown in views.items():
            page.goto(f"/console/#/{view}")
            page.locator(shown).first.wait_for()
            page.locator("main", has_text="<img src=/x").wait_for()
            self.assertEqual(page.locator(ACTIVE).count(), 0, view)
            links = page.evaluate("[...document.links].map((each) => each.protocol)")
            self.assertEqual(set(links), {"http:"}, view)
            text = page.evaluate("document.title + document.body.outerHTML")
            signs = [text[f.start() - 80 : f.end()] for f in SIGNS.finditer(text)]
            self.assertEqual(signs, [], view)
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            self.assertLessEqual(wide, 0, view)
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Find").fill("<IMG SRC=/x")
        page.get_by_role("option", name="<img src=/x").nth(2).wait_for()
        self.assertEqual(page.locator(ACTIVE).count(), 0)
        self.assertEqual(SIGNS.findall(page.locator("dialog").inner_html()), [])
        wide = page.evaluate("document.querySelector('dialog').scrollWidth - innerWidth")
        self.assertLess(wide, 0)
        page.keyboard.press("Escape")
        for view in ("launch", "nope"):
            page.goto(f"/console/#/{view}")
            page.locator("main :is(section, .empty, .sheet)").first.wait_for()
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            self.assertLessEqual(wide, 0, view)
        page.wait_for_function("document.title === 'Not found · svcd'")
        page.goto("/console/#/launch")
        page.get_by_role("button", name="Register an image").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Image of the cloud").wait_for()
        self.assertIn("<img src=/x", dialog.locator("select").inner_text())
        self.assertEqual(page.locator(ACTIVE).count(), 0)
        self.assertIsNone(SIGNS.search(page.evaluate("document.body.outerHTML")))
        page.keyboard.press("Escape")
        page.goto(f"/console/#/clusters/{cluster}")
        out = page.locator("a[target]")
        out.first.wait_for()
        self.assertEqual(out.get_attribute("href"), "http://10.0.0.1:8088/")
        self.assertEqual(out.get_attribute("rel"), "noopener noreferrer")
        self.assertEqual([each for each in asked if not each.startswith(self.base)], [])
        page.unroute_all(behavior="wait")  # else an answer comes when the page is closed

    @walk()
    def test_a_log_of_endless_lines_is_drawn_within_bounds(self, page: Any) -> None:
        """Each line of 1 MiB is cut, with its length; escape codes are shown or left out."""
        lines = [
            f"==> x application_1_1 stdout <==\n{'=' * LONG}",
            "a.b." * (LONG // 4),
            "\x1b[31mred\x1b[0m " * (LONG // 13),
            "x" * LONG,
            f"{TEXT}\x1b]0;title\x07",
        ]
        headers = {"X-Log-Start": "0", "X-Log-Offset": "9", "X-Log-Complete": "true"}
        run = self.run_job(self.job("report"), self.active())
        page.route(
            re.compile("/log"),
            lambda route: route.fulfill(body="\n".join(lines), headers=headers),
        )
        page.goto(f"/console/#/runs/{run}?all=1")
        page.locator("pre.log", has_text="\u241b]0;title\u2407").wait_for()
        drawn = page.locator("pre.log").inner_text()
        self.assertEqual(SIGNS.findall(drawn), [])
        self.assertIn(f"… ({LONG} characters)", drawn)
        self.assertIn("red red red", drawn)
        self.assertLess(len(drawn), 10_000)
        self.assertEqual(page.locator(f"main {ACTIVE}").count(), 0)
        page.get_by_label("Find in the log").fill("egpj")
        page.get_by_text("0 of 0").wait_for()
        page.get_by_label("Find in the log").fill("gpj")
        page.get_by_text("1 of 1").wait_for()
        self.assertEqual(page.locator("mark").inner_text(), "gpj")


class ForeignTests(ConsoleCase):
    """A page of another port of this host, which browsers call the same site."""

    ignored = (*IGNORED, "blocked by CORS policy", "Failed to load", "Framing", "Refused to")

    @walk()
    def test_a_foreign_page_neither_frames_nor_reads_nor_writes(self, page: Any) -> None:
        """No token is needed here, so only the daemon's refusal stands between."""
        made = '{"name": "foreign", "type": "hdfs", "url": "hdfs:///x", "description": "'

        class Foreign(Resource):
            isLeaf = True

            def render(self, request: Any) -> bytes:
                request.setHeader(b"content-type", b"text/html")
                request.setHeader(b"connection", b"close")
                return page_text.encode()

        api = f"{self.base}/v1.1/{self.svcd.tenant}"
        page_text = FOREIGN % {
            "console": f"{self.base}/console/",
            "api": api,
            "head": made.replace('"', "&quot;"),
            "tail": "&quot;}",
        }
        site = Site(Foreign())
        site.noisy = False
        port = reactor.listenTCP(0, site, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        foreign = f"http://127.0.0.1:{port.getHost().port}/"
        cluster = self.active(name="victim")
        answers: dict[str, int] = {}
        page.on("response", lambda r: answers.update({f"{r.request.method} {r.url}": r.status}))
        with page.expect_response(f"{api}/data-sources"):
            page.goto(foreign)
            page.evaluate("document.forms[0].submit()")
        self.assertEqual(page.evaluate(READ, api), [""] * TRIES)
        for frame in page.frames[1:]:
            self.assertNotIn("svcd", frame.title())
            self.assertEqual(frame.get_by_role("link").count(), 0)
        self.assertEqual(page.evaluate("document.images[0].naturalWidth"), 0)
        own = {key: status for key, status in answers.items() if api in key}
        self.assertEqual(set(own.values()), {403}, own)
        self.assertEqual(self.call("GET", "/data-sources").json["data_sources"], [])
        self.assertEqual(self.call("GET", f"/clusters/{cluster}").status, 200)
        with page.expect_popup() as opened:
            page.evaluate("(url) => { window.other = open(url); }", f"{self.base}/console/")
        opened.value.get_by_role("link", name="victim").wait_for()  # as by a link
        self.assertTrue(page.evaluate("other.closed"))  # for the foreign page there is none
        typed = page.context.new_page()
        typed.goto(f"{self.base}/console/")  # as a person types it
        typed.get_by_role("link", name="victim").wait_for()
