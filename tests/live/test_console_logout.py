"""The console in a real browser after a logout: nothing of a login reaches the next one."""

from __future__ import annotations

from typing import Any

from tests.support.console import ConsoleCase


def given_up(page: Any, method: str) -> Any:
    """A context that ends when the page has given up a request that waits for its answer."""
    return page.expect_event("requestfailed", lambda request: request.method == method)


class Held:
    """Requests of a page that get no answer until `answer`."""

    def __init__(self, page: Any, url: str, *methods: str) -> None:
        self.routes: list[Any] = []
        self.methods = methods
        page.route(url, self.hold)

    def hold(self, route: Any) -> None:
        if route.request.method in self.methods:
            self.routes.append(route)
        else:
            route.continue_()

    def answer(self, **answer: Any) -> None:
        for each in self.routes:
            each.fulfill(**answer)


class ProjectTests(ConsoleCase):
    """Without tokens: the user opens another project."""

    def opened(self, page: Any) -> None:
        """Open the project `another` in place of that which is open."""
        self.change_project(page, "another")
        page.locator(".who-where", has_text="another").wait_for()

    async def test_the_next_project_gets_no_upload_and_no_row_of_the_one_before(self) -> None:
        """Three files were dropped, the first is under way, and the project's rows are known."""

        def walk(page: Any) -> None:
            self.make(name="first")
            page.goto("/console/#/jobs?show=binaries&new=1")
            page.get_by_text("at most").first.wait_for()
            held = Held(page, "**/job-binary-internals/*", "PUT")
            lists = Held(page, "**/another/clusters", "GET")
            asked: list[str] = []
            page.on("request", lambda r: asked.append(f"{r.method} {r.url}"))
            file = {"mimeType": "text/plain", "buffer": b"A = 1;"}
            with page.expect_request("**/job-binary-internals/*"):
                page.get_by_label("Upload").set_input_files(
                    [{**file, "name": f"{n}.pig"} for n in range(3)]
                )
            page.evaluate("location.hash = '#/'")
            page.get_by_role("link", name="first").wait_for()
            page.go_back()
            with page.expect_request("**/job-binary-internals/*"):
                page.get_by_label("Upload").set_input_files(
                    [{**file, "name": f"{n}.pig"} for n in range(3)]
                )
            with given_up(page, "PUT"), page.expect_request("**/another/clusters"):
                self.opened(page)
            page.evaluate("location.hash = '#/'")
            page.get_by_text("Reading the project").wait_for()
            self.assertEqual(page.get_by_role("link", name="first").count(), 0)
            lists.answer(json={"clusters": []})
            page.get_by_text("No clusters yet").wait_for()
            held.answer(json={"job_binary_internal": {"id": "x"}})
            writes = [each for each in asked if "job-binar" in each and "GET" not in each]
            self.assertEqual(len(writes), 2, writes)

        await self.walk(walk)

    async def test_a_late_answer_puts_no_row_into_the_next_project(self) -> None:
        """The answer to a form comes when another project is open; drafts end with the login."""

        def walk(page: Any) -> None:
            page.goto("/console/#/jobs?show=sources&new=1")
            page.get_by_label("Name").fill("late")
            page.get_by_label("URL").fill("hdfs:///late")
            held = Held(page, "**/data-sources", "POST")
            with page.expect_request("**/data-sources"):
                page.keyboard.press("Enter")
            with given_up(page, "POST"):
                self.opened(page)
            page.evaluate("location.hash = '#/jobs?show=sources'")
            page.get_by_text("No data sources yet").wait_for()
            row = {"id": "l", "name": "late", "type": "hdfs", "url": "hdfs:///late"}
            held.answer(json={"data_source": {**row, "created_at": "2026-01-01T00:00:00"}})
            page.get_by_role("link", name="New data source").click()
            page.get_by_role("heading", name="New data source").wait_for()
            self.assertEqual(page.get_by_role("link", name="Data sources 0").count(), 1)
            self.assertEqual(page.get_by_label("Name").input_value(), "")
            page.get_by_label("Name").fill("draft")
            self.opened(page)
            self.assertEqual(page.get_by_label("Name").input_value(), "")

        await self.walk(walk)

    async def test_a_late_answer_leaves_no_draft_of_what_is_done(self) -> None:
        """The user has left the view meanwhile; a form that is opened anew would act again."""

        def walk(page: Any) -> None:
            page.goto("/console/#/jobs?show=sources&new=1")
            page.get_by_label("Name").fill("late")
            page.get_by_label("URL").fill("hdfs:///late")
            held = Held(page, "**/data-sources", "POST")
            with page.expect_request("**/data-sources"):
                page.keyboard.press("Enter")
            page.evaluate("location.hash = '#/jobs?show=sources'")
            page.get_by_role("link", name="Data sources 0").wait_for()
            row = {"id": "l", "name": "late", "type": "hdfs", "url": "hdfs:///late"}
            held.answer(json={"data_source": {**row, "created_at": "2026-01-01T00:00:00"}})
            page.get_by_role("link", name="Data sources 1").wait_for()
            page.get_by_role("link", name="New data source").click()
            self.assertEqual(page.get_by_label("Name").input_value(), "")

        await self.walk(walk)


class UserTests(ConsoleCase):
    settings = {"auth.mode": "keystone", "embedded.token_ttl_s": "36000"}

    async def test_a_refused_request_is_not_repeated_with_the_next_users_token(self) -> None:
        """Alice's DELETE is refused after she has logged out and Bob has logged in."""
        self.svcd.tenant = "alpha"
        self.svcd.cloud.core.users_by_name["bob"].roles["alpha"] = ("member",)
        self.headers = {"X-Auth-Token": self.svcd.token("dave", project="alpha")}

        def walk(page: Any) -> None:
            def log_in(user: str, project: str = "") -> None:
                page.get_by_label("User").fill(user)
                page.get_by_label("Password").fill(user)
                page.get_by_role("button", name="Log in").click()
                if project:
                    page.get_by_label("Project").select_option(label=project)
                    page.get_by_role("button", name="Show the project").click()
                page.get_by_role("link", name="first").wait_for()

            made = self.make(name="first")
            page.goto("/console/")
            log_in("alice")
            page.goto(f"/console/#/clusters/{made}")
            held = Held(page, f"**/clusters/{made}", "DELETE")
            page.get_by_role("button", name="Delete", exact=True).click()
            page.get_by_role("dialog").get_by_label("Type first").fill("first")
            with page.expect_request(f"**/clusters/{made}"):
                page.keyboard.press("Enter")
            with given_up(page, "DELETE"):
                page.evaluate(
                    "[...document.querySelectorAll('button')]"
                    ".find((each) => each.textContent === 'Log out').click()"
                )
            page.evaluate("location.hash = '#/'")
            log_in("bob", project="alpha")
            fault = {"error_code": 401, "error_name": "UNAUTHORIZED", "error_message": "ended"}
            held.answer(status=401, json=fault)
            self.assertEqual(len(held.routes), 1)
            self.assertEqual(page.get_by_role("dialog").count(), 0)

        await self.walk(walk)
