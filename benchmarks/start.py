"""From the start of the daemon's process until `endpoints.json` says that it is ready."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, ratio
from benchmarks.processes import Server, twistd

_MOST_S: Final = 0.9
_IMPORTS: Final = """
import {modules}, pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
_TWISTD: Final = "klein, treq, twisted.conch.ssh.transport, twisted.scripts.twistd"
_LIBRARIES: Final = "twisted.web, klein, treq, attrs, msgspec, cryptography, sqlite3"
_SVCD: Final = "svcd.testing, svcd.service"
_MOST_IMPORTS: Final = 1.15
_MOST_READY: Final = 1.6
_MOST_MIB: Final = 68.0
_IDLE_S: Final = 2.0


def run(quick: bool) -> list[Figure]:
    """All figures: a first start on an empty state folder, and what it imports of others.

    The first round, in which Python compiles its modules, does not count.
    """
    walls: list[float] = []
    processors: list[float] = []
    memory: list[float] = []
    imports: dict[str, list[float]] = {_TWISTD: [], _LIBRARIES: [], _SVCD: []}
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        for number in range(4 if quick else 8):
            server, _, seconds = twistd(f"svcd{number}", "svcd", folder, {})
            processors.append(server.cpu_s())
            time.sleep(_IDLE_S)
            memory.append(server.memory_mib())
            server.stop()
            walls.append(seconds)
            for index, (modules, taken) in enumerate(imports.items()):
                ready = folder / f"imported{number}-{index}"
                command = ["-c", _IMPORTS.format(modules=modules), str(ready)]
                other = Server(ready.name, command, folder)
                other.wait(ready.exists)
                taken.append(other.cpu_s())
                other.stop()

    def figure(
        what: str, rounds: list[float], most: float | None = None, unit: str = "s"
    ) -> Figure:
        return Figure(
            benchmark="start", name=what, unit=unit, rounds=tuple(rounds[1:]), target=most
        )

    libraries = imports[_LIBRARIES][1:]

    return [
        figure("daemon ready", walls, _MOST_S),
        figure("daemon ready, CPU", processors),
        figure("daemon idle, memory", memory, _MOST_MIB, "MiB"),
        figure("imports alone, CPU", imports[_TWISTD]),
        ratio("start", "daemon / imports", processors[1:], imports[_TWISTD][1:]),
        figure("libraries alone, CPU", imports[_LIBRARIES]),
        ratio("start", f"import {_SVCD} / libraries", imports[_SVCD][1:], libraries, _MOST_IMPORTS),
        ratio("start", "daemon ready / libraries", processors[1:], libraries, _MOST_READY),
    ]
