"""Upgrades to a made-up next schema, and what cannot be upgraded. PostgreSQL: tests.live.store."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.offline.check import Counted, check
from svcd.store.offline.content import sums
from svcd.store.offline.shape import shape
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from tests.contract.store.rows import at
from tests.support.api import now
from tests.support.database.fields import COMMAND, fields, fields_file
from tests.support.database.releases import (
    CHANGES,
    DEVELOPMENT,
    NEWEST,
    become,
    cut,
    make_premature,
)
from tests.unit.cli.databases import lived_in

_FIRST = migrations.oldest()


class TwoStepTests(SynchronousTestCase):
    """Files that leave the releases before them at work."""

    def test_a_later_file_serves_no_older_release(self) -> None:
        """Else a release that the file before has shut out would begin again."""
        served = [migrations.serves(*step) for step in migrations.steps()]
        self.assertEqual(served, sorted(served))
        self.assertTrue(all(s <= n for s, (n, _) in zip(served, migrations.steps(), strict=True)))

    def test_the_releases_that_a_version_serves(self) -> None:
        """By the schema that they know."""
        self.assertEqual(migrations.refusal(migrations.Version(0, 0)), "")
        self.assertEqual(migrations.refusal(migrations.Version(NEWEST + 2, NEWEST)), "")
        self.assertEqual(
            migrations.refusal(migrations.Version(NEWEST + 2, NEWEST + 1)),
            f"the database has schema {NEWEST + 2}, this release knows {NEWEST}:"
            " use the release that wrote it, or a newer one",
        )

    def test_development_versions_are_refused(self) -> None:
        """All their schemas, with a way out."""
        for number in (1, 16, DEVELOPMENT):
            self.assertEqual(
                migrations.refusal(migrations.Version(number, number), "the database /a/b"),
                f"the database /a/b has schema {number} of a development version of svcd, and this"
                " release begins with schema 19: move it away, or name an empty state folder"
                " (server.state_dir) or another database (database.url)",
            )

    def test_files_that_serve_older_releases_only_add(self) -> None:
        """What these neither read nor write."""
        for number, text in migrations.steps():
            if migrations.serves(number, text) < number:
                self.assertEqual(hindering(text), [])

    def test_what_releases_write_into_records(self) -> None:
        """A release loses the fields that it does not know, so a field needs a file of its own.

        When this fails after the first release: add a file below svcd/store/schema without a line
        `serves`. Before it: the first file may stay. Then run `COMMAND`.
        """
        known = json.loads(fields_file(migrations.needed()).read_text(encoding="utf-8"))
        self.assertEqual(fields(), known, COMMAND)


_ADDS = re.compile(
    r"create table \w+ \((?!.*\breferences\b)|(?:\{sqlite\})?create index "
    r"|alter table \w+ add column (?!.*\breferences\b)(?!.*\bnot null\b(?!.*\bdefault\b))",
    re.DOTALL,
)


def hindering(text: str) -> list[str]:
    """The statements that an older release may notice."""
    bare = re.sub(r"--.*", "", text)
    statements = (" ".join(each.split()) for each in bare.split(";"))
    return [each for each in statements if each and not _ADDS.match(each)]


class UpgradeTests(SynchronousTestCase):
    """A file with rows in every table."""

    def setUp(self) -> None:
        self.state = lived_in(self.mktemp())
        self.path = self.state / "svcd.sqlite"

    def upgrade(self, path: Path | None = None) -> int:
        """What a daemon does at its start."""
        database = SqliteDatabase(path or self.path)
        try:
            return int(now(Deferred.fromCoroutine(migrations.migrate(database, at(0)))))
        finally:
            now(Deferred.fromCoroutine(database.close()))

    def content(self) -> list[str]:
        """All tables and rows."""
        with closing(sqlite3.connect(self.path)) as connection:
            return list(connection.iterdump())

    def test_rows_stay_and_are_changed(self) -> None:
        """All columns of before hold what they held; the check finds no fault."""
        with closing(SqliteSession(self.path, "look")) as session:
            before = sums(session, shape(_FIRST))
        become(self, CHANGES)
        self.assertEqual(self.upgrade(), NEWEST + 1)
        with closing(SqliteSession(self.path, "look")) as session:
            self.assertEqual(sums(session, shape(_FIRST)), before)
            self.assertEqual(list(session.rows("select remark from clusters")), [("mine",)])
            found = list(check(session, FernetSealer(self.state / "seal.key")))
        self.assertEqual([each for each in found if not isinstance(each, Counted)], [])
        self.assertEqual({f.table for f in found if not f.rows}, {"remarks"})

    def test_interrupted_at_any_statement(self) -> None:
        """The former release finds all as it was, and the next start makes the upgrade."""
        before = self.content()
        for text in cut(CHANGES):
            back = become(self, text)
            with self.assertRaises(SchemaError):
                self.upgrade()
            back()
            self.assertEqual(self.content(), before, text)
        become(self, CHANGES)
        self.assertEqual(self.upgrade(), NEWEST + 1)

    def test_full_disk(self) -> None:
        """It is named with what helps; nothing was changed; with room the upgrade succeeds."""
        before = self.content()
        become(self, CHANGES)
        database = SqliteDatabase(self.path)
        (pages,) = database._connection.execute("pragma page_count").fetchone()
        database._connection.execute(f"pragma max_page_count={pages}")
        with self.assertRaises(SchemaError) as raised:
            now(Deferred.fromCoroutine(migrations.migrate(database, at(0))))
        now(Deferred.fromCoroutine(database.close()))
        self.assertEqual(
            str(raised.exception),
            f"the schema of {self.path} cannot be changed: database or disk is full",
        )
        self.assertEqual(self.content(), before)
        self.assertEqual(self.upgrade(), NEWEST + 1)

    def test_database_of_a_development_version_is_left_alone(self) -> None:
        """Not a byte is written."""
        make_premature(self.path)
        before = self.path.read_bytes()
        with self.assertRaises(SchemaError) as raised:
            self.upgrade()
        self.assertIn(f"the database {self.path} has schema 18 of a dev", str(raised.exception))
        self.assertEqual(self.path.read_bytes(), before)
