"""Accessibility of all views, as axe-core judges it, in light and dark."""

from __future__ import annotations

import importlib.util
from typing import Any
from unittest import SkipTest

from tests.support.console import HOSTILE, ConsoleCase


class AxeTests(ConsoleCase):
    timeout = 110
    cluster = ""

    def setUp(self) -> None:
        if importlib.util.find_spec("axe_playwright_python") is None:
            raise SkipTest("no axe-core: pip install axe-playwright-python")
        super().setUp()

    async def test_axe_finds_nothing(self) -> None:
        """WCAG AA and the best practices of axe-core, on each view and dialog, in both colours."""
        for colours in ("light", "dark"):
            await self.walk(
                self.views, color_scheme=colours, viewport={"width": 1280, "height": 900}
            )

    def views(self, page: Any) -> None:
        from axe_playwright_python.sync_playwright import Axe

        axe = Axe()
        found: list[str] = []

        def look(at: str) -> None:
            for each in axe.run(page).response["violations"]:
                places = "; ".join(node["html"][:120] for node in each["nodes"][:3])
                found.append(f"{at}: {each['id']}: {each['help']}: {places}")

        if not self.cluster:
            self.seed()
        views = {
            "": "Running jobs",
            f"clusters/{self.cluster}": "Longest path",
            "launch": "Node groups",
            "runs": "Newest at the right",
            f"runs/{self.run_id}": "Configuration",
            "jobs": "Data sources",
            f"jobs/{self.job_id}": "count",
            "events": "Events",
            "images": "Registered images",
            "nothing": "no such page",
        }
        for address, text in views.items():
            page.goto(f"/console/#/{address}")
            page.get_by_text(text).first.wait_for()
            look(f"#/{address}")
        page.goto(f"/console/#/clusters/{self.cluster}")
        for dialog in ("Scale", "Delete"):
            page.get_by_role("button", name=dialog, exact=True).click()
            page.get_by_role("dialog").wait_for()
            look(dialog)
            page.keyboard.press("Escape")
        self.assertEqual(found, [])

    def seed(self) -> None:
        """A cluster, a run that failed and one that hangs."""
        self.cluster = self.active(name="etl", description=HOSTILE)
        self.job_id = self.job("count")
        self.run_id = self.run_job(self.job_id, self.cluster, svcd__fake__outcome="fail")
        self.run_job(self.job_id, self.cluster, svcd__fake__outcome="hang")
        self.in_reactor(lambda: self.svcd.advance(30))
