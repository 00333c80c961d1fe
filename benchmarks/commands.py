"""What `svcd` costs before it does anything: CPU of whole commands, against their libraries alone.

`svcd cluster ls` asks a server that answers a list of twenty clusters at once.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, ratio

_TARGET: Final = 1.5
_LIBRARIES: Final = [sys.executable, "-c", "import click, json, http.client"]
_SVCD: Final = str(Path(sys.executable).with_name("svcd"))
_GROUP: Final = {
    "name": "worker",
    "count": 2,
    "instances": [{"instance_name": f"w-{n}", "status": "ACTIVE"} for n in range(2)],
}
_CLUSTERS: Final = [
    {
        "id": f"{n:08}-0000-4000-8000-000000000000",
        "name": f"cluster-{n}",
        "status": "Active",
        "plugin_name": "vanilla",
        "engine_version": "3.5.0",
        "created_at": "2026-01-01 00:00:00.000000",
        "node_groups": [_GROUP],
    }
    for n in range(20)
]
_BODY: Final = json.dumps({"clusters": _CLUSTERS}).encode()


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, format: str, *args: object) -> None:
        return


def run(quick: bool) -> list[Figure]:
    """All figures. The commands take turns; the first round, which compiles, does not count."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}"
    commands = {
        "libraries alone": _LIBRARIES,
        "svcd --help": [_SVCD, "--help"],
        "svcd cluster ls": [_SVCD, "cluster", "ls", "--api", api, "--tenant", "t"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    try:
        for _ in range(8 if quick else 31):
            for name, command in commands.items():
                taken[name].append(_cpu_ms(command))
    finally:
        server.shutdown()
        server.server_close()
    found = [
        Figure(benchmark="commands", name=f"{name}, CPU", unit="ms", rounds=tuple(rounds[1:]))
        for name, rounds in taken.items()
    ]
    below = taken["libraries alone"][1:]
    for name, rounds in list(taken.items())[1:]:
        found.append(ratio("commands", f"{name} / libraries", rounds[1:], below, _TARGET))
    return found


def _cpu_ms(command: Sequence[str]) -> float:
    """CPU of one run, which must succeed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SVCD_", "OS_"))}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[1:]} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000.0
