"""The login of the console in a real browser, its end, and tabs that share one `watch`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from twisted.internet.defer import Deferred

from svcd.testing import CLOUD_URL
from tests.support.console import ConsoleCase, Held, chosen, walk

ALICE = {"User": "alice", "Password": "alice"}


def revoke(case: ConsoleCase, token: str) -> None:
    """At the identity service; the daemon finds out after `auth.cache_s`."""
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    url = f"{CLOUD_URL}/identity/v3/auth/tokens"
    case.in_reactor(lambda: case.svcd.call("DELETE", url, headers=headers))
    case.in_reactor(lambda: case.svcd.advance(400))


class PasswordTests(ConsoleCase):
    settings = {"auth.mode": "keystone", "embedded.token_ttl_s": "3600"}

    def fill(self, page: Any, **fields: str) -> None:
        for label, value in {**ALICE, **fields}.items():
            page.get_by_label(label, exact=True).fill(value)

    def in_line(self, page: Any) -> None:
        """The fields are as wide as each other, and a fault is below its field."""
        user, password = (page.get_by_label(each).bounding_box() for each in ALICE)
        self.assertEqual((user["x"], user["width"]), (password["x"], password["width"]))
        for name, box in (("user", user), ("password", password)):
            fault = page.locator(f"#fault-{name}").bounding_box()
            self.assertGreaterEqual(fault["y"], box["y"] + box["height"])

    @walk()
    def test_a_user_logs_in_with_a_password(self, page: Any) -> None:
        """Faults stand beside the fields; only the password has to be typed again."""
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/console/#/runs?q=x")
        press = page.get_by_role("button", name="Log in")
        press.click()
        page.get_by_text("must not be empty").first.wait_for()
        self.in_line(page)
        self.assertEqual(page.evaluate("document.activeElement.type"), "text")
        page.keyboard.type("alice")  # the focus does not go on to the next wrong field
        self.assertEqual(page.get_by_label("User").input_value(), "alice")
        self.fill(page, Password="wrong")
        press.dblclick()
        page.locator("#fault-password", has_text="the password is wrong").wait_for()
        self.assertEqual(len([url for url in asked if url.endswith("/login")]), 1)
        self.assertEqual(page.get_by_label("User").input_value(), "alice")
        self.assertEqual(page.get_by_label("Password").input_value(), "")
        self.svcd.faults.add(where="identity", effect="reset_before", times=3)
        self.fill(page)
        press.click()
        page.get_by_role("alert").get_by_text("cannot log anybody in now").wait_for()
        self.assertEqual(press.inner_text(), "Log in")
        press.click()
        page.get_by_text("No job has run yet").wait_for()
        self.assertIn("#/runs?q=x", page.url)
        page.locator(".project", has_text="alpha").wait_for()
        self.assertEqual(page.evaluate("localStorage.length + document.cookie.length"), 0)
        kept = page.evaluate("sessionStorage.getItem('svcd')")
        self.assertNotIn("password", kept)
        page.reload()
        page.locator(".project", has_text="alpha").wait_for()
        with page.context.expect_page() as opened:
            page.evaluate("void window.open('/console/')")  # it gets a copy of the storage
        other = opened.value
        other.get_by_text("Live", exact=True).wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Password").wait_for()
        other.get_by_text("You have logged out in another tab").wait_for()
        self.assertEqual(page.evaluate("sessionStorage.length"), 0)

    @walk()
    def test_a_login_is_renewed_above_the_view(self, page: Any) -> None:
        """Five minutes before its end, and after it: the view is the same, and goes on."""

        def later(seconds: float) -> None:
            self.in_reactor(lambda: self.svcd.advance(seconds))
            self.in_reactor(lambda: Deferred.fromCoroutine(self.deaf()))
            self.in_reactor(self.listen)  # the page learns the time when it connects again

        def token() -> str:
            return str(page.evaluate("JSON.parse(sessionStorage.svcd).token"))

        def is_the_same_view() -> bool:
            return bool(page.evaluate("document.querySelector('main section').mine === 1"))

        def log_in() -> None:
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Password").fill("wrong")
            page.keyboard.press("Enter")
            dialog.get_by_text("the password is wrong").wait_for()
            dialog.get_by_label("Password").fill("alice")
            page.keyboard.press("Enter")
            dialog.wait_for(state="hidden")

        page.goto("/console/")
        self.fill(page)
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("Live", exact=True).wait_for()
        page.get_by_text("No clusters yet").wait_for()
        page.evaluate("document.querySelector('main section').mine = 1")
        later(3400)
        page.get_by_text("Your login ends in").wait_for()
        page.get_by_role("button", name="Log in again").click()
        page.get_by_role("button", name="Later").click()
        page.get_by_role("button", name="Log in again").click()
        before = token()
        self.assertTrue(self.svcd.cloud.core.living_token(before))
        with page.expect_response("**/console/logout"):
            log_in()
        self.assertFalse(self.svcd.cloud.core.living_token(before))
        self.assertTrue(self.svcd.cloud.core.living_token(token()))
        page.get_by_text("Your login ends in").wait_for(state="detached")
        page.get_by_text("Live", exact=True).wait_for()
        later(3700)
        page.get_by_role("dialog").get_by_text("Your login has ended").wait_for()
        page.keyboard.press("Escape")
        log_in()
        page.get_by_text("Live", exact=True).wait_for()
        self.assertTrue(is_the_same_view())

    @walk()
    def test_an_upload_waits_for_a_new_login(self, page: Any) -> None:
        """Whether the small request before it or the upload itself is refused."""

        def renew() -> None:
            dialog = page.get_by_role("dialog")
            dialog.get_by_text("Your login has ended").wait_for()
            dialog.get_by_label("Password").fill("alice")
            page.keyboard.press("Enter")

        def upload(name: str) -> None:
            page.get_by_label("Upload").set_input_files([chosen(name)])

        page.goto("/console/#/jobs?show=binaries&new=1")
        self.fill(page)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="New binaries").wait_for()
        revoke(self, page.evaluate("JSON.parse(sessionStorage.svcd).token"))
        upload("one.pig")
        renew()
        page.locator("li", has_text="one.pig").get_by_text("Uploaded").wait_for()
        refused = '{"error_code": 401, "error_name": "UNAUTHORIZED", "error_message": "x"}'
        page.route(
            "**/job-binary-internals/two*",
            lambda route: route.fulfill(status=401, body=refused),
            times=1,
        )
        upload("two.pig")
        renew()
        page.locator("li", has_text="two.pig").get_by_text("Uploaded").wait_for()
        page.locator("tbody th", has_text="two.pig").wait_for()


class SharedLoginTests(ConsoleCase):
    """Tabs in which a user has logged in with a password: each has a token of its own."""

    settings = {"auth.mode": "keystone", "embedded.token_ttl_s": "36000"}

    def setUp(self) -> None:
        super().setUp()
        self.svcd.tenant = "alpha"
        self.svcd.cloud.core.users_by_name["bob"].roles["alpha"] = ("member",)
        self.watches: list[str] = []
        self.headers = {"X-Auth-Token": self.svcd.token("dave", project="alpha")}

    def opened(self, context: Any) -> Any:
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.goto("/console/")
        return tab

    def logged_in(self, context: Any, user: str = "alice", project: str = "") -> Any:
        tab = self.opened(context)
        tab.get_by_label("User").fill(user)
        tab.get_by_label("Password").fill(user)
        tab.get_by_role("button", name="Log in").click()
        if project:
            tab.get_by_label("Project").select_option(label=project)
            tab.get_by_role("button", name="Show the project").click()
        tab.get_by_text("Live", exact=True).wait_for()
        tab.get_by_text("No clusters yet").wait_for()
        return tab

    def heard(self, context: Any) -> None:
        """Note the requests for `watch` of all tabs."""

        def note(request: Any) -> None:
            if "/watch" in request.url:
                self.watches.append(request.url)

        context.on("request", note)

    @walk()
    def test_eight_tabs_of_one_user_read_one_watch(self, page: Any) -> None:
        """A tab whose token is refused or over ends alone, shows nothing new, and comes back."""
        context = page.context
        self.heard(context)
        tabs = [self.logged_in(context) for _ in range(8)]
        self.assertEqual(len(self.watches), 1)
        kept = [json.loads(each.evaluate("sessionStorage.svcd")) for each in tabs]
        self.assertEqual(len({each["token"] for each in kept}), 8)
        self.make(name="first")
        for each in tabs:
            each.get_by_role("link", name="first").wait_for()

        forged = json.dumps({**kept[0], "token": "of nobody"})
        page.add_init_script(f"sessionStorage.setItem('svcd', {json.dumps(forged)})")
        page.goto("/console/")
        page.get_by_text("The token is not valid any more").wait_for()
        self.assertEqual(page.get_by_role("link", name="first").count(), 0)

        first, *others = tabs
        revoke(self, kept[0]["token"])
        first.get_by_role("dialog").get_by_text("Your login has ended").wait_for()
        self.make(name="second")
        for each in others:
            each.get_by_role("link", name="second").wait_for()
            each.get_by_text("Live", exact=True).wait_for()
            self.assertEqual(each.get_by_role("dialog").count(), 0)
        self.assertEqual(first.get_by_role("link", name="second").count(), 0)
        asked = len(self.watches)
        first.get_by_role("dialog").get_by_label("Password").fill("alice")
        first.keyboard.press("Enter")
        first.get_by_role("link", name="second").wait_for()
        self.assertEqual(len(self.watches), asked)
        late = others[3]
        over = json.dumps({**kept[4], "until": 1})
        late.evaluate(f"sessionStorage.setItem('svcd', {json.dumps(over)})")
        late.reload()
        late.get_by_text("Your login has ended.").wait_for()
        late.get_by_role("link", name="second").wait_for()
        self.make(name="third")
        for each in (first, others[0], others[-1]):
            each.get_by_role("link", name="third").wait_for()
        self.assertEqual(late.get_by_role("link", name="third").count(), 0)
        last = [json.loads(each.evaluate("sessionStorage.svcd"))["token"] for each in tabs]
        self.assertTrue(all(map(self.svcd.cloud.core.living_token, last)))
        with ExitStack() as answers:
            for each in tabs:
                answers.enter_context(each.expect_response("**/console/logout"))
            others[-1].get_by_role("button", name="Log out").click()
        for each in tabs[:-1]:
            each.get_by_text("You have logged out in another tab").wait_for()
        self.assertFalse(any(map(self.svcd.cloud.core.living_token, last)))

    @walk()
    def test_tabs_of_other_users_projects_and_tokens_are_apart(self, page: Any) -> None:
        """Each watches for itself, and a log-out leaves them."""
        self.svcd.cloud.core.users_by_name["alice"].roles["beta"] = ("member",)
        token = self.in_reactor(lambda: self.svcd.token("alice", project="alpha"))
        self.heard(page.context)
        alice = self.logged_in(page.context, project="alpha")
        others = [
            self.logged_in(page.context, project="beta"),
            self.logged_in(page.context, "bob", project="alpha"),
            self.opened(page.context),
        ]
        others[-1].get_by_role("button", name="Use a token").click()
        others[-1].get_by_label("Project id").fill("alpha")
        others[-1].get_by_label("Token").fill(token)
        others[-1].get_by_role("button", name="Log in").click()
        others[-1].get_by_text("Live", exact=True).wait_for()
        self.assertEqual(len(self.watches), 4)
        alice.get_by_role("button", name="Log out").click()
        alice.get_by_label("Password").wait_for()
        self.make(name="first")
        for each in others[1:]:
            each.get_by_role("link", name="first").wait_for()
        others[0].get_by_text("Live", exact=True).wait_for()
        self.assertEqual(others[0].get_by_role("link", name="first").count(), 0)


class TabsTests(ConsoleCase):
    """Tabs of one project without tokens."""

    def setUp(self) -> None:
        super().setUp()
        self.urls: list[str] = []

    def opened(self, page: Any) -> None:
        """Open the page, and note the requests of all tabs."""
        page.context.on(
            "request", lambda r: self.urls.append(r.url.removeprefix(self.base).partition("?")[0])
        )
        page.goto("/console/")
        page.get_by_text("Live", exact=True).wait_for()

    def asked(self) -> tuple[int, int]:
        """The requests so far: watch, and the list of clusters."""
        return tuple(map(self.urls.count, ("/v1.1/demo/watch", "/v1.1/demo/clusters")))

    def another(self, page: Any) -> Any:
        """A further tab."""
        tab = page.context.new_page()
        tab.goto("/console/")
        tab.get_by_text("Live", exact=True).wait_for()
        return tab

    def see_a_new(self, name: str, *tabs: Any) -> None:
        """Make a cluster, and see it in all `tabs`."""
        self.make(name=name)
        for tab in tabs:
            tab.get_by_role("link", name=name).wait_for()
            tab.get_by_text("Live", exact=True).wait_for()

    @walk()
    def test_tabs_share_one_watch_and_another_takes_over(self, page: Any) -> None:
        """Each lists once; nothing is missed when the tab that reads freezes or is closed."""
        self.opened(page)
        second = self.another(page)
        second.get_by_text("No clusters yet").wait_for()
        self.see_a_new("first", page, second)
        self.assertEqual(self.asked(), (1, 2))
        page.evaluate("document.dispatchEvent(new Event('freeze'))")
        self.see_a_new("second", second)
        self.assertEqual(self.asked(), (2, 2))
        page.evaluate("document.dispatchEvent(new Event('resume'))")
        page.get_by_role("link", name="second").wait_for()
        third = self.another(page)
        self.see_a_new("third", page, second, third)
        self.assertEqual(self.asked(), (2, 4))  # the tab that wakes lists anew
        second.close()
        self.see_a_new("fourth", page, third)
        self.assertEqual(self.asked(), (3, 4))

    @walk()
    def test_a_tab_that_does_not_answer_loses_the_stream(self, page: Any) -> None:
        """To a tab that opens; it follows that one as soon as it runs again."""
        self.opened(page)
        page.evaluate(
            "setTimeout(() => { const end = Date.now() + 5000; while (Date.now() < end); })"
        )
        self.see_a_new("first", self.another(page), page)
        self.assertEqual(self.asked()[0], 2)


class TokenTests(ConsoleCase):
    settings = {"auth.mode": "keystone"}

    @walk()
    def test_a_pasted_token_opens_the_project_for_this_tab(self, page: Any) -> None:
        """A wrong one is refused with the reason; the view of the address follows."""
        token = self.in_reactor(self.svcd.token)
        page.goto("/console/#/runs")
        page.get_by_role("button", name="Use a token").click()
        page.get_by_label("Project id").fill("demo")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.locator("#fault-token", has_text="the token is not valid").wait_for()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("No job has run yet").wait_for()
        page.reload()
        page.get_by_text("No job has run yet").wait_for()
        page.get_by_text("Live", exact=True).wait_for()
        self.assertEqual(page.evaluate("localStorage.length + document.cookie.length"), 0)
        other = page.context.new_page()
        other.goto("/console/")
        other.get_by_label("Password").wait_for()


def given_up(page: Any, method: str) -> Any:
    """A context that ends when the page has given up a request that waits for its answer."""
    return page.expect_event("requestfailed", lambda request: request.method == method)


class ProjectTests(ConsoleCase):
    """Without tokens: the user opens another project."""

    def opened(self, page: Any) -> None:
        """Open the project `another` in place of that which is open."""
        self.change_project(page, "another")
        page.locator(".who-where", has_text="another").wait_for()

    @walk()
    def test_the_next_project_gets_no_upload_and_no_row_of_the_one_before(self, page: Any) -> None:
        """Three files were dropped, the first is under way, and the project's rows are known."""
        self.make(name="first")
        page.goto("/console/#/jobs?show=binaries&new=1")
        page.get_by_text("at most").first.wait_for()
        held = Held(page, "**/job-binary-internals/*", "PUT")
        lists = Held(page, "**/another/clusters", "GET")
        asked: list[str] = []
        page.on("request", lambda r: asked.append(f"{r.method} {r.url}"))
        files = [chosen(f"{n}.pig") for n in range(3)]
        with page.expect_request("**/job-binary-internals/*"):
            page.get_by_label("Upload").set_input_files(files)
        page.evaluate("location.hash = '#/'")
        page.get_by_role("link", name="first").wait_for()
        page.go_back()
        with page.expect_request("**/job-binary-internals/*"):
            page.get_by_label("Upload").set_input_files(files)
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

    @contextmanager
    def late(self, page: Any) -> Iterator[None]:
        """Send the form of a data source; its answer comes after the block, from elsewhere."""
        page.goto("/console/#/jobs?show=sources&new=1")
        page.get_by_label("Name").fill("late")
        page.get_by_label("URL").fill("hdfs:///late")
        held = Held(page, "**/data-sources", "POST")
        with page.expect_request("**/data-sources"):
            page.keyboard.press("Enter")
        yield
        row = {"id": "l", "name": "late", "type": "hdfs", "url": "hdfs:///late"}
        held.answer(json={"data_source": {**row, "created_at": "2026-01-01T00:00:00"}})

    @walk()
    def test_a_late_answer_puts_no_row_into_the_next_project(self, page: Any) -> None:
        """The answer to a form comes when another project is open; drafts end with the login."""
        with self.late(page):
            with given_up(page, "POST"):
                self.opened(page)
            page.evaluate("location.hash = '#/jobs?show=sources'")
            page.get_by_text("No data sources yet").wait_for()
        page.get_by_role("link", name="New data source").click()
        page.get_by_role("heading", name="New data source").wait_for()
        self.assertEqual(page.get_by_role("link", name="Data sources 0").count(), 1)
        self.assertEqual(page.get_by_label("Name").input_value(), "")
        page.get_by_label("Name").fill("draft")
        self.opened(page)
        self.assertEqual(page.get_by_label("Name").input_value(), "")

    @walk()
    def test_a_late_answer_leaves_no_draft_of_what_is_done(self, page: Any) -> None:
        """The user has left the view meanwhile; a form that is opened anew would act again."""
        with self.late(page):
            page.evaluate("location.hash = '#/jobs?show=sources'")
            page.get_by_role("link", name="Data sources 0").wait_for()
        page.get_by_role("link", name="Data sources 1").wait_for()
        page.get_by_role("link", name="New data source").click()
        self.assertEqual(page.get_by_label("Name").input_value(), "")


class UserTests(ConsoleCase):
    settings = {"auth.mode": "keystone", "embedded.token_ttl_s": "36000"}

    @walk()
    def test_a_refused_request_is_not_repeated_with_the_next_users_token(self, page: Any) -> None:
        """Alice's DELETE is refused after she has logged out and Bob has logged in."""
        self.svcd.tenant = "alpha"
        self.svcd.cloud.core.users_by_name["bob"].roles["alpha"] = ("member",)
        token = self.in_reactor(lambda: self.svcd.token("dave", project="alpha"))
        self.headers = {"X-Auth-Token": token}

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
