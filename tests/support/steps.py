"""Runs work that the daemon does in steps, without the pauses between them."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar, cast

T = TypeVar("T")


def ended(steps: Generator[None, None, T]) -> T:
    """The result of `steps`."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)
