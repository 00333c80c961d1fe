"""What svcd must say of each cell, from the table in `expected.txt`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final


def _rows() -> Iterator[tuple[str, tuple[str, str]]]:
    """The rows of the table, and the same ones for small jobs, which name their own files."""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            cell, code, text = [*line.split(maxsplit=2), ""][:3]
            code = code.removeprefix("-")
            yield cell, (code, text)
            small = text.replace("(streaming-", "(smallstreaming-")
            yield f"Small{cell}", (code, small.replace("<file pig-", "<file smallpig-"))


EXPECTED: Final[Mapping[str, tuple[str, str]]] = dict(_rows())
"""Cell -> code and beginning of the text; "" stands for any text, no code for success."""
