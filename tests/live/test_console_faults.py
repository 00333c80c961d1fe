"""The console in a real browser when something fails: a machine, an answer, a clock."""

from __future__ import annotations

import re
from typing import Any

from svcd.testing import CLOUD_URL, FaultRule
from tests.support.console import ConsoleCase

DISK = "no space left on device"
NEGATIVE = re.compile(r"(?<!\w)[-\u2212]\s?\d+(\.\d+)? ?(s|min|h|d)\b")
LATE = re.compile(r"\b(\d+ [hd]|\d\d+ min)\b")
"""Durations that nothing in these walks reaches."""


class MachineTests(ConsoleCase):
    async def test_a_provision_fails_on_one_machine(self) -> None:
        """Which machine, at which step, code and cause; mended, it is tried again."""
        seen: list[str] = []
        full = [True]

        def third(where: str, method: str, path: str) -> FaultRule | None:
            address, _, command = path.partition(" ")
            if where != "ssh":
                return None
            if address not in seen:
                seen.append(address)
            if full and seen.index(address) == 2 and "cp processes running" in command:
                return FaultRule(where="ssh", status=1, body=DISK)
            return None

        self.svcd.faults.listen(third)

        def walk(page: Any) -> None:
            made = self.make()
            page.goto(f"/console/#/clusters/{made}")
            page.locator(".facts", has_text="Error").wait_for()
            groups = self.call("GET", f"/clusters/{made}").json["cluster"]["node_groups"]
            machines = [each for group in groups for each in group["instances"]]
            (ill,) = (m["instance_name"] for m in machines if m["management_ip"] == seen[2])
            alert = page.get_by_role("alert").inner_text()
            for part in ("COMMAND_FAILED", f"start on {ill}", DISK):
                self.assertIn(part, alert)
            page.locator(".failures li").wait_for()
            (failure,) = page.locator(".failures li").all_inner_texts()
            self.assertIn(f"start on {ill.removeprefix('etl-')}", failure)
            self.assertIn(DISK, failure)
            bar = page.locator(".bar.failed")
            self.assertEqual(bar.count(), 1)
            self.assertIn(f"on {ill}", bar.get_attribute("aria-label"))
            bar.click()
            self.assertIn("failed COMMAND_FAILED", page.locator(".detail").inner_text())
            self.assertEqual(
                page.locator("tr", has_text="unwell").locator("th").all_inner_texts(), [ill]
            )
            full.clear()
            page.get_by_role("button", name="Try again").click()
            page.get_by_role("dialog").get_by_role("button", name="Try again").dblclick()
            page.locator(".facts", has_text="Active").wait_for()
            self.assertEqual(page.get_by_role("alert").count(), 0)
            self.assertEqual(page.locator("tr", has_text="unwell").count(), 0)

        await self.walk(walk)


class UnwellTests(ConsoleCase):
    async def test_an_unwell_cluster_from_its_first_sign_to_its_end(self) -> None:
        """A server is deleted in the cloud: Home tells, a button replaces it, the cluster goes."""

        def cloud_deletes(server_id: str) -> None:
            path = f"{CLOUD_URL}/compute/v2.1/servers/{server_id}"
            answer = self.svcd.call("DELETE", path, headers={"X-Auth-Token": self.svcd.token()})
            self.assertEqual(answer.status, 204)
            self.svcd.advance(400)  # until the next look at the health

        def walk(page: Any) -> None:
            made = self.active()
            groups = self.call("GET", f"/clusters/{made}").json["cluster"]["node_groups"]
            lost = groups[1]["instances"][-1]
            page.goto("/console/")
            page.get_by_text("All well").wait_for()
            self.in_reactor(lambda: cloud_deletes(lost["server_id"]))
            page.locator(".attention .card", has_text=lost["instance_name"]).click()
            page.locator("h1", has_text="etl").wait_for()
            alert = page.get_by_role("alert")
            alert.get_by_text("Try again replaces a lost worker").wait_for()
            self.assertNotIn("empty resize", alert.inner_text())
            page.locator("tr", has_text=lost["instance_name"]).get_by_text("DELETED").wait_for()
            page.get_by_role("button", name="Try again").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_text("replaces the machines that the cloud has no more").wait_for()
            dialog.get_by_role("button", name="Try again").dblclick()
            alert.wait_for(state="hidden")
            page.locator(".facts", has_text="Active").filter(has_text="3 machines").wait_for()
            page.get_by_role("button", name="Delete", exact=True).click()
            dialog.get_by_label("Type etl").fill("etl")
            page.keyboard.press("Enter")
            page.get_by_text("The cluster etl is deleted.").wait_for()

        await self.walk(walk)


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

    async def test_a_second_press_after_a_lost_answer_does_nothing_twice(self) -> None:
        """It has the key of the first; or the page has seen the change, and offers no second."""

        def walk(page: Any) -> None:
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

        await self.walk(walk)

    async def test_a_second_press_after_a_fault_does_nothing_twice(self) -> None:
        """A database whose connection breaks at a commit does not tell whether it was made."""
        text = "it is not known whether the change was made"
        fault = {"error_code": 503, "error_name": "SERVICE_UNAVAILABLE", "error_message": text}

        def walk(page: Any) -> None:
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

            run = self.run_job(self.job("report"), self.make(name="etl"))
            page.goto(f"/console/#/runs/{run}")
            keys = self.lose(page, "**/execute", "POST", fault)
            page.get_by_role("button", name="Run again", exact=True).click()
            dialog = page.get_by_role("dialog")
            again = dialog.get_by_role("button", name="Run again")
            again.click()
            dialog.get_by_role("alert").get_by_text(text).wait_for()
            again.click()
            dialog.wait_for(state="hidden")
            self.assertEqual((len(keys), len(set(keys))), (2, 1))
            self.assertEqual(len(self.call("GET", "/job-executions").json["job_executions"]), 2)

        await self.walk(walk)


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
                f"clusters/{cluster}": "in all",
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
