"""Clusters that end by themselves: durations, the words of their ends, and the commands."""

from __future__ import annotations

from typing import Any

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.clusters import table_of
from svcd.cli.lifetime import lines, positive_span, span
from svcd.cli.show import Style, printed
from svcd.cli.times import seconds
from tests.support.commands import RunCase

NOW = seconds("2026-01-01 12:00:00") or 0.0
IDLE = {
    "name": "first", "status": "Active", "plugin_name": "vanilla", "engine_version": "3.5.0",
    "created_at": "2026-01-01 00:00:00.000000", "idle_delete_s": 7200, "max_age_s": 86_400,
    "idle_since": "2026-01-01 11:00:00.000000", "delete_at": "2026-01-01 13:00:00.000000",
}  # fmt: skip


class SpanTests(SynchronousTestCase):
    def test_durations(self) -> None:
        """Numbers with units, which add up; a number without a unit could mean anything."""
        texts = ("90s", "30m", "2h", "1d", "1d12h", "0", "never", "0s", "3650d")
        expected = [90, 1800, 7200, 86_400, 129_600, 0, 0, 0, 3650 * 86_400]
        self.assertEqual([span(text) for text in texts], expected)
        for text in ("", "30", "-1h", "1.5h", "2 h", "h", "1w", "2H", "999999999s", "٣h", "1h\n"):
            self.assertRaises(click.BadParameter, span, text)
        for text, advice in (
            ("3651d", "at most 10 years"), ("9" * 5000 + "d", "at most 10 years"),
            ("0", "more than 0"), ("0s", "more than 0"), ("never", "or 1d12h$"),
        ):  # fmt: skip
            error = self.assertRaises(click.BadParameter, positive_span, text)
            self.assertRegex(str(error), advice)


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
            (used, [f"{idle}in use, or svcd has not asked yet or had no answer", age]),
            (kept, [f"{idle}in use, or svcd has not asked yet or had no answer", age,
                    "not deleted before 2026-01-01 12:30:00 UTC"]),
            ({**used, "status": "Error"},
             [f"{idle}svcd does not ask for its use while it is Error", age]),
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


class CommandTests(RunCase):
    """A cluster `mine` with limits beside `first`, which has none."""

    words = (
        "cluster", "create", "mine", "--plugin", "fake", "--flavor", "3", "--image", "plain",
        "--keypair", "demo", "--idle-delete", "30m", "--max-age", "1d",
    )  # fmt: skip

    def created(self) -> None:
        self.api.until_status(self.shown.body(*self.words)["cluster"]["id"], "Active")
        self.fake.advance(600)

    def puts(self) -> int:
        return sum(method == "PUT" for method, _, _ in self.shown.asked)

    def mine(self, *words: str) -> Any:
        return self.shown.body("cluster", *words, "mine")["cluster"]

    def test_create_and_show(self) -> None:
        """Limits, the time left, and the hours of its machines; of no other cluster."""
        limits = "deleted after 30 min 00 s without use\ndeleted at the age of 1 d 00 h\n"
        self.assertIn(limits, self.done(*self.words, "--dry-run").out)
        self.created()
        row = self.mine("show")
        self.assertEqual((row["idle_delete_s"], row["max_age_s"]), (1800, 86_400))
        said = self.done("cluster", "show", "mine")
        self.assertRegex(said.out, r"(?m)^mine +Active +fake 0\.1 +3 .* ago +[12]\d min \d\d s +-$")
        self.assertRegex(
            said.out, r"(?m)^svcd deletes it at 2026-01-01 00:\d\d:\d\d UTC, in [12]\d min"
        )
        self.assertRegex(
            said.out, r"(?m)^FLAVOR +MACHINES +INSTANCE HOURS\nm1.medium +3 +0\.[45]\d$"
        )
        self.assertIn("to keep it longer: svcd cluster keep mine\n", said.err)
        self.assertIn(
            "  deleted after 30 min 00 s without use; idle since", self.done("why", "mine").out
        )
        self.assertRegex(
            self.done("cluster", "ls").out, r"\AN.* DELETED IN +REASON\nfirst .* -  +-\n"
        )
        self.assertNotIn("deleted", self.done("cluster", "show", "first").out)

    def test_keep(self) -> None:
        """For two hours, a given time or until one; a cluster that does not end stays as it is."""
        self.created()
        for words, kept_s in (((), 7200), (("--for", "3h"), 10_800)):
            row = self.mine("keep", *words)
            self.assertEqual(row["delete_at"], row["keep_until"])
            left = (seconds(row["keep_until"]) or 0.0) - self.fake.clock.seconds()
            self.assertLess(abs(left - kept_s), 3)
        said = self.done("cluster", "keep", "mine", "--until", "2026-01-01T05:00+01:00")
        self.assertIn("mine: not deleted before 2026-01-01 04:00:00 UTC\n", said.err)
        asked = self.puts()
        for words in ((), ("--for", "1m")):
            said = self.done("cluster", "keep", "mine", *words)
            self.assertIn("mine: kept until 2026-01-01 04:00:00 UTC, as before\n", said.err)
        self.assertIn(
            "first: it has no idle or age limit\n", self.done("cluster", "keep", "first").err
        )
        self.refused(2, "cluster", "keep", "mine", "--until", "tomorrow")
        self.refused(2, "cluster", "keep", "mine", "--for", "1h", "--until", "2026-01-01")
        for time in ("2020-01-01", "9999-12-31T23:59-14:00"):
            text = self.refused(2, "cluster", "keep", "first", "--until", time)
            self.assertIn("expected a time in the next 10 years", text)
        self.assertEqual(self.puts(), asked)
        said = self.done("cluster", "keep", "mine", "--until", "2026-01-01T03:30")
        self.assertIn("earlier than before: it was kept until 2026-01-01 04:00:00 UTC\n", said.err)
        self.assertIn("2026-01-01 03:30", self.mine("show")["keep_until"])

    def test_limits_are_changed(self) -> None:
        """Without work on the cluster; never ends them."""
        self.created()
        row = self.mine("keep", "--idle-delete", "1h")
        self.assertEqual((row["status"], row["idle_delete_s"]), ("Active", 3600))
        self.assertNotIn("keep_until", row)
        said = self.done("cluster", "keep", "mine", "--idle-delete", "never", "--max-age", "0")
        self.assertIn("mine: it has no idle or age limit\n", said.err)
        self.assertNotIn("max_age_s", self.mine("show"))
