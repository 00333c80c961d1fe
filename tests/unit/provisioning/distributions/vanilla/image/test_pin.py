"""What goes into the list of released jars."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact
from tests.unit.provisioning.distributions.vanilla.image.scripts import load_script
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import ABC, DEF, SMART

SCRIPT = load_script("image-digests")
SPACE = 'xmlns="http://maven.apache.org/POM/4.0.0"'


class PinTest(SynchronousTestCase):
    """Jars and poms that Maven has resolved."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp())

    def put(self, path: str, text: str) -> None:
        file = self.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_jars_of_class_paths_are_collected(self) -> None:
        """One line a jar, with all its class paths; what nothing needs is left out."""
        path = "net/minidev/json-smart/2.3/json-smart-2.3"
        self.put(f"jars/hadoop/{path}.jar", "abc")
        self.put(f"jars/oozie/{path}.jar", "abc")
        self.put("jars/hadoop/asm/asm-tree/3.1/asm-tree-3.1.jar", "def")
        licences = "<licenses><license><name>Apache\n 2.0</name></license></licenses>"
        self.put(f"repository/{path}.pom", f"<project {SPACE}>{licences}</project>")
        self.assertEqual(
            SCRIPT.collect(self.base / "jars", self.base / "repository"),
            (Artifact(ABC, ("hadoop", "oozie"), f"{path}.jar", "Apache 2.0"),),
        )

    def test_licence_of_a_parent(self) -> None:
        """A POM without one has that of its parent; poms may lack the namespace."""
        parent = "<parent><groupId>g.h</groupId><artifactId>p</artifactId><version>7</version>"
        self.put("a/b/1/b-1.pom", f"<project>{parent}</parent></project>")
        names = "<license><name>MIT</name></license><license><name>BSD</name></license>"
        self.put("g/h/p/7/p-7.pom", f"<project {SPACE}><licenses>{names}</licenses></project>")
        self.assertEqual(SCRIPT.licence_of(self.base, "a/b/1/b-1.jar"), "MIT | BSD")

    def test_no_licence(self) -> None:
        """Nothing is guessed."""
        self.put("a/b/1/b-1.pom", f"<project {SPACE}/>")
        self.assertEqual(SCRIPT.licence_of(self.base, "a/b/1/b-1.jar"), "")

    def test_pruned_jars(self) -> None:
        """By class path and name."""
        self.assertTrue(SCRIPT.is_pruned("hadoop", "netty-codec-mqtt-4.1.130.Final.jar"))
        self.assertFalse(SCRIPT.is_pruned("oozie", "asm-tree-6.0.jar"))
        self.assertFalse(SCRIPT.is_pruned("hadoop", "netty-codec-http-4.1.130.Final.jar"))

    def test_changed_release_is_found(self) -> None:
        """The same path with another digest; new and equal ones are no change."""
        other = Artifact(DEF, ("pig",), "a/b/1/b-1.jar")
        self.assertEqual(SCRIPT.changed((SMART,), (SMART, other)), [])
        replaced = Artifact(DEF, ("oozie",), SMART.path)
        self.assertEqual(SCRIPT.changed((SMART, other), (replaced, other)), [SMART.path])
