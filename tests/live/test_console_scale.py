"""The console in a real browser with 1,000 clusters and 10,000 runs: what it draws and asks for.

Bounds of work, which no busy machine changes. `benchmarks.console` has the times.
"""

from __future__ import annotations

import re
from typing import Any

from benchmarks.console_peer import SETTINGS, fill
from tests.support.console import ConsoleCase, walk

CLUSTERS = 1000
RUNS = 10_000
JOBS = 21
ELEMENTS = 12_000
"""Most elements of a view: the grid of runs has up to 50 rows of 40 bars."""
TOUCHED = 40
"""Most nodes that the change of one record adds or removes."""
WATCHED = """() => {
    window.touched = 0;
    const add = (all) => all.forEach((one) => {
        window.touched += one.addedNodes.length + one.removedNodes.length;
    });
    new MutationObserver(add).observe(document.body, { childList: true, subtree: true });
}"""


class ScaleTests(ConsoleCase):
    timeout = 110
    settings = SETTINGS

    @walk()
    def test_what_is_drawn_and_asked_for_is_bounded(self, page: Any) -> None:
        """Filters reach every record, the end of a view is reached, one change draws one row."""
        self.in_reactor(lambda: fill(self.svcd, CLUSTERS - 1, RUNS - 1))
        cluster = self.active(name="etl")
        job = self.job("report")
        self.run_job(job, cluster, svcd__fake__outcome="hang")
        self.in_reactor(lambda: self.svcd.advance(20))
        asked: list[str] = []
        page.on("request", lambda r: "/v1.1/" in r.url and asked.append(r.url))
        page.goto("/console/")
        page.locator("h2", has_text=f"Clusters {CLUSTERS}").wait_for(timeout=60_000)
        self.small(page, "tbody tr", 9)
        page.get_by_role("link", name="All clusters").click()
        page.locator("h1", has_text=f"Clusters {CLUSTERS}").wait_for()
        self.small(page, "tbody tr", 200)
        page.get_by_text(f"The newest 200 of {CLUSTERS}").scroll_into_view_if_needed()
        page.get_by_label("Find a cluster").fill("c77")
        page.locator("h1", has_text=re.compile("Clusters 11$")).wait_for()
        page.get_by_role("link", name="c770").wait_for()
        self.small(page, "tbody tr", 11)
        page.get_by_label("Find a cluster").fill("")

        page.get_by_role("navigation").get_by_role("link", name="Runs").click()
        page.locator("h1", has_text=f"Runs {RUNS}").wait_for()
        self.small(page, "tbody tr", 100)
        self.assertEqual(page.locator(".grid .row").count(), JOBS)
        self.assertLessEqual(page.locator(".run").count(), JOBS * 40)
        page.get_by_text(f"The newest 100 of {RUNS}").scroll_into_view_if_needed()
        page.evaluate(WATCHED)
        made = self.run_job(job, cluster)
        page.locator("h1", has_text=f"Runs {RUNS + 1}").wait_for()
        page.locator("tr", has=page.locator(f"a[href$='{made}']")).get_by_text(
            "SUCCEEDED"
        ).wait_for()
        self.assertLess(page.evaluate("window.touched"), TOUCHED)
        page.get_by_label("Find a job").fill("j7")
        page.locator("h1", has_text=re.compile(r"Runs 500$")).wait_for()
        page.get_by_label("Cluster").select_option("etl")
        page.get_by_label("Find a job").fill("report")
        page.locator("h1", has_text="Runs 2").wait_for()
        self.small(page, "tbody tr", 2)
        page.go_back()
        page.locator("h1", has_text=re.compile(r"Runs 500$")).wait_for()

        page.get_by_role("navigation").get_by_role("link", name="Jobs").click()
        page.get_by_role("link", name=f"Jobs {JOBS}").wait_for()
        self.small(page, "tbody tr", JOBS)
        page.get_by_role("link", name="j7", exact=True).click()
        page.locator("h1", has_text="j7").wait_for()
        self.small(page, "main li", 12)
        lists = [url.rpartition("/")[2] for url in asked]
        self.assertEqual(len(lists), len(set(lists)), lists)

    def small(self, page: Any, rows: str, most: int) -> None:
        """So many rows, and a bounded number of elements in all."""
        self.assertLessEqual(page.locator(rows).count(), most)
        self.assertLess(page.evaluate("document.querySelectorAll('*').length"), ELEMENTS)
