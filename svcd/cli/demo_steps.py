"""The story of the demo: lines with the time since the start, and the duration of each step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator


def rounds(
    limit_s: float,
    pause_s: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Yield at once and after each pause, until `limit_s` seconds are over."""
    end = clock() + limit_s
    while clock() < end:
        yield
        pause(pause_s)


class Steps:
    """Prints lines with the time since the start, and keeps the duration of each step."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._open: tuple[str, float] | None = None
        self.done: list[tuple[str, float]] = []

    def begin(self, name: str) -> None:
        """End the present step and begin the step `name`."""
        self.end()
        self._open = (name, time.monotonic())
        self.say(name)

    def end(self) -> None:
        if self._open is not None:
            name, since = self._open
            self.done.append((name, time.monotonic() - since))
            self._open = None

    def say(self, text: str) -> None:
        print(f"[{self.elapsed_s():6.1f} s] {text}", flush=True)

    def elapsed_s(self) -> float:
        return time.monotonic() - self._start
