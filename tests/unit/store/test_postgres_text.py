"""The common SQL text in PostgreSQL's dialect, and passwords kept out of sight."""

from __future__ import annotations

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.model.redaction import without_passwords
from svcd.settings import Database

try:
    from svcd.store.postgres_statements import translate, usable
    from svcd.store.sessions import connection_text
except ImportError as error:
    raise SkipTest("psycopg2 is not installed: pip install 'svcd[postgresql]'") from error


class PositionTests(SynchronousTestCase):
    def test_positions_of_callers(self) -> None:
        """The server refuses a snapshot whose numbers are not in order, so none gets there."""
        here = "90:100:95"
        for good in ("1:1:", "90:100:95", "3:9:3,4,8", "100:100:"):
            self.assertTrue(usable(good, here), good)
        large = 1 << 63
        for bad in ("", "1", "1:2", "0:1:", "2:1:", "1:101:", "3:9:2", "3:9:9", "3:9:5,4",
                    "3:9:4,4", "3:9:4,", "-1:2:", "1:2:x", "1:2:\u0661", " 1:2:", "1:2:\n",
                    f"{large}:{large}:", f"1:{'9' * 19}:", "1:2:" + "1" * 20):  # fmt: skip
            self.assertFalse(usable(bad, here), bad)
        self.assertFalse(usable(f"1:{large}:", f"1:{large + 1}:"))


class TranslateTests(SynchronousTestCase):
    def test_parameters(self) -> None:
        """Outside of quotes only; percent signs are doubled everywhere."""
        self.assertEqual(
            translate(
                "select ':a', '100%' from t where x % 2 = :b and y like :b_c1 and z = ''':q'"
            ),
            (
                "select ':a', '100%%' from t where x %% 2 = %(b)s and y like %(b_c1)s"
                " and z = ''':q'",
                True,
            ),
        )


class ConnectionTextTests(SynchronousTestCase):
    def test_what_the_operator_wrote_comes_first(self) -> None:
        """Ours are added; a time-out that libpq would not keep is left out."""
        text = connection_text(
            Database(
                url="postgresql://u:p@h/db?sslmode=verify-full&keepalives_idle=99"
                "&connect_timeout=3&options=-csearch_path%3Dx"
            )
        )
        for part in ("sslmode=verify-full", "keepalives_idle=99", "password=p", "search_path=x'"):
            self.assertIn(part, text)
        self.assertNotIn("connect_timeout", text)
        self.assertIn("statement_timeout=15000", text)

    def test_passwords_are_masked(self) -> None:
        """In the place of a password and as parameters."""
        for url, shown in (
            ("postgresql://u:s3cret@h/db", "postgresql://u:***@h/db"),
            ("postgresql://u:s3:c@ret@h/db", "postgresql://u:***@h/db"),
            ("postgresql://u@h/db?password=s3cret&x=1", "postgresql://u@h/db?password=***&x=1"),
            ("postgresql://u@h/db?sslpassword=a", "postgresql://u@h/db?sslpassword=***"),
            ("sqlite:///path", "sqlite:///path"),
        ):
            self.assertEqual(without_passwords(url), shown)
        self.assertNotIn("s3cret", repr(Database(url="postgresql://u:s3cret@h/db")))
