"""What the view of a cluster shows of faults that health checks find."""

from __future__ import annotations

from typing import Any

from svcd.embedded.scripted import Said
from svcd.ports.machines import Host
from tests.support.console import ConsoleCase


class HealthTests(ConsoleCase):
    settings = {"provisioning.health_poll_s": "20", "embedded.boot_s": "30"}

    async def test_a_fault_stays_in_view_while_the_cluster_is_scaled(self) -> None:
        """With its machine, and not with one whose name begins like it; then it is looked for."""

        def walk(page: Any) -> None:
            cluster = self.make(name="etl", workers=10)
            self.in_reactor(lambda: self.svcd.advance(120))
            groups = self.call("GET", f"/clusters/{cluster}").json["cluster"]["node_groups"]
            last = groups[1]["instances"][-1]

            def dead(host: Host, command: str, stdin: bytes) -> Said:
                return Said(exit_code=1 if host.address == last["management_ip"] else 0)

            self.in_reactor(lambda: self.svcd.remote.script("test -s running", dead))
            page.goto(f"/console/#/clusters/{cluster}")
            page.get_by_text("Not all of this cluster is well").wait_for()
            row = page.get_by_role("row", name=last["instance_name"])
            row.locator(".state.wait", has_text="unwell").wait_for()
            self.assertEqual(page.locator(".group .state", has_text="unwell").count(), 1)
            page.get_by_role("button", name="Scale", exact=True).click()
            page.get_by_role("dialog").get_by_label("worker").fill("11")
            page.get_by_role("button", name="Change the size").click()
            box = page.locator(".problem", has_text="was well before this change")
            box.get_by_text(last["instance_name"]).first.wait_for()
            row.locator(".state.wait", has_text="unwell").wait_for()
            self.in_reactor(lambda: self.svcd.remote.script("test -s running", Said()))
            self.in_reactor(lambda: self.svcd.advance(120))
            box.wait_for(state="detached")
            row.locator(".state.good", has_text="ACTIVE").wait_for()

        await self.walk(walk)
