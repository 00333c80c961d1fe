"""The archives of class data, with a program that stands for the one of the tree."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.build import build, recipe_stamp
from svcd.provisioning.distributions.vanilla.image.class_data import (
    fault,
    make,
    remedy,
    size_bytes,
)
from svcd.provisioning.distributions.vanilla.image.layout import digests, verify
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, put, seal

_PROGRAM = """\
#!/bin/sh
data=${0%/bin/*}/class-data
case $* in
  --*) [ -e "$data/hadoop.jsa" ] || { echo "class-data: it is missing" >&2; exit 1; } ;;
  *) mkdir -p "$data" && touch "$data/hadoop.jsa" && echo "made it" ;;
esac
"""
_ENDLESS = """\
#!/bin/sh
cd "${0%/bin/*}" && touch half
trap 'rm half' EXIT
trap 'exit 143' TERM
sh -c 'echo $$ >jvm; exec sleep 60'
"""
_REFUSING = "#!/bin/sh\necho first >&2\necho 'class-data: no room' >&2\nexit 1\n"


class ClassDataTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.prefix = Path(self.mktemp()) / "vanilla"
        empty_tree(self.prefix, recipe_stamp())
        self.said: list[str] = []

    def program(self, text: str) -> None:
        """Puts a program into the tree."""
        path = put(self.prefix, "bin/class-data")
        path.write_text(text)
        path.chmod(0o755)
        seal(self.prefix)

    def test_made(self) -> None:
        """The program tells what it makes."""
        self.program(_PROGRAM)
        self.assertEqual(fault(self.prefix), "it is missing")
        self.assertEqual(make(self.prefix, self.said.append), "")
        self.assertEqual(self.said, ["made it"])
        self.assertEqual(fault(self.prefix), "")
        self.assertEqual(remedy(self.prefix), f"{self.prefix}/bin/class-data")
        (self.prefix / "class-data/hadoop.jsa").write_bytes(b"12345")
        self.assertEqual(size_bytes(self.prefix), 5)

    def test_too_late(self) -> None:
        """The program is ended with the JVM that it has started, and removes what is half made."""
        self.program(_ENDLESS)
        self.patch(class_data, "MOST_S", 3.0)
        self.assertEqual(
            make(self.prefix, self.said.append),
            f"{self.prefix.absolute()}/bin/class-data did not end within 3 s",
        )
        self.assertFalse((self.prefix / "half").exists())
        jvm = int((self.prefix / "jvm").read_text())
        self.assertRaises(ProcessLookupError, os.kill, jvm, 0)

    def test_build_makes_missing_ones(self) -> None:
        """A tree that is up to date, but was copied. The archives are no files of the build."""
        self.program(_PROGRAM)
        before = digests(self.prefix)
        self.assertFalse(build(self.prefix, self.said.append).made)
        line = "making class data, with which daemons and jobs start sooner: one to two minutes"
        self.assertEqual(self.said, [line, "made it"])
        self.assertFalse(build(self.prefix, self.said.append).made)
        self.assertEqual(self.said, [line, "made it"])
        self.assertEqual(digests(self.prefix), before)
        self.assertEqual(verify(self.prefix, run=False), [])

    def test_build_without_them(self) -> None:
        """It is none of its failures. The last line of its errors tells why."""
        self.program(_REFUSING)
        self.assertFalse(build(self.prefix, self.said.append).made)
        self.assertEqual(self.said[1:], ["no class data, so starts take longer: no room"])
