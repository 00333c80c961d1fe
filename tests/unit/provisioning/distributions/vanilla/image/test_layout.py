"""The check of a tree."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.layout import helpers_digest, verify
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, put, seal


class HelpersDigestTest(SynchronousTestCase):
    """What tells two jars of helpers apart."""

    def test_sources_and_services_count(self) -> None:
        """Documents do not."""
        names = ("org/Some.java", "META-INF/services/org.Some", "org/README.md")
        digests = []
        for count in range(4):
            recipe = Path(self.mktemp())
            for name in names[:count]:
                put(recipe, f"java/{name}")
            digests.append(helpers_digest(recipe))
        self.assertEqual(len(set(digests)), 3)
        self.assertEqual(digests[2], digests[3])


class VerifyTest(SynchronousTestCase):
    """A tree of empty files that has everything, and one fault at a time."""

    def setUp(self) -> None:
        self.prefix = Path(self.mktemp()) / "image"
        empty_tree(self.prefix)

    def test_complete_tree_has_no_problems(self) -> None:
        """Nothing to say."""
        self.assertEqual(verify(self.prefix, run=False), [])

    def test_packages_of_the_operator_are_not_checked(self) -> None:
        """They come and go without a build."""
        put(self.prefix, "spark/python/packages/pandas/core.py")
        self.assertEqual(verify(self.prefix, run=False), [])
        put(self.prefix, "spark/python/other.py")
        self.assertEqual(
            verify(self.prefix, run=False),
            [f"{self.prefix}/spark/python/other.py is not of the build"],
        )

    def test_absent_tree(self) -> None:
        """The sentence names the command that makes it."""
        gone = self.prefix / "none"
        self.assertEqual(verify(gone), [f"{gone} does not exist"])

    def test_missing_script(self) -> None:
        """Each script is looked for."""
        (self.prefix / "bin/yarn").unlink()
        self.assertEqual(verify(self.prefix), [f"{self.prefix}/bin/yarn is missing"])

    def test_script_without_permission(self) -> None:
        """A copy that lost its modes is noticed."""
        (self.prefix / "java/bin/java").chmod(0o644)
        self.assertEqual(verify(self.prefix), [f"{self.prefix}/java/bin/java is not executable"])

    def test_missing_jar(self) -> None:
        """A jar that went lost is named."""
        (self.prefix / "examples/svcd-examples.jar").unlink()
        self.assertEqual(
            verify(self.prefix), [f"{self.prefix}/examples/svcd-examples.jar is missing"]
        )

    def test_damaged_jar(self) -> None:
        """A file with other contents than those of the build is named."""
        (self.prefix / "examples/svcd-examples.jar").write_bytes(b"PK\x03\x04")
        (problem,) = verify(self.prefix)
        self.assertIn("examples/svcd-examples.jar has changed: SHA-256 ", problem)

    def test_program_that_fails(self) -> None:
        """What it said and its exit code are told."""
        (self.prefix / "bin/hadoop").write_text("#!/bin/sh\necho no Java >&2\nexit 2\n")
        seal(self.prefix)
        (problem,) = verify(self.prefix)
        self.assertEqual(problem, f"{self.prefix}/bin/hadoop version ended with 2, said: no Java")

    def test_program_of_another_version(self) -> None:
        """The version has to be that of the record."""
        (self.prefix / "bin/hadoop").write_text("#!/bin/sh\necho Hadoop 3.4.0\n")
        seal(self.prefix)
        self.assertEqual(len(verify(self.prefix)), 1)
        (self.prefix / "bin/hadoop").write_text("#!/bin/sh\necho Hadoop 3.5.0\n")
        seal(self.prefix)
        self.assertEqual(verify(self.prefix), [])
