"""The views of a new cluster, of images and of plugins in a real browser."""

from __future__ import annotations

import json
from typing import Any

from tests.support.console import HOSTILE, MASTER, ConsoleCase


class LaunchTests(ConsoleCase):
    async def test_a_cluster_is_made_with_the_plan_beside_it(self) -> None:
        """Each refusal stands beside its field, nothing typed is lost, two presses act once."""

        def walk(page: Any) -> None:
            writes: list[str] = []
            page.on(
                "request",
                lambda r: r.method == "POST" and "dry_run" not in r.url and writes.append(r.url),
            )
            page.goto("/console/")
            page.get_by_role("link", name="New cluster").click()
            name = page.get_by_label("Name", exact=True)
            page.locator(".plan").get_by_text("name is missing").wait_for()
            name.fill("e t")
            self.assertEqual(page.get_by_label("Key pair").input_value(), "demo")
            page.get_by_role("textbox", name="Machines").nth(1).fill("many")
            create = page.get_by_role("button", name="Create the cluster")
            create.click()
            page.locator(".field", has_text="Name").get_by_text('got "e t"').wait_for()
            group = page.locator(".group").nth(1)
            group.get_by_text('expected int >= 1, got "many"').wait_for()
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
            page.get_by_role("link", name="Images and their tags").click()
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
            main = page.locator("main").inner_text()
            self.assertIn(
                "svcd cluster create etl --plugin fake --plugin-version 0.1 --workers 2 --flavor 2"
                f" --image {self.svcd.image_id} --keypair demo --set HDFS.dfs.replication=2",
                main,
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

        await self.walk(walk)

    async def test_a_template_gives_its_groups(self) -> None:
        """Until they are changed. A quota that is too small is told; names are texts."""
        group = {"flavor_id": self.svcd.flavor_id}

        def walk(page: Any) -> None:
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
            command = page.locator(".sheet > .command")
            self.assertIn(f"--template {made} ", command.inner_text())
            page.get_by_role("textbox", name="Machines").fill("3")
            page.get_by_text("exactly 1 namenode").wait_for()
            self.assertIn("svcd cluster create -f - <<'END'", command.inner_text())
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

        await self.walk(walk)

    async def test_scaling_shows_its_plan(self) -> None:
        """The focus returns to the button."""

        def walk(page: Any) -> None:
            page.goto(f"/console/#/clusters/{self.active()}")
            scale = page.get_by_role("button", name="Scale", exact=True)
            scale.focus()
            page.keyboard.press("Enter")
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("worker").fill("4")
            dialog.get_by_text("Create 2 machines").wait_for()
            self.assertIn("Machines\t2\t197\t195", dialog.inner_text())
            dialog.get_by_label("worker").fill("500")
            dialog.get_by_text("the quota of the project is too small").wait_for()
            dialog.get_by_label("worker").fill("1")
            dialog.get_by_text("Delete 1 machine").wait_for()
            page.keyboard.press("Escape")
            dialog.wait_for(state="hidden")
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "Scale")

        await self.walk(walk)


class ImageTests(ConsoleCase):
    settings = {"plugins.enabled": "vanilla,fake"}

    async def test_images_are_registered_tagged_and_unregistered(self) -> None:
        """By keyboard. The command that does the same is shown."""

        def walk(page: Any) -> None:
            page.goto("/console/#/images")
            row = page.get_by_role("row", name="plain")
            row.get_by_text("lacks vanilla 3.5.0").wait_for()
            page.get_by_role("button", name="Change plain").focus()
            page.keyboard.press("Enter")
            page.get_by_label("Login of its system").wait_for()
            self.assertEqual(page.evaluate("document.activeElement.value"), "svcd")
            page.get_by_label("Login of its system").fill("0 x")
            page.get_by_label("Tags").fill("vanilla 3.5.0")
            self.assertIn(
                f"svcd image register {self.svcd.image_id} --user '0 x' --tag vanilla --tag 3.5.0",
                page.locator("main").inner_text(),
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
            page.get_by_label("Tags").fill("3.5.0")
            self.assertIn(
                f"&& svcd image untag {self.svcd.image_id} vanilla",
                page.locator("main").inner_text(),
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
            page.get_by_label("Id of the image").fill("nope")
            page.get_by_label("Login of its system").fill("hadoop")
            page.keyboard.press("Enter")
            page.get_by_text("image 'nope' not found").wait_for()
            page.get_by_label("Find an option of Fake").fill("namenode heap")
            page.get_by_text("Heap of the namenode in MiB").wait_for()

        await self.walk(walk)


class RequestTests(ConsoleCase):
    """The pure module, as the browser runs it."""

    async def test_what_is_typed_becomes_a_request(self) -> None:
        """Numbers become numbers; empty fields are left out."""

        def walk(page: Any) -> None:
            page.goto("/console/icon.svg")

            def of(module: str, expression: str) -> Any:
                return page.evaluate(
                    f"async () => {{ const m = await import('/console/{module}.js');"
                    f" return {expression}; }}"
                )

            lines = "HDFS.dfs.replication=2\n general.a b = x=y \nHDFS.on=true\nHDFS.id=007\nodd"
            self.assertEqual(
                of("request", f"m.configs({json.dumps(lines)})"),
                {
                    "HDFS": {"dfs.replication": 2, "on": True, "id": "007"},
                    "general": {"a b ": " x=y "},
                    "odd": {"": ""},
                },
            )
            typed = {
                "name": "etl",
                "description": "",
                "default_image_id": "i",
                "user_keypair_id": "",
                "neutron_management_network": "n-1",
                "cluster_configs": "",
                "node_groups": {},
            }
            source = {"plugin_name": "fake", "engine_version": "0.1"}
            groups = [
                {"name": "a", "count": "2", "flavor_id": "1", "node_processes": ["oozie"]}
                | {"floating_ip_pool": ""},
                {"name": "b", "count": "x", "flavor_id": "9", "node_processes": []},
            ]
            given = ", ".join(json.dumps(each) for each in (typed, source, groups))
            body = of("request", f"m.bodyOf({given})")
            self.assertEqual(
                body,
                {
                    "name": "etl",
                    "plugin_name": "fake",
                    "engine_version": "0.1",
                    "default_image_id": "i",
                    "neutron_management_network": "n-1",
                    "node_groups": [
                        {"name": "a", "count": 2, "flavor_id": "1", "node_processes": ["oozie"]},
                        {"name": "b", "count": "x", "flavor_id": "9", "node_processes": []},
                    ],
                },
            )

        await self.walk(walk)
