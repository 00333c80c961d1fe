"""Writes `classes/*.gz` anew: the classes that are in the archives of class data.

In a training run each JVM of a tree writes the names of the classes that it loads. `java/bin/java`
asks for this when the tree has the folder class-data/lists. `make classes` merges these lists into
the recipe. The README of this folder tells which programs a training run starts.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image.class_data import FOLDER, NAMES
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE

# made at run time, or refused by the dump: they would only be warnings in its log
_NEVER_ARCHIVED = ("$Proxy", "$$Lambda", "jdk/internal/event/")


def merged(lists: Iterable[str]) -> str:
    """One class list of several: each line once, in the order in which it was met first."""
    lines = dict.fromkeys(
        line
        for text in lists
        for line in text.splitlines()
        if not line.startswith("#") and (line.startswith("@") or not _is_left_out(line))
    )
    return "".join(f"{line}\n" for line in lines)


def _is_left_out(line: str) -> bool:
    return any(each in line for each in _NEVER_ARCHIVED)


def write_lists(recipe: Path, lists: Path) -> list[str]:
    """Merges the lists of a training run into the recipe; a line of report for each list."""
    report = []
    for name in NAMES:
        found = sorted(lists.glob(f"{name}-*"))
        if not found:
            report.append(f"{name}: no JVM has written a list, the old one stays")
            continue
        text = merged(path.read_text("utf-8") for path in found)
        # without a time, so that equal lists are equal files
        (recipe / "classes" / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        report.append(f"{name}: {len(text.splitlines())} lines of {len(found)} JVMs")
    return report


def main(arguments: Sequence[str]) -> int:
    """`class_lists PREFIX`: of the tree where the training run was."""
    lists = Path(arguments[0]) / FOLDER / "lists"
    if not any(lists.glob("*-*")):
        text = f"no list in {lists}: make this folder, and run a cluster and jobs with the tree"
        print(f"classes: {text}", file=sys.stderr)
        return 1
    print("\n".join(write_lists(RECIPE, lists)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
