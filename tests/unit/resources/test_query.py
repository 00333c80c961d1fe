"""Query parameters: what a route declares is what it checks."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from svcd.errors import ValidationError
from svcd.ports.store import Page
from svcd.resources._query import Queries, Query, paged

FORCE = Query("force", "", flag=True)
WAIT = Query("wait", "", least=0, most=60)
TAGS = Query("tags", "", many=True, always=True)
ALL = Queries((*paged("name"), FORCE, WAIT, TAGS))
NONE = {
    "limit": None, "marker": None, "name": None, "force": False, "wait": None, "tags": (),
}  # fmt: skip


class ReadTests(SynchronousTestCase):
    def read(self, version: str = "1.1", **given: list[str]) -> object:
        args = {name.encode(): [text.encode() for text in texts] for name, texts in given.items()}
        return ALL.read(args, version, Headers())

    def refused(self, version: str = "1.1", **given: list[str]) -> list[str]:
        with self.assertRaises(ValidationError) as raised:
            self.read(version, **given)
        return raised.exception.message.split("\n")

    def test_absent_ones_have_their_defaults(self) -> None:
        self.assertEqual(self.read(), NONE)
        self.assertEqual(self.read(other=["1"]), NONE)

    def test_values_have_the_declared_types(self) -> None:
        found = self.read(limit=["7"], name=["a"], force=["Yes"], wait=["0"], tags=["x", "y"])
        self.assertEqual(
            found, {**NONE, "limit": 7, "name": "a", "force": True, "wait": 0, "tags": ("x", "y")}
        )
        self.assertEqual(ALL.page(found), Page(limit=7, filters={"name": "a"}))  # type: ignore[arg-type]

    def test_all_faults_are_reported_at_once(self) -> None:
        self.assertEqual(
            self.refused(limit=["0"], force=["maybe"], wait=["61"], markr=["x"]),
            [
                "?markr: unknown query parameter; did you mean marker?",
                "?limit: expected a whole number from 1 to 1000, got 0",
                "?force: expected true or false, got maybe",
                "?wait: expected a whole number from 0 to 60, got 61",
            ],
        )

    def test_one_that_is_given_twice_is_refused(self) -> None:
        """Equal values too: it is not clear which one counts."""
        self.assertEqual(
            self.refused(limit=["1", "2"], force=["true", "true"]),
            ["?limit: given 2 times; give it once", "?force: given 2 times; give it once"],
        )

    def test_v10_has_only_the_old_ones_and_checks_nothing(self) -> None:
        found = self.read("1.0", limit=["0", "x"], force=["maybe"], tgs=["x"], tags=["a", "b"])
        self.assertEqual(found, {**NONE, "tags": ("a", "b")})
