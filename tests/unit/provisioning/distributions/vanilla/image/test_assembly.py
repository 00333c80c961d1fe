"""What is taken of released files, and how one of them is changed."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact
from svcd.provisioning.distributions.vanilla.image.assembly import unpack
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.pig_avro import (
    CLASSES,
    adapt_jar,
    adapted_class,
)
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import (
    ABC,
    ARCHIVE,
    CORE,
    ZIP,
)


class UnpackTest(SynchronousTestCase):
    """A small archive of made-up files."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        self.file = self.base / "pyspark-9.0.tar.gz"
        with tarfile.open(self.file, "w:gz") as packed:
            for name in ("setup.py", "deps/jars/core-9.0.jar", "lib/py4j-0.10-src.zip"):
                entry = tarfile.TarInfo(f"pyspark-9.0/{name}")
                entry.size = len(name)
                packed.addfile(entry, io.BytesIO(name.encode()))

    def test_wanted_members_only(self) -> None:
        """They are in the folder of their line, and the archive is gone."""
        unpack(ARCHIVE, [CORE, ZIP], self.file, self.base / "jars")
        files = {
            path.relative_to(self.base).as_posix(): path.read_text()
            for path in self.base.rglob("*")
            if path.is_file()
        }
        self.assertEqual(
            files,
            {
                "jars/spark/core-9.0.jar": "deps/jars/core-9.0.jar",
                "jars/python/py4j-0.10-src.zip": "lib/py4j-0.10-src.zip",
            },
        )

    def test_missing_member(self) -> None:
        """It is named."""
        other = Artifact(ABC, ("spark",), "org/apache/spark/sql/9.0/sql-9.0.jar")
        error = self.assertRaises(ImageError, unpack, ARCHIVE, [other], self.file, self.base)
        self.assertEqual(
            str(error),
            "pyspark-9.0.tar.gz has no pyspark-9.0/deps/jars/sql-9.0.jar:"
            " make digests SPARK=VERSION",
        )


OLD = b"\x01\x00\x0cdefaultValue\x01\x00\x0ddefaultValues"
NEW = b"\x01\x00\x0adefaultVal\x01\x00\x0ddefaultValues"


class PigTest(SynchronousTestCase):
    """The classes of Pig that call Avro."""

    def test_whole_constants_are_replaced(self) -> None:
        """A part of a longer constant stays."""
        self.assertEqual(adapted_class(OLD), NEW)

    def test_only_three_classes_change(self) -> None:
        """Other members are copied."""
        source = Path(self.mktemp())
        target = Path(self.mktemp())
        with zipfile.ZipFile(source, "w") as jar:
            for name in (*CLASSES, "x/B.class"):
                jar.writestr(name, OLD)
        adapt_jar(source, target)
        with zipfile.ZipFile(target) as jar:
            contents = {name: jar.read(name) for name in jar.namelist()}
        self.assertEqual(contents, dict.fromkeys(CLASSES, NEW) | {"x/B.class": OLD})

    def test_other_jar_is_refused(self) -> None:
        """A class without a name to replace means that the reason for this step has gone."""
        source = Path(self.mktemp())
        with zipfile.ZipFile(source, "w") as jar:
            for name in CLASSES:
                jar.writestr(name, NEW)
        error = self.assertRaises(ValueError, adapt_jar, source, Path(self.mktemp()))
        self.assertIn("has no name to replace in org/apache/pig/impl/util/avro/Avro", str(error))
