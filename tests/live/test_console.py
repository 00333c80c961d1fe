"""The console in a real browser, at the in-process fake (tests/support/console.py)."""

from __future__ import annotations

import json
import re
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.console import HOSTILE, ConsoleCase

OF_HOME = ("icon.svg", "/cloud")
"""Ends of the URLs that Home asks for besides: its quotas change with each cluster."""


class ClusterTests(ConsoleCase):
    async def test_a_cluster_is_seen_as_it_is_made(self) -> None:
        """Nothing is loaded again, and nothing is asked in a loop."""

        def walk(page: Any) -> None:
            asked: list[str] = []
            page.goto("/console/")
            page.get_by_text("No clusters yet").wait_for()
            page.on("request", lambda request: asked.append(request.url))
            made = self.make()
            page.get_by_role("link", name="etl").click()
            page.locator(".bar.wait").first.wait_for()
            page.locator("h1 + .facts", has_text="Active").wait_for()
            page.wait_for_timeout(300)
            self.assertEqual(page.locator(".gantt .row .who").all_inner_texts()[3:], [
                "master-001", "worker-001", "worker-002",
            ])  # fmt: skip
            events = self.call("GET", f"/clusters/{made}/events").json["events"]
            steps = {(e["step"], e["machine"], e["began"]) for e in events if e["began"]}
            page.locator(".gantt figcaption", has_text="in all").wait_for()
            self.assertEqual(page.locator(".bar").count(), len(steps))
            self.assertGreater(page.locator(".bar.path").count(), 3)
            asked = [url.removeprefix(self.base) for url in asked if not url.endswith(OF_HOME)]
            story = f"/v1.1/demo/clusters/{made}/story?change=0"
            self.assertEqual(
                [url for url in asked if url != story], [f"/v1.1/demo/clusters/{made}/events"]
            )
            page.wait_for_timeout(2500)
            self.assertLess(asked.count(story), 9)

        await self.walk(walk)

    async def test_a_failed_step_is_shown_with_code_and_advice(self) -> None:
        """Bold in the drawing, and as text; markup in it is text."""
        message = json.dumps({"forbidden": {"message": f"Quota exceeded {HOSTILE}"}})
        self.svcd.faults.add(
            where="compute", method="POST", path="servers", status=403, body=message
        )

        def walk(page: Any) -> None:
            page.goto(f"/console/#/clusters/{self.make(description=HOSTILE[:30])}")
            page.get_by_role("alert").get_by_text("QUOTA").first.wait_for()
            page.locator(".bar.failed").first.wait_for()
            text = page.locator(".failures").inner_text()
            self.assertIn("QUOTA", text)
            self.assertIn("create server on master-001, worker-001, worker-002, 3 times", text)
            self.assertIn("<b onclick", page.locator("main").inner_text())
            self.assertNotIn("\u202e", page.locator("main").inner_text())
            self.assertEqual(page.locator("main b").count(), 0)
            page.goto("/console/#/")
            page.locator(".attention .card", has_text="QUOTA").wait_for()

        await self.walk(walk)

    async def test_scale_and_delete_ask_for_the_name_and_act_once(self) -> None:
        """A double press sends one request; Escape and the back button do what they should."""

        def walk(page: Any) -> None:
            writes: list[str] = []
            made = self.active(workers=3)

            def note(request: Any) -> None:
                if request.method in ("PUT", "DELETE") and "dry_run" not in request.url:
                    writes.append(request.method)

            page.on("request", note)
            page.goto(f"/console/#/clusters/{made}")
            page.get_by_role("button", name="Scale", exact=True).click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("worker").fill("2")
            self.assertIn("svcd cluster scale etl worker=2", dialog.inner_text())
            act = dialog.get_by_role("button", name="Change the size")
            self.assertTrue(act.is_disabled())
            dialog.get_by_label("Type etl").fill("etl")
            act.dblclick()
            page.locator(".facts", has_text="3 machines").wait_for()
            self.assertEqual(writes, ["PUT"])
            delete = page.get_by_role("button", name="Delete", exact=True)
            delete.click()
            dialog.get_by_label("Type etl").wait_for()
            page.keyboard.press("Escape")
            dialog.wait_for(state="hidden")
            self.run_job(self.job("count"), made, svcd__fake__outcome="hang")
            delete.click()
            dialog.get_by_text("1 run has not ended and will be killed").wait_for()
            dialog.get_by_label("Type etl").fill("etl")
            page.keyboard.press("Enter")
            told = page.get_by_text("The cluster etl is deleted.")
            told.wait_for()
            self.assertEqual(writes, ["PUT", "DELETE"])
            page.get_by_text("No clusters yet").wait_for()
            self.assertEqual(page.evaluate("document.activeElement.id"), "main")
            page.get_by_role("link", name="Runs").first.click()
            told.wait_for(state="hidden")
            page.goto("/console/#/clusters/6b0c1cc7-0f4c-4f5e-8c9c-000000000000")
            page.get_by_text("This cluster does not exist").wait_for()
            self.assertEqual(page.title(), "Cluster · svcd")
            asked = page.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
            self.assertFalse([url for url in asked if "000000000000/events" in url])
            page.get_by_role("link", name="See all clusters").press("Enter")
            page.get_by_text("No clusters yet").wait_for()
            told.wait_for(state="hidden")

        await self.walk(walk)

    async def test_a_lost_stream_goes_on_where_it_was(self) -> None:
        """At another daemon too. The page says that it is not live, and lists nothing anew."""

        def walk(page: Any) -> None:
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

        await self.walk(walk)

    async def test_lists_that_cannot_be_read_are_read_again(self) -> None:
        """The page says why it shows nothing, and shows the project as soon as it can."""
        fault = {"error_code": 503, "error_name": "X", "error_message": "the database is away"}

        def walk(page: Any) -> None:
            self.make(name="first")
            page.route("**/v1.1/demo/jobs", lambda r: r.fulfill(status=503, json=fault), times=1)
            page.goto("/console/")
            page.get_by_text("the database is away").wait_for()
            page.get_by_role("link", name="first").wait_for()

        await self.walk(walk)


