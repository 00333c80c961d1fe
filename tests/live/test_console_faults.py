"""The console in a real browser when something fails: a stream, an answer, a clock."""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.console import OF_HOME, ConsoleCase, Held, chosen, walk

NEGATIVE = re.compile(r"(?<!\w)[-\u2212]\s?\d+(\.\d+)? ?(s|min|h|d)\b")
LATE = re.compile(r"\b(\d+ [hd]|\d\d+ min)\b")
"""Durations that nothing in these walks reaches."""


class StreamTests(ConsoleCase):
    @walk()
    def test_a_lost_stream_goes_on_where_it_was(self, page: Any) -> None:
        """At another daemon too. The page says that it is not live, and lists nothing anew."""
        self.active(name="first")
        page.goto("/console/")
        page.get_by_text("Live", exact=True).wait_for()
        page.get_by_role("link", name="first").wait_for()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        self.in_reactor(lambda: Deferred.fromCoroutine(self.deaf()))
        page.get_by_text("Reconnecting").wait_for()
        page.get_by_text("No live connection").wait_for()
        self.in_reactor(self.svcd.restart)
        self.make(name="second")
        self.in_reactor(self.listen)
        page.get_by_role("link", name="second").wait_for()
        page.get_by_text("Live", exact=True).wait_for()
        self.assertEqual(
            {url.partition("?")[0] for url in asked if not url.endswith(OF_HOME)},
            {f"{self.base}/v1.1/demo/watch"},
        )

    @walk()
    def test_lists_that_cannot_be_read_are_read_again(self, page: Any) -> None:
        """The page says why it shows nothing, and shows the project as soon as it can."""
        fault = {"error_code": 503, "error_name": "X", "error_message": "the database is away"}
        self.make(name="first")
        page.route("**/v1.1/demo/jobs", lambda r: r.fulfill(status=503, json=fault), times=1)
        page.goto("/console/")
        page.get_by_text("the database is away").wait_for()
        page.get_by_role("link", name="first").wait_for()

    @walk()
    def test_a_reset_lists_anew_also_what_was_refused(self, page: Any) -> None:
        """A restored database may hold what the page was refused before."""
        fault = {"error_code": 403, "error_name": "FORBIDDEN", "error_message": "not for you"}
        reset = 'id: lost\nevent: reset\ndata: {"reason": "restored"}\n\n'
        page.route("**/v1.1/demo/jobs", lambda r: r.fulfill(status=403, json=fault), times=1)
        page.goto("/console/")
        page.get_by_text("not for you").wait_for()
        self.make(name="first")
        page.route(
            "**/watch?since=*",
            lambda r: r.fulfill(body=reset, content_type="text/event-stream"),
            times=1,
        )
        self.in_reactor(lambda: Deferred.fromCoroutine(self.deaf()))
        self.in_reactor(self.listen)
        page.get_by_role("link", name="first").wait_for()
        page.get_by_text("Live", exact=True).wait_for()
        self.make(name="second")
        page.get_by_role("link", name="second").wait_for()


