"""The wheel of this tree, installed elsewhere by an ordinary user, who takes the first steps.

Needs the package registry, a JDK and a Python that an ordinary user may run. Two to four minutes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import ROOT, machine_processes, own_network, watchdog
from tests.support.sample import SLOW
from tests.support.walkthrough import blocks, faults, ordered, script

NOBODY: Final = 65534
STEP_S: Final = 600.0
READY_S: Final = 60.0
IMAGE: Final = "state/image/vanilla-3.5.0"


class WheelTests(SynchronousTestCase):
    timeout = 1200
    skip = SLOW

    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="svcd-wheel-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.who: Mapping[str, Any] = {}
        if os.geteuid() == 0:
            self.home.chmod(0o755)
            os.chown(self.home, NOBODY, NOBODY)
            self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
        self.work = self.home / "elsewhere"
        self.variables = {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{self.home / 'venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        }

    def ran(self, *command: str | Path, folder: Path | None = None) -> str:
        """What a command of the ordinary user says."""
        done = subprocess.run(
            [str(each) for each in command],
            cwd=folder or self.home,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_S,
            check=False,
            **self.who,
        )
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-3000:]}")
        return done.stdout

    def python(self) -> str:
        """A Python that the user may run."""
        for each in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
            check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
            try:
                done = subprocess.run(
                    [os.path.realpath(each), "-c", check],
                    cwd="/",
                    stderr=subprocess.DEVNULL,
                    timeout=30,
                    check=False,
                    **self.who,
                )
            except OSError:
                continue
            if done.returncode == 0:
                return os.path.realpath(each)
        raise SkipTest("no Python 3.11 with venv that an ordinary user may run")

    def test_first_steps_with_the_wheel(self) -> None:
        """`svcd image build`, the daemon and the README's first steps, away from the tree."""
        python = self.python()
        self.install(python)
        self.remember_tree()
        self.ran("svcd", "image", "build", "vanilla", "--without", "spark", IMAGE, folder=self.work)
        api = self.daemon()
        steps = ordered(blocks("README.md", (ROOT / "README.md").read_text("utf-8")), True)
        replaced = {"http://127.0.0.1:8386": api}
        (self.work / "walk.sh").write_text(script(steps, replaced))
        said = self.ran("bash", "walk.sh", folder=self.work)
        if found := list(faults(steps, said, replaced)):
            self.fail("\n".join(found))

    def install(self, python: str) -> None:
        """The wheel of HEAD in a fresh environment, and a folder without the tree."""
        tree = self.home / "tree"
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=60
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(tree, filter="data")
        if self.who:
            for each in (tree, *tree.rglob("*")):
                os.chown(each, NOBODY, NOBODY)
        self.ran(python, "-m", "venv", "venv")
        self.ran("venv/bin/pip", "wheel", "-q", "--no-deps", "-w", "wheels", tree)
        (wheel,) = (self.home / "wheels").glob("*.whl")
        self.ran("venv/bin/pip", "install", "-q", wheel)
        self.ran("mkdir", "-p", self.work / "docs")
        self.ran("cp", "-r", tree / "docs" / "examples", self.work / "docs")
        self.ran("cp", tree / "README.md", self.work)
        shutil.rmtree(tree)
        said = self.ran("venv/bin/python", "-c", "import svcd; print(svcd.__file__)")
        self.assertIn("/venv/lib/", said)

    def remember_tree(self) -> None:
        """Released jars come from this machine's tree, if the user may read it; all else is made.

        So the download is not repeated, which the tree itself came from.
        """
        with contextlib.suppress(SkipTest):
            tree = shlex.quote(str(vanilla_prefix().absolute()))
            seen = f"if test -r {tree}/image.json; then echo {tree} > .cache/svcd/trees; fi"
            self.ran("sh", "-c", f"mkdir -p .cache/svcd; {seen}")

    def daemon(self) -> str:
        """Start the daemon in the folder, and return the URL of its API."""
        settings = {
            "server.listen": "tcp:127.0.0.1:0",
            "cloud.listen": "tcp:127.0.0.1:0",
            "embedded.network": own_network(),
        }
        command = ["venv/bin/twistd", "-n", "--pidfile=", "svcd"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        command[0] = str(self.home / command[0])
        with (self.home / "daemon.log").open("wb") as log:
            daemon = subprocess.Popen(
                command, cwd=self.work, env=self.variables, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, **self.who,
            )  # fmt: skip
        watchdog().process(daemon.pid)
        watchdog().machines(self.work / "state")
        self.addCleanup(self.stop, daemon)
        endpoints = self.work / "state" / "endpoints.json"
        end = time.monotonic() + READY_S
        while not endpoints.exists():
            log_text = (self.home / "daemon.log").read_text("utf-8", "replace")
            self.assertIs(daemon.poll(), None, log_text)
            self.assertLess(time.monotonic(), end, log_text)
            time.sleep(0.1)
        return str(json.loads(endpoints.read_text())["api"])

    def stop(self, daemon: subprocess.Popen[bytes]) -> None:
        """End the daemon and the processes of its machines."""
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        for pid in machine_processes(self.work / "state"):
            os.kill(pid, signal.SIGKILL)
