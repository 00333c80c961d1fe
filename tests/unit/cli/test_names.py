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

    def test_refusals(self) -> None:
        """Several, or none: with the nearest name, else those that there are."""
        twins = [{"id": "1", "name": "x"}, {"id": "2", "name": "x"}]
        none = "project t has no cluster "
        for what, rows, code, text in (
            ("fi", ROWS, USAGE, "'fi' is the beginning of several clusters: first (1111"),
            ("x", twins, USAGE, "several clusters have the name 'x'"),
            ("frist", ROWS, NOT_FOUND, f"{none}'frist'; did you mean first?"),
            ("zzz", ROWS, NOT_FOUND, f"{none}'zzz'; there are first, first-2, other"),
            ("zzz", [], NOT_FOUND, f"{none}'zzz'; there are none"),
            ("", ROWS, NOT_FOUND, f"{none}''; there are first, first-2, other"),
        ):
            error = self.assertRaises(CommandError, chosen, rows, CLUSTER, what, "t")
            self.assertEqual((error.code, text in str(error)), (code, True), error)
