"""Takes the pictures in docs/pictures again: `python -m tests.support.pictures`.

It runs commands against a daemon of its own with real Hadoop, and takes pictures of the console in
Chromium. About five minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from svcd.cli.demo_daemon import DemoDaemon

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "pictures"
FILES: Final[Mapping[str, str]] = {
    "count.pig": (ROOT / "docs" / "examples" / "count.pig").read_text(encoding="utf-8"),
    "clean.pig": (ROOT / "docs" / "examples" / "count.pig").read_text(encoding="utf-8"),
    "report.pig": "words = LOAD '$INPUT';\nSTORE nothing INTO '$OUTPUT';\n",
    "text.txt": "to be or not to be\n",
}
BEFORE: Final = (
    "svcd cluster create etl --plugin vanilla --workers 2 --wait",
    "svcd run count.pig --on etl --input text.txt --output hdfs:///counts",
    "svcd run report.pig --on etl --input text.txt --output hdfs:///report || true",
    "svcd run clean.pig --on etl --input text.txt --output hdfs:///clean",
    "svcd run count.pig --on etl --input text.txt --output hdfs:///counts-2 --detach",
    "svcd cluster create nightly --plugin vanilla --workers 1",
)
"""Commands that make what the pictures show. The last two leave work that goes on."""
_WAIT_MS: Final = 20_000
_COMMAND_S: Final = 600


def _take(browser: Browser, base: str, wanted: Mapping[str, tuple[str, str]]) -> None:
    """Take pictures. wanted: name -> (address in the page, a text that the complete view has)."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(_WAIT_MS)
    for name, (address, complete) in wanted.items():
        page.goto(f"{base}/console/#/{address}")
        if name == "launch":
            page.get_by_label("Name", exact=True).fill("reports")
        page.get_by_text(complete).first.wait_for()
        page.screenshot(path=PICTURES / f"{name}.png")
        print(f"{name}.png: {(PICTURES / f'{name}.png').stat().st_size // 1024} KiB", flush=True)
    page.close()


def _id_of(work: Path, state: Path, kind: str, name: str) -> str:
    shown = json.loads(_run(work, state, f"svcd {kind} show {name} -o json"))
    return str(shown.get(kind, shown)["id"])  # an execution is not wrapped


def _run(work: Path, state: Path, command: str) -> bytes:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "SVCD_"))}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=work,
        env={**kept, "PATH": path, "SVCD_SERVER_STATE_DIR": str(state)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=_COMMAND_S,
        check=True,
    )
    return done.stdout


def main() -> int:
    """Make clusters and runs, and take the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        work, state = Path(place, "work"), Path(place, "state")
        work.mkdir()
        for name, text in FILES.items():
            (work / name).write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "", args=["--no-sandbox"]
        )
        daemon = DemoDaemon(state, ROOT / "state" / "image" / "vanilla-3.5.0")
        try:
            base = daemon.start()["api"]
            for command in BEFORE:
                print(f"$ {command}", flush=True)
                _run(work, state, command)
            wanted = {
                "home": ("", "Public addresses"),
                "cluster": (f"clusters/{_id_of(work, state, 'cluster', 'etl')}", "Longest path:"),
                "launch": ("launch", "Create 3 machines"),
                "runs": ("runs", "report"),
                "run": (f"runs/{_id_of(work, state, 'job', 'report')}", "Log"),
            }
            _take(browser, base, wanted)
        finally:
            daemon.stop()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
