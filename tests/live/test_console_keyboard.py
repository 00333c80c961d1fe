"""The console without a mouse and without eyes: keys, and the accessibility tree of Chromium."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.console_peer import SETTINGS, fill
from tests.support.console import ConsoleCase, walk

MOST = 120
"""Presses of Tab that the way to a control of a view may take."""
LOOK_MS, LOOKS = 20, 250
"""How often, and how many times, the focus is looked at; the page moves it after it has drawn."""
FIND = "Find a cluster, a job, a run or a view"
ACTS = {"button", "link", "textbox", "searchbox", "checkbox", "combobox", "spinbutton", "radio"}


class Reader:
    """Presses keys, and tells what a screen reader would."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Accessibility.enable")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._page.keyboard.press(key)

    def type(self, text: str) -> None:
        self._page.keyboard.type(text)

    def here(self) -> tuple[str, str]:
        """Role and name of the node with the focus."""
        found = self._devtools.send("Runtime.evaluate", {"expression": "document.activeElement"})
        (node, *_) = self._devtools.send(
            "Accessibility.getPartialAXTree",
            {"objectId": found["result"]["objectId"], "fetchRelatives": False},
        )["nodes"]
        return _said(node)

    def at(self, role: str, name: str | None = None) -> None:
        """Wait until a control of that role, and with that name if one is given, has the focus."""
        for _ in range(LOOKS):
            here = self.here()
            if here[0] == role and name in (None, here[1]):
                return
            self._page.wait_for_timeout(LOOK_MS)
        raise AssertionError(f"the focus is at {here}, not at {role} {name or ''}")

    def go(self, role: str, name: str, key: str = "Tab") -> None:
        """Press Tab until that control has the focus. Each control on the way has a name."""
        passed = []
        for _ in range(MOST):
            self.press(key)
            passed.append(self.here())
            if passed[-1][0] in ACTS and not passed[-1][1]:
                raise AssertionError(f"a control without a name after {passed}")
            if passed[-1][0] == role and passed[-1][1].startswith(name):
                return
        raise AssertionError(f"no {role} {name!r} among {passed}")

    def nodes(self, *roles: str) -> list[tuple[str, str]]:
        """Roles and names of the nodes with these roles, in the order of reading."""
        tree = self._devtools.send("Accessibility.getFullAXTree")["nodes"]
        by_id = {node["nodeId"]: node for node in tree}
        found: list[tuple[str, str]] = []

        def visit(node: Any) -> None:
            if not node.get("ignored") and node["role"]["value"] in roles:
                found.append(_said(node))
            for each in node.get("childIds", ()):
                if each in by_id:
                    visit(by_id[each])

        visit(tree[0])
        return found


def _said(node: Any) -> tuple[str, str]:
    return node["role"]["value"], node.get("name", {}).get("value", "")


