"""Secrets at rest."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.secret import Secret
from svcd.store.sealer import (
    FernetSealer,
    Keys,
    MemorySealer,
    SealerError,
    fingerprint,
    kept_key,
    replace,
)


class FernetSealerTest(SynchronousTestCase):
    """The sealer of the daemon."""

    def setUp(self) -> None:
        self.key_file = Path(self.mktemp()) / "new" / "secret.key"

    def test_sealed_secret_opens_again(self) -> None:
        """What was sealed comes back, also after a restart and with odd characters."""
        sealed = FernetSealer(self.key_file).seal(Secret("pässword \n"))
        self.assertEqual(FernetSealer(self.key_file).open(sealed).reveal(), "pässword \n")

    def test_new_key_file_is_private(self) -> None:
        """The file has mode 0600 and no draft stays behind."""
        FernetSealer(self.key_file)
        self.assertEqual(self.key_file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(self.key_file.parent), ["secret.key"])

    def test_readable_key_file_is_refused(self) -> None:
        """The message says how to mend it."""
        FernetSealer(self.key_file)
        self.key_file.chmod(0o644)
        error = self.assertRaises(SealerError, FernetSealer, self.key_file)
        self.assertIn(f"(mode 0644): run chmod 600 {self.key_file}", str(error))

    def test_a_path_that_cannot_be_read_is_refused(self) -> None:
        """In one line, as any other fault of the file."""
        path = Path("x" * 300, "seal.key")
        error = self.assertRaises(SealerError, FernetSealer, path)
        self.assertEqual(str(error), f"cannot use key file {path}: File name too long")

    def test_damaged_key_file_is_refused(self) -> None:
        """It is never replaced by a new key."""
        FernetSealer(self.key_file)
        self.key_file.write_bytes(b"short")
        error = self.assertRaises(SealerError, FernetSealer, self.key_file)
        self.assertIn("holds no key", str(error))
        self.assertEqual(self.key_file.read_bytes(), b"short")

    def test_other_key_is_named(self) -> None:
        """A text of another database says what to do."""
        sealed = MemorySealer().seal(Secret("x"))
        error = self.assertRaises(SealerError, FernetSealer(self.key_file).open, sealed)
        self.assertIn("sealed with another key", str(error))

    def test_file_with_former_keys(self) -> None:
        """They open; the newest seals; what was derived from the first stays."""
        first = FernetSealer(self.key_file)
        sealed = first.seal(Secret("x"))
        replace(self.key_file, first.keys.renewed())
        second = FernetSealer(self.key_file)
        self.assertEqual(second.open(sealed).reveal(), "x")
        self.assertRaises(SealerError, first.open, second.seal(Secret("x")))
        self.assertEqual(second.digest(b"d"), first.digest(b"d"))
        self.assertEqual(Keys.parsed(second.keys.text()), second.keys)
        self.assertEqual(kept_key(self.key_file, fingerprint(first.keys.seals)).read_bytes(),
                         first.keys.seals)  # fmt: skip
