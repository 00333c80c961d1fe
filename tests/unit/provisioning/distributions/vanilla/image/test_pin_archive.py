"""What goes into the list of Spark's archive."""

from __future__ import annotations

import io
import zipfile

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from tests.unit.provisioning.distributions.vanilla.image.scripts import load_script
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import ABC

SCRIPT = load_script("image-spark-digests")
LICENSE = """\
This project bundles some components that are also licensed under the Apache
License Version 2.0:

com.fasterxml.jackson.core:jackson-core
oro:oro
one.group:twice

core/src/main/java/org/apache/spark/util/collection/TimSort.java

----------------------------------------------------------------------------
This product bundles various third-party components under other licenses.


BSD 3-Clause
------------
org.antlr:ST4
two.group:twice
jakarta.servlet:jakarta.servlet-api https://projects.eclipse.org/projects/ee4j.servlet
"""


def jar(*maven: tuple[str, str, str]) -> bytes:
    """A jar with the Maven files of these."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as content:
        for group, artifact, version in maven:
            content.writestr(
                f"META-INF/maven/{group}/{artifact}/pom.properties",
                f"#made by Maven\nartifactId={artifact}\ngroupId={group}\nversion={version}\n",
            )
    return sink.getvalue()


class PinArchiveTest(SynchronousTestCase):
    """Names and licences from the archive itself."""

    def test_licences(self) -> None:
        """By artifact and group; the first section is that of the Apache licence."""
        self.assertEqual(
            SCRIPT.licences(LICENSE),
            {
                "jackson-core": {"com.fasterxml.jackson.core": "Apache License 2.0"},
                "oro": {"oro": "Apache License 2.0"},
                "twice": {"one.group": "Apache License 2.0", "two.group": "BSD 3-Clause"},
                "ST4": {"org.antlr": "BSD 3-Clause"},
                "jakarta.servlet-api": {"jakarta.servlet": "BSD 3-Clause"},
            },
        )

    def test_coordinates_of_the_jar(self) -> None:
        """Its own Maven files, not those of what it has copied into itself."""
        data = jar(("com.google.guava", "guava", "14"), ("org.apache.spark", "core_2.13", "9.0"))
        self.assertEqual(
            SCRIPT.coordinates(data, "core_2.13-9.0.jar", SCRIPT.licences(LICENSE)),
            ("org/apache/spark/core_2.13/9.0/core_2.13-9.0.jar", "Apache License 2.0"),
        )
        classified = jar(("two.group", "twice", "1"))
        self.assertEqual(
            SCRIPT.coordinates(classified, "twice-1-linux-x86_64.jar", SCRIPT.licences(LICENSE)),
            ("two/group/twice/1/twice-1-linux-x86_64.jar", "BSD 3-Clause"),
        )

    def test_coordinates_of_the_licence(self) -> None:
        """For a jar without Maven files."""
        self.assertEqual(
            SCRIPT.coordinates(jar(), "oro-2.0.8.jar", SCRIPT.licences(LICENSE)),
            ("oro/oro/2.0.8/oro-2.0.8.jar", "Apache License 2.0"),
        )

    def test_nothing_is_guessed(self) -> None:
        """A name in two groups, a name in none."""
        for file in ("twice-1.jar", "unknown-1.jar"):
            error = self.assertRaises(
                ImageError, SCRIPT.coordinates, jar(), file, SCRIPT.licences(LICENSE)
            )
            self.assertEqual(str(error), f"nothing tells the group of {file}")
        data = jar(("a.b", "unknown", "1"))
        self.assertEqual(
            SCRIPT.coordinates(data, "unknown-1.jar", {}), ("a/b/unknown/1/unknown-1.jar", "")
        )

    def test_wanted(self) -> None:
        """Jars that svcd's clusters use, the Python side, the notices."""
        for name in ("LICENSE", "NOTICE", "lib/pyspark.zip", "deps/jars/spark-yarn_2.13-9.0.jar"):
            self.assertTrue(SCRIPT.is_wanted(name), name)
        for name in ("setup.py", "deps/licenses/LICENSE-xz.txt", "deps/jars/rocksdbjni-9.8.4.jar",
                     "deps/jars/connect-repl/x.jar", "deps/examples/LICENSE"):  # fmt: skip
            self.assertFalse(SCRIPT.is_wanted(name), name)

    def test_chosen(self) -> None:
        """Each with its folder; in the order of paths."""
        digests = [
            Artifact("", ("python",), "py4j/0.10/py4j-0.10-src.zip", "BSD 3-Clause"),
            Artifact("", ("notices",), "pyspark/9.0/LICENSE", "Apache License 2.0"),
            Artifact(ABC, ("python",), "pyspark/9.0/pyspark.zip", "Apache License 2.0"),
        ]
        files = [
            ("lib/pyspark.zip", b"abc"),
            ("lib/py4j-0.10-src.zip", b"def"),
            ("LICENSE", LICENSE.encode()),
            ("deps/jars/oro-2.0.8.jar", jar()),
        ]
        found = SCRIPT.chosen(files, "9.0")
        self.assertEqual(
            [(each.folders, each.path, each.licence) for each in found],
            [
                (("spark",), "oro/oro/2.0.8/oro-2.0.8.jar", "Apache License 2.0"),
                *((each.folders, each.path, each.licence) for each in digests),
            ],
        )
        self.assertEqual(found[3].sha256, ABC)
