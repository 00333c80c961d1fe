"""Values of a job on their way to its program: what a person gives is what the program has.

One run on real Hadoop; it needs the software tree of the vanilla distribution, as
tests.live.test_main_job does. About a minute on two cores. The script that starts a program also
runs here by itself, with each shell of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase

from svcd.workflow.decide.arguments import START, staged, start_script
from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import DaemonCase, run

RUN_S = 240.0
SHOW = (
    f"#!{sys.executable}"
    + """
import json, os, sys
files = {n: open(n, errors="replace").read(99) for n in os.listdir(".") if os.path.isfile(n)}
print("SHOWN" + json.dumps({"pid": os.getpid(), "real": os.path.realpath(sys.argv[0]),
                            "args": sys.argv, "environment": dict(os.environ), "files": files,
                            "stdin": sys.stdin.read()}))
sys.exit(7)
"""
)
PROGRAM = "a=b größe main.py"
FILES = (
    "_helpers.py",
    ".hidden",
    "my data.csv",
    "a+b=c.txt",
    "größe.py",
    "l" * 255,
    "-rf",
    "it's",
    '"quoted"',
    "*",
    "$HOME",
    "\\",
    "job",
    "tmp",
    "container_tokens",
    "action.xml",
    "svcd-start.sh",
    "svcd-file-0",
)
ARGS = (
    " lead",
    "trail ",
    "tab\t",
    " ",
    "  ",
    "",
    "a\nb",
    "\n",
    "${x}",
    "${user.name}",
    "${'$'}{x}",
    "$HOME",
    "$(id)",
    "`id`",
    "*",
    "?",
    "~",
    "{{x}}",
    "}}",
    "<CPS>",
    '"',
    "'",
    "''",
    "it's",
    "\\",
    "\\\\",
    "\\n",
    "größe 日本 ☃",
    "-Dk=v",
    "-n",
    "--",
    "a;b|c&d>e<f(g)!#%",
)
VARIABLES = {
    "DEBUG": "",
    "ENDS": " b ",
    "TAB": "c\t",
    "LINES": "a\nb\n",
    "EQUAL": "=a=b",
    "EXPRESSION": "${nameNode} ${x} $HOME",
    "A.B": "no name of a shell",
    "-x": "y",
    "größe": "ü",
    "UID": "5",
    "RANDOM": "6",
    "IFS": "x",
    "SHLVL": "77",
    "PS4": "$(id)",
    "OOZIE_ACTION_CONF_XML": "mine",
}
CONTROLS = (*map(chr, range(1, 0x300)), "\x01\x02\x7f", "x" * 131_071)
"""Arguments that the API refuses today, or that make a run's log long."""


class ScriptTests(TestCase):
    """The script by itself: no Hadoop."""

    timeout = 60

    async def check(self, shell: Sequence[str]) -> None:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        files = (PROGRAM, *FILES, "a\nb")
        (folder / "tmp").mkdir()
        (folder / "container_tokens").write_text("the container's")
        (folder / "other.jar").write_text("the container's")
        cache = Path(self.mktemp()).absolute()
        cache.mkdir()
        for number, name in enumerate(files):
            file = cache / staged(number)
            file.write_text(SHOW if number == 0 else name)
            file.chmod(0o500)
            (folder / staged(number)).symlink_to(file)
        args = (*ARGS, *CONTROLS)
        (folder / START).write_bytes(start_script(files, args, VARIABLES))
        text = 'echo "$$"; exec "$@"'
        ended = await run("/bin/sh", "-c", text, "sh", *shell, START, folder=str(folder))
        self.assertEqual((ended.code, ended.err), (7, ""))
        pid, _, shown = ended.out.partition("\nSHOWN")
        found = json.loads(shown)
        self.assertEqual(found["pid"], int(pid))
        self.assertEqual(Path(found["real"]), folder / "job" / PROGRAM)
        compare(self, found, args, VARIABLES, [*files[1:], "other.jar"])

    async def test_each_shell_starts_the_same_program(self) -> None:
        for shell in (["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]):
            if shutil.which(shell[0]):
                await self.check(shell)


def compare(
    case: TestCase,
    found: Mapping[str, Any],
    args: Sequence[str],
    variables: Mapping[str, str],
    files: Sequence[str],
) -> None:
    """Compare what a program has shown with what was given. files: their content is their name."""
    case.assertEqual(found["args"], [f"./{PROGRAM}", *args])
    case.assertEqual({n: found["environment"].get(n) for n in variables}, dict(variables))
    missing = [n for n in files if n not in found["files"]]
    case.assertEqual(missing, [])
    own = [n for n in files if n in FILES]
    case.assertEqual([found["files"][n] for n in own], [n[:99] for n in own])
    case.assertEqual(found["stdin"], "")


class RunTests(DaemonCase):
    """One `svcd run` of a Shell job."""

    timeout = 600

    async def test_a_shell_program_has_what_was_given(self) -> None:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        (folder / PROGRAM).write_text(SHOW, encoding="utf-8")
        command = ["run", str(folder / PROGRAM), "--type", "Shell", "--on", "first"]
        for name in FILES:
            (folder / name).write_text(name, encoding="utf-8")
            command += ["--lib", str(folder / name)]
        for name, value in VARIABLES.items():
            command += ["-p", f"{name}={value}"]
        daemon = self.daemon(
            plugins__enabled="vanilla", embedded__image_prefix=str(vanilla_prefix())
        )
        await daemon.start()
        environment = {**os.environ, "SVCD_SERVER_STATE_DIR": str(daemon.state)}
        made = await run(
            "svcd", "cluster", "create", "first", "--plugin", "vanilla", "--workers", "1", "--wait",
            environment=environment, limit_s=RUN_S,
        )  # fmt: skip
        self.assertEqual(made.code, 0, made)
        ended = await run("svcd", *command, "--", *ARGS, environment=environment, limit_s=RUN_S)
        self.assertEqual(ended.code, 1, ended)
        self.assertIn("its program ended with exit code 7", ended.err)
        (line,) = [each for each in ended.out.splitlines() if each.startswith("SHOWN")]
        compare(self, json.loads(line.removeprefix("SHOWN")), ARGS, VARIABLES, FILES)
        shown = await run(
            "svcd", "job", "show", Path(PROGRAM).stem, "-o", "json", environment=environment
        )
        self.assertNotIn(
            "no name of a shell", json.dumps(json.loads(shown.out)["job_execution"]["info"])
        )
