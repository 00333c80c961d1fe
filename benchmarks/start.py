"""From the start of the daemon's process until `endpoints.json` says that it is ready."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, ratio
from benchmarks.processes import Server, twistd

_MOST_S: Final = 1.1
_MOST_MIB: Final = 80.0
_LIBRARIES: Final = "twisted.web, klein, treq, attrs, msgspec, cryptography, sqlite3"
_IMPORTS: Final = f"""
import {_LIBRARIES}, pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
_IDLE_S: Final = 2.0


def run(quick: bool) -> list[Figure]:
    """All figures: a first start on an empty state folder, and the imports of libraries alone.

    The first round, in which Python compiles its modules, does not count.
    """
    walls: list[float] = []
    processors: list[float] = []
    memory: list[float] = []
    libraries: list[float] = []
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        for number in range(4 if quick else 8):
            server, _, seconds = twistd(f"svcd{number}", "svcd", folder, {})
            walls.append(seconds)
            processors.append(server.cpu_s())
            time.sleep(_IDLE_S)
            memory.append(server.memory_mib())
            server.stop()
            ready = folder / f"imported{number}"
            imports = Server(ready.name, ["-c", _IMPORTS, str(ready)], folder)
            imports.wait(ready.exists)
            libraries.append(imports.cpu_s())
            imports.stop()

    def figure(what: str, rounds: list[float], unit: str, most: float | None = None) -> Figure:
        return Figure(
            benchmark="start", name=what, unit=unit, rounds=tuple(rounds[1:]), target=most
        )

    return [
        figure("daemon ready", walls, "s", _MOST_S),
        figure("daemon ready, CPU", processors, "s"),
        figure("daemon idle, memory", memory, "MiB", _MOST_MIB),
        figure("libraries alone, CPU", libraries, "s"),
        ratio("start", "daemon ready / libraries, CPU", processors[1:], libraries[1:]),
    ]
