"""The waits between the tries of repeated work. Pure."""

from __future__ import annotations

import random

from attrs import frozen


@frozen
class Backoff:
    """Delays that double from `first_s` to `most_s`, plus a random part of up to `jitter`."""

    first_s: float = 0.5
    most_s: float = 30.0
    jitter: float = 0.2

    def delay_s(self, attempt: int, rng: random.Random | None = None) -> float:
        """Seconds to wait after attempt number `attempt` (counted from 1).

        rng: for the random part; None: the delay has none.
        """
        base = min(self.most_s, self.first_s * 2.0 ** min(max(0, attempt - 1), 30))
        return base if rng is None else base * (1.0 + self.jitter * rng.random())
