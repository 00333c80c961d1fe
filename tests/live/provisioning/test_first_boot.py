"""The command of a first-boot script, run by a real shell in a folder that plays the home."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.model.cluster import InitScript
from svcd.model.ids import InstanceId, JobBinaryInternalId
from svcd.ports.machines import CommandResult
from svcd.provisioning.decide import first_boot
from svcd.provisioning.decide.steps import RunScript
from tests.unit.provisioning.support import cluster


class FirstBootTests(SynchronousTestCase):
    shell = "sh"
    user: int | None = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="svcd-first-boot-")
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name, "home")
        self.home.mkdir()
        programs = Path(folder.name, "bin")
        programs.mkdir()
        (programs / "sh").symlink_to(shutil.which(self.shell) or "none")
        self.path = f"{programs}:{os.environ['PATH']}"

    def begun(
        self, text: str, request: int = 1, deadline_s: float = 10.0, sha256: str = ""
    ) -> subprocess.Popen[bytes]:
        """The command as svcd runs it on demo-worker-001; it has its stdin and goes on."""
        content = text.encode()
        script = InitScript(
            name="it's.sh",
            internal_id=JobBinaryInternalId("b1"),
            sha256=sha256 or hashlib.sha256(content).hexdigest(),
        )
        step = RunScript(
            machine="demo-worker-001", instance=InstanceId("worker1"), number=0, script=script
        )
        command = first_boot.command(step, evolve(cluster(), generation=request), deadline_s)
        running = subprocess.Popen(
            [str(self.home.parent / "bin" / "sh"), "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": self.path, "HOME": str(self.home)},
            start_new_session=True,
            user=self.user,
        )
        assert running.stdin is not None
        running.stdin.write(content)
        running.stdin.close()
        running.stdin = None
        return running

    def end(self, running: subprocess.Popen[bytes]) -> tuple[int, str, str]:
        out, err = running.communicate(timeout=30)
        return running.returncode, out.decode(), err.decode()

    def ran(self, text: str, request: int = 1, deadline_s: float = 10.0) -> tuple[int, str]:
        """Exit code and output of a script that has ended."""
        code, out, err = self.end(self.begun(text, request, deadline_s))
        self.assertEqual(err, "")
        return code, out

    def lines(self, name: str = "log") -> list[str]:
        return (self.home / name).read_text().split()

    def over(self, pid: int) -> bool:
        """Whether the process has ended; in a container nobody may have asked for its code."""
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"

    def wait(self, name: str) -> None:
        """Until the script has made the file."""
        test = f'until [ -e "{self.home}/{name}" ]; do sleep 0.05; done'
        subprocess.run(["sh", "-c", test], check=True, timeout=10)

    def test_script_has_home_stdin_and_environment(self) -> None:
        names = ("CLUSTER", "CLUSTER_ID", "GROUP", "MACHINE", "INDEX", "PROCESSES")
        shown = " ".join(f"$SVCD_{name}" for name in names)
        code, out = self.ran(f"pwd; cat; umask; echo {shown}")
        words = "demo c1 worker demo-worker-001 1 datanode,nodemanager"
        self.assertEqual((code, out), (0, f"{self.home}\n0022\n{words}\n"))
        private = (self.home / ".svcd").stat().st_mode & 0o777
        self.assertEqual(private, 0o700)
        self.assertEqual(list((self.home / ".svcd").rglob("1/script")), [])
        self.assertEqual(self.ran("#!/bin/cat\nfirst line decides\n")[1].split()[0], "#!/bin/cat")

    def test_success_is_for_good_and_a_failure_for_one_request(self) -> None:
        for _ in range(2):
            self.assertEqual(self.ran("echo x >>log; echo why; exit 3"), (3, "why\n"))
        self.assertEqual(self.lines(), ["x"])
        self.assertEqual(self.ran("echo x >>log; echo why; exit 3", request=2), (3, "why\n"))
        self.assertEqual(self.lines(), ["x", "x"])
        for request in (3, 3, 4):
            self.assertEqual(self.ran("echo y >>log", request)[0], 0)
        self.assertEqual(self.lines(), ["x", "x", "y"])

    def test_second_command_waits_for_the_first(self) -> None:
        """Also when the first command, which is not the script's parent, is killed meanwhile."""
        text = "echo x >>log; sleep 1; echo over"
        first = self.begun(text)
        self.wait("log")
        second = self.begun(text)
        os.killpg(first.pid, signal.SIGKILL)
        self.end(first)
        self.assertEqual(self.end(second), (0, "over\n", ""))
        self.assertEqual(self.lines(), ["x"])

    def test_script_that_a_reboot_ended_runs_again(self) -> None:
        """Script, supervisor and command are gone; only the files are left."""
        parent = "$(ps -o ppid= -p "
        supervisor = f"{parent}{parent}{parent}$$)))"
        text = f"echo x >>log; [ -e again ] || {{ touch again; kill -9 {supervisor} 0; }}"
        code, _, err = self.end(self.begun(text))
        self.assertEqual((code, err.splitlines()[-1]), (75, "svcd: the script was interrupted"))
        said = f"disk full\n{err}"
        ended = CommandResult(exit_code=75, stdout="a\nb\n", stderr=said, host_key="")
        told = "the script was interrupted: disk full: a\nb"
        self.assertEqual(first_boot.interruption(ended), told)
        self.assertEqual(self.ran(text), (0, ""))
        self.assertEqual(self.lines(), ["x", "x"])

    def test_deadline_ends_the_whole_group(self) -> None:
        text = "trap '' TERM; echo $$ >pid; sleep 99 & echo begun; while :; do sleep 1; done"
        late = "begun\nnot done within 1 s: svcd ended it\n"
        self.assertEqual(self.ran(text, deadline_s=1.0), (124, late))
        self.assertTrue(self.over(int(self.lines("pid")[0])))

    def test_programs_of_root_hold_the_next_run_up_until_sudo_ends_them(self) -> None:
        """`sudo` is played by a set-uid copy of setpriv, first with its kill refused."""
        if os.getuid() != 0:
            raise SkipTest("needs root")
        programs = self.home.parent / "bin"
        shutil.copy(shutil.which("setpriv") or "none", programs / "as-root")
        (programs / "as-root").chmod(0o4755)
        sudo = programs / "sudo"
        sudo.write_text('#!/bin/sh\n[ $1 != -n ] || shift\nexec as-root --reuid 0 -- $0-do "$@"')
        sudo.chmod(0o755)
        allowed = programs / "sudo-do"
        allowed.write_text('#!/bin/sh\n[ "$1" != kill ] && exec "$@"\n')
        allowed.chmod(0o755)
        self.home.parent.chmod(0o755)
        self.home.chmod(0o777)
        self.user = 65534
        text = "echo x >>log; sudo sh -c 'echo $$ >pid; sleep 99'"
        code, out = self.ran(text, deadline_s=1.0)
        self.assertEqual(code, 124)
        self.assertRegex(out, r"svcd ended it, but programs of it still run \(process group \d+\)")
        code, _, err = self.end(self.begun(text, request=2))
        self.assertEqual(code, 75)
        self.assertRegex(err, r"svcd: end the programs of an earlier run: process group \d+")
        self.assertEqual(self.lines(), ["x"])
        allowed.write_text('#!/bin/sh\nexec "$@"\n')
        late = "not done within 1 s: svcd ended it\n"
        self.assertEqual(self.ran(text, request=3, deadline_s=1.0), (124, late))
        self.assertTrue(self.over(int(self.lines("pid")[0])))

    def test_left_processes_do_not_hold_svcd_up(self) -> None:
        """One of the script's group ends with it; one of another session keeps the output."""
        self.assertEqual(self.ran("sleep 99 & echo $! >pid; echo forked"), (0, "forked\n"))
        self.assertTrue(self.over(int(self.lines("pid")[0])))
        unknown = "its output is not known: a program of it has it open\n"
        self.assertEqual(self.ran("setsid sleep 6 & echo lost"), (0, unknown))

    def test_gigabyte_of_output_leaves_its_end(self) -> None:
        code, out = self.ran("head -c 1000000000 /dev/zero | tr '\\0' y; echo; echo end; exit 4")
        self.assertEqual((code, len(out), out[-6:]), (4, 16384, "y\nend\n"))
        used = sum(p.stat().st_size for p in self.home.rglob("*") if p.is_file())
        self.assertLess(used, 40_000)

    def test_script_that_removes_itself_or_kills_itself_has_its_code(self) -> None:
        self.assertEqual(self.ran('rm -f "$0"; echo gone; exit 5'), (5, "gone\n"))
        code, out = self.ran("kill -9 0")
        self.assertEqual((code, out.splitlines()[-1]), (137, "a signal ended the script"))

    def test_code_143_is_an_end(self) -> None:
        """Of a child that was killed, or of the whole group; the machine did not halt."""
        self.assertEqual(self.ran("echo why; exit 143"), (143, "why\n"))
        code, out = self.ran("echo why; kill 0", request=2)
        self.assertEqual((code, out.splitlines()[-1]), (143, "a signal ended the script"))

    def test_line_1_that_cannot_run_is_told(self) -> None:
        """In place of the shell's words, which say that the script is not there."""
        absent = "line 1 names /opt/none, which the machine does not have\n"
        self.assertEqual(self.ran("#! /opt/none -x\n"), (127, absent))
        ends = "line 1 ends with CR (Windows): save it with Unix line ends\n"
        self.assertEqual(self.ran("#!/bin/sh\r\necho x\r\n"), (127, ends))
        self.assertEqual(self.ran("#!\necho x\n"), (0, "x\n"))

    def test_code_that_cannot_be_written_is_known(self) -> None:
        """As on a full disk, where the file of the code is not there or empty."""
        text = 'echo x >>log; mkdir "${0%/*}/ended"; exit '
        self.assertEqual(self.ran(text + "6"), (6, self.ran(text + "6")[1]))
        self.assertEqual(self.ran(text + "0", request=2)[0], 0)
        self.assertEqual(self.lines(), ["x", "x"])

    def test_other_bytes_do_not_run(self) -> None:
        """For example the beginning of a script whose connection was lost."""
        code, out, err = self.end(self.begun("touch ran", sha256="0" * 64))
        self.assertEqual((code, out), (75, ""))
        self.assertEqual(err, "svcd: the script came with other bytes\n")
        self.assertFalse((self.home / "ran").exists())


class BashTests(FirstBootTests):
    """The same where bash is `sh` and the login shell."""

    shell = "bash"
    skip = None if shutil.which("bash") else "needs bash"
