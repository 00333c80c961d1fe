"""`svcd keys` on SQLite. On PostgreSQL: tests.live.cli.test_database."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from cryptography.fernet import Fernet
from twisted.internet.defer import Deferred

from svcd.model.secret import Secret
from svcd.store.offline.reseal import reseal
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer, Keys, MemorySealer, fingerprint, kept_key, load, replace
from svcd.store.sqlite import SqliteDatabase
from tests.support.api import now
from tests.unit.cli.databases import DatabaseCase, change, svcd


def texts(state: Path) -> str:
    """All that the database holds."""
    with contextlib.closing(sqlite3.connect(state / "svcd.sqlite")) as connection:
        return "\n".join(connection.iterdump())


class RotateTests(DatabaseCase):
    def setUp(self) -> None:
        super().setUp()
        self.key = self.state / "seal.key"
        self.before = load(self.key)

    def assert_rotated(self) -> Keys:
        """Every secret opens with the one key of the file, which is another one. Returns it."""
        keys = load(self.key)
        self.assertEqual(keys.former, ())
        self.assertNotEqual(keys.seals, self.before.seals)
        self.assertIn("no faults", self.done("db", "check").out)
        old, new = FernetSealer(self.former()), FernetSealer(self.key)
        all_texts = texts(self.state)
        self.assertEqual(old.renewed(all_texts), all_texts)  # none opens with the former key
        self.assertNotEqual(FernetSealer(self.two_keys(keys)).renewed(all_texts), all_texts)
        self.assertEqual(new.installation, old.installation)
        self.assertEqual(new.digest(b"x"), old.digest(b"x"))
        return keys

    def two_keys(self, keys: Keys) -> Path:
        """A file with one more key, which finds what `keys` have sealed."""
        path = self.state / "two.key"
        path.write_bytes(keys.renewed().text())
        path.chmod(0o600)
        return path

    def former(self) -> Path:
        return kept_key(self.key, fingerprint(self.before.seals))

    def test_all_secrets_are_sealed_anew(self) -> None:
        """Columns and parts of records; the former key is kept, and its mode.

        The new key is kept, too: a former key that is copied over it loses nothing.
        """
        said = self.done("keys", "rotate").out
        newest = self.assert_rotated()
        self.assertEqual(load(kept_key(self.key, fingerprint(newest.seals))), newest)
        for table in ("clusters", "data_sources", "job_credentials"):
            self.assertRegex(said, rf"(?m)^  {table} +[1-9]\d* rows sealed anew$")
        self.assertEqual(self.key.stat().st_mode & 0o777, 0o600)
        self.assertEqual(load(self.former()), self.before)
        self.before = newest
        self.done("keys", "rotate")
        self.assert_rotated()

    def test_text_of_a_caller_stays(self) -> None:
        """It only looks like a sealed one."""
        text = "f1:gAAAAABforged"
        one = "where id = (select min(id) from data_sources)"
        change(self.state, f"update data_sources set name = ? {one}", text)
        self.done("keys", "rotate")
        self.assertIn(text, texts(self.state))

    def test_interrupted_rotation_continues(self) -> None:
        """After each part of the work both keys open, and the next call makes no third key."""
        replace(self.key, self.before.renewed())
        newest = load(self.key).seals
        self.assertIn("no faults", self.done("db", "check").out)
        self.assertIn("former, only opens", self.done("keys", "show").out)
        with contextlib.closing(SqliteSession(self.state / "svcd.sqlite", "alone")) as session:
            next(reseal(session, FernetSealer(self.key)))
        self.assertIn("no faults", self.done("db", "check").out)
        self.assertIn("continuing the rotation", self.done("keys", "rotate").out)
        self.assertEqual(self.assert_rotated().seals, newest)

    def test_former_backup_names_the_key_that_it_needs(self) -> None:
        """The file that the rotation has kept; a backup within a rotation needs both keys."""
        files = [str(self.state.parent / f"{self.state.name}.{name}") for name in "ab"]
        self.done("backup", files[0])
        replace(self.key, self.before.renewed())
        self.done("backup", files[1])
        self.done("keys", "rotate")
        for file in files:
            said = self.done("restore", "--replace", file).out
            self.assertIn(f"(it is {self.former()}, mode 0600)", said)
        self.key.write_bytes(self.former().read_bytes())
        self.done("restore", "--replace", files[0])
        self.assertIn("no faults", self.done("db", "check").out)

    def refused(self) -> str:
        """What a rotation says that changes no key."""
        before = load(self.key)
        told = self.fails("keys", "rotate")
        self.assertEqual(load(self.key), before)
        return told

    def test_a_file_in_the_place_of_the_former_key_is_refused(self) -> None:
        """The former key would be lost, and former backups with it."""
        self.former().write_text("something else")
        self.assertIn(f"{self.former()} does not hold the key of its name", self.refused())
        self.former().unlink()
        self.done("keys", "rotate")
        self.assertEqual(load(self.former()), self.before)

    def test_secrets_that_no_key_opens_are_refused(self) -> None:
        """One lost in an unreadable row, or all, with another key; the first row is named."""
        one = "where id = (select min(id) from data_sources)"
        lost = MemorySealer().seal(Secret("{}"))
        change(self.state, f"update data_sources set record = '?', sealed = ? {one}", lost)
        told = r"stored secrets open with no key of .*\(first: "
        self.assertRegex(self.refused(), rf": 1 {told}data_sources")
        self.key.write_bytes(Fernet.generate_key())
        self.assertRegex(self.refused(), rf": \d+ {told}\w+ \S+\)")

    def test_running_daemon_is_left_alone(self) -> None:
        database = SqliteDatabase(self.state / "svcd.sqlite")
        self.refused()
        now(Deferred.fromCoroutine(database.close()))

    def test_faults_of_the_key_file(self) -> None:
        """Each is one line with what to do."""
        self.key.chmod(0o644)
        self.assertIn("run chmod 600", svcd("keys", "rotate", state=self.state).err)
        self.key.chmod(0o600)
        real = self.key.rename(self.state / "real.key")
        self.key.symlink_to(real)
        self.assertIn("is a link", svcd("keys", "rotate", state=self.state).err)
        self.key.unlink()
        self.assertIn("copy the key of", svcd("keys", "rotate", state=self.state).err)
        self.assertIn("there is no", svcd("keys", "show", state=self.state).err)
