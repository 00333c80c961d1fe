"""Extracts the default settings that Hadoop and Oozie carry in their jars.

Run by hand after a version in poms/ has changed, on a finished tree; the results are committed:

    python -m svcd.provisioning.distributions.vanilla.image.defaults PREFIX

Each file of ../defaults is a JSON list of `[name, value, description]`, one setting a line, in the
order of the source. Deprecated names and values are kept as they are published.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

Setting = tuple[str, str, str]

# name of the result: folder in the prefix, jar pattern, member of the jar
SOURCES: dict[str, tuple[str, str, str]] = {
    "core-default": ("hadoop/lib", "hadoop-common-[0-9]*.jar", "core-default.xml"),
    "hdfs-default": ("hadoop/lib", "hadoop-hdfs-[0-9]*.jar", "hdfs-default.xml"),
    "yarn-default": ("hadoop/lib", "hadoop-yarn-common-*.jar", "yarn-default.xml"),
    "mapred-default": ("hadoop/lib", "hadoop-mapreduce-client-core-*.jar", "mapred-default.xml"),
    "oozie-default": ("oozie/lib", "oozie-core-*.jar", "oozie-default.xml"),
}


def parse(document: bytes) -> list[Setting]:
    """The settings of one *-default.xml, white space of values and descriptions collapsed.

    A name that occurs twice keeps its first place and its last value, as Hadoop reads it.
    """
    found: dict[str, Setting] = {}
    for node in ElementTree.fromstring(document).iter("property"):
        name = _text(node, "name")
        if name:
            found[name] = (name, _text(node, "value"), _text(node, "description"))
    return list(found.values())


def render(settings: list[Setting]) -> str:
    """JSON with one setting a line, so that a new version shows as a readable difference."""
    lines = ",\n".join(json.dumps(setting, ensure_ascii=False) for setting in settings)
    return f"[\n{lines}\n]\n"


def extract(prefix: Path, target: Path) -> dict[str, int]:
    """Writes the five files to `target` and returns the number of settings in each.

    Raises: FileNotFoundError when a jar is not in the tree.
    """
    counts = {}
    for result, (folder, pattern, member) in SOURCES.items():
        jars = sorted((prefix / folder).glob(pattern))
        if not jars:
            raise FileNotFoundError(
                f"no {pattern} in {prefix / folder}: is {prefix} a built image?"
            )
        with zipfile.ZipFile(jars[0]) as jar:
            settings = parse(jar.read(member))
        (target / f"{result}.json").write_text(render(settings), encoding="utf-8")
        counts[result] = len(settings)
    return counts


def _text(node: ElementTree.Element, tag: str) -> str:
    child = node.find(tag)
    return " ".join("".join(child.itertext()).split()) if child is not None else ""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: defaults PREFIX (a built image)", file=sys.stderr)
        return 2
    target = Path(__file__).parent.parent / "defaults"
    for name, count in extract(Path(arguments[0]), target).items():
        print(f"{name}.json: {count} settings")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