class KeyboardTests(ConsoleCase):
    timeout = 110

    @walk(permissions=["clipboard-read", "clipboard-write"])
    def test_the_life_of_a_cluster_by_keys_alone(self, page: Any) -> None:
        """Each control has a role and a name, and the focus is where the next key is of use."""
        reader = Reader(page)
        self.job("report")
        for name in ("in", "out"):
            body = {"name": name, "type": "hdfs", "url": f"hdfs:///{name}"}
            self.call("POST", "/data-sources", body)
        page.goto("/console/")
        page.get_by_text("No clusters yet").wait_for()
        reader.go("link", "To the content", "Shift+Tab")
        reader.press("Enter")
        reader.at("main")
        reader.go("link", "New cluster")
        reader.press("Enter")
        page.get_by_label("Name", exact=True).wait_for()
        reader.at("textbox", "Name")
        reader.type("etl")
        reader.go("button", "Create the cluster")
        ring = "getComputedStyle(document.activeElement).outlineStyle"
        self.assertEqual(page.evaluate(ring), "solid", "the control with the focus is seen")
        reader.press("Enter")
        page.locator("h1", has_text="etl").wait_for()
        reader.at("main")
        page.locator(".facts", has_text="Active").wait_for()
        self.change(page, reader)
        self.run_it(page, reader)
        self.delete(page, reader)

    def change(self, page: Any, reader: Reader) -> None:
        """A question keeps the focus until it is answered; arrow keys move in the drawing."""
        page.get_by_text("instance hours").wait_for()
        self.assertEqual(
            reader.nodes("banner", "navigation", "main", "heading", "dialog", "alert"),
            [
                ("banner", ""),
                ("navigation", "Views"),
                ("main", ""),
                ("heading", "etl"),
                ("heading", "Provision"),
                ("heading", "Machines"),
                ("heading", "master 1"),
                ("heading", "worker 2"),
                ("heading", "Lifetime and usage"),
                ("heading", "Links"),
                ("heading", "Events 24"),
            ],
        )
        reader.go("button", "Scale")
        reader.press("Enter")
        reader.at("textbox", "master now 1")
        self.assertEqual(reader.nodes("dialog"), [("dialog", "Change the size")])
        passed = []
        for _ in range(8):
            reader.press("Tab")
            passed.append(reader.here()[1])
        known = ["worker now 2", "CLI command that does the same", "Keep things as they are"]
        self.assertEqual(passed, [*known, "", "master now 1", *known])
        reader.go("DisclosureTriangle", "CLI", "Shift+Tab")
        reader.press("Enter", "Tab")
        self.assertEqual(reader.here()[1], "svcd cluster scale etl")
        reader.press("Tab", "Enter")
        told = page.get_by_role("dialog").get_by_role("status").filter(has_text="Copied")
        told.wait_for(state="attached")
        self.assertEqual(page.evaluate("navigator.clipboard.readText()"), "svcd cluster scale etl")
        self.assertEqual(reader.here(), ("button", "Copied the command"))
        reader.press("Escape")
        page.get_by_role("dialog").wait_for(state="hidden")
        reader.at("button", "Scale")
        reader.go("DisclosureTriangle", "Took")
        reader.press("Enter")
        reader.go("button", "create security group")
        reader.press("ArrowDown", "ArrowRight", "ArrowRight")
        self.assertTrue(reader.here()[1].startswith("log in on etl-master-001, "), reader.here())
        page.locator(".detail", has_text="log in on etl-master-001").wait_for()

    def run_it(self, page: Any, reader: Reader) -> None:
        """The first wrong field gets the focus; a choice is typed."""
        reader.go("link", "Jobs", "Shift+Tab")
        reader.press("Enter")
        page.get_by_role("link", name="report").wait_for()
        reader.go("link", "report")
        reader.press("Enter")
        page.get_by_role("link", name="Run it").wait_for()
        reader.at("main")
        reader.go("link", "Run it")
        reader.press("Enter")
        page.get_by_role("button", name="Run the job").wait_for()
        reader.go("button", "Run the job")
        reader.press("Enter")
        page.get_by_text("Not done: see the marked fields").wait_for()
        reader.at("combobox", "Input")
        reader.type("in")
        reader.go("combobox", "Output")
        reader.type("out")
        reader.go("button", "Run the job")
        reader.press("Enter")
        page.locator(".facts", has_text="on etl").wait_for()
        reader.at("main")
        reader.go("checkbox", "Everything")
        reader.press("Space")
        page.locator("pre.log").wait_for()
        reader.go("searchbox", "Find in the log", "Shift+Tab")
        reader.type("nothing has this")
        page.get_by_text(re.compile("^0 of ")).wait_for()
        page.locator(".facts", has_text="SUCCEEDED").wait_for()
        reader.go("link", "etl", "Shift+Tab")
        reader.press("Enter")

    def delete(self, page: Any, reader: Reader) -> None:
        """The name is typed at once, for its field has the focus."""
        page.locator("h1", has_text="etl").wait_for()
        reader.go("button", "Delete")
        reader.press("Enter")
        reader.at("textbox", "Type etl to confirm")
        reader.type("etl")
        reader.press("Enter")
        page.get_by_text("The cluster etl is deleted.").wait_for()
        page.get_by_text("No clusters yet").wait_for()
        reader.at("main")


