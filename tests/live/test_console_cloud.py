"""What the console shows of the cloud: quotas on Home, choices for a new cluster."""

from __future__ import annotations

import json
from typing import Any

from svcd.testing import FaultRule
from tests.support.console import HOSTILE, ConsoleCase


class QuotaTests(ConsoleCase):
    settings = {"embedded.quota_instances": "10", "embedded.quota_floating_ips": "0"}

    def amounts(self, page: Any) -> list[str]:
        return [
            each.replace("\n", " ") for each in page.locator(".quotas dl > div").all_inner_texts()
        ]

    async def test_quotas_follow_the_clusters(self) -> None:
        """Bars with a text; a quota that is nearly full needs attention."""

        def walk(page: Any) -> None:
            page.goto("/console/")
            page.get_by_text("0 of 10", exact=True).wait_for()
            self.assertEqual(
                self.amounts(page),
                [
                    "Machines 0 of 10",
                    "Processors 0 of 800",
                    "Memory, GiB 0 of 1,600",
                    "Volumes 0 of 400",
                    "Volumes, GiB 0 of 40,000",
                    "Public addresses 0 of 0",
                ],
            )
            self.assertEqual(page.locator(".quotas progress").count(), 5)
            self.assertEqual(page.get_by_text("Needs attention").count(), 0)
            cluster = self.active(workers=8)
            card = page.locator(".card", has_text="9 of 10 used: delete what is not needed")
            card.get_by_text("nearly full").wait_for()
            bar = page.get_by_role("progressbar", name="Machines: part of the quota that is used")
            self.assertEqual(bar.get_attribute("class"), "wait")
            self.assertEqual((bar.get_attribute("value"), bar.get_attribute("max")), ("9", "10"))
            self.assertEqual(page.get_by_text("All well").count(), 0)
            self.call("DELETE", f"/clusters/{cluster}")
            self.in_reactor(lambda: self.svcd.advance(60))
            page.get_by_text("0 of 10", exact=True).wait_for()
            card.wait_for(state="detached")

        await self.walk(walk)

    async def test_a_quota_without_limit_has_no_bar(self) -> None:
        absolute = {"maxTotalInstances": -1, "totalInstancesUsed": 7}
        body = json.dumps({"limits": {"absolute": absolute}})
        self.svcd.faults.add(FaultRule(where="compute", path="/limits", status=200, body=body))

        def walk(page: Any) -> None:
            page.goto("/console/")
            page.get_by_text("7, no limit").wait_for()
            self.assertEqual(self.amounts(page)[0], "Machines 7, no limit")
            self.assertEqual(page.locator(".quotas progress").count(), 2)  # of the volumes

        await self.walk(walk)

    async def test_what_cannot_be_read_is_said_beside_the_rest(self) -> None:
        """A service that the cloud does not have is no fault."""
        self.svcd.faults.add(FaultRule(where="volume", path="/limits", status=500, body=HOSTILE))
        self.svcd.faults.add(FaultRule(where="network", path="/quotas", status=404))

        def walk(page: Any) -> None:
            page.goto("/console/")
            page.get_by_text("Some quotas cannot be read").wait_for()
            self.assertEqual(
                [each.split(" ")[0] for each in self.amounts(page)],
                ["Machines", "Processors", "Memory,"],
            )
            notice = page.locator(".quotas .notice")
            self.assertIn("volume: ", notice.inner_text())
            self.assertEqual(notice.locator(".lines").inner_text().count("\n"), 0)
            self.in_reactor(self.svcd.faults.clear)
            notice.get_by_role("button", name="Try again").click()
            page.get_by_text("0 of 400").wait_for()
            self.assertEqual(notice.count(), 0)
            page.route("**/cloud", lambda route: route.fulfill(status=503, body="{}"))
            page.reload()
            page.get_by_text("The quotas cannot be read").wait_for()
            page.get_by_role("heading", name="Clusters").wait_for()
            page.unroute("**/cloud")
            notice.get_by_role("button", name="Try again").click()
            page.get_by_text("0 of 400").wait_for()

        await self.walk(walk)


class ChoiceTests(ConsoleCase):
    async def test_an_incomplete_list_leaves_a_field_to_type(self) -> None:
        """With the reason above the form."""
        self.svcd.faults.add(FaultRule(where="compute", path="/flavors", status=500))

        def walk(page: Any) -> None:
            page.goto("/console/#/launch")
            page.get_by_text("Not all choices can be shown").wait_for()
            page.get_by_text("compute: ").first.wait_for()
            sizes = page.get_by_label("Flavor (its id)")
            self.assertEqual([each.input_value() for each in sizes.all()], ["", ""])
            sizes.nth(0).fill("2")
            self.assertEqual(page.get_by_label("Key pair").input_value(), "demo")

        await self.walk(walk)

    async def test_networks_of_machines_and_pools_of_addresses(self) -> None:
        """Each at its place; the request has their ids."""

        def walk(page: Any) -> None:
            page.goto("/console/#/launch")
            page.get_by_label("Name", exact=True).fill("etl")
            page.get_by_label("Network").select_option("private")
            page.get_by_label("Public addresses").nth(1).select_option("public")
            page.get_by_text("Create 2 public addresses").wait_for()
            page.get_by_text("The request", exact=True).click()
            text = page.locator("details[open] code").inner_text()
            body = json.loads(text.partition(" -d '")[2].removesuffix("'"))
            networks = self.call("GET", "/cloud").json["cloud"]["networks"]
            named = {each["name"]: each["id"] for each in networks}
            self.assertEqual(body["neutron_management_network"], named["private"])
            self.assertEqual(
                [each.get("floating_ip_pool") for each in body["node_groups"]],
                [None, named["public"]],
            )

        await self.walk(walk)
