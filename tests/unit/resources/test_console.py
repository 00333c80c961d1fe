"""The console as it is served: its files, their headers, and what the page loads."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

from twisted.trial.unittest import SynchronousTestCase

from svcd.resources.console import FOLDER, HEADERS, files
from svcd.testing import FakeService

LARGEST_BYTES = 60 * 1024
"""Budget of the whole page, each file compressed by itself."""


class ServedTests(SynchronousTestCase):
    def service(self, **settings: str) -> FakeService:
        """settings: `section__key`."""
        made = FakeService({key.replace("__", "."): value for key, value in settings.items()})
        self.addCleanup(made.close)
        return made

    def test_the_page_is_at_two_addresses(self) -> None:
        """With and without the slash at the end, and without a token."""
        api = self.service(auth__mode="keystone")
        answers = [api.call("GET", path) for path in ("/console", "/console/")]
        page = (FOLDER / "index.html").read_bytes()
        self.assertEqual([(a.status, a.body) for a in answers], [(200, page)] * 2)
        self.assertEqual(answers[0].headers["Content-Type"], "text/html; charset=utf-8")

    def test_each_file_has_the_headers(self) -> None:
        """The policy that allows only this origin, no type by guess, a tag."""
        api = self.service()
        for name in files():
            answer = api.call("GET", f"/console/{name}")
            self.assertEqual(answer.status, 200, name)
            self.assertEqual({key: answer.headers.get(key) for key in HEADERS}, HEADERS, name)
            self.assertRegex(answer.headers["ETag"], r'^"[0-9a-f]{32}"$')
        self.assertEqual(
            HEADERS["Content-Security-Policy"],
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
        )

    def test_the_types_are_those_that_a_browser_needs(self) -> None:
        """A module with another type would not run."""
        api = self.service()
        types = {
            name: api.call("GET", f"/console/{name}").headers["Content-Type"]
            for name in ("app.js", "style.css", "icon.svg", "LICENSE.preact.txt")
        }
        self.assertEqual(
            types,
            {
                "app.js": "text/javascript; charset=utf-8",
                "style.css": "text/css; charset=utf-8",
                "icon.svg": "image/svg+xml",
                "LICENSE.preact.txt": "text/plain; charset=utf-8",
            },
        )

    def test_a_known_file_is_not_sent_again(self) -> None:
        """A 304 without a body, with the same headers; another tag gets the file."""
        api = self.service()
        tag = api.call("GET", "/console/app.js").headers["ETag"]
        for sent in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            answer = api.call("GET", "/console/app.js", headers={"If-None-Match": sent})
            self.assertEqual((answer.status, answer.body), (304, b""), sent)
            self.assertEqual(answer.headers["ETag"], tag)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        answer = api.call("GET", "/console/app.js", headers={"If-None-Match": '"x"'})
        self.assertEqual(answer.status, 200)

    def test_other_files_are_not_served(self) -> None:
        """Neither a file outside the folder nor one of a type that the page does not use."""
        api = self.service()
        for path in (
            "nope.js",
            "libraries.json",
            "../settings.py",
            "..%2fsettings.py",
            "%2e%2e/settings.py",
            "..",
            "app.js%00",
            "a/app.js",
        ):
            answer = api.call("GET", f"/console/{path}")
            self.assertEqual((answer.status, answer.json["error_name"]), (404, "NOT_FOUND"), path)

    def test_only_reads_are_allowed(self) -> None:
        """Nothing can be put there."""
        api = self.service()
        answer = api.call("PUT", "/console/app.js", data=b"x")
        self.assertEqual(answer.status, 405)
        self.assertEqual(answer.headers["Allow"], "GET, HEAD, OPTIONS")

    def test_without_the_setting_there_is_no_console(self) -> None:
        """As any unknown path."""
        api = self.service(console__enabled="false")
        statuses = [
            api.call("GET", path).status
            for path in ("/console", "/console/", "/console/app.js", "/console/setup", "/healthz")
        ]
        self.assertEqual(statuses, [404, 404, 404, 404, 200])

    def test_the_page_learns_how_to_log_in(self) -> None:
        """Without tokens also which project to begin with; and how large a binary may be."""
        open_ = self.service(server__max_binary_bytes="1000")
        closed = self.service(auth__mode="keystone", server__max_binary_bytes="1000")
        size = {"max_binary_bytes": 1000}
        self.assertEqual(
            [api.call("GET", "/console/setup").json for api in (open_, closed)],
            [
                {"auth": "none", "project": "demo", "password_login": False, **size},
                {"auth": "keystone", "project": "", "password_login": True, **size},
            ],
        )


class FilesTests(SynchronousTestCase):
    """The files themselves."""

    def modules(self) -> dict[str, str]:
        return {name: each.body.decode() for name, each in files().items() if name[-3:] == ".js"}

    def test_the_libraries_are_as_pinned(self) -> None:
        """`scripts/console-libraries` renews them."""
        record = json.loads((FOLDER / "libraries.json").read_text())
        self.assertEqual(sorted(record), ["htm", "preact"])
        for library in record.values():
            self.assertIn("LICENSE", library["files"])
            for each in library["files"].values():
                digest = hashlib.sha256((FOLDER / each["file"]).read_bytes()).hexdigest()
                self.assertEqual(digest, each["sha256"], each["file"])

    def test_the_page_is_small(self) -> None:
        """Licences are not loaded."""
        sizes = {n: len(gzip.compress(a.body, 9)) for n, a in files().items() if n[-4:] != ".txt"}
        self.assertLessEqual(sum(sizes.values()), LARGEST_BYTES, sizes)

    def test_the_page_holds_no_script_and_no_style_of_its_own(self) -> None:
        """The policy would refuse both; all addresses are of this origin."""
        page = files()["index.html"].body.decode()
        self.assertNotRegex(page, r"<style|style=|\son\w+=")
        self.assertEqual(re.findall(r"<script[^>]*>(.*?)</script>", page), [""])
        for address in re.findall(r'(?:src|href)="([^"]*)"', page):
            self.assertIn(address.removeprefix("/console/"), files())

    def test_each_module_that_is_imported_is_served_and_loaded_early(self) -> None:
        """A module that the page does not name is found only after the one that imports it."""
        named = set(re.findall(r'href="/console/(\w+\.js)"', files()["index.html"].body.decode()))
        imported = set()
        for name, text in self.modules().items():
            for module in re.findall(r'from\s*["\']([^"\']+)["\']', text):
                self.assertRegex(module, r"^\./", name)
                imported.add(module.removeprefix("./"))
        self.assertEqual(imported, named)
        self.assertEqual(named | {"app.js"}, set(self.modules()))

    def test_no_module_makes_markup_or_code_of_texts(self) -> None:
        """Only the libraries may know these names of the browser."""
        own = {n: t for n, t in self.modules().items() if n not in ("preact.js", "hooks.js")}
        for name, text in own.items():
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
                self.assertNotIn(word, text, name)
            self.assertNotIn("localStorage", text, name)
            self.assertNotIn("document.cookie", text, name)
