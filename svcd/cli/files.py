"""Reads YAML and JSON files that a person writes: bundles, bodies of requests, node groups."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from svcd.cli.exits import USAGE, CommandError

_MOST_BYTES: Final = 4 * 2**20
"""Largest file that is read."""


def data_of(file: Path) -> bytes:
    """The bytes of a file; `-` is stdin. Raises CommandError."""
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", USAGE) from None
    if len(data) > _MOST_BYTES:
        raise CommandError(f"{file} is larger than {_MOST_BYTES >> 20} MiB", USAGE)
    return data


def parsed(data: bytes, name: str, load: Callable[[bytes], Any], quotes: bool = False) -> Any:
    """The value that `load` reads from YAML or JSON. Raises CommandError with the faulty line.

    name: of the file. quotes: also with the words of the parser, which may quote the file.
    """
    import yaml

    try:
        return load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark, said = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = "" if mark is None else f" in line {mark.line + 1}"
        why = f": {said}" if said and quotes else ""
        raise CommandError(f"{name} is not valid YAML or JSON{line}{why}", USAGE) from None


def read(file: Path) -> Any:
    """The content of a file with one YAML or JSON document; `-` is stdin. Raises CommandError."""
    import yaml

    return parsed(data_of(file), str(file), yaml.safe_load)
