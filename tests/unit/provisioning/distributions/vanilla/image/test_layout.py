"""The check of a tree against its list of files, its record and the recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.layout import (
    changes,
    foreign_files,
    helpers_digest,
    verify,
)
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import (
    ABC,
    DEF,
    EPOLL,
    SMART,
)
from tests.unit.provisioning.distributions.vanilla.image.test_sbom import (
    LIBRARY,
    OTHER,
    PIG,
    PYTHON,
    TREE,
)
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, put, seal

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The SHA-256 of no bytes."""


class VerifyTest(SynchronousTestCase):
    """A tree of empty files that has everything, and one fault at a time."""

    def setUp(self) -> None:
        self.prefix = Path(self.mktemp()) / "image"
        empty_tree(self.prefix)

    def test_faults_are_told_with_the_file(self) -> None:
        jar = self.prefix / "examples/svcd-examples.jar"
        faults: tuple[tuple[Callable[[], object], str], ...] = (
            (lambda: None, ""),
            (lambda: put(self.prefix, "spark/python/packages/pandas/core.py"), ""),
            (lambda: jar.write_bytes(b"abc"),
             f"{jar} has changed: SHA-256 {ABC}, the build wrote {EMPTY}"),
            (jar.unlink, f"{jar} is missing"),
            (jar.touch, ""),
            (lambda: (self.prefix / "java/bin/java").chmod(0o644),
             f"{self.prefix}/java/bin/java is not executable"),
            (lambda: (self.prefix / "java/bin/java").chmod(0o755), ""),
            (lambda: put(self.prefix, "spark/python/other.py"),
             f"{self.prefix}/spark/python/other.py is not of the build"),
        )  # fmt: skip
        for harm, told in faults:
            harm()
            self.assertEqual(verify(self.prefix, run=False), [told] if told else [])

    def test_absent_tree(self) -> None:
        gone = self.prefix / "none"
        self.assertEqual(verify(gone), [f"{gone} does not exist"])

    def test_program_has_to_run_and_to_be_of_the_recorded_version(self) -> None:
        program = self.prefix / "bin/hadoop"
        for text, told in (
            ("echo no Java >&2\nexit 2", f"{program} version ended with 2, said: no Java"),
            ("echo Hadoop 3.4.0", "Hadoop 3.4.0"),
            ("echo Hadoop 3.5.0", ""),
        ):
            program.write_text(f"#!/bin/sh\n{text}\n")
            seal(self.prefix)
            said = verify(self.prefix)
            self.assertEqual(len(said), bool(told))
            self.assertIn(told, "".join(said))

    def test_helpers_are_told_apart_by_sources_and_services(self) -> None:
        """Documents do not count."""
        names = ("org/Some.java", "META-INF/services/org.Some", "org/README.md")
        digests = []
        for count in range(4):
            recipe = Path(self.mktemp())
            for name in names[:count]:
                put(recipe, f"java/{name}")
            digests.append(helpers_digest(recipe))
        self.assertEqual(len(set(digests)), 3)
        self.assertEqual(digests[2], digests[3])


class ListsTest(SynchronousTestCase):
    """Digests of files against those of the build, and those of the recipe."""

    def test_changes_are_in_the_order_of_names(self) -> None:
        self.assertEqual(
            changes({"a": ABC, "b": ABC, "c": ABC}, {"a": ABC, "b": DEF, "d": DEF}),
            [
                f"b has changed: SHA-256 {DEF}, the build wrote {ABC}",
                "c is missing",
                "d is not of the build",
            ],
        )

    def test_jars_that_are_not_of_the_recipe_are_told(self) -> None:
        """Jars of our own build pass; an unknown name and a changed jar do not."""
        wrong = "has the SHA-256 {}, which is not that of the recipe"
        found = TREE | {"oozie/lib/json-smart-2.3.jar": DEF}
        self.assertEqual(
            foreign_files(found, (EPOLL, SMART, PIG)),
            [
                f"oozie/lib/json-smart-2.3.jar {wrong.format(DEF)}",
                "hadoop/lib/unknown-1.0.jar is not in the recipe",
            ],
        )
        self.assertEqual(foreign_files(PYTHON, (LIBRARY,)), [])
        published = "spark/python/published/pyspark.zip"
        self.assertEqual(
            foreign_files(PYTHON | {published: OTHER}, (LIBRARY,)),
            [f"{published} {wrong.format(OTHER)}"],
        )
