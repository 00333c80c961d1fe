"""The daemon script, run by a real shell on a folder, with programs that only sleep."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.kit import cluster, group, machines
from svcd.provisioning.distributions.spi import Machine, WriteFile
from svcd.provisioning.distributions.vanilla import Vanilla

SLEEPER = """#!/bin/sh
echo "$0 $*" >>"$HADOOP_LOG_DIR/called"
exec sleep 60
"""
LISTENER = f"""#!/bin/sh
exec {sys.executable} -c '
import os, socket, time
try:
    server = socket.create_server((os.environ["SPARK_LOCAL_IP"], 15002))
except OSError:
    pass
open(os.environ["HADOOP_LOG_DIR"] + "/tried", "w").close()
time.sleep(60)
'
"""


class TestDaemon(SynchronousTestCase):
    """Each test has a machine of its own with all processes."""

    def setUp(self) -> None:
        root = Path(self.mktemp()).resolve()
        prefix = root / "software"
        (prefix / "bin").mkdir(parents=True)
        for name in ("hdfs", "yarn", "mapred", "oozied", "spark-class"):
            program = prefix / "bin" / name
            program.write_text(SLEEPER)
            program.chmod(0o755)
        (prefix / "bin" / "spark-submit").write_text(LISTENER)
        (prefix / "bin" / "spark-submit").chmod(0o755)
        (prefix / "bin" / "hadoop").write_text('#!/bin/sh\necho "$*" >>"$HADOOP_LOG_DIR/called"\n')
        (prefix / "bin" / "hadoop").chmod(0o755)
        processes = (
            "namenode", "datanode", "resourcemanager", "sparkhistory", "sparkconnect"
        )  # fmt: skip
        made = cluster(Vanilla(), group("all", 1, *processes))
        self.machine: Machine = evolve(
            machines(made)[0],
            home=f"{root}/home",
            storage=(f"{root}/disk 1",),
            prefix=str(prefix),
            address=f"127.8.{os.getpid() % 200}.{1 + os.getpid() // 200 % 200}",
        )
        plan = Vanilla().configure(made, (self.machine,), [self.machine.instance_id])
        for action in plan[0].chains[0]:
            assert isinstance(action, WriteFile)
            path = Path(action.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(action.content)
        self.addCleanup(self._end)

    def _end(self) -> None:
        for name in self.machine.processes:
            self.run_script("stop", name)

    def run_script(self, *words: str) -> subprocess.CompletedProcess[str]:
        script = f"{self.machine.home}/svcd/bin/daemon"
        return self.run_shell(["sh", script, *words])

    def run_shell(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=20,
            check=False,
        )  # fmt: skip

    def pid(self, name: str) -> int:
        return int(Path(f"{self.machine.home}/svcd/run/{name}.pid").read_text())

    def called(self) -> list[str]:
        lines = Path(f"{self.machine.home}/svcd/logs/called").read_text().splitlines()
        return [line.rpartition("/bin/")[2] for line in lines]

    def wait_for_calls(self, count: int) -> list[str]:
        """The programs run beside the test; the shell waits for what they write."""
        log = f"{self.machine.home}/svcd/logs/called"
        script = f'n=0; until [ "$(wc -l <"{log}")" -ge {count} ] || [ $n -ge 100 ]; do '
        self.run_shell(["sh", "-c", script + "n=$((n+1)); sleep 0.05; done"])
        return self.called()

    def test_a_daemon_listens_when_its_port_is_open(self) -> None:
        """`await` waits for this, and ends when the daemon has died or the time is over."""
        done = self.run_script("listens", "sparkconnect", "15002")
        self.assertEqual((done.returncode, done.stderr), (1, "sparkconnect is not running\n"))
        done = self.run_script("await", "sparkconnect", "15002", "9")
        self.assertEqual((done.returncode, done.stderr), (1, "sparkconnect has died\n"))
        self.run_script("start", "sparkconnect")
        for words in (
            ("await", "sparkconnect", "15002", "9"),
            ("listens", "sparkconnect", "15002"),
            ("free",),
        ):
            done = self.run_script(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_daemon_is_unused_without_clients(self) -> None:
        """One that does not run cannot be asked."""
        unused = ("unused", "sparkconnect", "15002")
        done = self.run_script(*unused)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sparkconnect does not run", done.stderr)
        self.run_script("start", "sparkconnect")
        self.run_script("await", "sparkconnect", "15002", "9")
        with socket.create_connection((self.machine.address, 15002)):
            done = self.run_script(*unused)
            text = "connections of clients to sparkconnect: 1\n"
            self.assertEqual((done.returncode, done.stderr), (1, text))
        done = self.run_script(*unused)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_program_on_the_port_does_not_count(self) -> None:
        """The daemon runs, and the program that listens is a stranger."""
        with socket.create_server((self.machine.address, 15002)):
            self.run_script("start", "sparkconnect")
            file = f"{self.machine.home}/svcd/logs/tried"
            self.run_shell(["sh", "-c", f'until [ -e "{file}" ]; do sleep 0.05; done'])
            done = self.run_script("listens", "sparkconnect", "15002")
            text = "sparkconnect does not listen on port 15002 (yet)\n"
            self.assertEqual((done.returncode, done.stderr), (1, text))
            done = self.run_script("await", "sparkconnect", "15002", "1")
            text = "sparkconnect has not listened on port 15002 for 1 s\n"
            self.assertEqual((done.returncode, done.stderr), (1, text))

    def test_ports_of_other_programs_are_named(self) -> None:
        """With the process, so that a person can end it. Ports of other addresses do not matter."""
        self.assertEqual(self.run_script("free").returncode, 0)
        with socket.create_server((self.machine.address, 9870)):
            done = self.run_script("free")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"\Aport 9870 is taken by process {os.getpid()} \(.+\)\n\Z")
        with socket.create_server((self.machine.address.replace("127.8.", "127.7."), 9870)):
            self.assertEqual(self.run_script("free").returncode, 0)

    def test_many_starts_at_once_after_a_start_start_nothing(self) -> None:
        """A start returns when the next one can recognise the daemon, and leaves it alone."""
        script = f"{self.machine.home}/svcd/bin/daemon"
        pid_file = f"{self.machine.home}/svcd/run/datanode.pid"
        round_ = f'sh "{script}" start datanode; one=$(cat "{pid_file}")'
        again = f'sh "{script}" start datanode; [ "$(cat "{pid_file}")" = "$one" ]'
        stop = f'sh "{script}" stop datanode'
        done = self.run_shell(
            ["sh", "-c", f"for _ in 1 2 3 4 5 6 7 8; do {round_}; {again} || exit 1; {stop}; done"]
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_dead_daemon_is_told_and_started_again(self) -> None:
        """alive fails with a word for a person."""
        self.run_script("start", "datanode")
        first = self.pid("datanode")
        self.assertEqual(self.run_script("stop", "datanode").returncode, 0)
        told = self.run_script("alive", "datanode")
        self.assertEqual((told.returncode, told.stderr), (1, "datanode is not running\n"))
        self.run_script("start", "datanode")
        self.assertNotEqual(self.pid("datanode"), first)

    def test_a_foreign_process_with_the_number_is_not_taken_for_it(self) -> None:
        """The system gives numbers of dead processes to others."""
        self.run_script("start", "resourcemanager")
        pid_file = Path(f"{self.machine.home}/svcd/run/datanode.pid")
        pid_file.write_text(f"{self.pid('resourcemanager')}\n")
        self.assertEqual(self.run_script("alive", "datanode").returncode, 1)
        self.assertEqual(self.run_script("alive", "resourcemanager").returncode, 0)

    def test_a_name_node_with_edits_is_never_formatted(self) -> None:
        """Also when the mark of the format is lost. The first start formats it."""
        cluster_id, run = "6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31", f"{self.machine.home}/svcd/run"
        self.run_script("start", "namenode")
        first = f"hdfs org.svcd.hadoop.FormatAndServe CID-{cluster_id} {run}/formatted"
        self.assertEqual(self.wait_for_calls(1), [first])
        self.run_script("stop", "namenode")
        edits = Path(f"{self.machine.storage[0]}/hdfs/namenode/current/edits_inprogress_001")
        edits.parent.mkdir(parents=True)
        edits.write_text("")
        self.run_script("start", "namenode")
        self.assertEqual(self.wait_for_calls(2), [first, "hdfs namenode"])

    def test_a_process_of_another_machine_is_refused(self) -> None:
        """Exit code 2: wrong usage."""
        done = self.run_script("start", "oozie")
        self.assertEqual(done.returncode, 2)
        self.assertIn("oozie is not a daemon of this machine", done.stderr)
        self.assertEqual(self.run_script("nonsense").returncode, 2)

    def test_admitting_empties_the_list_once(self) -> None:
        """Nothing is asked of the name node when nobody left."""
        listed = Path(f"{self.machine.home}/svcd/conf/exclude.hdfs")
        listed.write_text("10.0.0.9\n")
        for _ in range(2):
            self.assertEqual(self.run_script("admit", "hdfs").returncode, 0)
        self.assertEqual(listed.read_text(), "")
        self.assertEqual(self.called(), ["org.svcd.hadoop.RefreshNodes hdfs"])
