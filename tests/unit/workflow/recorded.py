"""Answers recorded from a real Oozie 5.2.1 (tests/fixtures/oozie)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svcd.model import engine_record
from svcd.model.engine_record import Record

FOLDER = Path(__file__).parents[2] / "fixtures" / "oozie"


def answer(name: str) -> dict[str, Any]:
    """The whole exchange: request, status, headers, json or text."""
    tree: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return tree


def record(name: str) -> dict[str, Any]:
    """The JSON of the answer."""
    tree: dict[str, Any] = answer(name)["json"]
    return tree


def parsed(name: str) -> Record:
    """The same, as svcd reads it from a row."""
    return engine_record.parsed(record(name))
