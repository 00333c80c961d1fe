"""Clusters in a real browser: made, seen, scaled, unwell and deleted; the cloud and its images."""

from __future__ import annotations

import json
import re
from typing import Any

from svcd.embedded.scripted import Said
from svcd.ports.machines import Host
from svcd.testing import CLOUD_URL, FaultRule
from tests.support.console import HOSTILE, MASTER, OF_HOME, ConsoleCase, walk

DISK = "no space left on device"


class ClusterTests(ConsoleCase):
    @walk()
    def test_a_cluster_is_seen_as_it_is_made(self, page: Any) -> None:
        """Nothing is loaded again, and nothing is asked in a loop."""
        asked: list[str] = []
        page.goto("/console/")
        page.get_by_text("No clusters yet").wait_for()
        page.on("request", lambda request: asked.append(request.url))
        made = self.make()
        page.get_by_role("link", name="etl").click()
        page.locator(".bar.wait").first.wait_for()
        page.locator("h1 + .facts", has_text="Active").wait_for()
        page.wait_for_timeout(300)
        page.get_by_text("3 machines, 0.0").wait_for()
        self.assertEqual(page.locator(".bar").count(), 0)
        page.locator(".gantt summary", has_text="Took").click()
        self.assertEqual(page.locator(".gantt .row .who").all_inner_texts()[3:], [
            "master-001", "worker-001", "worker-002",
        ])  # fmt: skip
        events = self.call("GET", f"/clusters/{made}/events").json["events"]
        steps = {(e["step"], e["machine"], e["began"]) for e in events if e["began"]}
        self.assertEqual(page.locator(".bar").count(), len(steps))
        self.assertGreater(page.locator(".bar.path").count(), 3)
        asked = [url.removeprefix(self.base) for url in asked if not url.endswith(OF_HOME)]
        story = f"/v1.1/demo/clusters/{made}/story?change=0"
        usage = f"/v1.1/demo/clusters/{made}"
        self.assertEqual([url for url in asked if url not in (story, usage)], [f"{usage}/events"])
        page.wait_for_timeout(2500)
        self.assertLess(asked.count(story), 9)
        self.assertLess(asked.count(usage), 9)

    @walk()
    def test_scale_and_delete_ask_for_the_name_and_act_once(self, page: Any) -> None:
        """With the plan; a double press sends one request; Escape does what it should."""
        writes: list[str] = []
        made = self.active(workers=3)

        def note(request: Any) -> None:
            if request.method in ("PUT", "DELETE") and "dry_run" not in request.url:
                writes.append(request.method)

        page.on("request", note)
        page.goto(f"/console/#/clusters/{made}")
        page.get_by_role("button", name="Scale", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("worker").fill("5")
        dialog.get_by_text("Create 2 machines").wait_for()
        self.assertIn("Machines\t2\t196\t194", dialog.inner_text())
        dialog.get_by_label("worker").fill("500")
        dialog.get_by_text("the quota of the project is too small").wait_for()
        dialog.get_by_label("worker").fill("2")
        dialog.get_by_text("Delete 1 machine").wait_for()
        command = dialog.locator(".cli code").text_content()
        self.assertEqual(command, "svcd cluster scale etl worker=2")
        act = dialog.get_by_role("button", name="Change the size")
        self.assertTrue(act.is_disabled())
        dialog.get_by_label("Type etl").fill("etl")
        act.dblclick()
        page.locator(".facts", has_text="3 machines").wait_for()
        self.assertEqual(writes, ["PUT"])
        delete = page.get_by_role("button", name="Delete", exact=True)
        delete.click()
        dialog.get_by_label("Type etl").wait_for()
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        self.run_job(self.job("count"), made, svcd__fake__outcome="hang")
        delete.click()
        dialog.get_by_text("1 run has not ended and will be killed").wait_for()
        dialog.get_by_label("Type etl").fill("etl")
        page.keyboard.press("Enter")
        told = page.get_by_text("The cluster etl is deleted.")
        told.wait_for()
        self.assertEqual(writes, ["PUT", "DELETE"])
        page.get_by_text("No clusters yet").wait_for()
        self.assertEqual(page.evaluate("document.activeElement.id"), "main")
        page.get_by_role("link", name="Runs").first.click()
        told.wait_for(state="hidden")
        page.goto("/console/#/clusters/6b0c1cc7-0f4c-4f5e-8c9c-000000000000")
        page.get_by_text("This cluster does not exist").wait_for()
        page.wait_for_function("document.title === 'Cluster · svcd'")
        asked = page.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
        self.assertFalse([url for url in asked if "000000000000/events" in url])
        page.get_by_role("link", name="See all clusters").press("Enter")
        page.get_by_text("No clusters yet").wait_for()
        told.wait_for(state="hidden")


class LaunchTests(ConsoleCase):
    @walk()
    def test_a_cluster_is_made_with_the_plan_beside_it(self, page: Any) -> None:
        """Each refusal stands beside its field, nothing typed is lost, two presses act once."""
        writes: list[str] = []
        page.on(
            "request",
            lambda r: r.method == "POST" and "dry_run" not in r.url and writes.append(r.url),
        )
        page.goto("/console/")
        page.get_by_role("link", name="New cluster").click()
        name = page.get_by_label("Name", exact=True)
        page.get_by_text("Still needed: Name", exact=True).wait_for()
        name.fill("e t")
        self.assertEqual(page.get_by_label("Key pair").input_value(), "demo")
        page.get_by_role("textbox", name="Machines").nth(1).fill("many")
        create = page.get_by_role("button", name="Create the cluster")
        create.click()
        page.locator(".field", has_text="Name").get_by_text('got "e t"').wait_for()
        group = page.locator(".group").nth(1)
        group.get_by_text('a whole number of at least 1, got "many"').wait_for()
        self.assertEqual(page.evaluate("document.activeElement.value"), "e t")

        name.fill("etl")
        page.get_by_role("textbox", name="Machines").nth(1).fill("2")
        sizes = page.get_by_label("Flavor")
        self.assertEqual(
            [each.inner_text() for each in sizes.nth(1).locator("option").all()],
            [
                "choose a flavor",
                "m1.tiny: 1 vCPU, 0.5 GiB RAM, 1 GiB disk",
                "m1.small: 1 vCPU, 2 GiB RAM, 20 GiB disk",
                "m1.medium: 2 vCPU, 4 GiB RAM, 40 GiB disk",
                "m1.large: 4 vCPU, 8 GiB RAM, 80 GiB disk",
            ],
        )
        self.assertEqual([each.input_value() for each in sizes.all()], ["3", "3"])
        for each in sizes.all():
            each.select_option("2")
        page.get_by_label("Find an option").fill("block replication default")
        page.get_by_role("button", name="Add dfs.replication", exact=True).click()
        options = page.get_by_label("Options, one on a line")
        self.assertEqual(options.input_value(), "HDFS.dfs.replication=3")
        page.get_by_text("the cluster needs at least 3 of datanode, it has 2").wait_for()
        options.fill("HDFS.dfs.replication=2\nHDFS.nope=1\nHDFS.a.password=x")
        create.click()
        page.get_by_text("HDFS.nope: unknown option").first.wait_for()
        page.get_by_role("link", name="Images").click()
        page.get_by_text("Registered images").wait_for()
        page.go_back()
        self.assertEqual(options.input_value(), "HDFS.dfs.replication=2\nHDFS.nope=1\n")
        page.get_by_text("does not keep lines with secrets").wait_for()
        options.fill("HDFS.dfs.replication=2")
        page.locator(".plan").get_by_text("Create 3 machines").wait_for()
        plan = page.locator(".plan").inner_text()
        self.assertIn("etl-master-001, etl-worker-001, etl-worker-002", plan)
        self.assertIn("Machines\t3\t200\t197", plan)
        self.assertIn("Memory, GiB\t6\t1,600\t1,594", plan)
        self.assertEqual(
            page.locator(".sheet .foot .cli code").text_content(),
            "svcd cluster create etl --plugin fake --plugin-version 0.1 --workers 2 --flavor 2"
            f" --image {self.svcd.image_id} --keypair demo --set HDFS.dfs.replication=2",
        )
        page.get_by_text("The request", exact=True).click()
        request = page.locator("details[open] code").inner_text()
        self.assertIn('-H "X-Auth-Token: $TOKEN"', request)
        self.assertEqual(
            json.loads(request.partition(" -d '")[2].removesuffix("'"))["node_groups"][1],
            {
                "name": "worker",
                "count": 2,
                "flavor_id": "2",
                "node_processes": ["datanode", "nodemanager"],
            },
        )
        writes.clear()
        create.dblclick()
        page.locator("h1", has_text="etl").wait_for()
        self.assertEqual(writes, [f"{self.base}/v1.1/demo/clusters"])
        page.goto("/console/#/launch")
        self.assertEqual(name.input_value(), "")

    @walk()
    def test_a_template_gives_its_groups(self, page: Any) -> None:
        """Until they are changed. A quota that is too small is told; names are texts."""
        group = {"flavor_id": self.svcd.flavor_id}
        template = {
            "name": "small",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "node_groups": [
                {
                    "name": "all",
                    "count": 1,
                    "node_processes": [*MASTER, "datanode", "nodemanager"],
                    **group,
                }
            ],
        }
        made = self.call("POST", "/cluster-templates", template).json["cluster_template"]["id"]
        page.goto("/console/#/launch")
        page.get_by_label("Name", exact=True).fill("etl")
        page.get_by_label("Description").fill(HOSTILE)
        page.get_by_label("Made of").select_option("Template small")
        page.get_by_text("Create 1 machine").wait_for()
        command = page.locator(".sheet .foot .buttons .cli code")
        self.assertIn(f"--template {made} ", command.text_content())
        page.get_by_role("textbox", name="Machines").fill("3")
        page.get_by_text("exactly 1 namenode").wait_for()
        self.assertIn("svcd cluster create -f - <<'END'", command.text_content())
        page.get_by_role("textbox", name="Machines").fill("1")
        page.get_by_role("button", name="Add a group").click()
        page.get_by_label("Name of the group").nth(1).fill("more")
        page.get_by_role("group", name="Group more").wait_for()
        page.get_by_role("textbox", name="Machines").nth(1).fill("900")
        page.get_by_label("datanode", exact=True).nth(1).check()
        page.get_by_text("the quota of the project is too small").wait_for()
        page.get_by_role("button", name="Remove group more").click()
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Add a group")
        page.get_by_role("button", name="Create the cluster").click()
        page.locator("h1", has_text="etl").wait_for()
        self.assertIn("<b onclick", page.locator("main").inner_text())


class EndingTests(ConsoleCase):
    settings = {"provisioning.max_age_s": "172800"}

    @walk()
    def test_a_cluster_that_ends_by_itself(self, page: Any) -> None:
        """Made in the form, told in the list and on its page with the reason, and kept."""
        group = {"flavor_id": self.svcd.flavor_id, "count": 1, "name": "all"}
        processes = [*MASTER, "datanode", "nodemanager"]
        template = {"name": "small", "plugin_name": "fake", "engine_version": "0.1"}
        template["node_groups"] = [{**group, "node_processes": processes}]
        self.call("POST", "/cluster-templates", {**template, "idle_delete_s": 5400})
        page.goto("/console/#/launch")
        page.get_by_label("Name", exact=True).fill("etl")
        idle, age = page.get_by_label("Delete after idle time"), page.get_by_label("Maximum age")
        self.assertEqual(
            idle.locator("option").all_inner_texts(),
            ["default of svcd", "never", "1 h", "8 h", "1 d", "7 d"],
        )
        page.get_by_label("Made of").select_option("Template small")
        first = idle.locator("option").first
        self.assertEqual(first.inner_text(), "that of the template: 1 h 30 min")
        age.select_option("7 d")
        create = page.get_by_role("button", name="Create the cluster")
        create.click()
        fault = page.locator(".field", has_text="Maximum age").locator(".fault")
        fault.get_by_text("172800").wait_for()
        age.select_option("1 d")
        fault.wait_for(state="detached")
        command = page.locator(".sheet .foot .buttons .cli code").text_content()
        self.assertTrue(command.endswith(" --keypair demo --max-age 24h"), command)
        create.click()
        page.locator("h1", has_text="etl").wait_for()
        life = page.get_by_role("region", name="Lifetime and usage")
        life.get_by_text(re.compile("^in 1 h, last used ")).wait_for()
        self.assertIn("Delete after idle time\n1 h 30 min\nMaximum age\n1 d\n", life.inner_text())
        page.locator(".facts", has_text="deleted in 1 h").wait_for()
        bodies: list[Any] = []
        page.on("request", lambda r: r.method == "PUT" and bodies.append(r.post_data_json))
        page.get_by_role("button", name="Keep 2 hours").click()
        dialog = page.get_by_role("dialog")
        command = dialog.locator(".cli code").text_content()
        self.assertEqual(command, "svcd cluster keep etl")
        dialog.get_by_role("button", name="Keep 2 hours").dblclick()
        life.get_by_text("Kept until").wait_for()
        self.assertEqual([list(each) for each in bodies], [["keep_until"]])
        page.get_by_role("link", name="Clusters").first.click()
        page.locator("td", has_text=re.compile("Active deleted in [12] h")).wait_for()
        self.in_reactor(lambda: self.svcd.advance(7000))
        page.reload()  # the page reads the time from answers
        page.locator("td", has_text=re.compile("Active deleted in [1-3] min")).wait_for()
        self.in_reactor(lambda: self.svcd.advance(600))
        page.get_by_text("No clusters yet").wait_for()


class ChoiceTests(ConsoleCase):
    @walk()
    def test_an_incomplete_list_leaves_a_field_to_type(self, page: Any) -> None:
        """With the reason above the form."""
        self.svcd.faults.add(FaultRule(where="compute", path="/flavors", status=500))
        page.goto("/console/#/launch")
        page.get_by_text("Not all choices can be shown").wait_for()
        page.get_by_text("compute: ").first.wait_for()
        sizes = page.get_by_label("Flavor (its id)")
        self.assertEqual([each.input_value() for each in sizes.all()], ["", ""])
        sizes.nth(0).fill("2")
        self.assertEqual(page.get_by_label("Key pair").input_value(), "demo")

    @walk()
    def test_networks_of_machines_and_pools_of_addresses(self, page: Any) -> None:
        """Each at its place; the request has their ids."""
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


class ListTests(ConsoleCase):
    @walk()
    def test_the_few_clusters_of_home_and_all_of_them(self, page: Any) -> None:
        """Home has those that need attention first; filters are in the address of the list."""
        self.svcd.faults.add(FaultRule(where="compute", method="POST", path="servers", status=403))
        self.make(name="poor")
        self.in_reactor(lambda: self.svcd.advance(30))
        self.in_reactor(self.svcd.faults.clear)
        for number in range(9):
            self.make(name=f"etl-{number}")
        page.goto("/console/")
        page.locator("h2", has_text="Clusters 10").wait_for()
        names = page.locator("tbody th")
        newest = [f"etl-{number}" for number in range(8, 1, -1)]
        self.in_reactor(lambda: self.svcd.advance(60))
        page.locator(".state.good").nth(6).wait_for()
        self.assertEqual(names.all_inner_texts(), ["poor", *newest])
        page.get_by_role("link", name="All clusters").click()
        page.locator("h1", has_text="Clusters 10").wait_for()
        page.wait_for_function("document.title === 'Clusters · svcd'")
        here = page.get_by_role("navigation").locator("[aria-current]")
        self.assertEqual(here.all_inner_texts(), ["Clusters"])
        status = page.get_by_label("Status")
        self.assertEqual(
            status.locator("option").all_inner_texts(),
            ["all", "needs attention", "is changing", "Active", "Error"],
        )
        status.select_option("needs attention")
        page.locator("h1", has_text="Clusters 1").wait_for()
        self.assertEqual(names.all_inner_texts(), ["poor"])
        page.get_by_label("Find a cluster").fill("ETL")
        page.get_by_text("No cluster fits the filters").wait_for()
        status.select_option("Active")
        page.locator("h1", has_text="Clusters 9").wait_for()
        page.reload()
        page.locator("h1", has_text="Clusters 9").wait_for()
        page.get_by_role("link", name="etl-3").click()
        page.locator("h1", has_text="etl-3").wait_for()
        page.locator(".crumbs").get_by_role("link", name="Clusters").click()
        page.locator("h1", has_text="Clusters 10").wait_for()

    @walk()
    def test_a_row_opens_by_a_click_anywhere(self, page: Any) -> None:
        """As its link does; not when its text is selected, nor for what is pressed in it."""
        cluster, job = self.active(name="etl"), self.job("report")
        self.active(name="other")
        run = self.run_job(job, cluster)
        self.in_reactor(lambda: self.svcd.advance(30))
        place = "location.hash"
        page.goto("/console/#/clusters")
        plugin = page.get_by_role("row", name="etl").get_by_text("fake 0.1")
        box = plugin.bounding_box()
        end = page.get_by_role("row", name="other").get_by_text("fake 0.1").bounding_box()
        across, middle = box["x"] + 2, box["y"] + 20
        for to in ((across + 50, middle), (end["x"] + 30, end["y"] + 20)):
            page.mouse.move(across, middle)
            page.mouse.down()
            page.mouse.move(*to, steps=5)
            page.mouse.up()
            self.assertNotEqual(page.evaluate("getSelection().toString()"), "")
        self.assertEqual(page.evaluate(place), "#/clusters")
        for options in ({"modifiers": ["ControlOrMeta"]}, {"button": "middle"}):
            with page.context.expect_page() as opened:
                plugin.click(**options)
            opened.value.locator("h1", has_text="etl").wait_for()
            opened.value.close()
        plugin.click(button="right")
        self.assertEqual(page.evaluate(place), "#/clusters")
        plugin.click()
        page.locator("h1", has_text="etl").wait_for()
        page.get_by_role("row", name="master-001").click(position={"x": 4, "y": 4})
        self.assertEqual(page.evaluate(place), f"#/clusters/{cluster}")
        page.go_back()
        page.locator("h1", has_text="Clusters 2").wait_for()
        page.goto("/console/#/runs")
        page.get_by_role("row", name="report").get_by_text("SUCCEEDED").click()
        page.locator("h1", has_text="report").wait_for()
        self.assertEqual(page.evaluate(place), f"#/runs/{run}")
        page.goto("/console/#/jobs?show=binaries")
        page.get_by_role("button", name="Delete report.pig").click()
        page.get_by_role("dialog").wait_for()


class HealthTests(ConsoleCase):
    settings = {"provisioning.health_poll_s": "20", "embedded.boot_s": "30"}

    @walk()
    def test_a_fault_stays_in_view_while_the_cluster_is_scaled(self, page: Any) -> None:
        """With its machine, and not with one whose name begins like it; then it is looked for."""
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

    @walk()
    def test_a_provision_fails_on_one_machine(self, page: Any) -> None:
        """Which machine, at which step, code and cause; mended, it is tried again."""
        seen: list[str] = []
        full = [True]

        def third(where: str, method: str, path: str) -> FaultRule | None:
            address, _, command = path.partition(" ")
            if where != "ssh":
                return None
            if address not in seen:
                seen.append(address)
            if full and seen.index(address) == 2 and "cp processes running" in command:
                return FaultRule(where="ssh", status=1, body=DISK)
            return None

        self.svcd.faults.listen(third)
        made = self.make()
        page.goto(f"/console/#/clusters/{made}")
        page.locator(".facts", has_text="Error").wait_for()
        groups = self.call("GET", f"/clusters/{made}").json["cluster"]["node_groups"]
        machines = [each for group in groups for each in group["instances"]]
        (ill,) = (m["instance_name"] for m in machines if m["management_ip"] == seen[2])
        alert = page.get_by_role("alert").inner_text()
        for part in ("COMMAND_FAILED", f"start on {ill}", DISK):
            self.assertIn(part, alert)
        page.locator(".failures li").wait_for()
        (failure,) = page.locator(".failures li").all_inner_texts()
        self.assertIn(f"start on {ill.removeprefix('etl-')}", failure)
        self.assertIn(DISK, failure)
        bar = page.locator(".bar.failed")
        self.assertEqual(bar.count(), 1)
        self.assertIn(f"on {ill}", bar.get_attribute("aria-label"))
        bar.click()
        self.assertIn("failed COMMAND_FAILED", page.locator(".detail").inner_text())
        self.assertEqual(
            page.locator("tr", has_text="unwell").locator("th").all_inner_texts(), [ill]
        )
        full.clear()
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("dialog").get_by_role("button", name="Try again").dblclick()
        page.locator(".facts", has_text="Active").wait_for()
        self.assertEqual(page.get_by_role("alert").count(), 0)
        self.assertEqual(page.locator("tr", has_text="unwell").count(), 0)

    @walk()
    def test_a_lost_machine_is_told_and_replaced(self, page: Any) -> None:
        """A server is deleted in the cloud: Home tells, and a button replaces it."""

        def cloud_deletes(server_id: str) -> None:
            path = f"{CLOUD_URL}/compute/v2.1/servers/{server_id}"
            answer = self.svcd.call("DELETE", path, headers={"X-Auth-Token": self.svcd.token()})
            self.assertEqual(answer.status, 204)
            self.svcd.advance(400)  # until the next look at the health

        made = self.active()
        groups = self.call("GET", f"/clusters/{made}").json["cluster"]["node_groups"]
        lost = groups[1]["instances"][-1]
        page.goto("/console/")
        page.get_by_text("All well").wait_for()
        self.in_reactor(lambda: cloud_deletes(lost["server_id"]))
        page.locator(".attention .card", has_text=lost["instance_name"]).click()
        page.locator("h1", has_text="etl").wait_for()
        alert = page.get_by_role("alert")
        alert.get_by_text("Try again replaces a lost worker").wait_for()
        self.assertNotIn("empty resize", alert.inner_text())
        page.locator("tr", has_text=lost["instance_name"]).get_by_text("DELETED").wait_for()
        page.get_by_role("button", name="Try again").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("replaces the machines that the cloud has no more").wait_for()
        dialog.get_by_role("button", name="Try again").dblclick()
        alert.wait_for(state="hidden")
        page.locator(".facts", has_text="Active").filter(has_text="3 machines").wait_for()


class QuotaTests(ConsoleCase):
    settings = {"embedded.quota_instances": "10", "embedded.quota_floating_ips": "0"}

    def amounts(self, page: Any) -> list[str]:
        return [
            each.replace("\n", " ") for each in page.locator(".quotas dl > div").all_inner_texts()
        ]

    @walk()
    def test_quotas_follow_the_clusters(self, page: Any) -> None:
        """Bars with a text; a quota that is nearly full needs attention."""
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

    @walk()
    def test_a_quota_without_limit_has_no_bar(self, page: Any) -> None:
        absolute = {"maxTotalInstances": -1, "totalInstancesUsed": 7}
        body = json.dumps({"limits": {"absolute": absolute}})
        self.svcd.faults.add(FaultRule(where="compute", path="/limits", status=200, body=body))
        page.goto("/console/")
        page.get_by_text("7, no limit").wait_for()
        self.assertEqual(self.amounts(page)[0], "Machines 7, no limit")
        self.assertEqual(page.locator(".quotas progress").count(), 2)  # of the volumes

    @walk()
    def test_what_cannot_be_read_is_said_beside_the_rest(self, page: Any) -> None:
        """A service that the cloud does not have is no fault."""
        self.svcd.faults.add(FaultRule(where="volume", path="/limits", status=500, body=HOSTILE))
        self.svcd.faults.add(FaultRule(where="network", path="/quotas", status=404))
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
        page.get_by_role("heading", name="First steps").wait_for()
        page.unroute("**/cloud")
        notice.get_by_role("button", name="Try again").click()
        page.get_by_text("0 of 400").wait_for()


class ImageTests(ConsoleCase):
    settings = {"plugins.enabled": "vanilla,fake"}

    @walk()
    def test_images_are_registered_tagged_and_unregistered(self, page: Any) -> None:
        """By keyboard. The command that does the same is shown."""
        page.goto("/console/#/images")
        row = page.get_by_role("row", name="plain")
        row.get_by_text("lacks vanilla 3.5.0").wait_for()
        page.get_by_role("button", name="Change plain").focus()
        page.keyboard.press("Enter")
        page.locator("input:focus").wait_for()  # the focus comes last
        self.assertEqual(page.evaluate("document.activeElement.value"), "svcd")
        page.get_by_label("Login of its system").fill("0 x")
        page.get_by_label("Tags").fill("vanilla 3.5.0")
        self.assertIn(
            f"svcd image register {self.svcd.image_id} --user '0 x' --tag vanilla --tag 3.5.0",
            page.locator(".sheet .foot .cli code").first.text_content(),
        )
        page.keyboard.press("Enter")
        page.locator(".field", has_text="Login").get_by_text("a login name").wait_for()
        page.get_by_label("Login of its system").fill("hadoop")
        page.get_by_label("Description").fill(HOSTILE)
        page.keyboard.press("Enter")
        row.get_by_text("<b onclick").wait_for()
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Change")
        self.assertEqual(row.get_by_text("lacks").count(), 0)
        self.assertEqual(page.locator("main b").count(), 0)
        page.get_by_role("button", name="Change plain").click()
        page.locator("input:focus").wait_for()  # the focus comes last
        self.assertEqual(page.get_by_label("Login of its system").input_value(), "hadoop")
        page.get_by_label("Tags").fill("3.5.0")
        self.assertIn(
            f"&& svcd image untag {self.svcd.image_id} vanilla",
            page.locator(".sheet .foot .cli code").first.text_content(),
        )
        page.keyboard.press("Enter")
        row.get_by_text("lacks vanilla").wait_for()
        page.get_by_role("button", name="Unregister plain").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Type plain").fill("plain")
        page.keyboard.press("Enter")
        page.get_by_text("No image is registered").wait_for()
        page.get_by_role("button", name="Register plain").click()
        page.get_by_role("button", name="Register the image").click()
        row.get_by_text("lacks vanilla 3.5.0").wait_for()
        page.get_by_role("button", name="Register an image").click()
        page.get_by_label("Image of the cloud (its id)").fill("nope")
        page.get_by_label("Login of its system").fill("hadoop")
        page.keyboard.press("Enter")
        page.get_by_text("image 'nope' not found").wait_for()
        page.get_by_label("Find an option of Fake").fill("namenode heap")
        page.get_by_text("Heap of the namenode in MiB").wait_for()
