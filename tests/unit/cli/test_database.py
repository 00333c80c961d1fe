"""`svcd backup`, `svcd restore`, `svcd db …` on SQLite. On PostgreSQL: test_live_database."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from cryptography.fernet import Fernet
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.database_target import Place
from svcd.runtime.state_dir import StateFolderError, hold_database
from svcd.settings import Database
from svcd.store import migrations
from svcd.store.offline.shape import shape
from svcd.store.sqlite import SqliteDatabase
from tests.support.api import now
from tests.support.database.life import PASSWORD
from tests.support.database.releases import (
    ADDS,
    CHANGES,
    DEVELOPMENT,
    NEWEST,
    become,
    become_development_version,
    make_premature,
)
from tests.unit.cli.databases import DatabaseCase, change, everything, lived_in, svcd

_KEPT = [
    "node_group_templates", "cluster_templates", "clusters", "usage", "cluster_events",
    "data_sources", "internals", "pieces", "job_binaries", "jobs", "executions", "execution_logs",
    "execution_log_pieces", "job_credentials", "loose_trusts", "kept_answers",
]  # fmt: skip


def rows_of(state: Path, table: str) -> int:
    """The number of rows of one table."""
    connection = sqlite3.connect(state / "svcd.sqlite")
    try:
        return int(connection.execute(f"select count(*) from {table}").fetchone()[0])
    finally:
        connection.close()


class _Case(DatabaseCase):
    def backed_up(self) -> Path:
        self.done("backup", str(self.file))
        return self.file

    def empty(self) -> Path:
        """Another state folder, with the same key and no database."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir(mode=0o700)
        shutil.copy2(self.state / "seal.key", folder / "seal.key")
        return folder

    def left(self, folder: Path) -> list[str]:
        """Drafts that were not removed."""
        return [p.name for p in folder.iterdir() if p.name.endswith(".partial")]


class ShapeTests(SynchronousTestCase):
    def test_every_table_was_thought_of(self) -> None:
        """A new table is kept, unless offline.shape.TRANSIENT says that it dies with the daemon."""
        self.assertEqual([t.name for t in shape(migrations.newest()).kept], _KEPT)


