"""The drawing of a provision in a real browser: many machines, one of which is replaced."""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve

from tests.support.console import ConsoleCase, walk

REASON = "No valid host was found"


class GanttTests(ConsoleCase):
    speed = 1.0

    def break_a_boot(self) -> str:
        """Let the server of a worker that boots go to ERROR; the machine's name."""
        servers = self.svcd.cloud.core.state.servers
        building = [s for s in servers.values() if s.status == "BUILD" and "worker" in s.name]
        server = sorted(building, key=lambda each: each.name)[6]
        servers.put(evolve(server, status="ERROR", task_state=None, fault=REASON))
        return str(server.name)

    @walk(viewport={"width": 1280, "height": 900})
    def test_a_machine_of_31_is_replaced(self, page: Any) -> None:
        """Alike ones share a row; the change folds when the cluster is Active."""
        made = self.make(workers=30)
        page.goto(f"/console/#/clusters/{made}")
        summary = page.locator(".gantt summary").first
        page.locator(".gantt summary", has_text="Spawning: 0 of 31 machines").wait_for()
        alike = page.locator(".gantt button.who")
        page.locator(".gantt button.who", has_text=re.compile(r"0 of (29|30) done")).wait_for()
        name = self.in_reactor(self.break_a_boot)
        bar = page.locator(".bar.replaced")
        bar.wait_for()
        self.assertEqual(
            re.sub(r"[\d.]+ s", "N s", bar.get_attribute("aria-label")),
            f"wait for server on {name}, N s, attempt 1, replaced, on the longest path",
        )
        (failure,) = page.locator(".failures li").all_inner_texts()
        self.assertIn(f"wait for server on {name.removeprefix('etl-')}", failure)
        self.assertIn(REASON, failure)

        page.locator(".facts", has_text="Active").wait_for()
        page.locator(".chart").wait_for(state="hidden")
        summary.get_by_text("1 replaced").wait_for()
        self.assertRegex(summary.inner_text(), r"^Took [\d.]+ s, 31 machines, 1 replaced$")
        self.assertEqual(page.locator(".bar").count(), 0)

        summary.press("Enter")
        rows = page.locator(".gantt .row .who")
        few = rows.count()
        self.assertLess(few, 9)
        self.assertRegex(alike.inner_text(), r"^worker: 2\d alike$")
        alike.press("Enter")
        self.assertEqual(alike.get_attribute("aria-expanded"), "true")
        count = int(alike.inner_text().split()[1])
        self.assertEqual(rows.count(), few + count)
        alike.press("Enter")
        self.assertEqual(rows.count(), few)
        shared = page.get_by_role("button", name=f"wait for server on {count} machines")
        shared.click()
        detail = page.locator(".detail")
        detail.get_by_text(f"{count} of {count} done").wait_for()
        bar.click()
        for text in ("attempt 1", "replaced", REASON):
            detail.get_by_text(text).first.wait_for()

        page.set_viewport_size({"width": 360, "height": 780})
        zoom = page.get_by_label("Zoom")
        wide = "document.querySelector('.scroll').scrollWidth"
        before = page.evaluate(wide)
        for _ in range(4):
            zoom.press("ArrowRight")
        page.wait_for_function(f"{wide} >= 3.5 * {before}")
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertGreater(page.evaluate("document.querySelector('.scroll').scrollLeft"), 0)
        left = page.locator(".scroll").bounding_box()["x"]
        self.assertEqual({each.bounding_box()["x"] for each in rows.all()}, {left})

    @walk()
    def test_a_second_change_is_chosen(self, page: Any) -> None:
        """The newest one, of an Active cluster, is folded; one that a person chooses is open."""
        made = self.active(workers=2)
        self.call(
            "PUT", f"/clusters/{made}", {"resize_node_groups": [{"name": "worker", "count": 3}]}
        )
        self.in_reactor(lambda: self.svcd.advance(60))
        page.goto(f"/console/#/clusters/{made}")
        page.get_by_text("1 machine", exact=False).first.wait_for()
        self.assertEqual(page.locator(".bar").count(), 0)
        page.get_by_label("Change").select_option("1")
        page.locator(".bar").first.wait_for()
        page.get_by_text("3 machines").first.wait_for()
