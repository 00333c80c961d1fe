"""Programs of the vanilla image with `objstore://`: many commands of the probe in one JVM.

Needed: the vanilla image (SVCD_VANILLA_PREFIX, default /opt/svcd/vanilla) and javac.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import frozen
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, TestCase

PREFIX = Path(os.environ.get("SVCD_VANILLA_PREFIX", "/opt/svcd/vanilla"))
PROBE = Path(__file__).parent / "org/svcd/probe/ObjStoreProbe.java"
PASSWORD = "never-to-be-seen"
RUN_TIMEOUT_S = 420
LOG4J = """log4j.rootLogger=WARN,e
log4j.appender.e=org.apache.log4j.ConsoleAppender
log4j.appender.e.target=System.err
log4j.appender.e.layout=org.apache.log4j.SimpleLayout
"""
_STEP = re.compile(r"^@@@ step \d+\n", re.MULTILINE)
_CODE = re.compile(r"^@@@ step code (\d+)\n", re.MULTILINE)


@frozen(kw_only=True)
class Ran:
    """How a program ended. said: all that it wrote, with the lines of its log."""

    code: int
    lines: Sequence[str]
    said: str


def site(values: Mapping[str, str]) -> str:
    """The text of a file of Hadoop's configuration."""
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    return f"<configuration>{properties}</configuration>"


class HadoopCase(TestCase):
    timeout = 600

    def setUp(self) -> None:
        if not (PREFIX / "bin/hadoop").is_file():
            raise SkipTest(
                f"no image at {PREFIX}: svcd image build vanilla, or SVCD_VANILLA_PREFIX"
            )
        if shutil.which("javac") is None:
            raise SkipTest("no javac on the PATH to compile the probe")
        self.folder = Path(tempfile.mkdtemp(prefix="svcd-objstore-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        (self.folder / "conf").mkdir()
        (self.folder / "conf/log4j.properties").write_text(LOG4J, encoding="utf-8")
        # in trial's own folder, which is new in each run: compiled once for all tests
        self.classes = Path("objstore-probe").absolute()

    def keys(self, objstore: Mapping[str, str]) -> dict[str, str]:
        """The configuration with these `fs.objstore.` keys; empty values are left out."""
        return {
            "fs.objstore.impl": "org.svcd.objstore.ObjStoreFileSystem",
            "fs.AbstractFileSystem.objstore.impl": "org.svcd.objstore.ObjStoreFs",
            "hadoop.tmp.dir": str(self.folder / "tmp"),
            **{f"fs.objstore.{key}": value for key, value in objstore.items() if value},
        }

    def local(self, name: str, text: str) -> str:
        """A file on this machine."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    async def steps(
        self, *steps: tuple[Mapping[str, str], Sequence[str]], java: str = ""
    ) -> Sequence[Ran]:
        """What each command of the probe does with its own `fs.objstore.` keys, in one JVM.

        java: options of the JVM. Commands: ObjStoreProbe.java.
        """
        if not (self.classes / "org").is_dir():
            await self._compile()
        lines = []
        for number, (keys, command) in enumerate(steps):
            own = self.local(f"site-{number}.xml", site(self.keys(keys)))
            lines.append("\t".join((own, *command)))
        listed = self.local("steps", "\n".join(lines))
        program = str(PREFIX / "bin/hadoop"), "org.svcd.probe.ObjStoreProbe", "each", listed
        done = await self.run_program(*program, java=java)
        outs, errs = (_STEP.split(text)[1:] for text in (done.stdout, done.stderr))
        self.assertEqual((len(outs), done.returncode), (len(steps), 0), done.stdout + done.stderr)
        return [_ran(out, err) for out, err in zip(outs, errs, strict=True)]

    async def _compile(self) -> None:
        made = self.classes.with_suffix(".new")
        jars = f"{PREFIX}/hadoop/lib/*"
        done = await self.run_program(
            "javac", "-proc:none", "-cp", jars, "-d", str(made), str(PROBE)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        made.rename(self.classes)

    async def run_program(self, *command: str, java: str = "") -> subprocess.CompletedProcess[str]:
        """One program in its own thread; it is killed at its time-out."""
        environ = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "HADOOP_CONF_DIR": str(self.folder / "conf"),
            "HADOOP_CLASSPATH": f"{self.classes}:{PREFIX}/examples/*",
            "HADOOP_ROOT_LOGGER": "WARN,e",
            "HADOOP_CLIENT_OPTS": java,
            "TMPDIR": str(self.folder),
        }
        done: subprocess.CompletedProcess[str] = await deferToThread(
            subprocess.run,
            command,
            env=environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=RUN_TIMEOUT_S,
        )
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done


def _ran(out: str, err: str) -> Ran:
    code = _CODE.search(out)
    assert code is not None, out
    printed = _CODE.sub("", out)
    return Ran(code=int(code[1]), lines=printed.splitlines(), said=printed + err)
