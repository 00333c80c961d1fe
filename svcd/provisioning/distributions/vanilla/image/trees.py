"""The software trees that this user has built on this machine: their jars save a download.

A list of folders in the user's cache. It is a hint: a build takes a jar from such a tree only when
the jar has the digest of the recipe. Without a readable list a build downloads the jars.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

MOST_TREES = 20


def list_file(environ: Mapping[str, str]) -> Path:
    """The path of the list, in the folder for caches of the XDG rules."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "svcd" / "trees"


def read_trees(file: Path) -> tuple[Path, ...]:
    """The trees of the list that still exist, the newest first."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()  # no list yet
    return tuple(tree for line in lines[:MOST_TREES] if (tree := Path(line)).is_dir())


def add_tree(file: Path, prefix: Path, progress: Callable[[str], None]) -> None:
    """Put a tree at the head of the list."""
    others = [tree for tree in read_trees(file) if tree != prefix]
    text = "".join(f"{tree}\n" for tree in [prefix, *others][:MOST_TREES])
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        progress(f"cannot remember this tree for later builds: {error}")
