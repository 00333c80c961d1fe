"""Running a program from the console in a real browser, and the first steps of a project."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from twisted.internet.defer import Deferred

from svcd.cli.job_files import digest_of, with_digest
from tests.support.console import ConsoleCase, chosen, walk

SCRIPT = b"A = LOAD '$INPUT';"
RUN = "Run the program"


class ProgramCase(ConsoleCase):
    def rows(self, path: str, key: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/{path}").json[
            key or path.replace("-", "_")
        ]
        return found

    def names(self, path: str, key: str = "") -> list[str]:
        return sorted(each["name"] for each in self.rows(path, key))

    def upload(self, page: Any, *file: Any) -> None:
        page.get_by_label("Upload").first.set_input_files([chosen(*file)])
        page.locator(".uploads", has_text="Uploaded").wait_for()


class RunTests(ProgramCase):
    settings = {"server.max_binary_bytes": "1000", "server.hide_credentials": "true"}

    @walk()
    def test_the_first_word_count_takes_four_actions_from_home(self, page: Any) -> None:
        """Its objects have the names of `svcd run`, so another run of the file makes no others."""
        self.active()
        page.goto("/console/")
        page.get_by_role("link", name="Run a program").click()  # 1
        page.get_by_label("Upload").first.set_input_files([chosen("count.pig")])  # 2
        page.get_by_label("Input").fill("hdfs:///words")  # 3
        command = page.get_by_text("svcd run count.pig --on etl --input hdfs:///words").first
        command.wait_for(state="attached")
        output = page.get_by_label("Output").input_value()
        self.assertTrue(re.fullmatch(r"hdfs:///out/count-\d{14}", output), output)
        page.get_by_role("button", name=RUN).dblclick()  # 4
        page.locator("h1", has_text="count").wait_for()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        self.assertEqual(len(self.rows("job-executions")), 1)
        (job,) = self.rows("jobs")
        (binary,) = self.rows("job-binaries", "binaries")
        self.assertEqual((job["name"], job["type"], binary["name"]), ("count", "Pig", "count.pig"))
        (data,) = self.rows("job-binary-internals", "binaries")
        self.assertEqual(data["name"], with_digest("count.pig", sha256(SCRIPT).hexdigest()))

        page.get_by_role("link", name="Home").click()
        page.get_by_role("link", name="Run a program").click()
        self.upload(page, "count.pig", SCRIPT)
        page.get_by_label("Input").fill("hdfs:///words")
        page.get_by_label("Output").fill("hdfs:///out/second")
        page.get_by_role("button", name=RUN).click()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        self.assertEqual(len(self.rows("job-executions")), 2)
        self.assertEqual(self.names("jobs"), ["count"])
        self.assertEqual(self.names("job-binaries", "binaries"), ["count.pig"])
        urls = sorted(each["url"] for each in self.rows("data-sources"))
        self.assertEqual(urls, sorted(["hdfs:///words", output, "hdfs:///out/second"]))

        changed = b"B = LOAD '$INPUT';"
        page.goto("/console/#/run")
        self.upload(page, "count.pig", changed)
        page.get_by_label("Input").fill("hdfs:///words")
        page.get_by_role("button", name=RUN).click()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        other = with_digest("count.pig", sha256(changed).hexdigest())
        ids = {each["name"]: each["id"] for each in self.rows("job-binaries", "binaries")}
        self.assertEqual(sorted(ids), sorted(["count.pig", other]))
        name = with_digest("count", digest_of(["Pig", ids[other], ""]))
        self.assertEqual(self.names("jobs"), sorted(["count", name]))

        page.goto("/console/#/")
        page.goto("/console/#/run")
        self.upload(page, "app.jar", b"PK")
        press = page.get_by_role("button", name=RUN)
        press.click()
        fault = page.locator(".field", has_text="Main class").locator(".fault")
        fault.get_by_text("edp.java.main_class").wait_for()
        page.get_by_label("Main class").fill("org.example.Count")
        press.click()
        page.locator(".facts", has_text="Java job").wait_for()
        page.get_by_role("link", name="Run with changes").click()
        self.assertEqual(page.get_by_label("Main class").input_value(), "org.example.Count")

    @walk()
    def test_a_refused_step_is_named_and_the_next_press_goes_on(self, page: Any) -> None:
        """From the page of a cluster. Nothing typed is lost, and nothing is made twice."""
        cluster = self.active()
        self.active(name="other")
        self.call("POST", "/data-sources", {"name": "in", "type": "hdfs", "url": "hdfs:///in"})
        page.goto(f"/console/#/clusters/{cluster}")
        page.get_by_role("link", name="Run a program").click()
        press = page.get_by_role("button", name=RUN)
        press.click()
        page.get_by_text("choose a program").wait_for()
        upload = page.get_by_label("Upload").first
        for wrong, why in ((b"", "the file is empty"), (b"x" * 1001, "svcd takes at most 1000")):
            upload.set_input_files([chosen("count", wrong)])
            page.get_by_text(why).wait_for()
        self.assertEqual(self.rows("job-binary-internals", "binaries"), [])
        self.upload(page, "count", b"#!/bin/sh\necho")
        page.locator("summary", has_text="More").click()
        page.get_by_label("Type").locator("option", has_text="Shell, by the name").wait_for(
            state="attached"
        )
        self.upload(page, "tool", b"\0")
        page.get_by_label("Input").fill("words")
        press.click()
        page.get_by_text("choose the type: the name of the file does not tell it").wait_for()
        page.get_by_label("Type").select_option("Spark")
        press.click()
        page.get_by_text("expected the name of a data source, hdfs:///PATH").wait_for()
        page.get_by_label("Input").fill("in")
        press.click()
        page.get_by_text("the program of a Spark job is a .jar").wait_for()
        self.assertEqual(self.rows("jobs"), [])
        page.get_by_label("or one that svcd has").select_option("count")
        page.get_by_label("Type").select_option("Shell")
        page.get_by_label("Output").fill("hdfs://")
        press.click()
        page.locator(".field", has_text="Output").locator(".fault").wait_for()
        page.get_by_label("Output").fill("objstore://box/out")
        page.get_by_label("User of the object store").fill("me")
        press.click()
        page.locator(".field", has_text="Password").locator(".fault").wait_for()
        steps = page.locator("form ol li")
        self.assertEqual(
            [each.split("\n") for each in steps.all_inner_texts()],
            [["done", "Job count"], ["done", "Input in"], ["failed", "Output"]],
        )
        page.get_by_label("Password").fill("secret")
        page.get_by_role("link", name="Jobs").click()
        page.locator(".tabs").wait_for()
        page.go_back()
        self.assertEqual(page.get_by_label("Output").input_value(), "objstore://box/out")
        self.assertEqual(page.get_by_label("Password").input_value(), "")
        page.get_by_label("Password").fill("secret")
        page.get_by_role("button", name="Check only").click()
        page.get_by_text("svcd would accept this").wait_for()
        self.assertEqual(steps.last.inner_text().split(), ["done", "Check"])
        self.assertEqual(self.rows("job-executions"), [])
        page.get_by_label("Input").fill("hdfs:///in")
        steps.first.wait_for(state="detached")
        self.call("DELETE", f"/clusters/{cluster}")
        self.in_reactor(lambda: self.svcd.advance(60))
        press.click()
        page.get_by_text("the cluster is gone: choose another").wait_for()
        page.get_by_label("Cluster").select_option("other")
        press.click()
        page.locator(".facts", has_text="on other").wait_for()
        self.assertEqual(self.names("jobs"), ["count"])
        sources = {each["url"]: each["name"] for each in self.rows("data-sources")}
        self.assertEqual(set(sources), {"hdfs:///in", "objstore://box/out"})
        self.assertEqual(len(self.rows("data-sources")), 2)

    @walk()
    def test_a_new_cluster_runs_the_program_and_goes(self, page: Any) -> None:
        """A lost answer is no second run, also in the form opened anew; two tabs share the job."""
        template = {
            "name": "small",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "node_groups": [],
        }
        made = self.make(name="like")
        (like,) = self.rows("clusters")
        keep = ("name", "count", "node_processes", "flavor_id")
        template["node_groups"] = [{k: g[k] for k in keep} for g in like["node_groups"]]
        self.call("POST", "/cluster-templates", template)
        self.call("DELETE", f"/clusters/{made}")
        self.in_reactor(lambda: self.svcd.advance(60))
        other = page.context.new_page()
        for tab in (page, other):
            tab.goto("/console/#/run")
            tab.get_by_label("Cluster").select_option(
                "a new one of small, plain, deleted after the run"
            )
            self.upload(tab, "count.pig", SCRIPT)
            tab.get_by_label("Input").fill("hdfs:///words")
            tab.get_by_label("Output").fill(f"hdfs:///out/{tab is page}")
        command = page.get_by_text("svcd run count.pig --transient small --image").last
        command.wait_for(state="attached")
        keys: list[str] = []

        def lose(route: Any) -> None:
            keys.append(route.request.headers["idempotency-key"])
            if len(keys) > 1:
                return route.continue_()
            route.fetch()
            return route.abort("connectionreset")

        page.route("**/execute", lose)
        page.get_by_role("button", name=RUN).click()
        page.get_by_text("svcd may have done it all the same").wait_for()
        page.get_by_text("No answer", exact=True).wait_for()
        page.get_by_role("link", name="Home").click()
        page.get_by_role("heading", name="Home").wait_for(state="attached")
        page.go_back()
        page.get_by_role("button", name=RUN).click()
        other.get_by_role("button", name=RUN).click()
        for tab in (page, other):
            tab.locator(".facts", has_text="Succeeded").wait_for()
        self.assertEqual((len(keys), len(set(keys))), (2, 1))
        self.assertEqual(len(self.rows("job-executions")), 2)
        self.assertEqual(self.names("jobs"), ["count"])
        page.get_by_role("link", name="Home").click()
        page.get_by_text("No clusters yet").wait_for()

    @walk()
    def test_a_daemon_that_restarts_amid_the_upload(self, page: Any) -> None:
        """The page says so, keeps what was typed, and sends the file again."""
        self.active()
        page.goto("/console/#/run")
        page.get_by_label("Input").fill("hdfs:///words")
        page.get_by_text("at most 1000 bytes").first.wait_for()
        self.in_reactor(lambda: Deferred.fromCoroutine(self.deaf()))
        page.get_by_label("Upload").first.set_input_files([chosen("count.pig")])
        page.get_by_text("the daemon does not answer").first.wait_for()
        self.in_reactor(self.svcd.restart)
        self.in_reactor(self.listen)
        page.get_by_role("button", name="Upload again").click()
        page.locator(".uploads", has_text="Uploaded").wait_for()
        page.get_by_label("Upload").first.set_input_files(
            [{**chosen("huge.pig"), "buffer": b"x" * 1001}]
        )
        page.get_by_text("svcd takes at most 1000 bytes").wait_for()
        page.get_by_role("button", name=RUN).click()
        page.get_by_text("choose a program").wait_for()
        page.get_by_label("or one that svcd has").select_option("count.pig")

        def overtake(route: Any) -> None:
            """Make the job as another tab would, just before."""
            if route.request.method == "POST":
                self.call("POST", "/jobs", route.request.post_data_json)
            route.continue_()

        page.route("**/jobs", overtake)
        page.get_by_role("button", name=RUN).click()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        self.assertEqual(self.names("jobs"), ["count"])


class TokenTests(ProgramCase):
    settings = {"auth.mode": "keystone"}

    @walk()
    def test_a_token_that_ends_amid_the_upload(self, page: Any) -> None:
        """The page asks for a login above the form, and the upload goes on."""
        page.goto("/console/")
        page.get_by_label("User").fill("alice")
        page.get_by_label("Password").fill("alice")
        page.get_by_role("button", name="Log in", exact=True).click()
        page.get_by_text("No clusters yet").wait_for()
        page.goto("/console/#/run")
        page.get_by_label("Input").fill("hdfs:///words")
        page.get_by_text("at most").first.wait_for()
        refusal = {"error_code": 401, "error_name": "UNAUTHORIZED", "error_message": "ended"}
        page.route(
            "**/job-binary-internals/*", lambda r: r.fulfill(status=401, json=refusal), times=1
        )
        page.get_by_label("Upload").first.set_input_files([chosen("count.pig")])
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Password").fill("alice")
        self.assertTrue(page.get_by_role("button", name="Uploading…").is_disabled())
        dialog.get_by_role("button", name="Log in", exact=True).click()
        page.locator(".uploads", has_text="Uploaded").wait_for()
        self.assertEqual(page.get_by_label("Input").input_value(), "hdfs:///words")
        page.get_by_role("button", name=RUN).click()
        page.get_by_text("choose a cluster").wait_for()


class FirstTests(ProgramCase):
    @walk()
    def test_the_first_steps_follow_what_there_is(self, page: Any) -> None:
        """They name a plugin that is enabled, and are gone after the first run."""
        image = self.svcd.image_id
        (known,) = self.rows("images")
        self.call("DELETE", f"/images/{image}")
        page.goto("/console/")
        steps = page.locator(".step")
        page.get_by_text("none is registered").wait_for()
        heads = [each.split("\n")[:2] for each in steps.all_inner_texts()]
        self.assertEqual(
            heads,
            [
                ["Register an image", "next"],
                ["Create a cluster", "later"],
                ["Run a program", "later"],
            ],
        )
        self.assertEqual(page.locator(".table").count(), 0)
        self.call("POST", f"/images/{image}", {"username": known["username"]})
        self.call("POST", f"/images/{image}/tag", {"tags": known["tags"]})
        steps.first.get_by_role("link").click()
        page.get_by_text("Registered images").first.wait_for()
        page.go_back()
        command = page.get_by_text("svcd cluster create NAME --plugin fake --workers 2").first
        command.wait_for(state="attached")
        steps.nth(1).get_by_role("link", name="New cluster").wait_for()
        cluster = self.active()
        steps.nth(2).get_by_role("link", name="Run a program").wait_for()
        page.get_by_role("link", name="etl").wait_for()
        self.run_job(self.job("report"), cluster)
        page.get_by_text("Running jobs").wait_for()
        self.assertEqual(steps.count(), 0)
