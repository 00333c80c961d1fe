"""The views of jobs, data sources and binaries in a real browser."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

from svcd.cli.job_files import with_digest
from tests.support.console import HOSTILE, ConsoleCase, chosen, walk

SCRIPT: bytes = chosen("")["buffer"]


class JobsTests(ConsoleCase):
    settings = {"server.max_binary_bytes": "1000"}

    def drop(self, page: Any, name: str) -> None:
        """Drop a file where the page takes it; beside that place nothing happens."""
        data = page.evaluate_handle(
            "(name) => { const all = new DataTransfer();"
            " all.items.add(new File(['A = 1;'], name)); return all; }",
            name,
        )
        page.locator(".drop").dispatch_event("drop", {"dataTransfer": data})
        page.get_by_role("row", name=name).wait_for()
        beside = "document.body.dispatchEvent(new Event('drop', {bubbles: true, cancelable: true}))"
        self.assertFalse(page.evaluate(beside), "the browser would show the file")

    def crowd(self, page: Any, like: str) -> None:
        """Let the API answer with 134 clusters, four of which have 400 events each."""
        (one,) = (c for c in self.call("GET", "/clusters").json["clusters"] if c["id"] == like)
        event = self.call("GET", f"/clusters/{like}/events").json["events"][0]
        clusters = [one | {"id": f"c{n}", "name": f"c{n}"} for n in range(134)]
        events = [event | {"number": n, "text": f"{n}"} for n in range(400)]
        page.route("**/v1.1/demo/clusters", lambda r: r.fulfill(json={"clusters": clusters}))
        page.route("**/clusters/*/events", lambda r: r.fulfill(json={"events": []}))
        page.route(
            re.compile("/clusters/c(0|1|2|120)/events"),
            lambda r: r.fulfill(json={"events": events}),
        )

    @walk()
    def test_a_job_is_made_of_files_and_run(self, page: Any) -> None:
        """Each refusal stands beside its field, nothing typed is lost, two presses act once."""
        writes: list[str] = []
        page.on("request", lambda r: r.method != "GET" and writes.append(r.method))
        cluster = self.active()
        page.goto("/console/#/jobs")
        page.get_by_text("No jobs yet").wait_for()
        page.get_by_role("link", name="Data sources").click()
        page.get_by_role("link", name="New data source").click()
        page.get_by_label("Name").fill("in put")
        page.get_by_label("Type").select_option("objstore")
        page.get_by_label("URL").fill("objstore://box/in")
        page.get_by_role("button", name="Create the data source").click()
        page.get_by_text('got "in put"').wait_for()
        self.assertEqual(page.get_by_label("Name").get_attribute("aria-invalid"), "true")
        self.assertEqual(page.evaluate("document.activeElement.value"), "in put")
        page.get_by_label("Name").fill("in")
        page.keyboard.press("Enter")
        page.locator(".field", has_text="User").get_by_text("needs user and password").wait_for()
        page.get_by_role("link", name="Jobs").last.click()
        page.go_back()
        self.assertEqual(page.get_by_label("URL").input_value(), "objstore://box/in")
        page.get_by_label("Type").select_option("hdfs")
        page.get_by_label("URL").fill("hdfs:///in")
        page.get_by_label("Description").fill(HOSTILE)
        command = page.locator(".sheet .foot .cli code").text_content()
        self.assertTrue(command.startswith("svcd source add in hdfs:///in --description"))
        page.get_by_role("button", name="Create the data source").dblclick()
        page.get_by_role("row", name="in hdfs hdfs:///in").wait_for()
        self.assertEqual(writes, ["POST"] * 3)
        self.call("POST", "/data-sources", {"name": "out", "type": "hdfs", "url": "hdfs:///out"})

        page.goto("/console/#/jobs?new=1")
        page.get_by_label("Name").fill("report")
        page.get_by_role("button", name="Create the job").click()
        mains = page.get_by_role("group", name="Main binaries")
        mains.get_by_text("a Pig job needs at least one main binary").wait_for()
        self.assertEqual(page.get_by_label("Name").input_value(), "report")
        page.get_by_text("at most 1000 bytes each").first.wait_for()
        mains.get_by_label("Upload").set_input_files(
            [chosen("_report.pig"), chosen("large.pig", b"x" * 1001)]
        )
        page.get_by_text("svcd takes at most 1000 bytes").wait_for()
        page.get_by_text("Uploaded").wait_for()
        self.assertTrue(mains.get_by_label("report.pig").first.is_checked())
        self.assertIn(
            '"mains":["report.pig"]', page.locator(".sheet .foot .cli code").text_content()
        )
        (binary,) = self.call("GET", "/job-binaries").json["binaries"]
        self.assertEqual(binary["file_name"], "_report.pig")
        page.get_by_role("button", name="Create the job").dblclick()
        page.locator("h1", has_text="report").wait_for()
        self.assertEqual(len(self.call("GET", "/jobs").json["jobs"]), 1)

        page.get_by_role("link", name="Run it").click()
        page.get_by_label("Cluster").select_option("etl")
        page.get_by_label("Input").fill("in")
        page.get_by_label("Output").fill("in")
        page.locator("summary", has_text="More").click()
        page.get_by_label("Parameters").fill("DAY=1=2\n A=")
        check = page.get_by_role("button", name="Check only")
        check.click()
        page.locator(".field", has_text="Output").get_by_text("are the same folder").wait_for()
        page.get_by_label("Output").fill("out")
        check.click()
        page.locator(".field", has_text="Parameters").get_by_text("cannot be written").wait_for()
        page.get_by_label("Parameters").fill("DAY=1=2\nA=")
        check.click()
        page.get_by_text("svcd would accept this").wait_for()
        self.assertEqual(self.call("GET", "/job-executions").json["job_executions"], [])
        page.get_by_label("Options").fill("dfs.replication=1")
        command = (
            "svcd run _report.pig --on etl --type Pig --input hdfs:///in --output"
            " hdfs:///out -c dfs.replication=1 -p DAY=1=2 -p A="
        )
        self.assertEqual(page.locator(".sheet .foot .cli code").text_content(), command)
        page.get_by_role("button", name="Run the job").dblclick()
        page.locator(".facts", has_text="on etl").wait_for()
        (run,) = self.call("GET", "/job-executions").json["job_executions"]
        self.assertEqual(
            (run["cluster_id"], run["job_configs"]),
            (
                cluster,
                {
                    "configs": {"dfs.replication": "1"},
                    "args": [],
                    "params": {"DAY": "1=2", "A": ""},
                },
            ),
        )

    @walk()
    def test_events_of_everything_are_seen_as_they_come(self, page: Any) -> None:
        """The address keeps the filters, texts of tenants are text, the list is bounded."""
        message = json.dumps({"forbidden": {"message": f"Quota exceeded {HOSTILE}"}})
        cluster, job = self.active(), self.job("report")
        page.goto("/console/#/events")
        page.locator(".events", has_text="etl Active").wait_for()
        made = self.run_job(
            job, cluster, svcd__fake__outcome="fail", svcd__fake__error=f"ERROR 1: {HOSTILE}"
        )
        failed = page.locator(".events li", has_text="ERROR 1: <b onclick")
        failed.wait_for()
        self.svcd.faults.add(
            where="compute", method="POST", path="servers", status=403, body=message
        )
        self.make(name="poor")
        page.locator(".events li", has_text="poor").filter(has_text="QUOTA").first.wait_for()
        row = page.locator(".events li", has_text="etl Spawning")
        self.assertRegex(row.inner_text(), r"\bdone\n+etl Spawning [\d.]+ s$")
        page.get_by_label("Failures only").check()
        page.locator(".events", has_text="Active").wait_for(state="detached")
        page.locator(".filters select").first.select_option("runs")
        page.locator("h1", has_text="Events 1").wait_for()
        page.locator(".filters select").last.select_option("poor")
        page.get_by_text("No event fits the filters").wait_for()
        page.go_back()
        page.get_by_label("Time").select_option("the last hour")
        page.locator("h1", has_text="Events 1").wait_for()
        self.assertIn("time=1", page.url)
        page.goto("/console/#/events?from=2001-01-01&to=2001-02-01T00:00Z")
        page.get_by_text("No event fits the filters").wait_for()
        self.assertEqual(
            page.get_by_label("Time").locator("option:checked").inner_text(),
            "2001-01-01 to 2001-02-01T00:00Z",
        )
        page.go_back()
        page.reload()
        failed.get_by_role("link", name="report").click()
        page.locator("section", has_text="hdfs://x/i").first.wait_for()
        page.get_by_role("link", name="Run with changes").click()
        page.get_by_label("Options").fill("svcd.fake.outcome=ok")
        self.assertEqual(page.locator("select").first.input_value(), cluster)
        self.assertIn(f"like={made}", page.url)
        page.get_by_role("link", name="Home").click()
        cards = page.locator(".card")
        page.locator(".card", has_text="QUOTA").wait_for()
        self.assertEqual(
            [each.split("\n")[0] for each in cards.all_inner_texts()], ["Error", "Failed"]
        )
        self.assertEqual(page.locator("main b").count(), 0)
        page.locator(".card", has_text="QUOTA").click()
        step = "create server on master-001, worker-001, worker-002, 3 times"
        page.locator(".failures", has_text="QUOTA").filter(has_text=step).wait_for()

        self.crowd(page, cluster)
        page.goto("/console/#/events")
        page.reload()
        page.get_by_text("The newest 500 of 901").wait_for()
        page.get_by_role("button", name="Read more").click()
        page.get_by_text("The newest 500 of 1201").wait_for()
        self.assertEqual(page.locator(".events li").count(), 500)

        (run,) = self.call("GET", "/job-executions").json["job_executions"]
        wait = {"code": "NO_ENGINE", "step": "submit", "text": "the engine is away"}
        wait |= {"since": "2026-01-01T00:00:00", "until": None}
        waits = run | {"id": "w", "info": {"status": "RUNNING", "waiting": wait}}
        later = run | {"id": "later", "created_at": "2099-01-01T00:00:00"}
        runs = {"job_executions": [run, waits, later]}
        page.route("**/job-executions", lambda r: r.fulfill(json=runs))
        page.goto("/console/#/")
        page.reload()
        cards.get_by_text("the engine is away").wait_for()
        heads = [each.split("\n")[0] for each in cards.all_inner_texts()]
        self.assertEqual(heads, ["Failed", "waits"])
        self.assertEqual(page.locator(".card.wait .state.wait").count(), 1)

    @walk()
    def test_deleting_asks_for_the_name_and_says_what_uses_it(self, page: Any) -> None:
        """A binary goes with its data. A file whose name is taken becomes another binary.

        A file may be dropped, too.
        """
        self.job("report")
        page.goto("/console/#/jobs?show=binaries&new=1")
        page.get_by_label("Upload").set_input_files([chosen("report.pig")])
        other = with_digest("report.pig", sha256(SCRIPT).hexdigest())
        page.get_by_text(f"as {other}: the project has another report.pig").wait_for()
        self.drop(page, "dropped.pig")
        dialog = page.get_by_role("dialog")
        for name, kept in (("report.pig", 3), (other, 2), ("dropped.pig", 1)):
            page.get_by_role("button", name=f"Delete {name}").click()
            dialog.get_by_label(f"Type {name}").fill(name)
            self.assertEqual(dialog.locator(".cli code").text_content(), f"svcd binary rm {name}")
            dialog.get_by_role("button", name="Delete the binary").click()
            if kept == 3:
                dialog.get_by_role("alert").filter(has_text="report").wait_for()
                page.keyboard.press("Escape")
            dialog.wait_for(state="hidden")
            data = self.call("GET", "/job-binary-internals").json["binaries"]
            self.assertEqual(len(data), kept, name)
        long = {"name": "deep", "type": "hdfs", "url": f"hdfs:///{'d/' * 500}end"}
        self.call("POST", "/data-sources", long)
        page.get_by_role("link", name="Data sources 1").click()
        page.get_by_role("button", name="Show all 1011 characters").click()
        page.get_by_text("d/end").wait_for()
        page.get_by_role("link", name="Jobs 1").click()
        page.get_by_label("Find a job").fill("rep")
        page.get_by_role("link", name="report").click()
        page.get_by_role("button", name="Delete").click()
        dialog.get_by_label("Type report").fill("report")
        page.keyboard.press("Enter")
        page.get_by_text("The job report is deleted.").wait_for()
        page.get_by_text("No jobs yet").wait_for()


class CorrectionTests(ConsoleCase):
    """A data engineer's program with a mistake: from the failed run to the one that succeeds."""

    @walk()
    def test_a_corrected_program(self, page: Any) -> None:
        """As with `svcd run`: another binary and another job, and the same content only once."""
        fixed = b"A = LOAD '$INPUT' AS (line);"
        other = with_digest("report.pig", sha256(fixed).hexdigest())

        def names(path: str) -> list[str]:
            rows: list[dict[str, Any]] = self.call("GET", path).json["binaries"]
            return sorted(each["name"] for each in rows)

        failed = self.run_job(
            self.job("report"),
            self.active(),
            svcd__fake__outcome="fail",
            svcd__fake__error="ERROR 1200: mismatched input",
        )
        page.goto("/console/")
        page.locator(".card", has_text="ERROR 1200: mismatched input").click()
        page.get_by_role("alert").get_by_text("ERROR 1200: mismatched input").wait_for()
        page.locator(".facts").get_by_role("link", name="job").click()
        page.get_by_role("link", name="New from this").click()
        mains = page.get_by_role("group", name="Main binaries")
        self.assertTrue(mains.get_by_label("report.pig").first.is_checked())
        file = chosen("report.pig", fixed)
        mains.get_by_label("Upload").set_input_files([file])
        page.get_by_text(f"as {other}: the project has another report.pig").wait_for()
        self.assertTrue(mains.get_by_label(other).first.is_checked())
        self.assertFalse(mains.get_by_label("report.pig", exact=True).is_checked())
        mains.get_by_label("Upload").set_input_files([file])
        page.get_by_text("Uploaded").nth(1).wait_for()
        self.assertEqual(names("/job-binaries"), [other, "report.pig"])
        self.assertEqual(names("/job-binary-internals"), ["a.pig", other])
        page.get_by_role("button", name="Create the job").click()
        page.locator("h1", has_text="report-2").wait_for()
        jobs = self.call("GET", "/jobs").json["jobs"]
        made = {each["name"]: [b["name"] for b in each["mains"]] for each in jobs}
        self.assertEqual(made, {"report": ["report.pig"], "report-2": [other]})

        page.get_by_text("Use a file of your computer").click()
        page.get_by_text("svcd run").filter(has_text="--on etl --type Pig --input PATH").wait_for()
        options = page.get_by_label("Options: NAME=VALUE, one on a line")
        self.assertIn("svcd.fake.outcome=fail", options.input_value())
        options.fill("")
        page.get_by_role("button", name="Run the job").click()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        runs = self.call("GET", "/job-executions").json["job_executions"]
        before, after = sorted(runs, key=lambda each: bool(each["id"] != failed))
        for key in ("cluster_id", "input_id", "output_id"):
            self.assertEqual(after[key], before[key], key)


