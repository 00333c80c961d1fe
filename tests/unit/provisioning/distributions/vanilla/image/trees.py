"""A tree that has everything by name and nothing inside."""

from __future__ import annotations

import json
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image.layout import (
    FILE_LIST,
    FILES,
    SCRIPTS,
    SPARK_FILES,
    SPARK_JAVA,
    digests,
    file_list,
    helpers_digest,
)


def put(prefix: Path, name: str) -> Path:
    """An empty file below `prefix`."""
    path = prefix / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def empty_tree(prefix: Path, stamp: str = "0", *, spark: bool = True) -> None:
    """Scripts, empty files and the record of an image."""
    for name in (*(f"bin/{each}" for each in SCRIPTS), "java/bin/java"):
        put(prefix, name).chmod(0o755)
    for name in (*FILES, *(SPARK_FILES if spark else ())):
        put(prefix, name)
    record = {
        "stamp": stamp,
        "versions": {"hadoop": "3.5.0"} | ({"spark": "4.2.0"} if spark else {}),
        "without": [] if spark else ["spark"],
        "helpers": helpers_digest(),
        "spark_helpers": helpers_digest(folder=SPARK_JAVA),
        "size_bytes": 196,
    }
    put(prefix, "image.json").write_text(json.dumps(record))
    seal(prefix)


def without_class_data(prefix: Path) -> None:
    """Gives a tree a program that tells that an archive of class data is missing."""
    program = put(prefix, "bin/class-data")
    program.write_text("#!/bin/sh\necho 'class-data: x.jsa is missing' >&2\nexit 1\n")
    program.chmod(0o755)
    seal(prefix)


def seal(prefix: Path) -> None:
    """Writes the digests of the files as they are."""
    put(prefix, FILE_LIST).write_text(file_list(digests(prefix)))
