"""`svcd doctor` before a PostgreSQL server."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.doctor import Finding, examine
from svcd.model.secret import Secret
from svcd.settings import load
from svcd.store.sealer import FernetSealer
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.unit.cli.databases import svcd


class DatabaseTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)

    def found(self, *flags: str, url: str = "") -> dict[str, Finding]:
        """What is found out, by name. flags: further settings."""
        given = [
            f"server.state_dir={Path(self.mktemp()).absolute()}", "plugins.enabled=fake",
            "server.listen=tcp:127.0.0.1:0", "cloud.listen=tcp:127.0.0.1:0",
            f"database.url={url or self.url}", *flags,
        ]  # fmt: skip
        return {f.what: f for f in examine(load(None, {}, given).settings)}

    def test_key_and_clock_of_a_shared_database(self) -> None:
        """A key that would not fit is found out before the daemon is started."""
        found = self.found()
        self.assertTrue(found["clock"].good, found["clock"].text)
        self.assertIn("will create", found["seal key"].text)
        key, other = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        sealed = FernetSealer(key).seal(Secret("svcd"))
        FernetSealer(other)
        self.assertEqual(svcd("db", "upgrade", state=self.mktemp(), url=self.url).code, 0)
        execute(
            self.url,
            "insert into daemons values ('1', 'one', 1e12, 19), ('2', 'gone', 0, 19);"
            f"insert into seals values (1, '{sealed}')",
        )
        missing = self.found()["seal key"]
        self.assertEqual((missing.good, "install -m 600 KEY" in missing.remedy), (False, True))
        self.assertFalse(self.found(f"server.seal_key={other}")["seal key"].good)
        found = self.found(f"server.seal_key={key}")
        self.assertTrue(found["seal key"].good, found["seal key"].text)
        self.assertEqual(found["daemons"].text, "1 share the database: one")

    def test_database(self) -> None:
        """Its version is told, or what the server says, without the password."""
        found = self.found()["database"]
        self.assertTrue(found.good)
        self.assertRegex(found.text, r"^PostgreSQL \d+ answers$")
        found = self.found(url=re.sub(r"/svcd_\w+", "/nowhere", self.url))["database"]
        self.assertEqual((found.good, found.remedy), (False, ""))
        self.assertIn('"nowhere" does not exist', found.text)
        found = self.found(url="postgresql://u:s3cret@127.0.0.1:1/db")["database"]
        self.assertFalse(found.good)
        self.assertNotIn("s3cret", found.text + found.remedy)

    def test_user_without_rights(self) -> None:
        """The remedy is a statement for the administrator."""
        if "svcd@" not in self.url:
            self.skipTest("the server of PGHOST is not ours to make users on")
        execute(self.url, "revoke all on schema public from public")
        execute(self.url, "drop role if exists nobody_much")
        execute(self.url, "create role nobody_much login")
        found = self.found(url=self.url.replace("svcd@", "nobody_much@"))["database"]
        self.assertIn("no right to create tables", found.text)
        self.assertIn("owner", found.remedy)
