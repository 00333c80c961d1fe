"""The console at a daemon with real Hadoop: a cluster's whole life, by the page alone.

Needs the software tree of the vanilla distribution (test_main_job) and Chromium. About five minutes
on two busy cores.
"""

from __future__ import annotations

import re
from typing import Any

from tests.live.test_main_job import ACTIVE_S, COUNT, JOB_S, vanilla_prefix
from tests.support.console import BrowserCase
from tests.support.live import Tenant, machine_folders
from tests.support.processes import DaemonCase, machine_processes, until
from tests.support.sample import SLOW

skip = SLOW

_IMAGE = "vanilla-3.5.0"
_ACTIVE_MS = 2 * ACTIVE_S * 1000
_JOB_MS = 4 * JOB_S * 1000
_GONE_MS = 60_000
_STEP_MS = 30_000
"""Of all else: Hadoop's machines share the processors with the browser."""
_OUT = "hdfs:///user/svcd/out"
_GROWTH = """() => {
    const drawn = window.drawn = [];
    const look = () => {
        const bars = document.querySelectorAll(".bar").length;
        if (bars && bars !== drawn.at(-1)) drawn.push(bars);
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
    look();
}"""
"""Notes how many bars the drawing has, each time that their number changes."""


class HadoopTests(BrowserCase, DaemonCase):
    timeout = 1200

    async def test_a_cluster_from_its_first_step_to_its_last(self) -> None:
        """The drawing grows without a reload; jobs are followed; a failure has cause and advice."""
        prefix = str(vanilla_prefix())
        daemon = self.daemon(plugins__enabled="vanilla", embedded__image_prefix=prefix)
        shown = await daemon.start()
        self.base = str(shown["api"])
        self.shown = shown
        tenant = Tenant(shown)
        self.image = tenant.image(_IMAGE)
        await tenant.upload("data", "in", b"to be or not to be\n" * 1000)
        await self.walk(self.whole_life)

        async def swept() -> bool:
            return not machine_processes(daemon.state) and not machine_folders(daemon.state)

        await until(swept, "no process and no folder", 30)

    def whole_life(self, page: Any) -> None:
        loads: list[str] = []
        page.set_default_timeout(_STEP_MS)
        page.goto("/console/")
        page.on("load", lambda: loads.append(page.url))
        self.register(page)
        self.create(page)
        self.scale(page)
        self.run_jobs(page)
        self.delete(page)
        self.assertEqual(loads, [])

    def register(self, page: Any) -> None:
        page.get_by_role("link", name="Images").click()
        page.get_by_role("button", name="Register an image").click()
        page.get_by_label("Id of the image").fill(self.image)
        page.get_by_label("Login of its system").fill("svcd")
        page.get_by_label("Tags").fill("vanilla 3.5.0")
        page.keyboard.press("Enter")
        page.get_by_role("row", name=_IMAGE).wait_for()

    def create(self, page: Any) -> None:
        page.get_by_role("link", name="Home").click()
        page.get_by_role("link", name="New cluster").click()
        page.get_by_label("Name", exact=True).fill("etl")
        page.get_by_role("textbox", name="Machines").nth(1).fill("1")
        page.get_by_label("Options, one on a line").fill("HDFS.dfs.replication=1")
        page.locator(".plan").get_by_text("Create 2 machines").wait_for()
        page.get_by_role("button", name="Create the cluster").click()
        page.locator("h1", has_text="etl").wait_for()
        page.evaluate(_GROWTH)
        page.locator(".facts", has_text="Active").wait_for(timeout=_ACTIVE_MS)
        grown = page.evaluate("window.drawn")
        self.assertEqual(grown, sorted(grown))
        self.assertGreater(len(grown), 5, grown)
        page.get_by_text("in all,").wait_for()
        rows = page.locator(".gantt .row .who").all_inner_texts()
        self.assertEqual(rows[-2:], ["master-001", "worker-001"])
        self.assertGreater(page.locator(".bar.path").count(), 3)
        self.assertEqual(page.locator(".bar.failed").count(), 0)
        page.get_by_role("link", name=re.compile(":8088")).wait_for()

    def scale(self, page: Any) -> None:
        page.get_by_role("button", name="Scale", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("worker").fill("2")
        dialog.get_by_text("Create 1 machine").wait_for()
        dialog.get_by_role("button", name="Change the size").click()
        page.locator(".facts", has_text="3 machines").filter(has_text="Active").wait_for(
            timeout=_ACTIVE_MS
        )
        page.get_by_label("Change").locator("option").nth(1).wait_for(state="attached")

    def source(self, page: Any, name: str, url: str, kind: str) -> None:
        page.get_by_role("link", name="Data sources").click()
        page.get_by_role("link", name="New data source").click()
        page.get_by_label("Name").fill(name)
        page.get_by_label("Type").select_option(kind)
        page.get_by_label("URL").fill(url)
        if kind == "objstore":
            page.get_by_label("User").fill(self.shown["username"])
            page.get_by_label("Password").fill(self.shown["password"])
        page.get_by_role("button", name="Create the data source").click()
        page.get_by_role("row", name=url).wait_for()

    def run_jobs(self, page: Any) -> None:
        """One that counts words, and the same again, whose output exists then."""
        page.get_by_role("link", name="Jobs").click()
        self.source(page, "in", "objstore://data/in", "objstore")
        self.source(page, "out", _OUT, "hdfs")
        page.get_by_label("Kinds").get_by_role("link", name="Jobs").click()
        page.get_by_role("link", name="New job").click()
        page.get_by_label("Name").fill("count")
        mains = page.get_by_role("group", name="Main binaries")
        mains.get_by_label("Upload").set_input_files(
            [{"name": "count.pig", "mimeType": "text/plain", "buffer": COUNT}]
        )
        mains.get_by_text("Uploaded").wait_for()
        page.get_by_role("button", name="Create the job").click()
        page.get_by_role("link", name="Run it").click()
        page.get_by_label("Input").select_option(label="in (objstore://data/in)")
        page.get_by_label("Output").select_option(label=f"out ({_OUT})")
        page.get_by_role("button", name="Run the job").click()
        page.locator(".facts", has_text="on etl").wait_for()
        page.locator(".facts", has_text="RUNNING").wait_for(timeout=_JOB_MS)
        page.locator("pre.log").wait_for(timeout=_JOB_MS)  # while the job runs
        page.locator(".facts", has_text="SUCCEEDED").wait_for(timeout=_JOB_MS)
        page.get_by_label("Everything").check()
        page.get_by_label("Find in the log").fill("Success!")
        page.locator("pre.log", has_text="Success!").wait_for()
        page.get_by_role("button", name="Run again", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Run again").click()
        page.get_by_role("alert").get_by_text("OUTPUT_EXISTS").wait_for(timeout=_JOB_MS)
        said = page.get_by_role("alert").inner_text()
        self.assertIn("/user/svcd/out", said)
        page.get_by_role("link", name="Home").click()
        page.locator(".attention .card", has_text="OUTPUT_EXISTS").wait_for()
        page.get_by_role("link", name="etl").first.click()

    def delete(self, page: Any) -> None:
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("dialog").get_by_label("Type etl").fill("etl")
        page.keyboard.press("Enter")
        page.get_by_text("The cluster etl is deleted.").wait_for(timeout=_GONE_MS)
        page.get_by_text("No clusters yet").wait_for()
