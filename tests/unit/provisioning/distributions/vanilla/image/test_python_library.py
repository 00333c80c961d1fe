"""The Python library of a tree, made of a released one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import python_library
from svcd.provisioning.distributions.vanilla.image.programs import make_library

PRINTS = "import lib.words; print(lib.words.TEXT, lib.words.__file__.rpartition('.')[2])"


class MakeTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.made = self.folder / "made.zip"

    def make(self, **contents: str) -> zipfile.ZipFile:
        """The zip that is made of one with these files; __ stands for a slash if there is none."""
        released = self.folder / "lib.zip"
        with zipfile.ZipFile(released, "w") as archive:
            archive.writestr("lib/", "")
            archive.writestr("lib/tests/", "")
            for name, text in contents.items():
                path = name if "/" in name else name.replace("__", "/")
                archive.writestr(f"{path}.py", text)
        make_library(released, self.made, self.folder)
        archive = zipfile.ZipFile(self.made)
        self.addCleanup(archive.close)
        return archive

    def run_with_it(self, program: str) -> str:
        """What a Python prints that has the library, in words."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(self.made)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout.strip() or done.stderr

    def own(self) -> None:
        """Make the library with the Python of this test."""
        self.assertEqual(python_library.main([str(self.folder / "lib.zip"), str(self.made)]), 0)

    def test_modules_with_their_bytecode_and_no_tests(self) -> None:
        """A test beside the modules is one of them."""
        archive = self.make(lib__words="TEXT = 'to be'", lib__tests__test_words="", lib__test_2="")
        names = ["lib/", "lib/words.pyc", "lib/words.py", "lib/test_2.pyc", "lib/test_2.py"]
        self.assertEqual(archive.namelist(), names)
        self.assertEqual(archive.read("lib/words.py"), b"TEXT = 'to be'")

    def test_python_takes_the_bytecode(self) -> None:
        """Its own one."""
        self.make(lib__words="TEXT = 'to be'")
        self.own()
        self.assertEqual(self.run_with_it(PRINTS), "to be pyc")

    def test_another_python_takes_the_source(self) -> None:
        """It passes over bytecode that it cannot read."""
        self.make(lib__words="TEXT = 'to be'")
        self.own()
        other = bytes([MAGIC_NUMBER[0] ^ 1]) + MAGIC_NUMBER[1:]
        with zipfile.ZipFile(self.made) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(self.made, "w") as archive:
            for name, data in contents.items():
                archive.writestr(name, data.replace(MAGIC_NUMBER, other, 1))
        self.assertEqual(self.run_with_it(PRINTS), "to be py")