class FindTests(ConsoleCase):
    """Keys that act in each view, among 1,000 clusters and 10,000 runs."""

    timeout = 110
    settings = SETTINGS

    @walk()
    def test_ctrl_k_finds_a_run_among_many(self, page: Any) -> None:
        """By the beginning of its id or the name of its job; then the focus is in its view."""
        self.in_reactor(lambda: fill(self.svcd, 999, 9999))
        cluster, job = self.active(name="etl"), self.job("report")
        run = self.run_job(job, cluster)
        self.run_job(job, cluster)
        self.in_reactor(lambda: self.svcd.advance(30))
        reader = Reader(page)
        page.goto("/console/#/clusters")
        page.locator("h1", has_text="Clusters 1000").wait_for(timeout=60_000)
        reader.go("link", "New cluster")
        reader.press("Control+k")
        reader.at("combobox", FIND)
        self.assertEqual(
            reader.nodes("dialog", "listbox"), [("dialog", "Find"), ("listbox", "Found")]
        )
        self.assertEqual(len(reader.nodes("option")), 12)
        reader.press("Control+k", "Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        reader.at("link", "New cluster")
        reader.press("Control+k")
        reader.at("combobox", FIND)
        reader.type("20000000-")
        page.get_by_text("12 shown, the newest first").wait_for()
        reader.press("ControlOrMeta+a")
        reader.type(f"{run[:8]}/?")
        page.get_by_text("Nothing has this name or id").wait_for()
        reader.press("Backspace", "Backspace")
        page.get_by_text("1 shown").wait_for()
        reader.press("Enter")
        page.locator("h1", has_text="report").wait_for()
        self.assertEqual(page.evaluate("location.hash"), f"#/runs/{run}")
        reader.at("main")
        reader.press("Control+k")
        reader.at("combobox", FIND)
        reader.type("rep")
        chosen = page.locator("[aria-selected=true]")
        chosen.get_by_text("report").wait_for()
        self.assertEqual(chosen.inner_text().split("\n")[:2], ["job", "report"])
        reader.press("ArrowUp", "ArrowDown", "ArrowDown")
        row = chosen.inner_text().upper().split("\n")
        self.assertEqual(row[:3], ["RUN", "REPORT", "SUCCEEDED"])
        combobox = page.get_by_role("combobox")
        self.assertEqual(
            combobox.get_attribute("aria-activedescendant"), chosen.get_attribute("id")
        )
        with page.context.expect_page() as opened:
            chosen.click(modifiers=["ControlOrMeta"])
        opened.value.locator("h1", has_text="report").wait_for()
        opened.value.close()
        reader.press("ArrowUp", "Enter")
        page.locator("h1 + .facts", has_text="Pig").wait_for()

    @walk()
    def test_single_keys_act_where_no_text_is_typed(self, page: Any) -> None:
        """They search, show themselves, are switched off, and leave a question alone."""
        cluster = self.active(name="etl")
        self.run_job(self.job("report"), cluster)
        reader = Reader(page)
        dialog = page.get_by_role("dialog")
        page.goto("/console/#/runs")
        page.locator("h1", has_text="Runs 1").wait_for()
        reader.press("/")
        reader.at("searchbox")
        reader.type("a?/")
        page.get_by_text("No run fits the filters").wait_for()
        self.assertEqual(page.get_by_label("Find a job").input_value(), "a?/")
        self.assertEqual(dialog.count(), 0)
        reader.go("link", "Home", "Shift+Tab")
        reader.press("Enter")
        page.locator("h2", has_text="Clusters 1").wait_for()
        reader.press("/")
        reader.at("combobox", FIND)  # for Home has no search
        reader.press("Escape", "?")
        reader.at("button", "Close")
        self.assertEqual(
            dialog.locator("kbd").all_inner_texts(), ["Ctrl K", "/", "?", "Enter", "Esc"]
        )
        reader.go("checkbox", "Use the keys / and ?", "Shift+Tab")
        reader.press("Space", "Escape")
        reader.at("link", "Home")
        reader.press("?", "/")
        self.assertEqual(dialog.count(), 0)
        page.get_by_role("button", name="Find").click()
        reader.at("combobox", FIND)
        dialog.get_by_role("button", name="Keys").click()
        dialog.get_by_label("Use the keys").check()
        reader.press("Escape")
        dialog.wait_for(state="detached")
        page.goto(f"/console/#/clusters/{cluster}")
        page.get_by_role("button", name="Scale").click()
        reader.at("textbox", "master now 1")
        reader.press("Control+k")
        reader.go("button", "Keep things as they are")
        reader.press("?", "/")
        self.assertEqual(reader.nodes("dialog"), [("dialog", "Change the size")])