class RunTests(ConsoleCase):
    async def test_a_job_is_followed_cancelled_and_run_again(self) -> None:
        """And one that fails says why."""

        def walk(page: Any) -> None:
            cluster, job = self.active(), self.job("report")
            failed = self.run_job(
                job, cluster, svcd__fake__outcome="fail", svcd__fake__error=f"ERROR 1: {HOSTILE}"
            )
            asked: list[str] = []
            page.on("request", lambda r: r.url.endswith("/story") and asked.append(r.url))
            page.goto(f"/console/#/runs/{failed}")
            page.get_by_role("alert").get_by_text("ERROR 1: <b onclick").wait_for()
            page.get_by_role("row", name="job-node").wait_for()
            page.locator(".log").get_by_text("<b onclick").wait_for()
            page.get_by_text("1 line of Oozie, Hadoop, Pig, Spark and Java is left out").wait_for()
            page.get_by_label("Everything").check()
            page.get_by_label("Find in the log").fill("submitted")
            page.get_by_text(re.compile(r"1 of \d+ lines")).wait_for()
            self.assertIn("find=submitted", page.url)
            slow = self.run_job(job, cluster, svcd__fake__run_s="4000")
            page.goto(f"/console/#/runs/{slow}")
            page.locator(".facts", has_text="RUNNING").wait_for()
            page.get_by_role("button", name="Cancel", exact=True).click()
            page.get_by_role("button", name="Cancel the run").dblclick()
            page.locator(".facts", has_text="KILLED").wait_for()
            page.wait_for_timeout(2500)  # the page asks after changes of the run only
            for run in (failed, slow):
                self.assertLess(sum(run in url for url in asked), 5)
            page.get_by_role("button", name="Run again", exact=True).click()
            page.get_by_role("dialog").get_by_role("button", name="Run again").dblclick()
            page.locator(".facts", has_text="RUNNING").wait_for()
            self.assertNotIn(slow, page.url)
            page.get_by_role("navigation").get_by_role("link", name="Runs").click()
            page.locator("h1", has_text="Runs 3").wait_for()
            self.assertEqual(page.locator(".run").count(), 3)
            page.get_by_label("Status").select_option("KILLED")
            page.locator("h1", has_text="Runs 2").wait_for()
            page.reload()
            page.locator("h1", has_text="Runs 2").wait_for()

        await self.walk(walk)

    async def test_every_view_fits_a_phone_in_both_colours(self) -> None:
        """And long names do not push the page wider."""

        def walk(page: Any) -> None:
            cluster = self.active(name="a-name-that-is-as-long-as-the-names-can-be-in-here")
            run = self.run_job(self.job("j" * 46), cluster)
            self.call(
                "PUT",
                f"/clusters/{cluster}",
                {"resize_node_groups": [{"name": "worker", "count": 3}]},
            )
            self.in_reactor(lambda: self.svcd.advance(20))
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                views = ["", f"clusters/{cluster}", "launch", "images", "runs", f"runs/{run}"]
                for view in [*views, "nope"]:
                    page.goto(f"/console/#/{view}")
                    page.locator("main :is(section, .empty, .table, .plan)").first.wait_for()
                    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    self.assertLessEqual(wide, 0, (scheme, view))
            self.assertEqual(page.title(), "Not found · svcd")

        await self.walk(walk, viewport={"width": 360, "height": 780})


