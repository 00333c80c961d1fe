"""Clusters that end by themselves: durations, the words of their ends, and the commands."""

from __future__ import annotations

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.clusters import table_of
from svcd.cli.lifetime import lines, span
from svcd.cli.show import Style, printed
from svcd.cli.times import seconds

NOW = seconds("2026-01-01 12:00:00") or 0.0
IDLE = {
    "name": "first", "status": "Active", "plugin_name": "vanilla", "engine_version": "3.5.0",
    "created_at": "2026-01-01 00:00:00.000000", "idle_delete_s": 7200, "max_age_s": 86_400,
    "idle_since": "2026-01-01 11:00:00.000000", "delete_at": "2026-01-01 13:00:00.000000",
}  # fmt: skip


class SpanTests(SynchronousTestCase):
    def test_durations(self) -> None:
        """Numbers with units, which add up; a number without a unit could mean anything."""
        texts = ("90s", "30m", "2h", "1d", "1d12h", "0", "never", "0s", "99999999d")
        expected = [90, 1800, 7200, 86_400, 129_600, 0, 0, 0, 99_999_999 * 86_400]
        self.assertEqual([span(text) for text in texts], expected)
        for text in ("", "30", "-1h", "1.5h", "2 h", "h", "1w", "2H", "999999999s", "٣h", "1h\n"):
            self.assertRaises(click.BadParameter, span, text)


class LinesTests(SynchronousTestCase):
    def test_limits_and_the_coming_deletion(self) -> None:
        """Without a look at its use, kept, of a request, of a deletion, and without limits."""
        idle = "deleted after 2 h 00 min without use; "
        age = "deleted at the age of 1 d 00 h"
        used = {**IDLE, "idle_since": None, "delete_at": None}
        kept = {**used, "keep_until": "2026-01-01 12:30:00"}
        for row, expected in (
            (IDLE, [f"{idle}idle since 2026-01-01 11:00:00 UTC", age,
                    "svcd deletes it at 2026-01-01 13:00:00 UTC, in 1 h 00 min"]),
            (used, [f"{idle}in use, or svcd does not know", age]),
            (kept, [f"{idle}in use, or svcd does not know", age,
                    "not deleted before 2026-01-01 12:30:00 UTC"]),
            ({**used, "keep_until": "2026-01-01 11:00:00"}, list(lines(used, NOW))),
            ({"idle_delete_s": 7200, "max_age_s": 0}, [idle.rstrip("; ")]),
            ({**used, "status": "Deleting"}, []),
            ({"status": "Active"}, []),
        ):  # fmt: skip
            self.assertEqual(list(lines(row, NOW)), expected)

    def test_the_time_left_is_a_column_when_there_is_one(self) -> None:
        """Which fits 80 columns with the names and states of both."""
        other = {**IDLE, "name": "b" * 30, "delete_at": None}
        for rows, title in (([IDLE, other], "DELETED IN"), ([other], "REASON")):
            text = printed({"clusters": rows}, table_of(rows), "table", 80, NOW, Style())
            self.assertIn(title, text.splitlines()[0])
            self.assertEqual("DELETED IN" in text, title == "DELETED IN")
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            self.assertEqual("1 h 00 min" in text, title == "DELETED IN")
