"""The terminal of a command: data on stdout, progress and notes on stderr, colours, width.

Texts of machines and services are printed with their control characters shown. Letters that the
terminal cannot write are shown as `\\xe9` or `\\u20ac`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from typing import IO, Any, cast

from svcd.cli.show import Style, cut
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


class Terminal:
    """The terminal of one command. quiet: only data and refusals are printed."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.style = Style(colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
        self.interactive = sys.stderr.isatty() and not quiet
        """Whether progress may be drawn over on stderr."""
        self._drawn = False

    def width(self) -> int | None:
        """Columns of the terminal; None when stdout is none: then nothing is cut."""
        return _columns(sys.stdout) if sys.stdout.isatty() else None

    def note(self, text: str) -> None:
        """A line for people, on stderr; nothing with `--quiet`."""
        if not self.quiet:
            self.clear()
            print(text, file=sys.stderr, flush=True)

    def draw(self, text: str) -> None:
        """Show `text` on stderr in the place of the last drawn one; only on a terminal."""
        if self.interactive:
            shown = cut(visible(text), _columns(sys.stderr) - 1)
            write(f"\r\x1b[K{shown}", sys.stderr)
            self._drawn = True

    def clear(self) -> None:
        """Remove the drawn text. Idempotent."""
        if self._drawn:
            write("\r\x1b[K", sys.stderr)
            self._drawn = False


def write(text: str, stream: Any = None) -> None:
    """Write text that may have colours; it is safe already. stream: default stdout."""
    to = sys.stdout if stream is None else stream
    raw = getattr(to, "raw", to.write)
    raw(text)
    if stream is not None:
        to.flush()


def _columns(stream: Any) -> int:
    """The width of the terminal of `stream`: COLUMNS, else its own."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0)
    except ValueError:
        columns = 0
    if columns < 1:
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            columns = 0
    return max(columns, 20) if columns else 80
