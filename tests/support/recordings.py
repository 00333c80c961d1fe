"""Records the output in docs/jobs.md again: `python -m tests.support.recordings`.

It runs the commands of each recording against a daemon of its own with real Hadoop, and writes the
page again. About four minutes. The page marks a recording with `<!-- recording: NAME -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from svcd.cli.demo_daemon import DemoDaemon

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "jobs.md"
FILES: Final[Mapping[str, str]] = {
    "count.pig": (ROOT / "docs" / "examples" / "count.pig").read_text(encoding="utf-8"),
    "text/a.txt": "to be or not to be\n",
    "text/b.txt": "not two\n",
    "broken.pig": "words = LOAD '$INPUT';\nSTORE nothing INTO '$OUTPUT';\n",
}
RECORDINGS: Final[Mapping[str, Sequence[str]]] = {
    "create": (
        "svcd cluster create first --plugin vanilla --wait",
        "svcd cluster ls",
    ),
    "run": (
        "svcd run count.pig --on first --input text --output hdfs:///out",
        "svcd cluster ssh first -- '. svcd/env.sh; hdfs dfs -cat /out/part*'",
    ),
    "failure": (
        "svcd run broken.pig --on first --input text --output hdfs:///other",
        "svcd job ls",
    ),
    "bundle": (
        "svcd export job count > bundle.yaml",
        "cat bundle.yaml",
        "svcd diff -f bundle.yaml --exit-code && echo equal",
    ),
}
_MARK: Final = re.compile(r"(<!-- recording: (\w+) -->\n```\n).*?(^```$)", re.MULTILINE | re.DOTALL)
_HEAD, _TAIL = 9, 8
_WIDTH: Final = 116


def shortened(text: str) -> str:
    """A text of a terminal with its beginning and its end, in lines that fit the page."""
    lines = [
        line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in text.splitlines()
    ]
    left = len(lines) - _HEAD - _TAIL
    if left > 1:
        lines = [*lines[:_HEAD], f"[… {left} lines …]", *lines[-_TAIL:]]
    return "\n".join(line.rstrip() for line in lines)


def written(page: str, recorded: Mapping[str, str]) -> str:
    """The page with the recordings at their marks."""
    return _MARK.sub(lambda found: f"{found[1]}{recorded[found[2]]}\n{found[3]}", page)


def names(page: str) -> list[str]:
    """The recordings that the page has, in its order."""
    return [found[2] for found in _MARK.finditer(page)]


def main() -> int:
    """Record all, and write the page."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place, "work")
        for name, text in FILES.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        daemon = DemoDaemon(Path(place, "state"), ROOT / "state" / "image" / "vanilla-3.5.0")
        try:
            daemon.start()
            recorded = {name: _recorded(commands, work) for name, commands in RECORDINGS.items()}
        finally:
            daemon.stop()
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), recorded), encoding="utf-8")
    return 0


def _recorded(commands: Sequence[str], work: Path) -> str:
    made = []
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "SVCD_"))}
    environment = {**kept, "PATH": path, "SVCD_SERVER_STATE_DIR": str(work.parent / "state")}
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )
        code = f"\n[exit code {done.returncode}]" if done.returncode else ""
        said = shortened(done.stdout.decode("utf-8", "replace").replace(str(work.parent), "…"))
        made.append(f"$ {command}" + (f"\n{said}" if said else "") + code)
        print(made[-1], flush=True)
    return "\n".join(made)


if __name__ == "__main__":
    sys.exit(main())