class BackupTests(_Case):
    def test_rows_come_back(self) -> None:
        """Into a folder without a database; all tables, and the check finds nothing."""
        self.assertEqual({name: each.rows > 0 for name, each in self.rows.items()},
                         dict.fromkeys(_KEPT, True))  # fmt: skip
        self.backed_up()
        other = self.empty()
        told = self.done("restore", "--verify-only", str(self.file), state=other)
        self.assertIn("is complete: schema", told.out)
        self.assertEqual([p.name for p in other.iterdir()], ["seal.key"])
        told = self.done("restore", str(self.file), state=other)
        self.assertIn("now has these rows", told.out)
        self.assertEqual(everything(other), self.rows)
        self.assertIn("no faults", self.done("db", "check", state=other).out)
        self.assertEqual(stat.S_IMODE((other / "svcd.sqlite").stat().st_mode), 0o600)

    def test_only_the_owner_may_read_it_and_no_secret_is_in_it(self) -> None:
        """Sealed texts stay sealed; the user is told to keep the key, and warned of a wrong one."""
        key = self.state / "seal.key"
        told = self.done("backup", str(self.file)).out
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        content = self.file.read_bytes()
        for secret in (PASSWORD.encode(), key.read_bytes()):
            self.assertNotIn(secret, content)
        self.assertIn(f"Keep a copy of {key} too, in another place", told)
        key.write_bytes(Fernet.generate_key())
        self.file.unlink()
        self.assertIn("it was sealed with another key", self.fails("backup", str(self.file)))
        self.assertTrue(self.file.exists())

    def test_what_a_backup_does_not_make_or_replace(self) -> None:
        """A database, a folder, and an existing file, whatever it is."""
        other = self.empty()
        for command in (("backup", str(self.file)), ("db", "check"), ("db", "current")):
            self.assertIn("there is no database", svcd(*command, state=other).err)
        self.assertEqual([(other / "svcd.sqlite").exists(), self.file.exists()], [False, False])
        told = self.fails("backup", str(self.state / "none" / "file"))
        self.assertIn(": No such file or directory", told)
        self.file.write_text("precious")
        self.assertIn("exists already: choose another name", self.fails("backup", str(self.file)))
        self.assertEqual(self.file.read_text(), "precious")

    def test_any_damage_is_found(self) -> None:
        """One bit anywhere, a cut anywhere, more at the end: nothing is restored."""
        content = self.backed_up().read_bytes()
        other = self.empty()
        size = len(content)
        damaged = [
            content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            for at in (*range(0, size, 499), size - 1)
        ]
        damaged += [content[:at] for at in (0, 5, size // 2, size - 33, size - 1)]
        damaged += [content + b"x", (self.state / "svcd.sqlite").read_bytes()]
        for each in damaged:
            self.file.write_bytes(each)
            ran = svcd("restore", str(self.file), state=other)
            self.assertEqual(ran.code, 1)
            self.assertIn(str(self.file), ran.err)
        self.assertFalse((other / "svcd.sqlite").exists())

    def test_backup_of_a_later_release_is_refused(self) -> None:
        """It names the release that can."""
        back = become(self, CHANGES)
        self.done("db", "upgrade")
        self.backed_up()
        back()
        told = self.fails("restore", str(self.file), state=self.empty())
        self.assertIn(f"{self.file} has schema {NEWEST + 1}, this release knows {NEWEST}", told)
        for command in (("backup", "x"), ("db", "check"), ("db", "upgrade")):
            self.assertIn("use the release that wrote it", self.fails(*command))


class RestoreTests(_Case):
    def test_running_daemon_is_seen(self) -> None:
        """By its open file, or by its lock, wherever its folder is; the lock names its process."""
        self.backed_up()
        database = SqliteDatabase(self.state / "svcd.sqlite")
        url = f"sqlite:///{self.state / 'svcd.sqlite'}"
        for command in (("restore", "--replace", str(self.file)), ("db", "upgrade")):
            told = self.fails(*command, state=self.empty(), url=url)
            self.assertIn("is in use by another program: stop the daemon", told)
        now(Deferred.fromCoroutine(database.close()))
        for state in (self.state, self.empty()):
            release = hold_database(state / "svcd.sqlite")
            told = self.fails("restore", "--replace", str(self.file), state=state)
            self.assertIn(f"is in use by process {os.getpid()}; stop that one", told)
            release()
        self.assertEqual(everything(self.state), self.rows)
        self.assertEqual(self.left(self.state), [])

    def test_file_that_is_no_database_of_svcd(self) -> None:
        """One of another program stays, also with --replace; a damaged one is put aside then."""
        self.backed_up()
        database = self.state / "svcd.sqlite"
        database.write_bytes(b"\xa5" * 20_000)
        self.assertIn("is damaged", self.fails("restore", str(self.file)))
        self.assertEqual(database.read_bytes(), b"\xa5" * 20_000)
        self.done("restore", "--replace", str(self.file))
        self.assertEqual(everything(self.state), self.rows)
        self.assertEqual((self.state / "svcd.sqlite.before-restore").read_bytes(), b"\xa5" * 20_000)
        change(self.state, "drop table schema_version")
        for more in ([], ["--replace"]):
            told = self.fails("restore", str(self.file), *more)
            self.assertIn("tables of another program", told)

    def test_key_that_is_missing_or_another_one_is_told(self) -> None:
        """The rows are there; the daemon would not start without it."""
        self.backed_up()
        other = self.empty()
        key = other / "seal.key"
        self.assertNotIn("fingerprint", self.done("restore", str(self.file), state=other).out)
        for content, words in ((None, "is missing"), ("another", "is not the key of the backup")):
            key.unlink() if content is None else key.write_text(content)
            told = self.done("restore", "--replace", str(self.file), state=other).out
            self.assertIn(f"{key} {words}", told)

    def test_rows_are_not_replaced_unasked(self) -> None:
        """With --replace the former file is kept beside it. A database without rows has none."""
        self.backed_up()
        other = self.empty()
        database = SqliteDatabase(other / "svcd.sqlite")
        now(Deferred.fromCoroutine(migrations.migrate(database, "then")))
        now(Deferred.fromCoroutine(database.close()))
        self.done("restore", str(self.file), state=other)
        change(self.state, "delete from cluster_events")
        changed = everything(self.state)
        self.assertIn(
            "rows: name an empty one, or say --replace", self.fails("restore", str(self.file))
        )
        self.assertEqual(everything(self.state), changed)
        told = self.done("restore", str(self.file), "--replace").out
        self.assertIn("svcd.sqlite.before-restore", told)
        self.assertEqual(everything(self.state), self.rows)
        (self.state / "svcd.sqlite.before-restore").replace(self.state / "svcd.sqlite")
        self.assertEqual(everything(self.state), changed)

    def test_cursors_of_before_are_of_another_epoch(self) -> None:
        """The change feed begins anew at the next start; changes are not in the backup."""
        self.backed_up()
        self.assertEqual(rows_of(self.state, "feed"), 1)
        self.assertGreater(rows_of(self.state, "changes"), 5)
        self.done("restore", str(self.file), "--replace")
        for table in ("feed", "changes"):
            self.assertEqual(rows_of(self.state, table), 0, table)

    def test_journal_of_the_former_file_does_not_come_back(self) -> None:
        """What a killed daemon left in its journal belongs to the file that is put aside."""
        self.backed_up()
        database = SqliteDatabase(self.state / "svcd.sqlite")
        database._connection.execute("update clusters set name = 'other'")
        copies = {p: p.read_bytes() for p in self.state.iterdir() if "svcd.sqlite" in p.name}
        now(Deferred.fromCoroutine(database.close()))
        for path, content in copies.items():  # as if it had been killed
            path.write_bytes(content)
        self.assertTrue((self.state / "svcd.sqlite-wal").exists())
        self.done("restore", "--replace", str(self.file))
        self.assertEqual(everything(self.state), self.rows)
        (self.state / "svcd.sqlite.before-restore").replace(self.state / "svcd.sqlite")
        self.assertNotEqual(everything(self.state)["clusters"], self.rows["clusters"])

    def test_no_daemon_starts_meanwhile(self) -> None:
        """Also when there is no file yet."""
        for state in (self.state, self.empty()):
            path = state / "svcd.sqlite"
            place = Place(settings=Database(url=f"sqlite:///{path}"), path=path)
            with self.assertRaises(StateFolderError) as raised, place.filled("svcd restore", True):
                hold_database(path)
            self.assertIn(f"is in use by process {os.getpid()};", str(raised.exception))
            hold_database(path)()
        self.assertEqual(everything(self.state), self.rows)

    def test_file_belongs_to_the_daemons_user(self) -> None:
        """Also when root has restored it; a link to the file stays one."""
        self.backed_up()
        other, elsewhere = self.empty(), self.empty()
        (other / "svcd.sqlite").symlink_to(elsewhere / "real.sqlite")
        if os.geteuid() == 0:
            os.chown(elsewhere, 65534, 65534)
        self.done("restore", str(self.file), state=other)
        self.assertTrue((other / "svcd.sqlite").is_symlink())
        self.assertEqual(everything(other), self.rows)
        found, folder = (elsewhere / "real.sqlite").stat(), elsewhere.stat()
        self.assertEqual((found.st_uid, found.st_gid), (folder.st_uid, folder.st_gid))


class SchemaTests(_Case):
    def test_upgrade_is_told_and_idempotent(self) -> None:
        """`db current` is 0 when nothing is to be done and 1 else; it changes nothing."""
        told = self.done("db", "current").out
        self.assertIn(f"schema {NEWEST}, this release has {NEWEST}: up to date", told)
        become(self, CHANGES)
        for _ in range(2):
            ran = svcd("db", "current", state=self.state)
            self.assertEqual((ran.code, ran.err), (1, ""))
            text = f"schema {NEWEST}, this release has {NEWEST + 1}: needs an upgrade"
            self.assertIn(text, ran.out)
            self.assertIn("daemons of the former release must be stopped first", ran.out)
        self.assertIn("run svcd db upgrade first", self.fails("db", "check"))
        text = f"schema {NEWEST} was upgraded to {NEWEST + 1}"
        self.assertIn(text, self.done("db", "upgrade").out)
        self.assertIn(f"schema {NEWEST + 1} is up to date", self.done("db", "upgrade").out)
        self.done("db", "current")
        change(self.state, "insert into schema_version values (999, 'later', 999)")
        ran = svcd("db", "current", state=self.state)
        self.assertEqual((ran.code, "schema 999" in ran.out), (1, True), ran)

    def test_upgrade_that_serves_the_former_release(self) -> None:
        """It is told before, and `db upgrade` of that release is content with it."""
        back = become(self, ADDS)
        ran = svcd("db", "current", state=self.state)
        self.assertIn("daemons of the former release can go on beside it", ran.out)
        self.done("db", "upgrade")
        back()
        self.assertIn("of a newer release serves this one", self.done("db", "upgrade").out)
        self.assertIn("daemons of this one can use it", self.done("db", "current").out)

    def test_backup_of_an_old_schema_is_upgraded_by_restore(self) -> None:
        """So that one can be made before the upgrade."""
        self.backed_up()
        other = self.empty()
        become(self, CHANGES)
        told = self.done("restore", str(self.file), state=other).out
        self.assertIn(f"is complete: schema {NEWEST}, ", told)
        self.done("db", "current", state=other)
        self.assertEqual(rows_of(other, "clusters where remark = 'mine'"), 1)
        self.assertIn("no faults", self.done("db", "check", state=other).out)


_REFUSED = "schema 18 of a development version of svcd, and this release begins with schema 19"


class DevelopmentTests(_Case):
    """Databases and backups with a schema before the first one."""

    def test_every_command_refuses_the_database(self) -> None:
        """With the way out; not a byte of it is written. A backup of a release replaces it."""
        self.backed_up()
        path = self.state / "svcd.sqlite"
        make_premature(path)
        before = path.read_bytes()
        here, other = f"sqlite:///{path}", f"sqlite:///{lived_in(self.mktemp())}/svcd.sqlite"
        for command in (
            ("backup", f"{self.file}-2"),
            ("restore", str(self.file)),
            ("db", "upgrade"),
            ("db", "check"),
            ("db", "copy", "--from", here, "--to", f"{here}-2"),
            ("db", "copy", "--from", other, "--to", here),
            ("keys", "rotate"),
        ):
            told = self.fails(*command)
            self.assertIn(f"the database {path} has {_REFUSED}: move it away, or name", told)
        for command in (("db", "current"), ("doctor",)):
            ran = svcd(*command, state=self.state)
            self.assertEqual((ran.code, ran.err), (1, ""))
            self.assertIn(_REFUSED, " ".join(ran.out.split()))
        self.assertEqual(path.read_bytes(), before)
        self.assertFalse(Path(f"{self.file}-2").exists())
        self.done("restore", "--replace", str(self.file))
        self.assertEqual(everything(self.state), self.rows)
        with closing(sqlite3.connect(self.state / "svcd.sqlite.before-restore")) as former:
            (number,) = former.execute("select max(number) from schema_version").fetchone()
        self.assertEqual(number, DEVELOPMENT)

    def test_its_backup_is_refused(self) -> None:
        """Nothing is written."""
        make_premature(self.state / "svcd.sqlite")
        back = become_development_version(self)
        self.backed_up()
        back()
        other = self.empty()
        for more in ([], ["--replace"], ["--verify-only"]):
            told = self.fails("restore", str(self.file), *more, state=other)
            self.assertIn(f"{self.file} has {_REFUSED}: start with an empty data", told)
        self.assertFalse((other / "svcd.sqlite").exists())


class CheckTests(_Case):
    def faults(self) -> list[str]:
        """The lines of the faults that are found."""
        ran = svcd("db", "check", state=self.state)
        self.assertEqual((ran.code, ran.err), (1, ""))
        return [line[7:] for line in ran.out.splitlines() if line.startswith("fault  ")]

    def test_sound_database(self) -> None:
        """Every table with its rows; 0. The check itself changes nothing, and makes no key."""
        lines = self.done("db", "check").out.splitlines()
        counted = {line.split()[0]: int(line.split()[1]) for line in lines[: len(_KEPT)]}
        wanted = {name: each.rows for name, each in self.rows.items()}
        self.assertEqual(counted, {**wanted, "pieces": wanted["pieces"] + 1})  # one under way
        self.assertEqual(everything(self.state), self.rows)
        (self.state / "seal.key").unlink()
        self.assertIn("sealed credentials were not checked", self.faults()[0])
        self.assertFalse((self.state / "seal.key").exists())

    def test_each_fault_is_named_with_its_row(self) -> None:
        """One change each, made by hand; the words of the fault, and what it is about."""
        no_key, unreadable = "cannot be opened with", "its record cannot be read"
        source, pig = "where name = 'data-in'", "where name = 'count.pig'"
        piece = "where upload_id = 'pieces' and number ="
        for text, where, what in (
            ("update clusters set record = '{'", "clusters ", unreadable),
            ("update clusters set status = 'Error'", "clusters ", "status is not what its record"),
            ("update executions set ended = 0", "executions ", "ended is not what its record says"),
            ("update clusters set wire = '[]'", "clusters ", "its wire form cannot be read"),
            ("update clusters set wire = '{\"id\": \"x\"}'", "clusters ", "has another id"),
            ("update cluster_events set record = 'x' where number = 1", "cluster_ev", unreadable),
            (f"update data_sources set sealed = 'x' {source}", "data_s", "not a sealed text"),
            ("update job_binaries set sealed = 'f1:x' where sealed is not null",
             "job_binaries ", no_key),
            ("update job_credentials set sealed = 'f1:x'", "job_credentials ", no_key),
            (f"update job_credentials set sealed = (select sealed from data_sources {source})",
             "job_credentials ", "its sealed text has the wrong content"),
            ("update kept_answers set sealed = 'f1:x'", "kept_answers ", no_key),
            (f"delete from pieces {piece} 0", "internals pieces", "piece 0 is missing"),
            (f"delete from pieces {piece} 3", "internals pieces", "pieces have 17 bytes, not 20"),
            (f"update pieces set content = x'0001fe' {piece} 0", "internals pieces",
             "not those that were uploaded"),
            ("delete from jobs", "executions ", "its job_id "),
            ("delete from data_sources where name = 'data-out'", "executions ", "its output_id "),
            ("delete from cluster_templates", "clusters ", "its cluster_template_id "),
            ("delete from node_group_templates", "clusters ", "of node_group_templates is gone"),
            (f"delete from job_binaries {pig}", "jobs ", "of job_binaries is gone"),
            (f"delete from internals {pig}", "job_binaries ", "of internals is gone"),
            ("delete from uploads", "pieces cut-short", "1 pieces belong to no binary"),
            ("delete from clusters", "cluster_events ", "their cluster is gone"),
        ):  # fmt: skip
            self.state = lived_in(self.mktemp())
            change(self.state, text)
            found = self.faults()
            about = [line for line in found if line.startswith(where) and what in line]
            self.assertTrue(about, (text, found))
            self.assertNotIn(PASSWORD, " ".join(found))


class CopyTests(_Case):
    def copy(self, source: Path, target: Path) -> Sequence[str]:
        """The words of a copy from one state folder to another."""
        urls = (f"sqlite:///{state / 'svcd.sqlite'}" for state in (source, target))
        return ("db", "copy", "--from", next(urls), "--to", next(urls))

    def test_file_to_file(self) -> None:
        """All rows; the source stays; the next step is told. A daemon on the source is seen."""
        other = self.empty()
        copy = self.copy(self.state, other)
        database = SqliteDatabase(self.state / "svcd.sqlite")
        self.assertIn("is in use by another program", self.fails(*copy, state=other))
        now(Deferred.fromCoroutine(database.close()))
        self.assertFalse((other / "svcd.sqlite").exists())
        told = self.done(*copy)
        self.assertEqual([everything(other), everything(self.state)], [self.rows] * 2)
        self.assertIn(f'database.url = "{copy[-1]}"', told.out)

    def test_target_with_rows_and_same_target_are_refused(self) -> None:
        """One line each."""
        link = self.empty()
        (link / "svcd.sqlite").symlink_to(self.state / "svcd.sqlite")
        for target, words in (
            (lived_in(self.mktemp()), "rows: name an empty one\n"),
            (self.state, "both the source and the target"),
            (link, "both the source and the target"),
        ):
            self.assertIn(words, self.fails(*self.copy(self.state, target)))
