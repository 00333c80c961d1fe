"""Swift's behaviour that the Hadoop file system and the clients rely on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.http import Answer
from tests.unit.embedded.cloud.rig import Rig

A = "/object-store/v1/AUTH_alpha"


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class ObjectStoreTests(SynchronousTestCase):
    state: Path | None = None

    def setUp(self) -> None:
        self.rig = Rig(state=self.state and Path(self.mktemp()))
        self.token = self.rig.token("alice", "alice", "alpha").reveal()
        self.call("PUT", f"{A}/c")

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.rig.raw(method, path, body, token=self.token, headers=sent)

    def test_a_project_with_a_slash_reads_nothing_of_another(self) -> None:
        """400: project `alpha/c` with container `o` would have the key of an object in `alpha`."""
        self.call("PUT", f"{A}/c/o/x", b"of alpha")
        other = self.rig.token("demo", "demo", "alpha/c").reveal()
        path = "/object-store/v1/AUTH_alpha%2Fc"
        answers = [
            self.rig.raw("PUT", f"{path}/o", token=other),
            self.rig.raw("GET", f"{path}/o/x", token=other),
            self.rig.raw("DELETE", f"{path}/o/x", token=other),
        ]
        self.assertEqual([(a.status, b"of alpha" in a.body) for a in answers], [(400, False)] * 3)
        self.assertEqual(self.call("GET", f"{A}/c/o/x").body, b"of alpha")

    def test_unsafe_names_are_refused(self) -> None:
        """412 for NUL as Swift, 400 for line ends and dot segments; other dots are allowed."""
        self.call("PUT", f"{A}/c/good", b"1")
        for name, status in (
            ("a%00b", 412),
            ("a%0D%0Ab", 400),
            ("a%0Ab", 400),
            ("..%2Fa", 400),
            ("a%2F..%2Fb", 400),
            ("a%2F..", 400),
            ("a%2F.%2Fb", 400),
            ("..a%2F...%2F.b", 201),
        ):
            answers = (
                self.call("PUT", f"{A}/c/{name}", b"1"),
                self.call("PUT", f"{A}/c/{name}", b"", X_Copy_From="/c/good"),
            )
            self.assertEqual([each.status for each in answers], [status] * 2, name)
        self.assertEqual(self.call("GET", f"{A}/c").body, b"..a/.../.b\ngood\n")
        for name, status in (("%00", 412), ("a%0Ab", 400), ("%2E%2E", 400)):
            self.assertEqual(self.call("PUT", f"{A}/{name}").status, status, name)

    def test_ranges(self) -> None:
        """First, last, open, beyond."""
        self.call("PUT", f"{A}/c/o", b"0123456789")
        for text, body in (("0-3", b"0123"), ("7-", b"789"), ("-2", b"89"), ("5-99", b"56789")):
            answer = self.call("GET", f"{A}/c/o", Range=f"bytes={text}")
            self.assertEqual((answer.status, answer.body), (206, body), text)
        self.assertEqual(answer.header("content-range"), "bytes 5-9/10")
        self.assertEqual(self.call("GET", f"{A}/c/o", Range="bytes=10-").status, 416)

    def test_listings(self) -> None:
        """Prefix, delimiter, marker and limit; JSON with digests."""
        for name in ("a", "b/1", "b/2", "c"):
            self.call("PUT", f"{A}/c/{name}", name.encode())
        self.assertEqual(self.call("GET", f"{A}/c?prefix=b/").body, b"b/1\nb/2\n")
        self.assertEqual(self.call("GET", f"{A}/c?delimiter=/").body, b"a\nb/\nc\n")
        self.assertEqual(self.call("GET", f"{A}/c?delimiter=/&marker=b/").body, b"c\n")
        self.assertEqual(self.call("GET", f"{A}/c?limit=2&marker=a").body, b"b/1\nb/2\n")
        self.assertEqual(self.call("GET", f"{A}/c?prefix=zzz").status, 204)
        rows = self.call("GET", f"{A}/c?format=json&limit=1").json()
        self.assertEqual(rows[0]["hash"], md5(b"a"))
        self.assertEqual((rows[0]["name"], rows[0]["bytes"]), ("a", 1))
        self.assertEqual(self.call("GET", f"{A}/c?format=json&prefix=z").json(), [])
        account = self.call("GET", f"{A}?format=json").json()
        self.assertEqual([(c["name"], c["count"], c["bytes"]) for c in account], [("c", 4, 8)])

    def test_a_static_large_object(self) -> None:
        """Read as one, copied by its manifest, deleted with its segments."""
        self.call("PUT", f"{A}/s")
        manifest = []
        for number, content in enumerate((b"0123", b"456", b"789")):
            self.call("PUT", f"{A}/s/{number}", content)
            manifest.append(
                {"path": f"/s/{number}", "etag": md5(content), "size_bytes": len(content)}
            )
        body = json.dumps(manifest).encode()
        answer = self.call("PUT", f"{A}/c/o?multipart-manifest=put", body)
        self.assertEqual(answer.status, 201)
        etag = md5("".join(part["etag"] for part in manifest).encode())  # type: ignore[misc]
        head = self.call("HEAD", f"{A}/c/o")
        self.assertEqual(head.header("etag"), f'"{etag}"')
        self.assertEqual(head.header("x-static-large-object"), "True")
        self.assertEqual(head.header("content-length"), "10")
        self.assertEqual(self.call("GET", f"{A}/c/o", Range="bytes=2-7").body, b"234567")
        copy = self.call("PUT", f"{A}/c/p?multipart-manifest=get", b"", X_Copy_From="/c/o")
        self.assertEqual(copy.status, 201)
        self.assertEqual(self.call("GET", f"{A}/c/p").body, b"0123456789")
        head = self.call("HEAD", f"{A}/c/p")
        self.assertEqual(head.header("x-static-large-object"), "True")
        rows = self.call("GET", f"{A}/c?format=json").json()
        self.assertEqual(rows[0]["slo_etag"], f'"{etag}"')
        answer = self.call("DELETE", f"{A}/c/o?multipart-manifest=delete", None)
        self.assertEqual((answer.json()["Number Deleted"], answer.json()["Errors"]), (4, []))
        self.assertEqual(self.call("GET", f"{A}/s").status, 204)
        wrong = json.dumps([{"path": "/s/none"}]).encode()
        self.assertEqual(self.call("PUT", f"{A}/c/x?multipart-manifest=put", wrong).status, 400)


class ObjectFilesTests(ObjectStoreTests):
    """The same with files."""

    state = Path("on")

    def test_replaced_and_deleted_contents_leave_no_file(self) -> None:
        """One file for one object."""
        folder = self.rig.cloud.core.folder
        assert folder is not None
        for content in (b"1", b"2", b"3"):
            self.call("PUT", f"{A}/c/o", content)
        self.assertEqual(len(list((folder / "objects").iterdir())), 1)
        self.call("DELETE", f"{A}/c/o")
        self.assertEqual(list((folder / "objects").iterdir()), [])
