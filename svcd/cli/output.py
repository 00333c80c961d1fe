"""What the commands of `svcd` print: texts of machines and services, with their controls shown.

Letters that the terminal cannot write are shown as `\\xe9` or `\\u20ac`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from typing import IO, Any, cast

from svcd.model.controls import visible


class _Visible:
    """A text stream that shows control characters. Everything else is the stream's own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text`; see IO."""
        self._stream.write(visible(text))
        return len(text)

    def raw(self, text: str) -> int:
        """Write `text` that is visible already, with the colours of svcd's own."""
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """In the block, standard output and error show the control characters of all texts."""
    with ExitStack() as stack:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        stack.enter_context(redirect_stdout(cast("IO[str]", _Visible(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("IO[str]", _Visible(sys.stderr))))
        yield
