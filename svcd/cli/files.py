"""Reads YAML and JSON files that a person writes: bodies of requests, lists of node groups."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from svcd.cli.exits import USAGE, CommandError

_MOST_BYTES: Final = 4 * 2**20
"""Largest file that is read."""


def read(file: Path) -> Any:
    """The content of a file with one YAML or JSON document; `-` is stdin. Raises CommandError."""
    import yaml

    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise CommandError(f"{file} is larger than {_MOST_BYTES >> 20} MiB", USAGE)
        return yaml.safe_load(data)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", USAGE) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" in line {mark.line + 1}"
        raise CommandError(f"{file} is not valid YAML or JSON{line}", USAGE) from None
