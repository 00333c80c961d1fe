"""The audit log's file: its mode, its rotation, floods of refusals, and a disk that is full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.audit import MOST_OF_ONE, MOST_REFUSALS, Audit, AuditError, opened
from svcd.runtime.clock import VirtualClock


class AuditTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def lines(self, name: str = "audit.log") -> list[Any]:
        return [json.loads(x) for x in (self.folder / name).read_text("utf-8").splitlines() if x]

    def opened(self, target: str = "audit.log", most: int = 1000) -> Audit:
        found = opened(self.clock, target, self.folder, most)
        assert found is not None
        return found

    def test_only_the_daemons_user_reads_the_file(self) -> None:
        """It is relative to the state folder, and a restart appends to it."""
        for n in (1, 2):
            self.opened().change({"n": n})
        self.assertEqual((self.folder / "audit.log").stat().st_mode & 0o777, 0o600)
        self.assertEqual([line["n"] for line in self.lines()], [1, 2])
        self.assertEqual(self.lines()[0]["time"], "2026-01-01T00:00:00.000Z")

    def test_a_full_file_is_rotated(self) -> None:
        """Nine older files are kept, all for the daemon's user alone."""
        audit = self.opened(most=1)
        for n in range(12):
            audit.change({"n": n})
        names = {"audit.log", *(f"audit.log.{n}" for n in range(1, 10))}
        self.assertEqual({each.name for each in self.folder.iterdir()}, names)
        self.assertEqual([self.lines()[0]["n"], self.lines("audit.log.9")[0]["n"]], [11, 2])
        self.assertEqual({f.stat().st_mode & 0o777 for f in self.folder.iterdir()}, {0o600})

    def test_a_flood_of_refusals_is_bounded(self) -> None:
        """The number left out is in the next record; changes are always written."""
        audit = self.opened(most=10**6)
        for _ in range(1000):
            audit.refusal({"outcome": "refused"})
        audit.change({"outcome": "accepted"})
        self.assertEqual(len(self.lines()), MOST_REFUSALS + 1)
        self.clock.advance(1)
        audit.refusal({"outcome": "refused"})
        self.assertEqual(self.lines()[-1]["left_out"], 1000 - MOST_REFUSALS)

    def test_a_flood_without_a_token_hides_no_refusal_of_a_user(self) -> None:
        """Users have a budget of their own, and one user has a part of it."""
        audit = self.opened(most=10**6)
        for _ in range(1000):
            audit.refusal({"user": "", "outcome": "refused"})
        for user, project in (("eve", "a"), ("bob", "a"), ("eve", "b")):
            for _ in range(100):
                audit.refusal({"user": user, "project": project, "outcome": "refused"})
        shown = [(x["user"], x.get("project")) for x in self.lines()[MOST_REFUSALS:]]
        one = MOST_OF_ONE
        self.assertEqual(shown, [("eve", "a")] * one + [("bob", "a")] * one + [("eve", "b")] * one)
        self.clock.advance(1)
        audit.refusal({"user": "bob", "project": "a"})
        audit.refusal({"user": ""})
        left = [line["left_out"] for line in self.lines()[-2:]]
        self.assertEqual(left, [100 - one, 1000 - MOST_REFUSALS])

    def test_a_file_that_cannot_be_used_is_named(self) -> None:
        """At the start, with what to do."""
        with self.assertRaises(AuditError) as raised:
            self.opened("nowhere/audit.log")
        self.assertIn("nowhere/audit.log: No such file or directory", str(raised.exception))
        self.assertIn("log.audit", str(raised.exception))

    def test_records_that_cannot_be_written_are_counted(self) -> None:
        """The daemon continues, and the next record begins on a line of its own."""
        written: list[str] = []
        full = [True]

        def write(line: str) -> None:
            if full[0]:
                raise OSError("no space left")
            written.append(line)

        audit = Audit(self.clock, write)
        for n in (1, 2):
            audit.change({"n": n})
        full[0] = False
        audit.change({"n": 3})
        self.assertEqual([json.loads(each)["n"] for each in written], [3])
        self.assertTrue(written[0].startswith("\n"))

    def test_it_can_be_off(self) -> None:
        """Then there is no file."""
        self.assertIsNone(opened(self.clock, "off", self.folder, 1))
        self.assertEqual(list(self.folder.iterdir()), [])
