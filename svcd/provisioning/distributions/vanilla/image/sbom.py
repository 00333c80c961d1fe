"""The software bill of materials of a tree: `svcd image verify vanilla PREFIX --sbom`.

CycloneDX 1.5, from the jars that are in the tree. A jar is identified by its digest alone: one that
is not in the recipe's list has a name and a digest, and no version. Equal trees make equal texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact
from svcd.provisioning.distributions.vanilla.image.layout import OWN_JARS, published_name


def sbom(
    digests: Mapping[str, str], artifacts: Iterable[Artifact], record: Mapping[str, Any]
) -> str:
    """digests: path to SHA-256 of the files of a tree. record: its image.json."""
    listed = tuple(artifacts)
    by_digest = {artifact.sha256: artifact for artifact in listed}
    by_file = {artifact.file: artifact for artifact in listed}
    places: dict[str, list[str]] = {}
    for path in sorted(digests):
        if path.endswith((".jar", ".zip")):
            places.setdefault(digests[path], []).append(path)
    components = []
    for digest, paths in places.items():
        if artifact := by_digest.get(digest):
            component = _published(artifact)
        else:
            component = _other(digest, paths[0], by_file)
        components.append(
            component
            | {
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "evidence": {"occurrences": [{"location": path} for path in paths]},
            }
        )
    components.sort(key=lambda part: str(part["bom-ref"]))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "svcd-image-vanilla",
                "name": "svcd-image-vanilla",
                "version": str(record.get("versions", {}).get("hadoop", "")),
                "properties": [{"name": "svcd:recipe", "value": str(record.get("stamp", ""))}],
            }
        },
        "components": components,
    }
    return json.dumps(document, indent=2) + "\n"


def purl(artifact: Artifact) -> str:
    """The package URL of an artifact."""
    group, name, version, classifier = artifact.coordinates
    if not group:
        return f"pkg:pypi/{name}@{quote(version, safe='')}"
    end = f"?classifier={quote(classifier, safe='')}" if classifier else ""
    return f"pkg:maven/{group}/{name}@{quote(version, safe='')}{end}"


def _published(artifact: Artifact) -> dict[str, Any]:
    group, name, version, _ = artifact.coordinates
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl(artifact),
        **({"group": group} if group else {}),
        "name": name,
        "version": version,
        "purl": purl(artifact),
    }
    if artifact.licence:
        names = artifact.licence.split(" | ")
        component["licenses"] = [{"license": {"name": licence}} for licence in names]
    return component


_PIG = "names of two Avro members replaced in three classes (pig_avro.py)"
_PYTHON = "bytecode added, some modules changed, tests removed (python_library.py)"


def _other(digest: str, path: str, by_file: Mapping[str, Artifact]) -> dict[str, Any]:
    """The entry of a file that no project published in this form: ours, adapted, or foreign."""
    file = path.rpartition("/")[2]
    component: dict[str, Any] = {"type": "library", "bom-ref": f"sha256:{digest}", "name": file}
    if file in OWN_JARS:
        component["licenses"] = [{"license": {"id": "Apache-2.0"}}]
    elif original := by_file.get(published_name(path)):
        ancestor = _published(original)
        del ancestor["bom-ref"]
        notes = _PYTHON if file.endswith(".zip") else _PIG
        component["pedigree"] = {"ancestors": [ancestor], "notes": notes}
    return component
