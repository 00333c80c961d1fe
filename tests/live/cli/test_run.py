"""`svcd run` as a user's command, on real Hadoop: the embedded default.

Needs the software tree of the vanilla distribution, as tests.live.test_main_job does. About three
minutes on two cores.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image import class_data
from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import ROOT, DaemonCase, Ended, machine_processes, run, until

TEXTS = {"a.txt": "to be or not to be\n", "b/c.txt": "not two ü\n", ".hidden": "no no\n"}
EXPECTED = Counter(" ".join((TEXTS["a.txt"], TEXTS["b/c.txt"])).split())
RUN_S = 240.0


class RunTests(DaemonCase):
    timeout = 900

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    async def svcd(self, *arguments: str) -> Ended:
        return await run("svcd", *arguments, environment=self.environment, limit_s=RUN_S)

    def check_class_data(self, state: Path) -> None:
        """The daemons of the cluster have mapped the archives of a tree that has them."""
        prefix = vanilla_prefix()
        if not (prefix / class_data.PROGRAM).exists():
            return  # a tree of an older recipe
        found = Counter[str]()
        for pid in machine_processes(state):
            try:
                text = Path(f"/proc/{pid}/maps").read_text()
            except OSError:
                continue  # a command that has ended
            found.update(each for each in class_data.NAMES if f"/class-data/{each}.jsa" in text)
        self.assertEqual(found["oozie"], 1)
        self.assertGreaterEqual(found["hadoop"], 5)

    async def test_word_count_from_a_folder(self) -> None:
        """Three commands; then a broken script, an output that exists, and an interrupt."""
        self.folder = Path(self.mktemp()).absolute()
        prefix = str(vanilla_prefix())
        daemon = self.daemon(plugins__enabled="vanilla", embedded__image_prefix=prefix)
        await daemon.start()
        self.environment = {"SVCD_SERVER_STATE_DIR": str(daemon.state)}
        made = await self.svcd("cluster", "create", "first", "--plugin", "vanilla", "--wait")
        self.assertEqual(made.code, 0, made)
        self.check_class_data(daemon.state)
        for name, text in TEXTS.items():
            self.file(f"text/{name}", text)
        pig = str(ROOT / "docs" / "examples" / "count.pig")
        command = ("run", pig, "--on", "first", "--input", str(self.folder / "text"), "--output")
        done = await self.svcd(*command, "hdfs:///out")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("uploaded 2 files, 30 bytes, to objstore://svcd-input/text-", done.err)
        self.assertRegex(done.err, r"\njob SUCCEEDED after .*\n$")
        self.assertIn("Apache Pig version", done.out)
        self.assertLess(len(done.out.splitlines()), 100, done.out)
        self.assertNotIn("Classpath", done.out)
        self.assertEqual(await self.counts("hdfs:///out"), EXPECTED)

        again = await self.svcd(*command, "hdfs:///out")
        self.assertEqual(again.code, 1, again.err)
        self.assertIn("failure: OUTPUT_EXISTS in step job-node", again.err)
        self.assertIn("use an output that does not exist yet", again.err)
        self.assertIn(": uploaded already\n", again.err)

        broken = self.file("broken.pig", "STORE nothing INTO '$OUTPUT';\n")
        failed = await self.svcd("run", broken, *command[2:], "hdfs:///other")
        self.assertEqual(failed.code, 1, failed.err)
        self.assertIn("Undefined alias: nothing", failed.err)
        self.assertIn("  what to do: ", failed.err)

        await self.interrupted()
        await self.printed()
        await self.outlived()

    async def counts(self, url: str) -> Counter[str]:
        """The result of a word count, as a user reads it on the cluster."""
        text = f". svcd/env.sh; hdfs dfs -cat '{url}/part*'"
        shown = await self.svcd("cluster", "ssh", "first", "--", text)
        self.assertEqual(shown.code, 0, shown)
        pairs = (line.split("\t") for line in shown.out.splitlines() if "\t" in line)
        return Counter({word: int(count) for word, count in pairs})

    async def interrupted(self) -> None:
        """Ctrl-C ends the command with 130, and the job goes on to its end."""
        script = self.file("slow.sh", "#!/bin/sh\nsleep 15\necho finished by itself\n")
        program = self.program("svcd", "run", script, "--on", "first", environment=self.environment)

        async def runs() -> bool:
            return "runs as application_" in program.err

        await until(runs, "the job runs", RUN_S)
        program.signal(signal.SIGINT)
        ended = await program.end()
        self.assertEqual(ended.code, 130, ended.err)
        self.assertIn("the job goes on: svcd job logs -f ", ended.err)
        self.assertEqual(ended.err.count("Traceback"), 0)
        followed = await self.svcd("job", "logs", "-f", "slow")
        self.assertEqual(followed.code, 0, followed.err)
        self.assertIn("finished by itself", followed.out)
        listed = await self.svcd("job", "ls", "-o", "json")
        rows = json.loads(listed.out)["job_executions"]
        statuses = [row["info"]["status"] for row in rows]
        self.assertEqual(statuses, ["SUCCEEDED", "KILLED", "KILLED", "SUCCEEDED"])

    async def printed(self) -> None:
        """340 kB are whole, of 2 MB lines tell what is missing, and the exit code is 0.

        The terminal cannot write all letters.
        """
        ascii_only = {**self.environment, "PYTHONIOENCODING": "ascii"}
        for most in (60_000, 300_000):
            script = self.file(f"to{most}.sh", f"echo Größe; seq 1 {most}; echo END\n")
            ended = await run(
                "svcd", "run", script, "--on", "first", environment=ascii_only, limit_s=RUN_S
            )
            self.assertEqual(ended.code, 0, ended.err)
            first, last = ["Gr\\xf6\\xdfe", "1", "2"], [str(most), "END"]
            lines = ended.out.splitlines()[1:]
            self.assertEqual((lines[:3], lines[-2:]), (first, last))
            if most == 60_000:
                self.assertEqual(lines[1:-1], [str(number) for number in range(1, most + 1)])
            else:
                # one gap; more when svcd has read the file several times while it grew
                gaps = [line for line in lines if line.startswith("[svcd: ")]
                self.assertGreater(len(gaps), 0)
                for gap in gaps:
                    self.assertRegex(gap, r"\d+ bytes are missing here, from byte \d+ of this ")

    async def outlived(self) -> None:
        """The logs are read after the cluster was deleted: the programs' lines, and each line."""
        removed = await self.svcd("cluster", "rm", "first", "--yes", "--wait")
        self.assertEqual(removed.code, 0, removed)
        for job, words in (
            ("slow", "finished by itself\n"),
            ("broken", "Undefined alias: nothing"),
        ):
            shown = await self.svcd("job", "logs", job)
            self.assertEqual(shown.code, 0, shown)
            self.assertIn(words, shown.out)
            self.assertNotIn("Launcher AM", shown.out)
            self.assertNotIn("[svcd: ", shown.out)
            whole = await self.svcd("job", "logs", "--all", job)
            self.assertIn("Launcher AM configuration loaded\n", whole.out)
            self.assertIn("==> engine <==\n", whole.out)
            self.assertRegex(whole.out, r"\n==> job execution [0-9a-f-]{36}: \w+ <==\n")
