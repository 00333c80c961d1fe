"""The console as it is served: its files, their headers, and what the page loads."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.resources._console_files import FOLDER, HEADERS, Files, files, joined
from svcd.testing import FakeService

LARGEST_BYTES = 70 * 1024
"""Budget of all that a browser loads, for all views, as it is sent."""
LONGEST_LINE = 140
LONGEST_MODULE = 400
LIBRARIES = ("preact.js", "hooks.js", "htm.js")


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
        """The policy that allows only this origin, the type that a browser needs, a tag."""
        api = self.service()
        types = {
            ".js": "text/javascript; charset=utf-8",
            "css": "text/css; charset=utf-8",
            "svg": "image/svg+xml",
            "txt": "text/plain; charset=utf-8",
            "tml": "text/html; charset=utf-8",
        }
        for name in files():
            answer = api.call("GET", f"/console/{name}")
            self.assertEqual(
                (answer.status, answer.headers["Content-Type"]), (200, types[name[-3:]])
            )
            self.assertEqual({key: answer.headers.get(key) for key in HEADERS}, HEADERS, name)
            self.assertRegex(answer.headers["ETag"], r'^W/"[0-9a-f]{32}"$')
        self.assertEqual(
            HEADERS["Content-Security-Policy"],
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
        )

    def test_a_known_file_is_not_sent_again(self) -> None:
        """A 304 without a body, with the same headers; another tag gets the file."""
        api = self.service()
        tag = api.call("GET", "/console/app.js").headers["ETag"].removeprefix("W/")
        for sent in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            answer = api.call("GET", "/console/app.js", headers={"If-None-Match": sent})
            self.assertEqual((answer.status, answer.body), (304, b""), sent)
            self.assertEqual(answer.headers["ETag"], f"W/{tag}")
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        answer = api.call("GET", "/console/app.js", headers={"If-None-Match": '"x"'})
        self.assertEqual(answer.status, 200)

    def test_a_caller_that_takes_gzip_gets_it(self) -> None:
        """The same bytes, and the same tag for a known file."""
        api = self.service()
        plain = api.call("GET", "/console/all.js")
        self.assertNotIn("Content-Encoding", plain.headers)
        for sent in ("gzip", "br, GZIP;q=0.5", "deflate,gzip"):
            packed = api.call("GET", "/console/all.js", headers={"Accept-Encoding": sent})
            self.assertEqual(packed.headers["Content-Encoding"], "gzip", sent)
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertEqual(packed.headers["ETag"], plain.headers["ETag"])
        for sent in ("", "br", "gzip;q=0", "identity"):
            answer = api.call("GET", "/console/all.js", headers={"Accept-Encoding": sent})
            self.assertEqual(answer.body, plain.body, sent)
        known = {"Accept-Encoding": "gzip", "If-None-Match": plain.headers["ETag"]}
        answer = api.call("GET", "/console/all.js", headers=known)
        self.assertEqual((answer.status, answer.body), (304, b""))

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

    def test_a_file_is_read_at_once_and_made_ready_when_it_is_asked_for(self) -> None:
        """A start waits for no compression, and an upgrade does not mix two releases."""
        texts = {
            "app.js": "// first\nrun();\n",
            "two.css": "b { color: red; }\n",
            "style.css": "a { color: red; }\n",
            "notes.json": "{}",
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                Path(folder, name).write_text(text)
            made = Files(Path(folder))
        self.assertEqual(set(made), {"app.js", "two.css", "style.css", "all.js", "all.css"})
        self.assertEqual(len(made), 5)
        self.assertIsNone(made.get("notes.json"))
        self.assertEqual(made["app.js"].body, b"// first\nrun();\n")
        self.assertEqual(made["all.js"].body, b"{\nrun();}\n")
        self.assertEqual(made["all.css"].body, b"a{color:red}b{color:red}")
        self.assertIs(made["all.css"], made["all.css"])

    def test_the_page_is_small(self) -> None:
        """It loads these files and no others, whatever the view."""
        expected = ("index.html", "all.js", "all.css", "icon.svg")
        page = files()["index.html"].body.decode()
        loaded = re.findall(r'(?:src|href)="/console/([^"]*)"', page)
        self.assertEqual({"index.html", *loaded}, set(expected))
        sizes = {name: len(files()[name].packed) for name in expected}
        self.assertLessEqual(sum(sizes.values()), LARGEST_BYTES, sizes)

    def test_the_page_holds_no_script_and_no_style_of_its_own(self) -> None:
        """The policy would refuse both; all addresses are of this origin."""
        page = files()["index.html"].body.decode()
        self.assertNotRegex(page, r"<style|style=|\son\w+=")
        self.assertEqual(re.findall(r"<script[^>]*>(.*?)</script>", page), [""])
        for address in re.findall(r'(?:src|href)="([^"]*)"', page):
            self.assertIn(address.removeprefix("/console/"), files())

    def test_modules_are_good_to_read(self) -> None:
        """Short lines and short modules. The libraries are as they come."""
        for path in sorted(FOLDER.glob("*.js")):
            if path.name not in LIBRARIES:
                lines = path.read_text(encoding="utf-8").splitlines()
                self.assertLessEqual(max(map(len, lines)), LONGEST_LINE, path.name)
                self.assertLessEqual(len(lines), LONGEST_MODULE, path.name)

    def test_no_module_makes_markup_or_code_of_texts(self) -> None:
        """Only the libraries may know these names of the browser."""
        own = {n: t for n, t in self.modules().items() if n not in (*LIBRARIES[:2], "all.js")}
        for name, text in own.items():
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
                self.assertNotIn(word, text, name)
            self.assertNotIn("localStorage", text, name)
            self.assertNotIn("document.cookie", text, name)


class JoinedTests(SynchronousTestCase):
    """Modules as one."""

    def test_each_module_is_a_function_that_sees_the_exports_before_it(self) -> None:
        """In their order. A library stays; other modules lose indentation, comments and breaks."""
        modules = {
            "app.js": 'import {\n  a as b,\n  c,\n} from "./one.js";\n'
            'import { d } from "./two.js";\nb(d); // calls it\n'
            'if (b) {\n  // twice\n  b("https://a // b"); // "again"\n}\n'
            "html`<p>so // or</p>`;\n",
            "two.js": '// says hello\nimport one from "./one.js";\nexport const d = 1;\n'
            "export async function e() {}\nexport class F {}\nfunction g() {}\n",
            "one.js": "var n=1;export default function(){}export{n as a,n as c};",
            "loose.js": "export const x = 1;\n",
        }
        self.assertEqual(
            joined(modules),
            "const{a,c,one}=(()=>{\nvar n=1;const $default = function(){}\n"
            "return{a:n,c:n,one:$default}})();\n"
            "const{d}=(()=>{\nconst d = 1;"
            "async function e() {}\nclass F {}\nfunction g() {}\n\n"
            "return{d}})();\n"
            "{\nconst b=a;b(d);"
            'if (b) {b("https://a // b"); // "again"\n}\nhtml`<p>so // or</p>`;\n}\n',
        )

    def test_what_it_does_not_know_is_refused(self) -> None:
        """At the start of a daemon, and in this suite, and not in a browser."""
        for text in (
            "export let x = 1;",
            'export * from "./app.js";',
            'import "./app.js";',
            'import * as x from "./app.js";',
            'import { x } from "./app.js";',
        ):
            self.assertRaises(ValueError, joined, {"app.js": text})
        both = 'import { x } from "./a.js";\nimport { y } from "./b.js";\n'
        same = {"app.js": both, "a.js": "export const x = 1;\n", "b.js": "export const x = 2;\n"}
        self.assertRaises(ValueError, joined, same)