class RunTests(ConsoleCase):
    @walk()
    def test_a_job_is_followed_cancelled_and_run_again(self, page: Any) -> None:
        """And one that fails says why."""
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
        page.get_by_text("The programs have written nothing: these are the lines of").wait_for()
        page.get_by_label("Everything").check()
        page.get_by_label("Find in the log").fill("submitted")
        page.get_by_text("1 of 1").wait_for()
        self.assertIn("find=submitted", page.url)
        slow = self.run_job(job, cluster, svcd__fake__run_s="4000")
        page.goto(f"/console/#/runs/{slow}")
        page.locator(".facts", has_text="RUNNING").wait_for()
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.get_by_role("button", name="Cancel the run").dblclick()
        page.locator(".facts", has_text="Cancelled").wait_for()
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
        page.get_by_label("Status").select_option("Cancelled")
        page.locator("h1", has_text="Runs 1").wait_for()
        page.get_by_label("Status").select_option("Failed")
        page.locator("tr", has_text="ERROR 1: <b onclick").get_by_text(failed[:8]).wait_for()
        self.assertEqual(page.locator("tbody tr").count(), 1)
        page.reload()
        page.locator("h1", has_text="Runs 1").wait_for()
        page.goto("/console/#/runs?status=KILLED")  # a link to the engine's word
        page.locator("h1", has_text="Runs 2").wait_for()
        page.get_by_label("Find a job").fill(slow[:8])
        page.locator("h1", has_text="Runs 1").wait_for()
        page.goto("/console/")
        page.get_by_role("link", name="1 failed in 24 hours").click()
        page.locator("tr", has_text=failed[:8]).wait_for()
        self.assertEqual(page.get_by_label("Time").input_value(), "24")
        self.assertEqual(page.locator("tbody tr").count(), 1)
