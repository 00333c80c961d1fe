"""The software trees that this user has built on this machine: their jars save a download.

A list of folders in the user's cache. It is a hint: a jar is taken from such a tree only when it
has the digest of the recipe, and a list that cannot be read or written costs a download.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

MOST_TREES = 20


def list_file(environ: Mapping[str, str]) -> Path:
    """Where the list is: as other programs keep their caches."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "svcd" / "trees"


def read_trees(file: Path) -> tuple[Path, ...]:
    """The trees of the list that are still there, the last one built first."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()  # no list yet
    return tuple(tree for line in lines[:MOST_TREES] if (tree := Path(line)).is_dir())


def add_tree(file: Path, prefix: Path, progress: Callable[[str], None]) -> None:
    """Puts a tree at the head of the list."""
    others = [tree for tree in read_trees(file) if tree != prefix]
    text = "".join(f"{tree}\n" for tree in [prefix, *others][:MOST_TREES])
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        progress(f"cannot remember this tree for later builds: {error}")
