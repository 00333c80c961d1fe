"""The choice of a Java, on folder trees that only look like Java."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import Java, find_jdk, find_jre


class JavaTestCase(SynchronousTestCase):
    """Makes Java homes below a fresh folder."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp())
        self.root.mkdir(parents=True)

    def java(self, name: str, version: str, *programs: str) -> Path:
        """A home with a release file and empty executable programs."""
        home = self.root / name
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nOS_ARCH="x"\n')
        for program in programs:
            path = home / "bin" / program
            path.touch()
            path.chmod(0o755)
        return home

    def jdk(self, name: str, version: str) -> Path:
        """A home with a compiler."""
        return self.java(name, version, "java", "javac", "jar")


class FindJdkTest(JavaTestCase):
    """Which JDK builds."""

    def test_seventeen_comes_before_later_ones(self) -> None:
        """The lowest usable version wins, whatever the order of the names."""
        self.jdk("a-21", "21.0.2")
        home = self.jdk("b-17", "17.0.15")
        self.assertEqual(find_jdk({}, [self.root]), Java(home, "17.0.15", 17))

    def test_runtime_without_compiler_is_not_taken(self) -> None:
        """A JRE cannot build but can run."""
        home = self.java("jre-17", "17.0.1", "java")
        self.assertRaises(ImageError, find_jdk, {}, [self.root])
        self.assertEqual(find_jre({}, [self.root]).home, home)

    def test_named_one_wins(self) -> None:
        """SVCD_JAVA_HOME is taken before a better one elsewhere."""
        self.jdk("jdk-17", "17.0.15")
        home = self.jdk("jdk-21", "21")
        self.assertEqual(find_jdk({"SVCD_JAVA_HOME": str(home)}, [self.root]), Java(home, "21", 21))

    def test_named_one_that_cannot_work_is_refused(self) -> None:
        """Nothing else is taken behind the operator's back."""
        self.jdk("jdk-17", "17.0.15")
        home = self.jdk("jdk-25", "25")
        error = self.assertRaises(ImageError, find_jdk, {"SVCD_JAVA_HOME": str(home)}, [self.root])
        self.assertIn(f"SVCD_JAVA_HOME={home} holds no JDK 17 to 23", str(error))
