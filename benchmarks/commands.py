"""What `svcd` costs before it does anything: CPU of whole commands, against their libraries alone.

`svcd cluster ls` asks a server that answers a list of twenty clusters at once, without a login and
with one at the identity service of the same server.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, ratio

_LIBRARIES: Final = {
    "svcd --help": ("import click, json, http.client", 1.5),
    "svcd cluster ls": ("import click, requests", 1.5),
    "svcd cluster ls, login": (
        "import click, requests, keystoneauth1.session, keystoneauth1.identity.v3",
        1.2,
    ),
}
"""Command -> the import that it is measured against, and the most that it may cost of it."""
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
_TOKEN: Final = json.dumps({"token": {"project": {"id": "t"}, "catalog": []}}).encode()


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(200, _BODY)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, _TOKEN)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Request-Id", "r-1")
        self.send_header("X-Subject-Token", "token")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def run(quick: bool) -> list[Figure]:
    """All figures. The commands take turns; the first round, which compiles, does not count."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}"
    login = {
        "OS_AUTH_URL": f"{api}/v3",
        "OS_USERNAME": "u",
        "OS_PASSWORD": "p",
        "OS_PROJECT_ID": "t",
    }
    listing = [_SVCD, "cluster", "ls", "--api", api, "--tenant", "t"]
    commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
        "svcd --help": ([_SVCD, "--help"], {}),
        "svcd cluster ls": (listing, {}),
        "svcd cluster ls, login": (listing, login),
    }
    for name, (program, _) in _LIBRARIES.items():
        commands[f"{name}: libraries alone"] = ([sys.executable, "-c", program], {})
    taken: dict[str, list[float]] = {name: [] for name in commands}
    try:
        for _ in range(8 if quick else 31):
            for name, (command, more) in commands.items():
                taken[name].append(_cpu_ms(command, more))
    finally:
        server.shutdown()
        server.server_close()
    figures = [
        Figure(benchmark="commands", name=f"{name}, CPU", unit="ms", rounds=tuple(rounds[1:]))
        for name, rounds in taken.items()
    ]
    for name, (_, target) in _LIBRARIES.items():
        below = taken[f"{name}: libraries alone"][1:]
        figures.append(ratio("commands", f"{name} / libraries", taken[name][1:], below, target))
    return figures


def _cpu_ms(command: Sequence[str], more: Mapping[str, str]) -> float:
    """CPU of one run with further variables, which must succeed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SVCD_", "OS_"))}
    environment |= more
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[1:]} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000.0
