"""The form of a new cluster in a real browser: from nothing registered to a cluster."""

from __future__ import annotations

import re
from typing import Any

from tests.support.console import ConsoleCase, walk

PLAN = re.compile(r"/clusters\?dry_run=true$")


class NewClusterTests(ConsoleCase):
    settings = {"plugins.enabled": "vanilla", "embedded.quota_instances": "10"}

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[str] = []

    def open(self, page: Any) -> None:
        """Show the form, and note the plans that it asks for."""
        page.on("request", lambda r: PLAN.search(r.url) and self.asked.append(r.url))
        page.goto("/console/#/launch")
        page.get_by_role("button", name="Create the cluster").wait_for()

    def in_view(self, page: Any, name: str = "Create the cluster") -> bool:
        """Whether the whole button is in the window, at whatever place of the page."""
        box = page.get_by_role("button", name=name).bounding_box()
        return bool(box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"])

    @walk(viewport={"width": 1280, "height": 800})
    def test_from_nothing_registered_to_a_cluster(self, page: Any) -> None:
        """Each refusal stands at its field, and goes when the field changes."""
        self.call("DELETE", f"/images/{self.svcd.image_id}")
        self.open(page)
        plan = page.locator(".foot")
        plan.get_by_text("Still needed: Name, Image", exact=True).wait_for()
        name = page.get_by_label("Name", exact=True)
        name.fill("etl")
        plan.get_by_text("Still needed: Image", exact=True).wait_for()
        self.assertEqual(page.locator("[aria-invalid=true]").count(), 0)
        self.assertEqual(self.asked, [])

        page.get_by_text("No image fits.").wait_for()
        opener = page.get_by_role("button", name="Register an image")
        opener.click()
        dialog = page.get_by_role("dialog", name="Register an image")
        image = dialog.get_by_label("Image of the cloud")
        self.assertEqual(
            image.locator("option").all_inner_texts(), ["choose an image", "plain", "vanilla-3.5.0"]
        )
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Register an image")
        opener.click()
        image.select_option("vanilla-3.5.0")
        tags, login = dialog.get_by_label("Tags"), dialog.get_by_label("Login of its system")
        self.assertEqual((tags.input_value(), login.input_value()), ("vanilla 3.5.0", "svcd"))
        login.fill("0 x")
        register = dialog.get_by_role("button", name="Register the image")
        register.click()
        wrong = dialog.get_by_text("a login name")
        wrong.wait_for()
        login.fill("svcd")
        wrong.wait_for(state="detached")
        register.dblclick()
        dialog.wait_for(state="hidden")
        chosen = page.get_by_label("Image").locator("option:checked")
        self.assertEqual((name.input_value(), chosen.inner_text()), ("etl", "vanilla-3.5.0"))
        plan.get_by_text("Create 3 machines").wait_for()

        large = page.get_by_role("button", name="Large")
        self.assertEqual(large.inner_text(), "Large\n21 machines, 42 processors, 84\u00a0GiB")
        large.click()
        plan.get_by_text("Machines: 21 needed, 10 left").wait_for()
        self.assertEqual(large.get_attribute("aria-pressed"), "true")
        counts = page.get_by_role("textbox", name="Machines")
        beyond = page.get_by_role("group", name="Group worker").get_by_text("beyond the quota")
        beyond.wait_for()
        self.assertEqual(
            [each.get_attribute("aria-invalid") for each in counts.all()], [None, "true"]
        )
        page.get_by_role("button", name="Medium").click()
        beyond.wait_for(state="detached")
        plan.get_by_text("Create 6 machines").wait_for()
        self.assertIn("--workers 5", plan.locator(".cli code").text_content() or "")

        create = page.get_by_role("button", name="Create the cluster")
        counts.nth(1).fill("999999999999999")
        plan.get_by_text("Group worker, Machines: expected at most 1000000").wait_for()
        counts.nth(1).fill("many")
        counts.nth(0).fill("0")
        name.fill("e t")
        create.click()
        page.locator("[aria-invalid=true]:focus").wait_for()
        self.assertEqual(page.evaluate("document.activeElement.value"), "e t")
        page.get_by_text("Not done: see the marked fields.").wait_for()
        marked = page.locator("[aria-invalid=true]")
        self.assertEqual(marked.count(), 3)
        counts.nth(0).fill("1")
        self.assertEqual(
            [each.input_value() for each in marked.all()], ["e t", "many"], "the others stay"
        )
        page.get_by_text("Not done: see the marked fields.").wait_for()
        counts.nth(1).fill("2")
        self.assertEqual([each.input_value() for each in marked.all()], ["e t"])
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        self.assertTrue(self.in_view(page))

        self.make_taken()
        name.fill("taken")
        page.locator(".field", has_text="Name").get_by_text("exists already").wait_for()
        plan.get_by_text("Name: a cluster named 'taken' exists already").wait_for()
        name.fill("etl")
        self.assertEqual(marked.count(), 0)
        plan.get_by_text("Create 3 machines").wait_for()
        create.dblclick()
        page.locator("h1", has_text="etl").wait_for()
        self.assertEqual(len(self.call("GET", "/clusters").json["clusters"]), 2)

    def make_taken(self) -> None:
        """Create the cluster "taken", as another tab does."""
        (image,) = self.call("GET", "/images").json["images"]
        more = {"plugin_name": "vanilla", "engine_version": "3.5.0"}
        self.make("taken", default_image_id=image["id"], **more)

    @walk(viewport={"width": 360, "height": 740})
    def test_a_slow_api_and_an_image_that_goes(self, page: Any) -> None:
        """The plan before stays, dimmed; a plan that is superseded is aborted; nothing is lost."""
        aborted: list[str] = []
        page.on("requestfailed", lambda r: PLAN.search(r.url) and aborted.append(r.failure))
        path = f"/images/{self.svcd.image_id}"
        self.call("POST", f"{path}/tag", {"tags": ["vanilla", "3.5.0"]})
        self.open(page)
        plan = page.locator(".plan")
        name = page.get_by_label("Name", exact=True)
        name.fill("etl")
        plan.get_by_text("Create 3 machines").wait_for()
        self.assertTrue(self.in_view(page))
        held: list[Any] = []
        fates = [held.append, lambda route: route.fulfill(status=503, body="{}")]
        page.route(PLAN, lambda route: fates.pop(0)(route) if fates else route.continue_())
        with page.expect_request(PLAN):
            name.fill("etl-2")
        plan.get_by_text("Renewing the plan…").wait_for()
        self.assertEqual(plan.get_attribute("aria-busy"), "true")
        self.assertTrue(plan.get_by_text("etl-master-001").is_visible())
        name.fill("etl-3")
        plan.get_by_text("the daemon answered 503").wait_for()
        self.assertEqual(aborted, ["net::ERR_ABORTED"])
        held[0].abort()  # Playwright waits for it
        self.assertEqual(page.locator("[aria-invalid=true]").count(), 0)
        plan.get_by_text("etl-3-master-001").wait_for()

        self.call("DELETE", path)
        page.get_by_role("button", name="Medium").click()
        plan.get_by_text("Image: image 'plain'").wait_for()
        page.get_by_text("No image fits.").wait_for()
        self.assertEqual(page.get_by_label("Image").input_value(), self.svcd.image_id)
        page.get_by_role("button", name="Register an image").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Image of the cloud").select_option("plain")
        dialog.get_by_role("button", name="Register the image").click()
        dialog.wait_for(state="hidden")
        self.assertEqual(name.input_value(), "etl-3")
        page.get_by_label("Description").fill("again")
        plan.get_by_text("Create 6 machines").wait_for()
        page.get_by_role("button", name="Create the cluster").click()
        page.locator("h1", has_text="etl-3").wait_for()
