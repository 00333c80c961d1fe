"""Accessibility of all views, as axe-core judges it: WCAG AA and its best practices."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any
from unittest import SkipTest

from svcd.testing import FaultRule
from tests.support.console import HOSTILE, ConsoleCase
from tests.support.sample import SLOW

skip = SLOW

WINDOW = {"width": 1280, "height": 900}
VIOLATIONS = "async (options) => (await axe.run(options)).violations"
Look = Callable[[str], None]
"""Lets axe-core look at what the page shows, under that name."""


def judged(show: Callable[[Any, Any, Look], None]) -> Any:
    """A test that shows the page; axe-core looks at it, and at its colours in the dark."""

    @wraps(show)
    async def test(case: AxeCase) -> None:
        from axe_playwright_python.base import AXE_SCRIPT

        found: list[str] = []

        def look(page: Any, at: str) -> None:
            for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
                page.emulate_media(color_scheme=scheme)
                for each in page.evaluate(VIOLATIONS, {"resultTypes": ["violations"], **rules}):
                    places = "; ".join(node["html"][:120] for node in each["nodes"][:3])
                    found.append(f"{at}, {scheme}: {each['id']}: {each['help']}: {places}")
            page.emulate_media(color_scheme="light")

        def walked(page: Any) -> None:
            page.add_init_script(AXE_SCRIPT)
            show(case, page, partial(look, page))

        await case.walk(walked, viewport=WINDOW)
        case.assertEqual(found, [])

    return test


class AxeCase(ConsoleCase):
    timeout = 110

    def setUp(self) -> None:
        if importlib.util.find_spec("axe_playwright_python") is None:
            raise SkipTest("no axe-core: pip install axe-playwright-python")
        super().setUp()


class ViewTests(AxeCase):
    @judged
    def test_axe_finds_nothing_in_views(self, page: Any, look: Look) -> None:
        """Empty ones, too; clusters and runs that are well, that failed and that go on."""
        empty = {
            "": "No clusters yet",
            "runs": "No job has run yet",
            "jobs": "No jobs yet",
            "events": "No event fits",
        }
        self.each(page, look, empty)
        ids = self.seed()
        views = {
            "": "Needs attention",
            "clusters": "New cluster",
            f"clusters/{ids['cluster']}": "Took",
            f"clusters/{ids['cluster']}?change=1": " alike",
            f"clusters/{ids['poor']}": "This cluster failed",
            "runs": "Newest at the right",
            f"runs/{ids['failed']}": "Configuration",
            f"runs/{ids['failed']}?all=1&find=e&line=2": "Copy line",
            f"runs/{ids['hanging']}": "Running",
            "jobs": "Data sources",
            "jobs?show=sources": "hdfs://x/i",
            f"jobs/{ids['job']}": "Newest runs",
            "events": "Failures only",
            "images": "Registered images",
            "nothing": "no such page",
        }
        self.each(page, look, views)

    def each(self, page: Any, look: Look, views: Mapping[str, str]) -> None:
        for address, text in views.items():
            page.goto(f"/console/#/{address}")
            page.get_by_text(text).first.wait_for()
            look(f"#/{address}")

    @judged
    def test_axe_finds_nothing_in_forms(self, page: Any, look: Look) -> None:
        """With the faults of what was typed, and with the plan."""
        ids = self.seed()
        forms = {
            "launch": "Create the cluster",
            "jobs?new=1": "Create the job",
            "jobs?show=sources&new=1": "Create the data source",
            f"jobs/{ids['job']}?run=1": "Run the job",
            "run": "Run the program",
        }
        for address, verb in forms.items():
            page.goto(f"/console/#/{address}")
            press = page.get_by_role("button", name=verb)
            press.wait_for()
            for label, wrong in {"Name": "e t", "URL": "hdfs:///a b"}.items():
                for field in page.get_by_label(label, exact=True).all():
                    field.fill(wrong)
            press.click()
            page.locator("[aria-invalid=true]").first.wait_for()
            look(f"#/{address}")
        self.each(page, look, {"jobs?show=binaries&new=1": "or drop files here"})
        page.goto("/console/#/launch")
        page.get_by_label("Name", exact=True).fill("more")
        page.get_by_label("Find an option").fill("heap")
        page.get_by_text("Create 3 machines").wait_for()
        page.get_by_text("The request", exact=True).click()
        look("a plan")
        page.get_by_role("textbox", name="Machines").nth(1).fill("999")
        page.get_by_text("beyond the quota").wait_for()
        look("a refused plan")
        page.get_by_role("button", name="Register an image").click()
        page.get_by_role("dialog").get_by_label("Image of the cloud").wait_for()
        look("an image for a cluster")
        page.goto("/console/#/images")
        page.get_by_role("button", name="Register an image").click()
        page.get_by_role("button", name="Register the image").wait_for()
        look("an image")

    @judged
    def test_axe_finds_nothing_in_questions(self, page: Any, look: Look) -> None:
        """Each kind of them."""
        ids = self.seed()
        questions = {
            f"clusters/{ids['cluster']}": ("Scale", "Delete", "Keep 2 hours"),
            f"clusters/{ids['poor']}": ("Try again",),
            f"runs/{ids['hanging']}": ("Cancel", "Run again"),
            f"jobs/{ids['job']}": ("Delete",),
            "images": ("Unregister plain",),
        }
        for address, names in questions.items():
            page.goto(f"/console/#/{address}")
            for name in names:
                page.get_by_role("button", name=name, exact=True).click()
                page.get_by_role("dialog").wait_for()
                look(f"#/{address} {name}")
                page.keyboard.press("Escape")
                page.get_by_role("dialog").wait_for(state="hidden")

    @judged
    def test_axe_finds_nothing_in_what_keys_open(self, page: Any, look: Look) -> None:
        """Pages and records that are found, nothing that is, and the keys."""
        self.seed()
        page.goto("/console/#/clusters")
        page.get_by_role("button", name="Find").click()
        page.get_by_text("12 shown").wait_for()
        look("find")
        page.keyboard.type("nothing")
        page.get_by_text("Nothing has this name").wait_for()
        look("nothing found")
        page.get_by_role("dialog").get_by_role("button", name="Keys").click()
        page.get_by_text("Search in this view").wait_for()
        look("keys")

    def seed(self) -> dict[str, str]:
        """Ids of a cluster and one that failed, a job, a run that failed and one that hangs."""
        cluster = self.active(name="etl", workers=8, description=HOSTILE, max_age_s=80_000)
        job = self.job("count")
        failed = self.run_job(job, cluster, svcd__fake__outcome="fail")
        hanging = self.run_job(job, cluster, svcd__fake__outcome="hang")
        self.svcd.faults.add(FaultRule(where="compute", method="POST", path="servers", status=403))
        poor = self.make(name="poor")
        self.in_reactor(lambda: self.svcd.advance(30))
        self.in_reactor(self.svcd.faults.clear)
        return {"cluster": cluster, "job": job, "failed": failed, "hanging": hanging, "poor": poor}


class LoginTests(AxeCase):
    settings = {"auth.mode": "keystone", "embedded.token_ttl_s": "240"}
    speed = 1.0

    @judged
    def test_axe_finds_nothing_in_the_login(self, page: Any, look: Look) -> None:
        """With a password, a token, a choice of projects; and above a view, with its warning."""
        self.svcd.cloud.core.users_by_name["alice"].roles["beta"] = ("member",)
        page.goto("/console/")
        page.get_by_role("button", name="Use a token").click()
        page.get_by_label("Token").wait_for()
        look("a token")
        page.get_by_role("button", name="Use a password").click()
        log_in = page.get_by_role("button", name="Log in", exact=True)
        log_in.click()
        page.get_by_text("must not be empty").first.wait_for()
        look("a password")
        page.get_by_label("User").fill("alice")
        page.get_by_label("Password").fill("alice")
        log_in.click()
        page.get_by_role("button", name="Show the project").wait_for()
        look("projects")
        page.get_by_role("button", name="Show the project").click()
        page.get_by_text("Your login ends in").wait_for()
        page.get_by_text("No clusters yet").wait_for()
        look("a login that ends")
        page.get_by_role("button", name="Log in again").click()
        page.get_by_role("dialog").wait_for()
        look("a login above the view")
