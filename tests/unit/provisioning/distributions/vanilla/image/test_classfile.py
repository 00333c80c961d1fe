"""Renaming text constants of class files."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.classfile import adapt_jar, rename_constants


def text(value: str) -> bytes:
    """A text constant."""
    return struct.pack(">BH", 1, len(value)) + value.encode()


def class_file(slots: int, *constants: bytes, rest: bytes = b"REST") -> bytes:
    """A class file with these constants; `slots` is one more than the slots they take."""
    return (
        b"\xca\xfe\xba\xbe\x00\x00\x00\x34" + struct.pack(">H", slots) + b"".join(constants) + rest
    )


LONG = b"\x05" + bytes(8)
METHOD = b"\x0a" + bytes(4)


class RenameConstantsTest(SynchronousTestCase):
    """One class file."""

    def test_equal_constant_is_replaced(self) -> None:
        """The rest of the file is kept as it is, also when the length changes."""
        old = class_file(4, text("defaultValue"), METHOD, text("other"))
        new = class_file(4, text("defaultVal"), METHOD, text("other"))
        self.assertEqual(rename_constants(old, {"defaultValue": "defaultVal"}), (new, 1))

    def test_part_of_a_constant_is_kept(self) -> None:
        """Only whole constants count."""
        old = class_file(2, text("defaultValues"))
        self.assertEqual(rename_constants(old, {"defaultValue": "defaultVal"}), (old, 0))

    def test_long_takes_two_slots(self) -> None:
        """Text that follows the pool is not taken for a constant of it."""
        old = class_file(4, LONG, text("a"), rest=text("a"))
        new = class_file(4, LONG, text("b"), rest=text("a"))
        self.assertEqual(rename_constants(old, {"a": "b"}), (new, 1))

    def test_other_file_is_refused(self) -> None:
        """A text is no class."""
        self.assertRaises(ValueError, rename_constants, b"hello, world", {})

    def test_unknown_kind_is_refused(self) -> None:
        """Better no image than a broken class."""
        self.assertRaises(ValueError, rename_constants, class_file(2, b"\x63"), {})


class AdaptJarTest(SynchronousTestCase):
    """A jar of classes."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir(parents=True)
        self.source = self.folder / "a.jar"
        self.target = self.folder / "b.jar"
        with zipfile.ZipFile(self.source, "w") as jar:
            jar.writestr("x/A.class", class_file(2, text("old")))
            jar.writestr("x/B.class", class_file(2, text("old")))

    def test_only_named_classes_change(self) -> None:
        """Other members are copied."""
        adapt_jar(self.source, self.target, {"x/A.class": {"old": "new"}})
        with zipfile.ZipFile(self.target) as jar:
            self.assertEqual(jar.read("x/A.class"), class_file(2, text("new")))
            self.assertEqual(jar.read("x/B.class"), class_file(2, text("old")))

    def test_missing_class_is_an_error(self) -> None:
        """Another version of the jar is noticed."""
        error = self.assertRaises(
            ValueError, adapt_jar, self.source, self.target, {"x/C.class": {"old": "new"}}
        )
        self.assertEqual(str(error), "a.jar has no x/C.class")

    def test_nothing_to_rename_is_an_error(self) -> None:
        """A class that needs no change means that the reason for it has gone."""
        error = self.assertRaises(
            ValueError, adapt_jar, self.source, self.target, {"x/A.class": {"older": "new"}}
        )
        self.assertEqual(str(error), "a.jar: nothing to rename in x/A.class")
