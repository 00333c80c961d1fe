"""The software bill of materials."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact
from svcd.provisioning.distributions.vanilla.image.sbom import sbom
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import (
    ABC,
    DEF,
    EPOLL,
    SMART,
)

OWN, OTHER, ADAPTED = "1" * 64, "2" * 64, "3" * 64
LIBRARY = Artifact("6" * 64, ("python",), "pyspark/4.2.0/pyspark.zip", "Apache 2.0")
PIG = Artifact("4" * 64, ("pig",), "org/apache/pig/pig/0.18.0/pig-0.18.0.jar")
TREE = {
    "bin/hadoop": "5" * 64,
    "oozie/lib/json-smart-2.3.jar": ABC,
    "hadoop/lib/json-smart-2.3.jar": ABC,
    "hadoop/lib/epoll-4.1.Final-linux-x86_64.jar": DEF,
    "hadoop/lib/svcd-hadoop-helpers.jar": OWN,
    "hadoop/lib/unknown-1.0.jar": OTHER,
    "pig/lib/pig-0.18.0-svcd.jar": ADAPTED,
}
PYTHON = {"spark/python/lib/pyspark.zip": ADAPTED, "spark/python/published/pyspark.zip": "6" * 64}
RECORD = {"stamp": "f04ebad252843587", "versions": {"hadoop": "3.5.0"}}


def _jar(digest: str, *paths: str) -> dict[str, object]:
    return {
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "evidence": {"occurrences": [{"location": path} for path in paths]},
    }


class SbomTest(SynchronousTestCase):
    """A small tree with a jar of each kind."""

    def test_document(self) -> None:
        """One component a digest; what is not listed has no version."""
        text = sbom(TREE, (EPOLL, SMART, PIG), RECORD)
        document = json.loads(text)
        self.assertEqual(
            [document[key] for key in ("bomFormat", "specVersion", "version")],
            ["CycloneDX", "1.5", 1],
        )
        self.assertEqual(
            document["metadata"]["component"],
            {
                "type": "application",
                "bom-ref": "svcd-image-vanilla",
                "name": "svcd-image-vanilla",
                "version": "3.5.0",
                "properties": [{"name": "svcd:recipe", "value": "f04ebad252843587"}],
            },
        )
        epoll = "pkg:maven/io.netty/epoll@4.1.Final?classifier=linux-x86_64"
        smart = "pkg:maven/net.minidev/json-smart@2.3"
        pig = {"type": "library", "group": "org.apache.pig", "name": "pig", "version": "0.18.0",
               "purl": "pkg:maven/org.apache.pig/pig@0.18.0"}  # fmt: skip
        licences = [{"license": {"name": name}} for name in ("Apache 2.0", "MIT")]
        notes = "names of two Avro members replaced in three classes (pig_avro.py)"
        self.assertEqual(
            document["components"],
            [
                {"type": "library", "bom-ref": epoll, "group": "io.netty", "name": "epoll",
                 "version": "4.1.Final", "purl": epoll,
                 **_jar(DEF, "hadoop/lib/epoll-4.1.Final-linux-x86_64.jar")},
                {"type": "library", "bom-ref": smart, "group": "net.minidev",
                 "name": "json-smart", "version": "2.3", "purl": smart, "licenses": licences,
                 **_jar(ABC, "hadoop/lib/json-smart-2.3.jar", "oozie/lib/json-smart-2.3.jar")},
                {"type": "library", "bom-ref": f"sha256:{OWN}", "name": "svcd-hadoop-helpers.jar",
                 "licenses": [{"license": {"id": "Apache-2.0"}}],
                 **_jar(OWN, "hadoop/lib/svcd-hadoop-helpers.jar")},
                {"type": "library", "bom-ref": f"sha256:{OTHER}", "name": "unknown-1.0.jar",
                 **_jar(OTHER, "hadoop/lib/unknown-1.0.jar")},
                {"type": "library", "bom-ref": f"sha256:{ADAPTED}", "name": "pig-0.18.0-svcd.jar",
                 "pedigree": {"ancestors": [pig], "notes": notes},
                 **_jar(ADAPTED, "pig/lib/pig-0.18.0-svcd.jar")},
            ],
        )  # fmt: skip

    def test_library_of_python(self) -> None:
        """The one in use is made of the released one."""
        released, used = json.loads(sbom(PYTHON, (LIBRARY,), RECORD))["components"]
        self.assertEqual(
            released,
            {
                "type": "library",
                "bom-ref": "pkg:pypi/pyspark@4.2.0",
                "name": "pyspark",
                "version": "4.2.0",
                "purl": "pkg:pypi/pyspark@4.2.0",
                "licenses": [{"license": {"name": "Apache 2.0"}}],
                **_jar("6" * 64, "spark/python/published/pyspark.zip"),
            },
        )
        (ancestor,) = used["pedigree"]["ancestors"]
        self.assertEqual((used["name"], ancestor["version"]), ("pyspark.zip", "4.2.0"))
        self.assertEqual(
            used["pedigree"]["notes"],
            "bytecode added, some modules changed, tests removed (python_library.py)",
        )
