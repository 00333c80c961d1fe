"""From the start of the daemon's process until `endpoints.json` says that it is ready."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, ratio
from benchmarks.processes import Server, twistd

_MOST_S: Final = 0.9
_IMPORTS: Final = """
import klein, treq, twisted.conch.ssh.transport, twisted.scripts.twistd, pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


def run(quick: bool) -> list[Figure]:
    """All figures: a first start on an empty state folder, and what it imports of others.

    The first round, in which Python compiles its modules, does not count.
    """
    walls: list[float] = []
    processors: list[float] = []
    imports: list[float] = []
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        for number in range(4 if quick else 8):
            server, _, seconds = twistd(f"svcd{number}", "svcd", folder, {})
            processors.append(server.cpu_s())
            server.stop()
            walls.append(seconds)
            ready = folder / f"imported{number}"
            other = Server(f"imports{number}", ["-c", _IMPORTS, str(ready)], folder)
            other.wait(ready.exists)
            imports.append(other.cpu_s())
            other.stop()

    def figure(what: str, rounds: list[float], most: float | None = None) -> Figure:
        return Figure(benchmark="start", name=what, unit="s", rounds=tuple(rounds[1:]), target=most)

    return [
        figure("daemon ready", walls, _MOST_S),
        figure("daemon ready, CPU", processors),
        figure("imports alone, CPU", imports),
        ratio("start", "daemon / imports", processors[1:], imports[1:]),
    ]