class LoginTests(ConsoleCase):
    settings = {"auth.mode": "keystone"}

    async def test_a_pasted_token_opens_the_project_for_this_tab(self) -> None:
        """A wrong one is refused with the reason; the view of the address follows."""
        token = self.svcd.token()

        def walk(page: Any) -> None:
            page.goto("/console/#/runs")
            page.get_by_role("button", name="Use a token").click()
            page.get_by_label("Project id").fill("demo")
            page.get_by_label("Token").fill("wrong")
            page.get_by_role("button", name="Log in").click()
            page.locator("#fault-token", has_text="the token is not valid").wait_for()
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.get_by_text("No job has run yet").wait_for()
            page.reload()
            page.get_by_text("No job has run yet").wait_for()
            page.get_by_text("Live", exact=True).wait_for()
            self.assertEqual(page.evaluate("localStorage.length + document.cookie.length"), 0)
            other = page.context.new_page()
            other.goto("/console/")
            other.get_by_label("Password").wait_for()

        await self.walk(walk)


class ModuleTests(ConsoleCase):
    """The pure modules, as the browser runs them."""

    async def test_the_decisions_of_the_page(self) -> None:
        """Literal values; one browser for all of them."""

        def walk(page: Any) -> None:
            page.goto("/console/")

            def of(module: str, expression: str) -> Any:
                return page.evaluate(
                    f"async () => {{ const m = await import('/console/{module}.js');"
                    f" return {expression}; }}"
                )

            self.assertEqual(
                of("time", "[-5, 400, 59_400, 61_000, 3_700_000, 90_000_000].map(m.duration)"),
                ["0.0 s", "0.4 s", "59 s", "1 min 1 s", "1 h 2 min", "1 d 1 h"],
            )
            self.assertEqual(of("time", "m.ago(m.now() + 3_600_000)"), "just now")
            self.assertEqual(of("time", "m.moment('2026-01-01 00:00:05.078125')"), 1767225605078)
            self.assertEqual(of("time", "m.moment('nonsense')"), None)
            self.assertEqual(
                of("time", "(m.learn('Thu, 01 Jan 2026 00:00:00 GMT'), m.ago(1767225500000))"),
                "1 min ago",
            )
            self.assertEqual(
                of("text", "m.plain('a\\u001b[31mb\\u202ec\\r\\n')"), "a\u241b[31mb⟨U+202E⟩c\n"
            )
            self.assertEqual(
                of(
                    "text",
                    "['javascript:alert(1)', 'data:text/html,x', 'hdfs://a/b', 'x',"
                    " 'http://a/b', 'HTTPS://c'].map(m.pageAddress)",
                ),
                [None, None, None, None, "http://a/b", "https://c/"],
            )
            self.assertEqual(of("text", 'm.quoted("it\'s")'), "'it'\\''s'")
            drawn = of("gantt", f"m.drawing({json.dumps(CHANGE)}, Date.UTC(2026, 0, 1, 0, 0, 9))")
            self.assertEqual(
                [(row["machine"], row["lanes"], len(row["bars"])) for row in drawn["rows"]],
                [("a", 1, 1), ("b", 2, 2)],
            )
            self.assertEqual(
                [
                    (b["step"], b["begin"] - drawn["start"], b["end"] - drawn["start"], b["open"])
                    for b in drawn["rows"][1]["bars"]
                ],
                [("boot", 2000, 9000, True), ("log in", 3000, 4000, False)],
            )
            self.assertEqual([step["step"] for step in drawn["path"]], ["create", "boot"])
            self.assertEqual((drawn["settled"], drawn["end"] - drawn["start"]), (False, 9000))
            self.assertEqual(of("gantt", "m.marks(9000, 5)"), [0, 2000, 4000, 6000, 8000])

        await self.walk(walk)


def _step(step: str, machine: str, began: int, ended: int | None) -> dict[str, object]:
    def at(second: int) -> str:
        return f"2026-01-01 00:00:{second:02}.000000"

    times = {"began": at(began), "ended": None if ended is None else at(ended)}
    return {"step": step, "machine": machine, **times}


CHANGE = {
    "generation": 1,
    "began": "2026-01-01 00:00:00.000000",
    "ended": None,
    "phases": [],
    "steps": [
        _step("create", "a", 0, 2),
        _step("boot", "b", 2, None),
        _step("log in", "b", 3, 4),
    ],
    "longest_path": [0, 1],
    "faults": [],
}
"""A change that goes on: the boot of b has not ended, and a step of b began meanwhile."""
