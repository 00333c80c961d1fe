"""The log of a run as a tool: find, mark, copy and save, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.support.console import HOSTILE, ConsoleCase, Held, walk

LOG = re.compile("/log[?]")
GAP = "[svcd: 70 bytes are missing here, from byte 9 of this file on: it is large]"
REASON = "the column price does not exist"
LINES = [f"row {number} of the table" for number in range(1, 401)]
LINES[99] = "a Needle here, and a needle there"
LINES[149] = GAP
LINES[199] = f"needle {HOSTILE} \x1b[31mred\x1b[0m"
LINES[299] = f"Exception: {REASON}"
LINES[349] = f"needle {'x' * 3000}"
TEXT = "\n".join(LINES) + "\n"
MANY = 200_000
ELEMENTS = 1200
"""Most elements of the page with a log."""
MARKED = ".line[aria-current]"
IN_VIEW = """(line) => {
    const [box, own] = [line.closest("pre"), line].map((one) => one.getBoundingClientRect());
    return own.top >= box.top && own.bottom <= box.bottom && own.top < innerHeight;
}"""
READ_CLIPBOARD = "navigator.clipboard.readText()"
PERMISSIONS = ["clipboard-read", "clipboard-write"]


def headers(text: str, **more: str) -> dict[str, str]:
    """The headers of the whole log."""
    known = {"X-Log-Offset": str(len(text.encode())), "X-Log-Complete": "true"}
    return known | {f"X-Log-{name.replace('_', '-')}": value for name, value in more.items()}


class LogTests(ConsoleCase):
    def run_of(self, page: Any) -> str:
        """A run that failed; its id. Its log is LINES, and one line more with everything."""
        run = self.run_job(
            self.job("report"),
            self.active(),
            svcd__fake__outcome="fail",
            svcd__fake__error=REASON,
        )
        self.in_reactor(lambda: self.svcd.advance(30))

        def answer(route: Any) -> None:
            text = TEXT + ("of the engine\n" if "programs=false" in route.request.url else "")
            route.fulfill(body=text, headers=headers(text, Gap="true", Left_Out="7"))

        page.route(LOG, answer)
        return run

    def marked(self, page: Any, number: int) -> None:
        """The line is marked, and in view."""
        line = page.locator(MARKED, has=page.get_by_label(f"Line {number}"))
        line.wait_for()
        self.assertEqual(page.locator(MARKED).count(), 1)
        page.wait_for_function(IN_VIEW, arg=line.element_handle())

    @walk(permissions=PERMISSIONS, accept_downloads=True)
    def test_a_log_is_searched_marked_copied_and_saved(self, page: Any) -> None:
        """Matches keep their context, a link leads to a line, and hostile text is text."""
        run = self.run_of(page)
        page.goto(f"/console/#/runs/{run}")
        find = page.get_by_label("Find in the log")
        page.get_by_label("Line 400").wait_for()  # the end
        find.fill("NEEDLE")
        page.get_by_text("1 of 3", exact=True).wait_for()
        self.marked(page, 100)
        self.assertEqual(page.locator(f"{MARKED} mark").all_inner_texts(), ["Needle", "needle"])
        page.get_by_label("Line 99", exact=True).wait_for()  # the context
        find.press("Enter")
        self.marked(page, 200)
        self.assertIn("⟨U+202E⟩gpj.exe", page.locator(MARKED).inner_text())
        self.assertIn("red", page.locator(MARKED).inner_text())
        page.get_by_role("button", name="Next match").click()
        self.marked(page, 350)
        page.get_by_text("3 of 3", exact=True).wait_for()
        find.press("Enter")
        self.marked(page, 100)
        find.press("Shift+Enter")
        self.marked(page, 350)
        page.get_by_role("button", name="Previous match").click()
        page.reload()
        self.marked(page, 200)
        self.assertFalse(page.get_by_label("Follow").is_checked())
        page.get_by_label("Find in the log").fill("nowhere")
        page.get_by_text("0 of 0").wait_for()
        self.marked(page, 200)

        page.get_by_role("button", name="First error").click()
        self.marked(page, 300)
        page.get_by_role("button", name="Copy line").click()
        page.get_by_text("Copied.").wait_for()
        self.assertEqual(page.evaluate(READ_CLIPBOARD), f"Exception: {REASON}")
        page.get_by_role("link", name="line 150").click()
        self.marked(page, 150)
        self.assertIn(GAP, page.locator(".line.gap").inner_text())
        page.get_by_label("Line 152").click()
        self.marked(page, 152)
        page.go_back()
        self.marked(page, 150)
        page.get_by_role("button", name="Copy", exact=True).click()
        page.wait_for_function(f"{READ_CLIPBOARD}.then((text) => text.includes('⟨U+202E⟩'))")
        self.assertNotIn("\u202e", page.evaluate(READ_CLIPBOARD))

        page.goto(f"/console/#/runs/{run}?line=350")
        self.marked(page, 350)
        wrapped = page.locator(MARKED).bounding_box()["height"]
        page.get_by_label("Wrap").uncheck()
        page.wait_for_function("document.querySelector('.line[aria-current]').offsetHeight === 20")
        self.assertGreater(wrapped, 200)
        self.marked(page, 350)
        page.goto(f"/console/#/runs/{run}?line=900")
        page.get_by_text("There is no line 900.").wait_for()

        for everything, end in ((False, ""), (True, "of the engine\n")):
            page.get_by_label("Everything").set_checked(everything)
            page.get_by_text("Left out: 7 lines").wait_for()
            with page.expect_download() as download:
                page.get_by_role("button", name="Download").click()
            self.assertEqual(download.value.suggested_filename, f"report-{run[:8]}.log")
            saved = Path(download.value.path()).read_bytes()
            self.assertEqual(saved.decode(), TEXT + end)
        page.get_by_text(f"svcd job logs {run} --all").wait_for(state="attached")
        page.unroute(LOG)
        fault = {"error_code": 503, "error_name": "X", "error_message": "the database is away"}
        page.route(LOG, lambda route: route.fulfill(status=503, json=fault))
        page.get_by_role("button", name="Download").click()
        page.get_by_text("Not done: the database is away").wait_for()

    @walk()
    def test_a_log_of_200_000_lines_is_drawn_in_parts(self, page: Any) -> None:
        """Each line is reached, by scrolling, by its number and by a search."""
        run = self.run_of(page)
        page.unroute(LOG)
        text = "".join(f"line {number}\n" for number in range(1, MANY + 1))
        page.route(LOG, lambda route: route.fulfill(body=text, headers=headers(text)))
        page.goto(f"/console/#/runs/{run}")
        page.get_by_label(f"Line {MANY}").wait_for()
        self.small(page)
        page.locator("pre.log").evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
        page.get_by_label(f"Line {MANY // 2}", exact=True).wait_for()
        self.assertFalse(page.get_by_label("Follow").is_checked())
        page.get_by_label("Follow").check()
        page.get_by_label(f"Line {MANY}").wait_for()
        page.get_by_label("Find in the log").fill("line 1234")
        page.get_by_text("1 of 111", exact=True).wait_for()
        page.keyboard.press("Shift+Enter")
        self.marked(page, 123_499)
        self.small(page)
        page.goto(f"/console/#/runs/{run}?line=77777")
        self.marked(page, 77_777)
        page.set_viewport_size({"width": 360, "height": 780})
        self.marked(page, 77_777)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)

    def small(self, page: Any) -> None:
        self.assertLess(page.evaluate("document.querySelectorAll('*').length"), ELEMENTS)

    @walk()
    def test_a_run_that_fails_while_its_log_is_followed(self, page: Any) -> None:
        """An answer that comes late is waited for; the engine's lines show when it has ended."""
        cluster, job = self.active(), self.job("report")
        held = Held(page, "**/log?*", "GET")
        run = self.run_job(
            job,
            cluster,
            svcd__fake__outcome="fail",
            svcd__fake__error=REASON,
            svcd__fake__run_s="40",
        )
        page.goto(f"/console/#/runs/{run}")
        page.get_by_text("Reading the log…").wait_for()
        page.wait_for_function(f"document.title === 'Running: report {run[:8]} · svcd'")
        page.route(LOG, lambda route: route.fulfill(body=f"x {REASON}\n", headers=headers("")))
        text = "==> job-node application_1_1 stdout <==\nstep 1\n"
        held.answer(body=text, headers={"X-Log-Offset": "9999", "X-Log-Complete": "false"})
        page.get_by_text("step 1").wait_for()
        page.get_by_role("alert").get_by_text(REASON).wait_for()
        page.wait_for_function(f"document.title === 'Failed: report {run[:8]} · svcd'")
        page.locator(".phases-line", has_text="Failed").wait_for()
        page.unroute(LOG)
        page.unroute("**/log?*")
        page.reload()
        page.get_by_text("The programs have written nothing: these are the lines of").wait_for()
        page.locator(".line", has_text="INFO submitted").wait_for()
        page.get_by_role("button", name="First error").click()
        page.locator(MARKED, has_text=REASON).wait_for()
        page.get_by_role("link", name="application_").wait_for()
        (known,) = self.call("GET", "/clusters").json["clusters"]
        info = {"YARN": {"Web UI": "http://10.0.0.3:8088/"}, "MapReduce": {"Web UI": "x:y"}}
        clusters = {"clusters": [known | {"info": info}]}
        page.route("**/v1.1/demo/clusters", lambda route: route.fulfill(json=clusters))
        page.reload()
        address = page.get_by_role("link", name="YARN", exact=True).get_attribute("href")
        self.assertEqual(address, "http://10.0.0.3:8088/")
        page.get_by_text("svcd tunnel etl").wait_for()
        self.assertEqual(page.get_by_role("link", name="MapReduce").count(), 0)
