"""Names, ids and beginnings of them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.cli.names import CLUSTER, chosen

ROWS = [
    {"id": "11111111-1111-4111-8111-111111111111", "name": "first"},
    {"id": "22222222-2222-4222-8222-222222222222", "name": "first-2"},
    {"id": "33333333-3333-4333-8333-333333333333", "name": "other"},
]


class ChosenTests(SynchronousTestCase):
    def test_exact_names_win_over_beginnings(self) -> None:
        found = [
            chosen(ROWS, CLUSTER, what, "t")["name"] for what in ("first", "o", "222", "first-")
        ]
        self.assertEqual(found, ["first", "other", "first-2", "first-2"])

    def refused(self, what: str, rows: list[dict[str, str]] = ROWS) -> CommandError:
        with self.assertRaises(CommandError) as raised:
            chosen(rows, CLUSTER, what, "t")
        return raised.exception

    def test_several(self) -> None:
        error = self.refused("fi")
        self.assertEqual(error.code, USAGE)
        self.assertIn("'fi' is the beginning of several clusters: first (1111", str(error))
        self.assertIn(
            "several clusters have the name 'x'",
            str(self.refused("x", [{"id": "1", "name": "x"}, {"id": "2", "name": "x"}])),
        )

    def test_none(self) -> None:
        """With the nearest name, else those that there are."""
        self.assertEqual(self.refused("frist").code, NOT_FOUND)
        self.assertEqual(
            [str(self.refused(*given)) for given in (("frist",), ("zzz",), ("zzz", []), ("",))],
            [
                "project t has no cluster 'frist'; did you mean first?",
                "project t has no cluster 'zzz'; there are first, first-2, other",
                "project t has no cluster 'zzz'; there are none",
                "project t has no cluster ''; there are first, first-2, other",
            ],
        )