class LostAnswerTests(ConsoleCase):
    def lose(self, page: Any, url: str, method: str, fault: Any = None) -> list[str]:
        """Let the first answer to such a request be lost. Returns the keys of all, in order.

        fault: the JSON of the 503 that comes in its place; None: nothing comes.
        """
        keys: list[str] = []

        def answer(route: Any) -> None:
            request = route.request
            if request.method != method or "dry_run" in request.url:
                return route.continue_()
            keys.append(request.headers["idempotency-key"])
            if len(keys) > 1:
                return route.continue_()
            route.fetch()
            if fault is not None:
                return route.fulfill(status=503, json=fault)
            return route.abort("connectionreset")

        page.route(url, answer)
        return keys

    @walk()
    def test_a_second_press_after_a_lost_answer_does_nothing_twice(self, page: Any) -> None:
        """It has the key of the first; or the page has seen the change, and offers no second."""
        page.goto("/console/#/launch")
        page.get_by_label("Name", exact=True).fill("etl")
        page.locator(".plan").get_by_text("Create 3 machines").wait_for()
        keys = self.lose(page, "**/clusters*", "POST")
        create = page.get_by_role("button", name="Create the cluster")
        create.click()
        page.get_by_role("alert").get_by_text("the daemon does not answer").wait_for()
        create.dblclick()
        page.locator("h1", has_text="etl").wait_for()
        self.assertEqual((len(keys), len(set(keys))), (2, 1))
        (cluster,) = self.call("GET", "/clusters").json["clusters"]
        page.locator(".facts", has_text="Active").wait_for()

        dialog = page.get_by_role("dialog")
        keys = self.lose(page, f"**/clusters/{cluster['id']}*", "PUT")
        page.get_by_role("button", name="Scale", exact=True).click()
        dialog.get_by_label("worker").fill("3")
        dialog.get_by_role("button", name="Change the size").click()
        dialog.get_by_role("alert").get_by_text("the daemon does not answer").wait_for()
        dialog.get_by_text("now 3").wait_for()  # the page has seen it, so there is no second
        self.assertTrue(dialog.get_by_role("button", name="Change the size").is_disabled())
        page.keyboard.press("Escape")
        page.locator(".facts", has_text="4 machines").wait_for()
        self.assertEqual(len(keys), 1)

        run = self.run_job(self.job("report"), cluster["id"])
        page.goto(f"/console/#/runs/{run}")
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        keys = self.lose(page, "**/execute", "POST")
        page.get_by_role("button", name="Run again", exact=True).click()
        again = dialog.get_by_role("button", name="Run again")
        again.click()
        dialog.get_by_role("alert").get_by_text("the daemon does not answer").wait_for()
        again.dblclick()
        dialog.wait_for(state="hidden")
        self.assertEqual((len(keys), len(set(keys))), (2, 1))
        self.assertEqual(len(self.call("GET", "/job-executions").json["job_executions"]), 2)

        page.goto(f"/console/#/clusters/{cluster['id']}")
        keys = self.lose(page, f"**/clusters/{cluster['id']}", "DELETE")
        page.get_by_role("button", name="Delete", exact=True).click()
        dialog.get_by_label("Type etl").fill("etl")
        page.keyboard.press("Enter")
        page.get_by_text("The cluster etl is deleted.").wait_for()
        self.assertEqual(len(keys), 1)

    @walk()
    def test_a_second_press_after_a_fault_does_nothing_twice(self, page: Any) -> None:
        """A database whose connection breaks at a commit does not tell whether it was made."""
        text = "it is not known whether the change was made"
        fault = {"error_code": 503, "error_name": "SERVICE_UNAVAILABLE", "error_message": text}
        page.goto("/console/#/jobs?show=sources&new=1")
        page.get_by_label("Name").fill("words")
        page.get_by_label("URL").fill("hdfs:///words")
        keys = self.lose(page, "**/data-sources", "POST", fault)
        create = page.get_by_role("button", name="Create the data source")
        create.click()
        page.get_by_role("alert").get_by_text(text).wait_for()
        create.click()
        page.get_by_role("link", name="New data source").wait_for()
        self.assertEqual((len(keys), len(set(keys))), (2, 1))

    @walk()
    def test_a_request_and_an_upload_without_an_answer_end(self, page: Any) -> None:
        """After 75 seconds; the page says so, and offers another try."""
        page.clock.install()
        urls = ("**/data-sources", "**/job-binary-internals/*")
        held = [Held(page, url, "POST", "PUT") for url in urls]
        page.goto("/console/#/jobs?show=sources&new=1")
        page.get_by_label("Name").fill("in")
        page.get_by_label("URL").fill("hdfs:///in")
        with page.expect_request(lambda r: r.method == "POST"):
            page.keyboard.press("Enter")
        page.clock.fast_forward(76_000)
        page.get_by_text("svcd has not answered for 75 seconds: try again").wait_for()
        self.assertTrue(page.get_by_role("button", name="Create the data").is_enabled())
        page.goto("/console/#/jobs?show=binaries&new=1")
        page.get_by_text("at most").wait_for()
        with page.expect_request(lambda r: r.method == "PUT"):
            page.get_by_label("Upload").set_input_files([chosen("a.pig")])
        page.clock.fast_forward(76_000)
        page.get_by_text("nothing has moved for 75 seconds").wait_for()
        page.get_by_role("button", name="Upload again").wait_for()
        for each in held:
            each.answer(status=503)


class ClockTests(ConsoleCase):
    settings = {"embedded.boot_s": "60"}
    speed = 0.5

    async def test_no_time_is_negative_when_the_clocks_differ(self) -> None:
        """The browser's is a year ahead or behind; the daemon's is set back in the middle."""

        jobs: list[str] = []

        def walk(page: Any, year: int) -> None:
            page.add_init_script(f"Date.now = () => Date.UTC({year}) + performance.now();")
            cluster = self.make(name=f"c{year}")
            page.goto(f"/console/#/clusters/{cluster}")
            page.locator(".bar.open").first.wait_for()
            self.check(page)
            self.in_reactor(lambda: self.svcd.advance(60))
            page.locator(".facts", has_text="Active").wait_for()
            jobs.append(jobs[0] if jobs else self.job("report"))
            run = self.run_job(jobs[0], cluster, svcd__fake__outcome="hang")
            self.in_reactor(lambda: self.svcd.set_clock(-600.0))
            self.in_reactor(lambda: self.svcd.advance(20))
            for view, shown in {
                f"runs/{run}": "on c",
                "runs": "Newest at the right",
                "": "Running jobs",
                "events": "Events",
                f"clusters/{cluster}?change=1": "Took",
            }.items():
                page.goto(f"/console/#/{view}")
                page.get_by_text(shown).first.wait_for()
                self.check(page)

        for year in (2020, 2032):
            await self.walk(lambda page, year=year: walk(page, year))

    def check(self, page: Any) -> None:
        text = page.locator("main").inner_text()
        labels = page.locator(".bar").evaluate_all("(all) => all.map((each) => each.title).join()")
        self.assertIsNone(NEGATIVE.search(text + labels), text)
        self.assertIsNone(LATE.search(text + labels), text)
        widths = page.locator(".bar, .phase").evaluate_all(
            "(all) => all.map((each) => parseFloat(each.style.width))"
        )
        self.assertTrue(all(each >= 0 for each in widths), widths)
